"""Everything a gate may look at, gathered before the question is asked."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from headway.core.artifacts import ArtifactKey
from headway.core.model import NOTHING, HostTrouble, JobId, LockMode, OrderKey, Pause, Question
from headway.core.reservations import Reservation
from headway.core.states import Status

MANY = 32  # predecessors


def waits_for_last(after: Sequence[JobId]) -> bool:
    """Whether a job waits for the last of its predecessors that has not ended, not for the first.

    Jobs end by and large in the order in which they were submitted. A job that waits for the first
    of very many would be looked at whenever one of them ends; the last is, as a rule, the only one.
    """
    return len(after) > MANY


class Predecessor(NamedTuple):
    """The declared id of an `after` edge with the state of its chain's last job.

    No status means that the row is gone; an error, that it cannot be read.
    """

    declared: JobId
    chain: JobId
    status: Status | None
    error: str | None = None


class Producer(NamedTuple):
    """The last job of a chain that makes an artifact."""

    job_id: JobId
    status: Status


class ArtifactView(NamedTuple):
    """What the store knows of an artifact: whether a job has published it, who makes it, and
    whether a rewind has withdrawn it, so that a look at the world does not count."""

    published: bool = False
    withdrawn: bool = False
    producers: tuple[Producer, ...] = ()


class Answer(NamedTuple):
    """What a look at the world showed: a commit, the names of changed files, or nothing for no.

    `trouble` says why it could not be looked at; it is `final` if no later look can succeed. One
    that is not `fresh` still tells where a job stands, but nothing is started on it.
    """

    found: str | None = None
    trouble: str | None = None
    final: bool = False
    fresh: bool = True


class Holder(NamedTuple):
    job_id: JobId
    mode: LockMode


class Reserver(NamedTuple):
    """A waiter whose sole objection is locks: it goes before every job after it in the order."""

    job_id: JobId
    mode: LockMode
    order: OrderKey


class LockView(NamedTuple):
    holders: tuple[Holder, ...] = ()
    reservers: tuple[Reserver, ...] = ()


class Door(NamedTuple):
    """The one way in: pause, the host's health, the global cap, slots lent by waiting jobs.

    `running` counts the claims that occupy a slot of their own; a job that runs in a lent slot is
    not counted twice. `lenders` maps a chain to the running jobs that lend their slot to it.
    `places` is how many more functions the processes for them take; None: nobody has counted.
    `reserved` is the first reservation that waits for a slot, `granted` are those that have one,
    and `unlent` the running jobs whose slot one made inside of them may borrow.
    """

    max_active: int = 1
    running: int = 0
    paused: Pause | None = None
    trouble: HostTrouble | None = None
    lenders: Mapping[JobId, tuple[JobId, ...]] = NOTHING
    places: int | None = None
    reserved: Reservation | None = None
    granted: tuple[Reservation, ...] = ()
    unlent: Collection[JobId] = ()


class TaskView(NamedTuple):
    """The functions that can be called, or why it is not known."""

    names: Collection[str] = ()
    trouble: str | None = None


class Facts(NamedTuple):
    """`types` of jobs can be run and `queues` are served where this is asked; `hosts` names others
    that a job may belong to. `answers` are looks at the world;
    `home` and `jobs_folder` are where our own files are."""

    now: int
    door: Door = Door()
    predecessors: Mapping[JobId, tuple[Predecessor, ...]] = NOTHING
    locks: Mapping[str, LockView] = NOTHING
    types: Collection[str] = ("command",)
    tasks: TaskView | None = None
    queues: Collection[str] = ("",)
    hosts: Mapping[str, str] = NOTHING
    artifacts: Mapping[ArtifactKey, ArtifactView] = NOTHING
    answers: Mapping[Question, Answer] = NOTHING
    wait_for_producers: bool = False
    home: str = ""
    jobs_folder: str = ""
