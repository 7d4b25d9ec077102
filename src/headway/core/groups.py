"""Groups: jobs that succeed or fail together, one by one or side by side. Pure.

A member is a chain, and the last job of the chain decides, so a group never sees a failure that a
retry is about to repair. A group has no status of its own: it is derived from its members each time
that it is asked for. It is open until it is closed, and only a closed one comes to its end.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from headway.core import wait_words as say
from headway.core.facts import Facts
from headway.core.model import NOTHING, Job, JobId, Wait, WaitKind, shown
from headway.core.states import ACTIVE, WAITING, Move, Status

GroupId = int


class GroupMode(StrEnum):
    SEQUENTIAL = "sequential"  # a member starts when those before it have ended
    PARALLEL = "parallel"


class GroupStatus(StrEnum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    PARTIAL = "PARTIAL"
    CANCELLED = "CANCELLED"


class Group(NamedTuple):
    """`ended_at` says when its end was recorded; a rewind of a member takes it back."""

    id: GroupId
    mode: GroupMode
    on_failure: str
    created_at: int
    created_by: str
    name: str | None = None
    subject: str | None = None  # what it was slung from
    closed_at: int | None = None
    ended_at: int | None = None


class Member(NamedTuple):
    """A chain of a group, by its last job."""

    chain: JobId
    job_id: JobId
    sequence_number: int
    status: Status


class GroupTally(NamedTuple):
    """How many members of a group are in each status, and whether any job of it ever ran."""

    counts: Mapping[Status, int] = NOTHING
    ran: bool = False

    @property
    def members(self) -> int:
        return sum(self.counts.values())

    @property
    def done(self) -> int:
        return sum(count for status, count in self.counts.items() if status not in ACTIVE)


def status_of(group: Group, tally: GroupTally) -> GroupStatus:
    """Terminal only when it is closed and all members are. One that was skipped has not failed, and
    where nothing ever ran, nothing was done in part."""
    if group.closed_at is None or tally.done < tally.members:
        return GroupStatus.RUNNING
    if tally.members and all(not failed(status) for status in tally.counts):
        return GroupStatus.COMPLETED
    return GroupStatus.PARTIAL if tally.ran else GroupStatus.CANCELLED


def failed(status: Status) -> bool:
    """Whether a member whose chain has ended so is a failure for its group; also one that a person
    cancelled."""
    return status not in ACTIVE and status not in (Status.SUCCEEDED, Status.SKIPPED)


class Fate(NamedTuple):
    """How the rest of a group ends: without a run, by this move and for this reason."""

    move: Move
    reason: str


class GroupFailurePolicy(Protocol):
    """The fate of the rest when a member's chain has ended without success. In a sequential group
    the rest are the members after it, in a parallel one all that have not begun. None: they go on.
    Running jobs are never touched."""

    def __call__(self, group: Group, job: Job) -> Fate | None: ...


def stop(group: Group, job: Job) -> Fate | None:
    """The rest is cancelled."""
    if group.mode is GroupMode.SEQUENTIAL:
        return Fate(Move.CANCEL, "predecessor failed")
    return Fate(Move.CANCEL, f"{shown(job.id)} of {shown_group(group.id)} failed")


def skip(group: Group, job: Job) -> Fate | None:
    """The rest is left un-run, and that is no failure of it."""
    return Fate(Move.SKIP, f"skipped: {shown(job.id)} of {shown_group(group.id)} failed")


def go_on(group: Group, job: Job) -> Fate | None:
    """The rest runs as if nothing had happened."""
    return None


POLICIES: Mapping[str, GroupFailurePolicy] = {"stop": stop, "continue": go_on, "skip": skip}


def fate_of_rest(
    group: Group, job: Job, policies: Mapping[str, GroupFailurePolicy] = POLICIES
) -> Fate | None:
    """What the failure of this member means for the rest; a word that a newer program has written
    is taken for the careful one."""
    return policies.get(group.on_failure, stop)(group, job)


def is_rest(group: Group, job: Job, member: Job) -> bool:
    """Whether `member` is of the rest when `job` has failed. One that waits for its retry is under
    way, as one that runs is."""
    if member.status not in WAITING or _goes_on_by_itself(member):
        return False
    if group.mode is GroupMode.PARALLEL:
        return True
    return (member.sequence_number or 0) > (job.sequence_number or 0)


def _goes_on_by_itself(member: Job) -> bool:
    """Whether its chain was begun and carries on: with a retry, with the call that it asked for, or
    with the try after a cool-down. Each of these has its time; what a person retried has none but
    the one that its submitter gave, and begins anew."""
    if member.retry_of is None:
        return False
    waits_to_try = member.not_before not in (None, member.submitters_time)
    return member.retries_used > 0 or waits_to_try


def turns_among(jobs: Iterable[Job], groups: Mapping[GroupId, Group]) -> dict[JobId, JobId]:
    """Of jobs that join groups in this order: for each of a sequential one, but the first of these,
    the one that goes before it."""
    before: dict[GroupId, JobId] = {}
    found = {}
    for job in jobs:
        if job.group_id is None or groups[job.group_id].mode is not GroupMode.SEQUENTIAL:
            continue
        if job.group_id in before:
            found[job.id] = before[job.group_id]
        before[job.group_id] = job.id
    return found


def turn_in_group(job: Job, facts: Facts) -> Wait | None:
    """In a sequential group: all before it have ended."""
    ahead = facts.turns.get(job.id)
    if ahead is None:
        return None
    words = say.not_its_turn(shown_group(job.group_id or 0), ahead)
    return Wait(WaitKind.GROUP, words.detail, topics=(turn_topic(ahead),), remedy=words.remedy)


def turn_topic(chain: JobId) -> str:
    """The topic under which a member is parked while this chain, which is before it, has not
    ended."""
    return f"turn:{chain}"


def shown_group(group_id: GroupId) -> str:
    return f"group-{group_id}"
