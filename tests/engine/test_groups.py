"""Groups: members one by one or side by side, and what the failure of one means for the rest."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness import Bench
from headway.clock import SystemClock
from headway.core.groups import GroupStatus
from headway.core.model import WaitKind, shown
from headway.core.states import ACTIVE, Status
from headway.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    WaitDeadlockError,
)
from headway.grouping import (
    Plan,
    cancel,
    close,
    create,
    document,
    listing,
    submit_group,
)
from headway.rewinding import preview, rewind
from headway.store.base import Event, Lending
from headway.submission import Request
from headway.testing import FakeClock
from headway.views import why
from headway.waiting import refuse_deadlock

SECOND = 1_000_000
TRUE, FALSE = ("true",), ("false",)


def group_of(bench: Bench, *commands: Sequence[str], **plan: Any) -> tuple[str, list[int]]:
    """A whole group of these commands."""
    requests = [Request(argv=tuple(each)) for each in commands]
    made, submitted = submit_group(bench.client, requests, Plan(**plan))
    return f"group-{made.group}", [each.job_id for each in submitted]


def told(bench: Bench, kind: str) -> list[dict[str, Any]]:
    """What all events of a kind say."""
    with bench.store.read() as tx:
        events: list[Event] = tx.events_since(0, 100_000)
    return [dict(event.data) for event in events if event.kind == kind]


def status(bench: Bench, group: str) -> str:
    return str(document(bench.client, group)["status"])


def states(bench: Bench, jobs: Sequence[int]) -> list[Status]:
    return [bench.last(each).status for each in jobs]


def reasons(bench: Bench, jobs: Sequence[int]) -> list[str | None]:
    return [bench.last(each).reason for each in jobs]


# -- turns -----------------------------------------------------------------------------------------


@pytest.mark.req("D6")
def test_members_of_a_sequential_group_run_one_after_the_other(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=-1)
    line = bench.folder / "line"
    beside = bench.folder / "beside"
    script = (
        f"test -e {line} && touch {beside}; touch {line}; sleep 0.05; rm {line}; "
        f'echo "$HEADWAY_JOB_ID" >> {bench.folder}/order'
    )
    group, jobs = group_of(bench, *[("sh", "-c", script)] * 5)
    assert status(bench, group) == GroupStatus.RUNNING
    bench.until_ended(*jobs)
    assert not beside.exists(), "two of them ran at once"
    order = (bench.folder / "order").read_text().split()
    assert order == [shown(each) for each in jobs]
    assert status(bench, group) == GroupStatus.COMPLETED


def test_members_of_a_parallel_group_run_side_by_side(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=-1)
    meet = f"touch {bench.folder}/$HEADWAY_JOB_ID; until test -e {bench.folder}/go; do :; done"
    group, jobs = group_of(bench, *[("sh", "-c", meet)] * 3, mode="parallel")
    bench.until(lambda: all((bench.folder / shown(each)).exists() for each in jobs))
    (bench.folder / "go").touch()
    bench.until_ended(*jobs)
    assert status(bench, group) == GroupStatus.COMPLETED


def test_why_says_who_is_ahead(bench: Bench) -> None:
    bench.client.pause("look")
    group, jobs = group_of(bench, TRUE, TRUE, TRUE)
    bench.step()
    waiting = bench.job(jobs[2])
    assert waiting.status is Status.WAITING_ON_DEPS and waiting.wait is not None
    assert waiting.wait.kind is WaitKind.GROUP
    (objection, *_) = why(bench.client, jobs[2])["objections"]
    assert objection["detail"] == f"waiting for its turn in {group}, after {shown(jobs[1])}"
    assert f"wait for {shown(jobs[1])} (true, " in objection["remedy"]
    assert [each["id"] for each in objection["jobs"]] == [shown(jobs[1])]


def test_each_end_wakes_one_member(make_bench: Callable[..., Bench]) -> None:
    """So that a long group costs what it does, not what waits in it."""
    bench = make_bench()
    _, jobs = group_of(bench, *[TRUE] * 6)
    bench.until_ended(*jobs)
    for number, each in enumerate(jobs):
        kinds = bench.kinds(each)
        waits = [kind for kind in kinds if kind == "waiting_on_deps"]
        assert len(waits) == min(number, 1), kinds


def test_a_job_joins_at_the_end_and_waits_for_those_before_it(bench: Bench) -> None:
    bench.client.pause("look")
    made = create(bench.client, Plan(name="nightly"))
    one = bench.submit("true", group="nightly")
    two = bench.submit("true", group=str(made.group))
    three = bench.submit("true", group=f"group-{made.group}", last=True)
    bench.step()
    found = [bench.job(each) for each in (one, two, three)]
    assert [each.sequence_number for each in found] == [1, 2, 3]
    assert {each.group_id for each in found} == {made.group}
    assert [each.wait.kind for each in found[1:] if each.wait] == [WaitKind.GROUP] * 2
    bench.client.resume()
    bench.until_ended(one, two, three)
    assert status(bench, "nightly") == GroupStatus.COMPLETED
    assert told(bench, "group_closed") == [{"group": "group-1"}]


def test_a_member_that_waits_for_more_than_its_turn_says_the_first_reason(bench: Bench) -> None:
    bench.client.pause("look")
    before = bench.submit("true")
    create(bench.client, Plan(name="g"))
    one = bench.submit("true", group="g")
    two = bench.submit("true", group="g", after=(before,), require_approval=True)
    bench.step()
    kinds = [each["kind"] for each in why(bench.client, two)["objections"]]
    assert kinds[:3] == ["dependencies", "group", "approval"]
    assert bench.status(one) is Status.QUEUED


def test_who_is_awaited_lends_to_those_before_it(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    lender = bench.submit("sleep", "60")
    bench.step()
    _, jobs = group_of(bench, TRUE, TRUE)
    other = bench.submit("true", priority=5)
    bench.turn()
    with bench.store.write() as tx:
        tx.lend("t", Lending(lender, jobs[1], tx.now() + 3600 * SECOND))
    bench.until_ended(*jobs)
    assert states(bench, jobs) == [Status.SUCCEEDED] * 2
    assert bench.status(other) is Status.QUEUED


def test_a_member_cannot_wait_for_one_whose_turn_comes_after_it(bench: Bench) -> None:
    _, jobs = group_of(bench, ("sleep", "60"), TRUE, TRUE)
    bench.until(lambda: bench.status(jobs[0]) is Status.RUNNING)
    with bench.store.read() as tx, pytest.raises(WaitDeadlockError, match="which waits for it"):
        refuse_deadlock(tx, jobs[0], jobs[2])


# -- retries ---------------------------------------------------------------------------------------


@pytest.mark.req("D19", "D6")
def test_a_group_waits_for_the_retries_of_a_member(make_bench: Callable[..., Bench]) -> None:
    """It fails twice and succeeds at the second retry: the group has not failed."""
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock, max_active=-1)
    counts = f"echo x >> {bench.folder}/tries; test $(wc -l < {bench.folder}/tries) = 3"
    requests = [
        Request(argv=("true",)),
        Request(shell=counts, retries=2, retry_base=10 * SECOND),
        Request(argv=("true",)),
    ]
    made, submitted = submit_group(bench.client, requests)
    group = f"group-{made.group}"
    _, second, third = [each.job_id for each in submitted]
    for attempt, delay in ((2, 10), (3, 20)):
        bench.until(lambda attempt=attempt: bench.last(second).attempt == attempt)
        assert status(bench, group) == GroupStatus.RUNNING and not told(bench, "group_ended")
        bench.step()
        waiting = bench.job(third)
        assert waiting.status is Status.WAITING_ON_DEPS and waiting.wait is not None
        assert waiting.wait.detail.endswith(shown(second))
        assert (bench.last(second).not_before or 0) > clock.now()
        clock.advance(delay)
    bench.until_ended(second, third)
    assert states(bench, [second, third]) == [Status.SUCCEEDED] * 2
    assert status(bench, group) == GroupStatus.COMPLETED
    assert told(bench, "group_ended") == [
        {"group": group, "status": "COMPLETED", "members": 3, "succeeded": 3}
    ]


@pytest.mark.req("D18", "E29")
def test_after_the_last_retry_the_rest_is_cancelled(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    requests = [
        Request(argv=("true",)),
        Request(argv=("false",), retries=1, retry_base=10 * SECOND),
        Request(argv=("true",)),
        Request(argv=("true",)),
    ]
    made, submitted = submit_group(bench.client, requests)
    jobs = [each.job_id for each in submitted]
    bench.until(lambda: bench.last(jobs[1]).attempt == 2)
    assert bench.status(jobs[2]) in ACTIVE
    clock.advance(10)
    bench.until_ended(*jobs)
    assert states(bench, jobs) == [
        Status.SUCCEEDED,
        Status.FAILED,
        Status.CANCELLED,
        Status.CANCELLED,
    ]
    assert reasons(bench, jobs[2:]) == ["predecessor failed"] * 2
    assert [bench.client.document(each)["run"] for each in jobs[2:]] == [None, None]
    assert status(bench, f"group-{made.group}") == GroupStatus.PARTIAL
    (ended,) = told(bench, "group_ended")
    assert (ended["status"], ended["cancelled"], ended["failed"]) == ("PARTIAL", 2, 1)


# -- failure policies ------------------------------------------------------------------------------


@pytest.mark.req("E29", "D19")
@pytest.mark.parametrize(
    ("on_failure", "rest", "reason"),
    [
        ("stop", Status.CANCELLED, "predecessor failed"),
        ("continue", Status.SUCCEEDED, None),
        ("skip", Status.SKIPPED, "skipped: job-2 of group-1 failed"),
    ],
)
def test_the_policy_decides_about_the_rest(
    bench: Bench, on_failure: str, rest: Status, reason: str | None
) -> None:
    group, jobs = group_of(bench, TRUE, FALSE, TRUE, TRUE, on_failure=on_failure)
    bench.until_ended(*jobs)
    assert states(bench, jobs) == [Status.SUCCEEDED, Status.FAILED, rest, rest]
    assert reasons(bench, jobs[2:]) == [reason, reason]
    assert status(bench, group) == GroupStatus.PARTIAL


def test_stop_is_the_default_and_one_that_was_skipped_has_not_failed(bench: Bench) -> None:
    requests = [Request(shell="exit 7", skip_exit_codes=(7,)), Request(argv=("true",))]
    made, submitted = submit_group(bench.client, requests)
    jobs = [each.job_id for each in submitted]
    bench.until_ended(*jobs)
    assert states(bench, jobs) == [Status.SKIPPED, Status.SUCCEEDED]
    assert document(bench.client, f"group-{made.group}")["on_failure"] == "stop"
    assert status(bench, f"group-{made.group}") == GroupStatus.COMPLETED


def test_in_a_parallel_group_what_has_not_begun_is_the_rest_and_what_runs_goes_on(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=2)
    hold = ("sh", "-c", f"until test -e {bench.folder}/go; do :; done")
    group, jobs = group_of(bench, hold, FALSE, TRUE, TRUE, mode="parallel")
    bench.until(lambda: bench.status(jobs[1]) is Status.FAILED)
    assert states(bench, jobs[2:]) == [Status.CANCELLED] * 2
    assert reasons(bench, jobs[2:]) == [f"{shown(jobs[1])} of {group} failed"] * 2
    assert bench.status(jobs[0]) is Status.RUNNING and not told(bench, "group_ended")
    (bench.folder / "go").touch()
    bench.until_ended(*jobs)
    assert bench.status(jobs[0]) is Status.SUCCEEDED
    assert status(bench, group) == GroupStatus.PARTIAL


def test_a_member_that_waits_for_its_retry_is_under_way(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    once = f"test -e {bench.folder}/once || {{ touch {bench.folder}/once; exit 1; }}"
    requests = [
        Request(shell=once, retries=1, retry_base=10 * SECOND),
        Request(argv=("false",)),
        Request(argv=("true",)),
    ]
    _, submitted = submit_group(bench.client, requests, Plan(mode="parallel"))
    jobs = [each.job_id for each in submitted]
    bench.until(lambda: bench.status(jobs[1]) is Status.FAILED)
    assert bench.status(jobs[2]) is Status.CANCELLED
    assert bench.last(jobs[0]).status is Status.QUEUED
    clock.advance(10)
    bench.until_ended(jobs[0])
    assert bench.last(jobs[0]).status is Status.SUCCEEDED


def test_a_member_that_a_person_cancels_has_failed(bench: Bench) -> None:
    bench.client.pause("look")
    group, jobs = group_of(bench, TRUE, TRUE, TRUE)
    bench.step()
    bench.client.cancel([jobs[1]])
    assert states(bench, jobs) == [Status.QUEUED, Status.CANCELLED, Status.CANCELLED]
    assert reasons(bench, jobs[1:]) == ["cancelled by tester", "predecessor failed"]
    bench.client.resume()
    bench.until_ended(*jobs)
    assert status(bench, group) == GroupStatus.PARTIAL


def test_a_member_that_is_blocked_has_failed(bench: Bench) -> None:
    broken = bench.submit("false")
    create(bench.client, Plan(name="g"))
    one = bench.submit("true", group="g", after=(broken,))
    two = bench.submit("true", group="g", last=True)
    bench.until_ended(one, two)
    assert states(bench, [one, two]) == [Status.BLOCKED_BY_DEPENDENCY, Status.CANCELLED]
    assert status(bench, "g") == GroupStatus.CANCELLED, "nothing of it ever ran"


def test_what_comes_after_a_cancelled_rest_is_told(bench: Bench) -> None:
    group, jobs = group_of(bench, FALSE, TRUE)
    after = bench.submit("true", after=(jobs[1],))
    bench.until_ended(*jobs, after)
    assert bench.status(after) is Status.BLOCKED_BY_DEPENDENCY
    assert status(bench, group) == GroupStatus.PARTIAL


def test_a_failure_in_a_group_of_thousands_ends_them_all(bench: Bench) -> None:
    group, jobs = group_of(bench, FALSE, *[TRUE] * 2000)
    bench.until_ended(jobs[0], jobs[-1])
    counts = document(bench.client, group)["counts"]
    assert counts == {"cancelled": 2000, "failed": 1}
    assert len(told(bench, "group_ended")) == 1


def test_a_member_whose_row_cannot_be_read_has_failed(bench: Bench) -> None:
    bench.client.pause("look")
    group, jobs = group_of(bench, TRUE, TRUE)
    with bench.store.write():
        bench.store.database.execute(  # type: ignore[attr-defined]
            f"update jobs set params = '[' where id = {jobs[0]}", {}
        )
    bench.client.resume()
    bench.step()
    with bench.store.read() as tx:
        assert tx.jobs([jobs[1]])[jobs[1]].status is Status.CANCELLED
    assert status(bench, group) == GroupStatus.PARTIAL


# -- open and closed -------------------------------------------------------------------------------


def test_an_open_group_has_not_ended_though_its_members_have(bench: Bench) -> None:
    create(bench.client, Plan(name="g"))
    one = bench.submit("true", group="g")
    bench.until_ended(one)
    assert status(bench, "g") == GroupStatus.RUNNING and not told(bench, "group_ended")
    two = bench.submit("true", group="g")
    bench.until_ended(two)
    group, now = close(bench.client, "g")
    assert (group.closed_at, now) == (None, GroupStatus.COMPLETED)
    assert len(told(bench, "group_ended")) == 1
    again, now = close(bench.client, "g")
    assert again.closed_at is not None and now is GroupStatus.COMPLETED
    assert len(told(bench, "group_ended")) == len(told(bench, "group_closed")) == 1


def test_a_closed_group_takes_no_one(bench: Bench) -> None:
    create(bench.client, Plan(name="g"))
    bench.submit("true", group="g", last=True)
    with pytest.raises(ConflictError, match=r"group-1 \(g\) is closed \(RUNNING\)"):
        bench.submit("true", group="g")
    with pytest.raises(NotFoundError, match="there is no group 'other'"):
        bench.submit("true", group="other")
    with pytest.raises(NotFoundError, match="there is no group-7"):
        bench.submit("true", group="7")
    with pytest.raises(InvalidInputError, match="stands behind the last job"):
        create(bench.client, Plan(name="h"))
        requests = [Request(argv=TRUE, group="h", last=True), Request(argv=TRUE, group="h")]
        bench.client.submit_many(requests)
    assert len(bench.client.listing()) == 1


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_group_that_has_stopped_takes_no_one_until_the_failed_is_retried(
    bench: Bench, mode: str
) -> None:
    create(bench.client, Plan(name="g", mode=mode))
    one = bench.submit("sh", "-c", f"test -e {bench.folder}/go", group="g")
    bench.until_ended(one)
    with pytest.raises(ConflictError, match=f"has stopped: job-{one} is failed.*retry job-{one}"):
        bench.submit("true", group="g")
    (bench.folder / "go").touch()
    rewind(bench.client, one)
    two = bench.submit("true", group="g", last=True)
    bench.until_ended(one, two)
    assert status(bench, "g") == GroupStatus.COMPLETED


def test_a_group_that_goes_on_after_failures_takes_more(bench: Bench) -> None:
    create(bench.client, Plan(name="g", on_failure="continue"))
    one = bench.submit("false", group="g")
    bench.until_ended(one)
    two = bench.submit("true", group="g", last=True)
    bench.until_ended(two)
    assert bench.status(two) is Status.SUCCEEDED
    assert status(bench, "g") == GroupStatus.PARTIAL


def test_a_key_seen_before_names_the_member_also_when_the_group_is_closed(bench: Bench) -> None:
    create(bench.client, Plan(name="g"))
    one = bench.submit("true", group="g", last=True, key="k")
    assert bench.submit("true", group="g", last=True, key="k") == one
    assert document(bench.client, "g")["total"] == 1


def test_a_name_is_free_when_its_group_has_ended(bench: Bench) -> None:
    first = create(bench.client, Plan(name="g"))
    with pytest.raises(ConflictError, match=r"group-1 \(g\) has not ended"):
        create(bench.client, Plan(name="g"))
    one = bench.submit("false", group="g", last=True)
    bench.until_ended(one)
    second = create(bench.client, Plan(name="g"))
    assert document(bench.client, "g")["id"] == f"group-{second.group}"
    rewind(bench.client, one)
    bench.until_ended(one)
    assert status(bench, str(first.group)) == GroupStatus.PARTIAL, "it could run again all the same"


@pytest.mark.parametrize(
    ("plan", "wrong"),
    [
        ({"name": "group-3"}, "looks like the id"),
        ({"name": "7"}, "looks like the id"),
        ({"name": " "}, "printable"),
        ({"name": "x" * 201}, "printable"),
        ({"name": "a\nb"}, "printable"),
        ({"mode": "both"}, "is not one of sequential, parallel"),
        ({"on_failure": "shrug"}, "is not one of stop, continue, skip"),
    ],
)
def test_a_group_that_makes_no_sense_is_refused(
    bench: Bench, plan: dict[str, Any], wrong: str
) -> None:
    with pytest.raises(InvalidInputError, match=wrong):
        create(bench.client, Plan(**plan))
    assert listing(bench.client, everything=True) == []


def test_a_whole_group_is_made_or_nothing(bench: Bench) -> None:
    for requests, wrong in (
        ([Request(argv=TRUE), Request(argv=("no-such-program-at-all",))], "no-such-program"),
        ([Request(argv=TRUE, key="k")], "has a key"),
        ([Request(argv=TRUE, group="g")], "names another group"),
        ([], "at least one job"),
    ):
        with pytest.raises(InvalidInputError, match=wrong):
            submit_group(bench.client, requests)
    assert bench.client.listing() == [] and listing(bench.client) == []


# -- made of waiting jobs --------------------------------------------------------------------------


def test_waiting_jobs_become_a_group_in_the_given_order(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=-1)
    bench.client.pause("look")
    say = f'echo "$HEADWAY_JOB_ID" >> {bench.folder}/order'
    jobs = [bench.submit(shell=say) for _ in range(3)]
    bench.step()
    made = create(bench.client, Plan(), jobs[::-1])
    assert document(bench.client, str(made.group))["closed_at"] is not None, "it is whole"
    bench.client.resume()
    bench.until_ended(*jobs)
    order = (bench.folder / "order").read_text().split()
    assert order == [shown(each) for each in jobs[::-1]]
    assert status(bench, str(made.group)) == GroupStatus.COMPLETED


def test_a_group_of_waiting_jobs_may_stay_open(bench: Bench) -> None:
    bench.client.pause("look")
    one = bench.submit("true")
    create(bench.client, Plan(name="g"), [one], stays_open=True)
    two = bench.submit("true", group="g", last=True)
    assert bench.job(two).sequence_number == 2


def test_only_waiting_jobs_without_a_group_become_one(bench: Bench) -> None:
    ended = bench.submit("true")
    bench.until_ended(ended)
    bench.client.pause("look")
    free = bench.submit("true")
    _, (member,) = group_of(bench, TRUE)
    for ids, error, wrong in (
        ([free, ended], ConflictError, f"job-{ended} is succeeded"),
        ([free, member], ConflictError, f"job-{member} is a member of group-1"),
        ([free, free], InvalidInputError, "named twice"),
        ([free, 99], NotFoundError, "there is no job-99"),
    ):
        with pytest.raises(error, match=wrong):
            create(bench.client, Plan(), ids)
    assert bench.job(free).group_id is None
    assert [each["id"] for each in listing(bench.client)] == ["group-1"]


# -- cycles ----------------------------------------------------------------------------------------


def test_jobs_whose_turns_contradict_what_they_wait_for_are_no_group(bench: Bench) -> None:
    bench.client.pause("look")
    one = bench.submit("true", produces=("custom:a:x",))
    between = bench.submit("true", needs=("custom:a:x",))
    two = bench.submit("true", after=(between,))
    with pytest.raises(InvalidInputError, match=r"a cycle: .*turn in a group"):
        create(bench.client, Plan(), [two, one])
    create(bench.client, Plan(mode="parallel"), [two, one])
    bench.client.resume()
    bench.until_ended(one, two)
    assert states(bench, [one, two]) == [Status.SUCCEEDED] * 2


def test_a_new_member_may_not_make_what_an_earlier_one_waits_for(bench: Bench) -> None:
    create(bench.client, Plan(name="g"))
    maker = bench.submit("true", produces=("custom:a:x",), delay=3600 * SECOND)
    one = bench.submit("true", group="g", needs=("custom:a:x",))
    with pytest.raises(InvalidInputError, match="a cycle: "):
        bench.client.cancel([maker])
        bench.submit("true", group="g", produces=("custom:a:x",))
    assert document(bench.client, "g")["total"] == 1
    assert bench.job(one).group_id == 1


def test_a_cycle_through_the_turns_of_another_group_is_found(bench: Bench) -> None:
    """q waits for p by turn, p for second, second for first by turn, first for what q makes."""
    bench.client.pause("look")
    create(bench.client, Plan(name="g"))
    q = bench.submit("true", name="q", produces=("custom:a:x",))
    bench.submit("true", name="first", group="g", needs=("custom:a:x",))
    second = bench.submit("true", name="second", group="g")
    p = bench.submit("true", name="p", after=(second,))
    with pytest.raises(InvalidInputError, match=r"a cycle: .*second.*first"):
        create(bench.client, Plan(name="h"), [p, q])
    create(bench.client, Plan(name="h"), [p], stays_open=True)
    with pytest.raises(InvalidInputError, match=r"a cycle: "):
        bench.client.cancel([q])
        bench.submit("true", group="h", produces=("custom:a:x",))


def test_a_graph_whose_members_stand_in_the_wrong_order_is_refused(bench: Bench) -> None:
    requests = [
        Request(argv=TRUE, local="late", after=("early",)),
        Request(argv=TRUE, local="early"),
    ]
    with pytest.raises(InvalidInputError, match="a cycle: late -> early -> late"):
        submit_group(bench.client, requests)
    assert bench.client.listing() == [] and listing(bench.client) == []
    submit_group(bench.client, requests, Plan(mode="parallel"))
    submit_group(bench.client, requests[::-1])


# -- cancel and rewind -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_cancelled_group_ends_with_its_running_members(bench: Bench, mode: str) -> None:
    begin = ("sh", "-c", f"touch {bench.folder}/begun; sleep 60")
    group, jobs = group_of(bench, begin, TRUE, TRUE, mode=mode, on_failure="skip")
    bench.until((bench.folder / "begun").exists)
    _, done = cancel(bench.client, group)
    assert [each.job_id for each in done] == jobs
    assert states(bench, jobs[1:]) == [Status.CANCELLED] * 2
    assert reasons(bench, jobs[1:]) == ["cancelled by tester"] * 2, "it was a person, no policy"
    bench.until_ended(*jobs)
    assert status(bench, group) == GroupStatus.PARTIAL
    with pytest.raises(ConflictError, match=r"group-1 has already ended \(PARTIAL\)"):
        cancel(bench.client, group)


def test_a_group_that_is_cancelled_before_anything_ran_is_cancelled(bench: Bench) -> None:
    create(bench.client, Plan(name="g"))
    bench.client.pause("look")
    jobs = [bench.submit("true", group="g") for _ in range(3)]
    cancel(bench.client, "g")
    assert states(bench, jobs) == [Status.CANCELLED] * 3
    assert status(bench, "g") == GroupStatus.CANCELLED
    (ended,) = told(bench, "group_ended")
    assert (ended["status"], ended["name"]) == ("CANCELLED", "g")
    create(bench.client, Plan(name="empty"))
    cancel(bench.client, "empty")
    assert status(bench, "empty") == GroupStatus.CANCELLED


def test_what_is_cancelled_together_ends_for_that_reason(bench: Bench) -> None:
    bench.client.pause("look")
    _, jobs = group_of(bench, TRUE, TRUE, TRUE, on_failure="skip")
    bench.client.cancel([jobs[0], jobs[1]])
    assert reasons(bench, jobs[:2]) == ["cancelled by tester"] * 2
    assert bench.status(jobs[2]) is Status.SKIPPED


def test_downstream_of_a_member_are_those_behind_it(bench: Bench) -> None:
    bench.client.pause("look")
    _, jobs = group_of(bench, TRUE, TRUE, TRUE)
    after = bench.submit("true", after=(jobs[2],))
    _, others = group_of(bench, TRUE, TRUE, mode="parallel")
    done = bench.client.cancel_downstream([jobs[1], others[0]])
    assert [each.job_id for each in done] == [jobs[1], others[0], jobs[2], after]
    assert bench.status(jobs[0]) is Status.QUEUED
    assert reasons(bench, [jobs[2], after]) == ["cancelled by tester"] * 2
    assert reasons(bench, others[1:]) == [f"{shown(others[0])} of group-2 failed"]


def test_a_rewind_takes_the_later_members_along_and_the_group_ends_again(bench: Bench) -> None:
    need = ("sh", "-c", f"test -e {bench.folder}/go")
    group, jobs = group_of(bench, TRUE, need, TRUE, TRUE)
    bench.until_ended(*jobs)
    assert status(bench, group) == GroupStatus.PARTIAL
    assert preview(bench.client, jobs[1]).members == tuple(jobs[1:])
    (bench.folder / "go").touch()
    rewound = rewind(bench.client, jobs[1])
    assert rewound.members == tuple(jobs[1:])
    assert status(bench, group) == GroupStatus.RUNNING
    new = [bench.last(each) for each in jobs[1:]]
    assert [(each.group_id, each.sequence_number) for each in new] == [(1, 2), (1, 3), (1, 4)]
    bench.until_ended(*jobs)
    assert states(bench, jobs) == [Status.SUCCEEDED] * 4
    starts = [bench.last(each).started_at or 0 for each in jobs[1:]]
    assert starts == sorted(starts)
    assert status(bench, group) == GroupStatus.COMPLETED
    assert [each["status"] for each in told(bench, "group_ended")] == ["PARTIAL", "COMPLETED"]


def test_a_rewind_is_refused_while_a_later_member_runs(bench: Bench) -> None:
    group, jobs = group_of(bench, FALSE, ("sleep", "60"), on_failure="continue")
    bench.until(lambda: bench.status(jobs[1]) is Status.RUNNING)
    with pytest.raises(ConflictError, match=f"job-{jobs[1]} is running"):
        rewind(bench.client, jobs[0])
    assert status(bench, group) == GroupStatus.RUNNING


# -- a crash ---------------------------------------------------------------------------------------


def test_a_group_goes_on_after_a_crash(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    hold = ("sh", "-c", f"until test -e {bench.folder}/go; do :; done")
    group, jobs = group_of(bench, hold, TRUE)
    bench.until(lambda: bench.status(jobs[0]) is Status.RUNNING)
    bench.crash()
    (bench.folder / "go").touch()
    bench.engine.recover()
    bench.until_ended(*jobs)
    assert states(bench, jobs) == [Status.SUCCEEDED] * 2
    assert status(bench, group) == GroupStatus.COMPLETED
