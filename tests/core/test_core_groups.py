"""The rules of groups: what their status is derived from, and what a failure means for the rest."""

from typing import Any

import pytest
from given import NOW, facts, job, running
from hypothesis import given
from hypothesis import strategies as st

from headway.core.groups import (
    POLICIES,
    Fate,
    Group,
    GroupFailurePolicy,
    GroupMode,
    GroupStatus,
    GroupTally,
    failed,
    fate_of_rest,
    is_rest,
    status_of,
    turn_in_group,
    turns_among,
)
from headway.core.model import Job, WaitKind
from headway.core.states import ACTIVE, Move, Status

OPEN = Group(3, GroupMode.SEQUENTIAL, "stop", NOW, "ann")
CLOSED = OPEN._replace(closed_at=NOW)
PARALLEL = OPEN._replace(mode=GroupMode.PARALLEL)


def tally(*statuses: Status, ran: bool = True) -> GroupTally:
    return GroupTally({each: statuses.count(each) for each in statuses}, ran)


def again(**given: Any) -> Job:
    """The second job of a chain."""
    return job(2, sequence_number=6, retry_of=1, attempt=2, **given)


@pytest.mark.req("D6")
@pytest.mark.parametrize(
    ("group", "counted", "status"),
    [
        (OPEN, tally(Status.SUCCEEDED), GroupStatus.RUNNING),
        (OPEN, tally(ran=False), GroupStatus.RUNNING),
        (CLOSED, tally(Status.SUCCEEDED, Status.QUEUED), GroupStatus.RUNNING),
        (CLOSED, tally(Status.FAILED, Status.WAITING_ON_LOCKS), GroupStatus.RUNNING),
        (CLOSED, tally(Status.SUCCEEDED, Status.SUCCEEDED), GroupStatus.COMPLETED),
        (CLOSED, tally(Status.SUCCEEDED, Status.SKIPPED), GroupStatus.COMPLETED),
        (CLOSED, tally(Status.SKIPPED, ran=False), GroupStatus.COMPLETED),
        (CLOSED, tally(Status.SUCCEEDED, Status.FAILED), GroupStatus.PARTIAL),
        (CLOSED, tally(Status.FAILED), GroupStatus.PARTIAL),
        (CLOSED, tally(Status.SUCCEEDED, Status.CANCELLED), GroupStatus.PARTIAL),
        (CLOSED, tally(Status.CANCELLED), GroupStatus.PARTIAL),
        (CLOSED, tally(Status.CANCELLED, ran=False), GroupStatus.CANCELLED),
        (CLOSED, tally(Status.CANCELLED, Status.SKIPPED, ran=False), GroupStatus.CANCELLED),
        (CLOSED, tally(Status.BLOCKED_BY_DEPENDENCY, ran=False), GroupStatus.CANCELLED),
        (CLOSED, tally(ran=False), GroupStatus.CANCELLED),
    ],
)
def test_the_status_is_derived_from_the_members(
    group: Group, counted: GroupTally, status: GroupStatus
) -> None:
    assert status_of(group, counted) is status


@pytest.mark.req("D6")
@given(st.lists(st.sampled_from(Status), max_size=6), st.booleans(), st.booleans())
def test_a_group_is_terminal_only_when_it_is_closed_and_all_members_are(
    statuses: list[Status], closed: bool, ran: bool
) -> None:
    status = status_of(CLOSED if closed else OPEN, tally(*statuses, ran=ran))
    ended = closed and not any(each in ACTIVE for each in statuses)
    assert (status is not GroupStatus.RUNNING) == ended
    if status is GroupStatus.COMPLETED:
        assert not any(failed(each) for each in statuses)


@pytest.mark.parametrize("status", Status)
def test_only_an_end_without_success_is_a_failure(status: Status) -> None:
    good = (Status.SUCCEEDED, Status.SKIPPED)
    assert failed(status) == (status not in ACTIVE and status not in good)


@pytest.mark.req("E29", "D18")
@pytest.mark.parametrize(
    ("group", "policy", "fate"),
    [
        (OPEN, "stop", Fate(Move.CANCEL, "predecessor failed")),
        (PARALLEL, "stop", Fate(Move.CANCEL, "job-7 of group-3 failed")),
        (OPEN, "continue", None),
        (OPEN, "skip", Fate(Move.SKIP, "skipped: job-7 of group-3 failed")),
        (OPEN, "from the future", Fate(Move.CANCEL, "predecessor failed")),
    ],
)
def test_each_policy_decides_about_the_rest(group: Group, policy: str, fate: Fate | None) -> None:
    assert fate_of_rest(group._replace(on_failure=policy), job(7)) == fate


@pytest.mark.req("E29")
def test_a_policy_is_whatever_keeps_to_the_interface() -> None:
    def patient(group: Group, member: Job) -> Fate | None:
        return Fate(Move.SKIP, "too often") if member.attempt > 3 else None

    policies: dict[str, GroupFailurePolicy] = {**POLICIES, "patient": patient}
    group = OPEN._replace(on_failure="patient")
    assert fate_of_rest(group, job(7), policies) is None
    assert fate_of_rest(group, job(7, attempt=4), policies) == Fate(Move.SKIP, "too often")


@pytest.mark.parametrize(
    ("group", "member", "rest"),
    [
        (OPEN, job(2, sequence_number=6), True),
        (OPEN, job(2, sequence_number=4), False),
        (PARALLEL, job(2, sequence_number=4), True),
        (PARALLEL, running(2, sequence_number=6), False),
        (PARALLEL, job(2, sequence_number=6, not_before=NOW), True),  # as it was submitted
        (PARALLEL, job(2, sequence_number=6, last_failure="no such file"), True),
        (PARALLEL, again(retries_used=1, not_before=NOW), False),
        (PARALLEL, again(not_before=NOW), False),  # it asked for this
        (PARALLEL, again(not_before=NOW, last_failure="no such file"), False),
        (PARALLEL, again(last_failure="no such file"), True),  # a person cut its cool-down short
        (PARALLEL, again(), True),  # a person retried it
        (OPEN, again(not_before=NOW), False),
    ],
)
def test_the_rest_is_what_has_not_begun(group: Group, member: Job, rest: bool) -> None:
    assert is_rest(group, job(1, sequence_number=5), member) is rest


def test_a_member_waits_for_the_chain_before_it() -> None:
    waiting = turn_in_group(job(1, group_id=3, sequence_number=2), facts(turns={1: 7}))
    assert waiting is not None and waiting.kind is WaitKind.GROUP
    assert waiting.topics == ("turn:7",) and "job-7" in waiting.remedy
    assert turn_in_group(job(2, group_id=3), facts(turns={1: 7})) is None


def test_those_that_join_together_follow_each_other_in_sequential_groups() -> None:
    jobs = [job(1, group_id=3), job(2, group_id=4), job(3), job(4, group_id=3), job(5, group_id=4)]
    assert turns_among(jobs, {3: OPEN, 4: PARALLEL._replace(id=4)}) == {4: 1}
