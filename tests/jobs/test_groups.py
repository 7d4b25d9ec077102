"""Groups: members one by one or side by side, and what the failure of one means for the rest."""

from collections.abc import Callable

import pytest

from grouped import FALSE, SECOND, TRUE, group_of, reasons, states, status, told
from harness import Bench
from headway.base.clock import SystemClock
from headway.base.errors import (
    WaitDeadlockError,
)
from headway.core.groups import GroupStatus
from headway.core.model import WaitKind, shown
from headway.core.states import ACTIVE, Status
from headway.jobs.groups import (
    Plan,
    create,
    document,
    submit_group,
)
from headway.jobs.request import Request
from headway.jobs.views.why import why
from headway.jobs.wait import refuse_deadlock
from headway.store.records import Lending
from headway.testing.clock import FakeClock

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
    (objection, *_) = why(bench.client.context, jobs[2])["objections"]
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
    made = create(bench.client.context, Plan(name="nightly"))
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
    create(bench.client.context, Plan(name="g"))
    one = bench.submit("true", group="g")
    two = bench.submit("true", group="g", after=(before,), require_approval=True)
    bench.step()
    kinds = [each["kind"] for each in why(bench.client.context, two)["objections"]]
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
        tx.claims.lend("t", Lending(lender, jobs[1], tx.now() + 3600 * SECOND))
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
    made, submitted = submit_group(bench.client.context, requests)
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
    made, submitted = submit_group(bench.client.context, requests)
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
    made, submitted = submit_group(bench.client.context, requests)
    jobs = [each.job_id for each in submitted]
    bench.until_ended(*jobs)
    assert states(bench, jobs) == [Status.SKIPPED, Status.SUCCEEDED]
    assert document(bench.client.context, f"group-{made.group}")["on_failure"] == "stop"
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


def test_a_member_that_waits_for_its_cooldown_is_under_way(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock, max_active=2)
    bench.client.set_setting("scheduler.cooldown", "1h")
    go = f"until test -e {bench.folder}/go; do :; done; exit 1"
    requests = [Request(argv=("/no/such/program",), check=False), Request(shell=go)]
    _, submitted = submit_group(bench.client.context, requests, Plan(mode="parallel"))
    struck, failing = (each.job_id for each in submitted)
    for strike in (1, 2):
        bench.until(lambda strike=strike: bench.job(struck).launch_failures == strike)
        clock.advance(10)
    bench.until(lambda: bench.last(struck).attempt == 2)
    (bench.folder / "go").touch()
    bench.until_ended(failing)
    assert bench.last(struck).status is Status.QUEUED


def test_a_member_that_waits_for_its_retry_is_under_way(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    once = f"test -e {bench.folder}/once || {{ touch {bench.folder}/once; exit 1; }}"
    requests = [
        Request(shell=once, retries=1, retry_base=10 * SECOND),
        Request(argv=("false",)),
        Request(argv=("true",)),
    ]
    _, submitted = submit_group(bench.client.context, requests, Plan(mode="parallel"))
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
    create(bench.client.context, Plan(name="g"))
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
    counts = document(bench.client.context, group)["counts"]
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
        assert tx.jobs.by_id([jobs[1]])[jobs[1]].status is Status.CANCELLED
    assert status(bench, group) == GroupStatus.PARTIAL


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
