"""Who is in a group: open and closed ones, made of waiting jobs, cancelled, rewound; and cycles."""

from collections.abc import Callable
from typing import Any

import pytest

from grouped import FALSE, SECOND, TRUE, group_of, reasons, states, status, told
from harness import Bench
from headway.base.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
)
from headway.core.groups import GroupStatus
from headway.core.model import shown
from headway.core.states import Status
from headway.jobs.groups import (
    Plan,
    cancel,
    close,
    create,
    document,
    listing,
    submit_group,
)
from headway.jobs.request import Request
from headway.jobs.retry import preview, rewind

# -- open and closed -------------------------------------------------------------------------------


def test_an_open_group_has_not_ended_though_its_members_have(bench: Bench) -> None:
    create(bench.client.context, Plan(name="g"))
    one = bench.submit("true", group="g")
    bench.until_ended(one)
    assert status(bench, "g") == GroupStatus.RUNNING and not told(bench, "group_ended")
    two = bench.submit("true", group="g")
    bench.until_ended(two)
    group, now = close(bench.client.context, "g")
    assert (group.closed_at, now) == (None, GroupStatus.COMPLETED)
    assert len(told(bench, "group_ended")) == 1
    again, now = close(bench.client.context, "g")
    assert again.closed_at is not None and now is GroupStatus.COMPLETED
    assert len(told(bench, "group_ended")) == len(told(bench, "group_closed")) == 1


def test_a_closed_group_takes_no_one(bench: Bench) -> None:
    create(bench.client.context, Plan(name="g"))
    bench.submit("true", group="g", last=True)
    with pytest.raises(ConflictError, match=r"group-1 \(g\) is closed \(RUNNING\)"):
        bench.submit("true", group="g")
    with pytest.raises(NotFoundError, match="there is no group 'other'"):
        bench.submit("true", group="other")
    with pytest.raises(NotFoundError, match="there is no group-7"):
        bench.submit("true", group="7")
    with pytest.raises(InvalidInputError, match="stands behind the last job"):
        create(bench.client.context, Plan(name="h"))
        requests = [Request(argv=TRUE, group="h", last=True), Request(argv=TRUE, group="h")]
        bench.client.submit_many(requests)
    assert len(bench.client.listing()) == 1


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_group_that_has_stopped_takes_no_one_until_the_failed_is_retried(
    bench: Bench, mode: str
) -> None:
    create(bench.client.context, Plan(name="g", mode=mode))
    one = bench.submit("sh", "-c", f"test -e {bench.folder}/go", group="g")
    bench.until_ended(one)
    with pytest.raises(ConflictError, match=f"has stopped: job-{one} is failed.*retry job-{one}"):
        bench.submit("true", group="g")
    (bench.folder / "go").touch()
    rewind(bench.client.context, one)
    two = bench.submit("true", group="g", last=True)
    bench.until_ended(one, two)
    assert status(bench, "g") == GroupStatus.COMPLETED


def test_a_group_that_goes_on_after_failures_takes_more(bench: Bench) -> None:
    create(bench.client.context, Plan(name="g", on_failure="continue"))
    one = bench.submit("false", group="g")
    bench.until_ended(one)
    two = bench.submit("true", group="g", last=True)
    bench.until_ended(two)
    assert bench.status(two) is Status.SUCCEEDED
    assert status(bench, "g") == GroupStatus.PARTIAL


def test_a_key_seen_before_names_the_member_also_when_the_group_is_closed(bench: Bench) -> None:
    create(bench.client.context, Plan(name="g"))
    one = bench.submit("true", group="g", last=True, key="k")
    assert bench.submit("true", group="g", last=True, key="k") == one
    assert document(bench.client.context, "g")["total"] == 1


def test_a_name_is_free_when_its_group_has_ended(bench: Bench) -> None:
    first = create(bench.client.context, Plan(name="g"))
    with pytest.raises(ConflictError, match=r"group-1 \(g\) has not ended"):
        create(bench.client.context, Plan(name="g"))
    one = bench.submit("false", group="g", last=True)
    bench.until_ended(one)
    second = create(bench.client.context, Plan(name="g"))
    assert document(bench.client.context, "g")["id"] == f"group-{second.group}"
    rewind(bench.client.context, one)
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
        create(bench.client.context, Plan(**plan))
    assert listing(bench.client.context, everything=True) == []


def test_a_whole_group_is_made_or_nothing(bench: Bench) -> None:
    for requests, wrong in (
        ([Request(argv=TRUE), Request(argv=("no-such-program-at-all",))], "no-such-program"),
        ([Request(argv=TRUE, key="k")], "has a key"),
        ([Request(argv=TRUE, group="g")], "names another group"),
        ([], "at least one job"),
    ):
        with pytest.raises(InvalidInputError, match=wrong):
            submit_group(bench.client.context, requests)
    assert bench.client.listing() == [] and listing(bench.client.context) == []


# -- made of waiting jobs --------------------------------------------------------------------------


def test_waiting_jobs_become_a_group_in_the_given_order(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=-1)
    bench.client.pause("look")
    say = f'echo "$HEADWAY_JOB_ID" >> {bench.folder}/order'
    jobs = [bench.submit(shell=say) for _ in range(3)]
    bench.step()
    made = create(bench.client.context, Plan(), jobs[::-1])
    assert document(bench.client.context, str(made.group))["closed_at"] is not None, "it is whole"
    bench.client.resume()
    bench.until_ended(*jobs)
    order = (bench.folder / "order").read_text().split()
    assert order == [shown(each) for each in jobs[::-1]]
    assert status(bench, str(made.group)) == GroupStatus.COMPLETED


def test_a_group_of_waiting_jobs_may_stay_open(bench: Bench) -> None:
    bench.client.pause("look")
    one = bench.submit("true")
    create(bench.client.context, Plan(name="g"), [one], stays_open=True)
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
            create(bench.client.context, Plan(), ids)
    assert bench.job(free).group_id is None
    assert [each["id"] for each in listing(bench.client.context)] == ["group-1"]


# -- cycles ----------------------------------------------------------------------------------------


def test_jobs_whose_turns_contradict_what_they_wait_for_are_no_group(bench: Bench) -> None:
    bench.client.pause("look")
    one = bench.submit("true", produces=("custom:a:x",))
    between = bench.submit("true", needs=("custom:a:x",))
    two = bench.submit("true", after=(between,))
    with pytest.raises(InvalidInputError, match=r"a cycle: .*turn in a group"):
        create(bench.client.context, Plan(), [two, one])
    create(bench.client.context, Plan(mode="parallel"), [two, one])
    bench.client.resume()
    bench.until_ended(one, two)
    assert states(bench, [one, two]) == [Status.SUCCEEDED] * 2


def test_a_new_member_may_not_make_what_an_earlier_one_waits_for(bench: Bench) -> None:
    create(bench.client.context, Plan(name="g"))
    maker = bench.submit("true", produces=("custom:a:x",), delay=3600 * SECOND)
    one = bench.submit("true", group="g", needs=("custom:a:x",))
    with pytest.raises(InvalidInputError, match="a cycle: "):
        bench.client.cancel([maker])
        bench.submit("true", group="g", produces=("custom:a:x",))
    assert document(bench.client.context, "g")["total"] == 1
    assert bench.job(one).group_id == 1


def test_a_cycle_through_the_turns_of_another_group_is_found(bench: Bench) -> None:
    """q waits for p by turn, p for second, second for first by turn, first for what q makes."""
    bench.client.pause("look")
    create(bench.client.context, Plan(name="g"))
    q = bench.submit("true", name="q", produces=("custom:a:x",))
    bench.submit("true", name="first", group="g", needs=("custom:a:x",))
    second = bench.submit("true", name="second", group="g")
    p = bench.submit("true", name="p", after=(second,))
    with pytest.raises(InvalidInputError, match=r"a cycle: .*second.*first"):
        create(bench.client.context, Plan(name="h"), [p, q])
    create(bench.client.context, Plan(name="h"), [p], stays_open=True)
    with pytest.raises(InvalidInputError, match=r"a cycle: "):
        bench.client.cancel([q])
        bench.submit("true", group="h", produces=("custom:a:x",))


def test_a_graph_whose_members_stand_in_the_wrong_order_is_refused(bench: Bench) -> None:
    requests = [
        Request(argv=TRUE, local="late", after=("early",)),
        Request(argv=TRUE, local="early"),
    ]
    with pytest.raises(InvalidInputError, match="a cycle: late -> early -> late"):
        submit_group(bench.client.context, requests)
    assert bench.client.listing() == [] and listing(bench.client.context) == []
    submit_group(bench.client.context, requests, Plan(mode="parallel"))
    submit_group(bench.client.context, requests[::-1])


# -- cancel and rewind -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_cancelled_group_ends_with_its_running_members(bench: Bench, mode: str) -> None:
    begin = ("sh", "-c", f"touch {bench.folder}/begun; sleep 60")
    group, jobs = group_of(bench, begin, TRUE, TRUE, mode=mode, on_failure="skip")
    bench.until((bench.folder / "begun").exists)
    _, done = cancel(bench.client.context, group)
    assert [each.job_id for each in done] == jobs
    assert states(bench, jobs[1:]) == [Status.CANCELLED] * 2
    assert reasons(bench, jobs[1:]) == ["cancelled by tester"] * 2, "it was a person, no policy"
    bench.until_ended(*jobs)
    assert status(bench, group) == GroupStatus.PARTIAL
    with pytest.raises(ConflictError, match=r"group-1 has already ended \(PARTIAL\)"):
        cancel(bench.client.context, group)


def test_a_group_that_is_cancelled_before_anything_ran_is_cancelled(bench: Bench) -> None:
    create(bench.client.context, Plan(name="g"))
    bench.client.pause("look")
    jobs = [bench.submit("true", group="g") for _ in range(3)]
    cancel(bench.client.context, "g")
    assert states(bench, jobs) == [Status.CANCELLED] * 3
    assert status(bench, "g") == GroupStatus.CANCELLED
    (ended,) = told(bench, "group_ended")
    assert (ended["status"], ended["name"]) == ("CANCELLED", "g")
    create(bench.client.context, Plan(name="empty"))
    cancel(bench.client.context, "empty")
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
    done = bench.client.jobs.cancel_downstream([jobs[1], others[0]])
    assert [each.job_id for each in done] == [jobs[1], others[0], jobs[2], after]
    assert bench.status(jobs[0]) is Status.QUEUED
    assert reasons(bench, [jobs[2], after]) == ["cancelled by tester"] * 2
    assert reasons(bench, others[1:]) == [f"{shown(others[0])} of group-2 failed"]


def test_a_rewind_takes_the_later_members_along_and_the_group_ends_again(bench: Bench) -> None:
    need = ("sh", "-c", f"test -e {bench.folder}/go")
    group, jobs = group_of(bench, TRUE, need, TRUE, TRUE)
    bench.until_ended(*jobs)
    assert status(bench, group) == GroupStatus.PARTIAL
    assert preview(bench.client.context, jobs[1]).members == tuple(jobs[1:])
    (bench.folder / "go").touch()
    rewound = rewind(bench.client.context, jobs[1])
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
        rewind(bench.client.context, jobs[0])
    assert status(bench, group) == GroupStatus.RUNNING
