"""All facts that a gate may use, loaded before it is asked."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from headway.core.agents import BudgetView, ParkedRunner
from headway.core.artifacts import ArtifactKey
from headway.core.model import (
    NOTHING,
    HostTrouble,
    JobId,
    LockMode,
    OrderKey,
    Pause,
    Question,
    Rate,
    Wait,
)
from headway.core.policies import BUILT_IN, ConcurrencyPolicy, held_by
from headway.core.reservations import Reservation
from headway.core.routes import NodeId, NodeOutcome
from headway.core.states import Status

MANY = 32  # predecessors


def waits_for_last(after: Sequence[JobId]) -> bool:
    """Whether a job waits for the last of its predecessors that has not ended, not for the first.

    Jobs end by and large in the order in which they were submitted. A job that waits for the first
    of very many would be checked whenever one of them ends. With the last it is usually checked
    once.
    """
    return len(after) > MANY


class Predecessor(NamedTuple):
    """The declared id of an `after` edge with the state of its chain's last job.

    No status means that the row is gone; an error, that it cannot be read. A sink of a workflow
    run that is waited for as a whole is judged by its `outcome`.
    """

    declared: JobId
    chain: JobId
    status: Status | None
    error: str | None = None
    repeated_by: int | None = None  # a workflow run whose loop may still run it again
    outcome: NodeOutcome | None = None
    accepts: frozenset[NodeOutcome] | None = None  # of a whole run's sink: the outcomes that count


class Producer(NamedTuple):
    """The last job of a chain that makes an artifact."""

    job_id: JobId
    status: Status


class ArtifactView(NamedTuple):
    """The store's record of an artifact: whether a job has published it, which jobs make it, and
    whether a rewind has withdrawn it, so that a probe does not count."""

    published: bool = False
    withdrawn: bool = False
    producers: tuple[Producer, ...] = ()


class Answer(NamedTuple):
    """The result of a probe: a commit, the names of changed files, or nothing for no.

    `trouble` says why the probe failed; it is `final` if no later one can succeed. An answer that
    is not `fresh` is still shown, but nothing is started on it.
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


class Occupant(NamedTuple):
    """A holder of capacity: a slot, and `keys` of the limits. One of the keys may name what it
    holds instead of a slot.

    `borrowed_from` is the job that lends it all that that job holds itself.
    """

    job_id: JobId | None
    keys: tuple[str, ...] = ()
    borrowed_from: JobId | None = None

    @property
    def held(self) -> tuple[str, ...]:
        """All that it holds."""
        return held_by(self.keys)


class RateView(NamedTuple):
    """A rate that holds for some of the jobs, as people wrote it, and when, if it is used up, the
    next start may be."""

    rate: Rate
    text: str
    until: int | None = None


class Capacity(NamedTuple):
    """What may start now: pause, the host's health, the caps, what waiting jobs lend.

    `running` counts the slots in use, and `usage` what is in use of each of the `limits` and of the
    places for entries of the jobs file, of which there are `parallel`; what a
    job borrows is not counted twice. Rates are among them: how many starts, and how many of late.
    `lenders` maps a chain to the running jobs that lend to it, `lent` those to what they have.
    `places` is how many more functions the processes for them take; None: nobody has counted.
    `reserved` is the first reservation that waits for a slot, `granted` are those that have one,
    and `unlent` those, jobs or others of them, that make one of the waiting, with what they could
    lend it.
    """

    max_active: int = 1
    running: int = 0
    parallel: int = 4
    paused: Pause | None = None
    trouble: HostTrouble | None = None
    lenders: Mapping[JobId, tuple[JobId, ...]] = NOTHING
    places: int | None = None
    limits: Mapping[str, int] = NOTHING
    usage: Mapping[str, int] = NOTHING
    lent: Mapping[JobId, Collection[str]] = NOTHING
    rates: Mapping[str, RateView] = NOTHING
    policies: Sequence[ConcurrencyPolicy] = BUILT_IN
    twice: Collection[str] = ()  # what a lender and its borrower both have now
    next_pass: int | None = None  # with a delay between passes: not before then
    strain: Wait | None = None  # the host has more to do than the settings allow
    reserved: Reservation | None = None
    granted: tuple[Reservation, ...] = ()
    unlent: Mapping[JobId, Collection[str]] = NOTHING


REPORT_VALID_FOR = (
    30_000_000  # a host that has not said again what it knows is not counted on any more
)
IMPORTING = "the modules are being imported"
NO_HOST = "its host cannot be started"


class TaskView(NamedTuple):
    """The functions that can be called, or why it is not known. In a store of several hosts:
    `elsewhere` are those that other hosts know which are up, and `once` those that hosts knew which
    are not, with the name of such a host."""

    names: Collection[str] = ()
    trouble: str | None = None
    elsewhere: Collection[str] = ()
    once: Mapping[str, str] = NOTHING


class NodeEnd(NamedTuple):
    """How one instance of a node stands that another waits for; without an outcome it is active."""

    node: NodeId
    job_id: JobId
    chain: JobId
    status: Status
    outcome: NodeOutcome | None
    fan: bool = False


class RunView(NamedTuple):
    """What a job of a workflow run has to know of it: the nodes that it waits for, the two values
    that each of its conditions compares, and the loops that keep it from being decided."""

    ends: tuple[NodeEnd, ...] = ()
    compared: tuple[tuple[Any, Any], ...] = ()
    run: int = 0
    repeating: Mapping[NodeId, NodeEnd] = NOTHING  # heads of loops that are not over: whom by
    called: NodeEnd | None = None  # a loop around it goes back when this one has ended
    behind: int | None = None  # an earlier run of its schedule, which has not ended
    turn_at: int | None = None  # of an approval that expires: when the last node before it ended


class Facts(NamedTuple):
    """`types` of jobs can be run and `queues` are served where this is asked; `hosts` names others
    that a job may belong to. `answers` are results of probes;
    `home` and `jobs_folder` are where our own files are."""

    now: int
    capacity: Capacity = Capacity()
    predecessors: Mapping[JobId, tuple[Predecessor, ...]] = NOTHING
    locks: Mapping[str, LockView] = NOTHING
    types: Collection[str] = ("command",)
    tasks: TaskView | None = None
    queues: Collection[str] = ("",)
    hosts: Mapping[str, str] = NOTHING
    artifacts: Mapping[ArtifactKey, ArtifactView] = NOTHING
    runs: Mapping[JobId, RunView] = NOTHING  # of jobs of workflow runs
    parked: Mapping[str, ParkedRunner] = NOTHING  # runners of agents
    budgets: Mapping[int, BudgetView] = NOTHING  # of workflow runs that have one
    turns: Mapping[JobId, JobId] = NOTHING  # of a job in a group: the chain that goes before it
    answers: Mapping[Question, Answer] = NOTHING
    wait_for_producers: bool = False
    home: str = ""
    jobs_folder: str = ""
