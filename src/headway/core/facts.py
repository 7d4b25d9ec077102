"""Everything a gate may look at, gathered before the question is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.core.model import HostTrouble, JobId, LockMode, OrderKey, Pause
from headway.core.states import Status


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The declared id of an `after` edge with the state of its chain's last job.

    No status means that the row is gone; an error, that it cannot be read.
    """

    declared: JobId
    chain: JobId
    status: Status | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    job_id: JobId
    mode: LockMode


@dataclass(frozen=True, slots=True)
class Reserver:
    """A waiter whose sole objection is locks: it goes before every job after it in the order."""

    job_id: JobId
    mode: LockMode
    order: OrderKey


@dataclass(frozen=True, slots=True)
class LockView:
    holders: tuple[Holder, ...] = ()
    reservers: tuple[Reserver, ...] = ()


@dataclass(frozen=True, slots=True)
class Door:
    """The one way in: pause, the host's health, the global cap, slots lent by waiting jobs.

    `running` counts the claims that occupy a slot of their own; a job that runs in a lent slot is
    not counted twice. `lenders` maps a chain to the running jobs that lend their slot to it.
    """

    max_active: int = 1
    running: int = 0
    paused: Pause | None = None
    trouble: HostTrouble | None = None
    lenders: Mapping[JobId, tuple[JobId, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Facts:
    now: int
    door: Door = Door()
    predecessors: Mapping[JobId, tuple[Predecessor, ...]] = field(default_factory=dict)
    locks: Mapping[str, LockView] = field(default_factory=dict)
