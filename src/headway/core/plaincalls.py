"""Plain calls: functions that need nothing but a slot and a process, so that many are decided at
once.

`plan` says the same about each of them, one by one. It is asked about all others, and about these
whenever the door is not wide open or somebody stands before them.
"""

from typing import NamedTuple

from headway.core.admission import free_slots
from headway.core.facts import Door
from headway.core.model import FUNCTION, FUNCTIONS, Job, JobId, Json
from headway.core.policies import BUILT_IN, PerType

OCCUPIES = (f"{PerType.name}:{FUNCTION}",)  # what each takes of the limits


class PlainCall(NamedTuple):
    """What a host must know of a call, and a worker of its job."""

    job_id: JobId
    attempt: int
    chain: JobId
    task: str
    params: str  # as they are stored


class PlainEnd(NamedTuple):
    """A plain call has returned: its job succeeds, and nothing else follows for it."""

    job_id: JobId
    token: str
    slot: int
    attempt: int
    chain: JobId
    finished_at: int
    result: Json = None
    started_at: int = 0


def is_plain(job: Job) -> bool:
    """Whether a ready job is one of these. The store finds them by a query that says the same. Not
    all in that queue are functions: what one of them has asked for at its end is there, too."""
    return (job.type, job.queue) == (FUNCTION, FUNCTIONS) and not (
        job.wait
        or job.locks
        or job.on_finish
        or job.needs
        or job.produces
        or job.pinned_head
        or job.preconditions
        or job.repo
        or job.requested_start is not None
        or job.approval
        or job.group_id
        or job.subject
        or job.target
        or job.resources
        or job.rates
        or job.cancelling
    )


def wide_open(door: Door) -> bool:
    """Whether only slots and processes may be lacking."""
    return tuple(door.policies) == BUILT_IN and not (
        door.paused
        or door.trouble
        or door.strain
        or door.next_pass is not None
        or door.reserved
        or door.lenders
        or door.lent
        or door.limits
    )


def room_for_calls(door: Door) -> int:
    """How many plain calls may go through a door that is wide open."""
    free, places = free_slots(door), door.places or 0
    return places if free is None else min(free, places)
