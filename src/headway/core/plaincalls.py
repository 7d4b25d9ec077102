"""Plain calls: functions that need nothing but a slot and a process, so that many are decided at
once.

`plan` decides the same for each of them, one by one. It decides about all other jobs, and about
these whenever capacity is not open to all or another job stands before them.
"""

from typing import NamedTuple

from headway.core.capacity import free_slots
from headway.core.facts import Capacity
from headway.core.model import FIELDS, FUNCTION, FUNCTIONS, NOT_SIMPLE, Job, JobId, Json, of_job
from headway.core.policies import BUILT_IN, PerType

OCCUPIES = (f"{PerType.name}:{FUNCTION}",)  # what each takes of the limits


class PlainCall(NamedTuple):
    """The fields of a call that a host and a worker need."""

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
    """Whether a ready job is one of these. The store finds them by a query that says the same.

    Not all in that queue are functions: what one of them has asked for at its end is there, too.
    """
    return (job.type, job.queue) == (FUNCTION, FUNCTIONS) and not any(
        getattr(job, name) for name in _HINDERING
    )


# `store.rows` makes the condition of that query of the same rows.
_HINDERING = of_job(field for field in FIELDS if field.hinders in NOT_SIMPLE)


def everything_may_start(capacity: Capacity) -> bool:
    """Whether only slots and processes may be lacking."""
    return tuple(capacity.policies) == BUILT_IN and not (
        capacity.paused
        or capacity.trouble
        or capacity.strain
        or capacity.next_pass is not None
        or capacity.reserved
        or capacity.lenders
        or capacity.lent
        or capacity.limits
    )


def room_for_calls(capacity: Capacity) -> int:
    """How many plain calls may start when everything may start."""
    free, places = free_slots(capacity), capacity.places or 0
    return places if free is None else min(free, places)
