"""The state of the scheduler, from which capacity is counted; one query reads all of it.

A transaction reads it once and keeps it true (`store/step_cache`): what it changes itself it also
changes here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headway.core.facts import Occupant
from headway.core.model import Claim, HostTrouble, JobId, Pause, Stage, WaitKind, lock_topic
from headway.core.reservations import Reservation
from headway.store.queries import Effect, Query
from headway.store.records import Lending, Parking, Slots
from headway.store.rows import Row, load

EVERYWHERE = "all"  # the scope of a pause; else a host's id
# Changes of these tables are changes of the state; of those, of the presence.
_OF_STATE = frozenset(
    {"settings", "pauses", "breakers", "marks", "lendings", "claims", "reservations"}
)
_OF_PRESENCE = frozenset({"jobs", "claims", "produces", "edges"})


class Presence(NamedTuple):
    """Which kinds of rows there are at all, so that nobody reads where nothing can be."""

    woken: bool
    ready: frozenset[str]  # the queues in which jobs stand ready
    next_wake: int | None
    cancelling: bool
    unproven: bool
    held: bool  # locks
    contended: bool  # somebody waits for a lock
    products: bool  # what any job declares to make
    awaited: bool  # edges to jobs that have not ended

    def with_parked(self, parkings: Sequence[Parking]) -> Presence:
        """After jobs that were checked were parked."""
        times = [each.wake_at for each in parkings if each.wake_at is not None]
        for_capacity = {each.job.queue for each in parkings if each.stage is Stage.READY}
        return self._replace(
            ready=self.ready | for_capacity,
            contended=self.contended or any(map(_waits_for_lock, parkings)),
            next_wake=min((*times, *_some(self.next_wake)), default=None),
        )

    def after(self, query: Query) -> Presence | None:
        """The state that is still true after this query; None: it must be read again."""
        match query.effect:
            case Effect.FOLLOWED | Effect.TAKES_AWAY | Effect.ENDS:
                return self
            case Effect.HOLDS:
                return self._replace(held=True)
            case Effect.WAKES if self.next_wake is None:  # else a woken one may have had that time
                return self._replace(woken=True)
        return self if query.changes.isdisjoint(_OF_PRESENCE) else None


def _waits_for_lock(parking: Parking) -> bool:
    return any(lock_topic(lock.key) in parking.topics for lock in parking.job.locks)


def _some(instant: int | None) -> tuple[int, ...]:
    return () if instant is None else (instant,)


class Taken(NamedTuple):
    """A live claim as capacity counts it."""

    slot: int
    borrowed_from: JobId | None
    probe: bool
    occupies: tuple[str, ...]
    token: str = ""  # of one that was claimed within this transaction it need not be known


class State:
    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.pause: Pause | None = None
        self.host_pauses: dict[str, Pause] = {}
        self.breakers: dict[str, HostTrouble] = {}
        self.marks: dict[str, int] = {}
        self.lendings: list[Lending] = []
        self.taken: dict[JobId, Taken] = {}
        self.limits: set[str] = set()  # the topics of limits that anyone may be parked under
        self.reservations: list[Reservation] | None = []  # None: some, which nobody asked for
        self._slots: Slots | None = None

    @property
    def slots(self) -> Slots:
        if self._slots is None:
            taken = self.taken.items()
            self._slots = Slots(
                frozenset([each.slot for _, each in taken]),
                {job_id: each.borrowed_from for job_id, each in taken},
                any(each.probe for _, each in taken),
                tuple(
                    Occupant(job_id, each.occupies, each.borrowed_from) for job_id, each in taken
                ),
            )
        return self._slots

    @staticmethod
    def is_changed_by(query: Query) -> bool:
        return query.effect is not Effect.FOLLOWED and not query.changes.isdisjoint(_OF_STATE)

    def parked(self, parkings: Iterable[Parking]) -> None:
        """Jobs were put where they wait, perhaps for a limit."""
        topics = (topic for each in parkings for topic in each.topics)
        self.limits.update(topic for topic in topics if topic.startswith("limit:"))

    def claimed(self, claims: Iterable[Claim]) -> None:
        for each in claims:
            self.taken[each.job_id] = Taken(
                each.slot, each.borrowed_from, each.probe, each.occupies, each.token
            )
        self._slots = None

    def holds(self, job_id: JobId, token: str) -> bool | None:
        """Whether this claim is live; None: that must be asked."""
        taken = self.taken.get(job_id)
        if taken is None:
            return False
        return taken.token == token if taken.token else None

    def took(self, taken: Mapping[JobId, Taken]) -> None:
        self.taken.update(taken)
        self._slots = None

    def ended(self, job_ids: Iterable[JobId]) -> None:
        for job_id in job_ids:
            self.taken.pop(job_id, None)
        self._slots = None


class UnmetEdge(NamedTuple):
    """One that is unmet, with the last job of the chain that it leads to."""

    place: str  # failed, or the first or the last that is pending
    declared: JobId
    chain: JobId
    last: Row


class Woken(NamedTuple):
    """The woken jobs of all queues, and the unmet edges of each."""

    limit: int
    rows: list[Row]
    unmet: dict[JobId, list[UnmetEdge]]


def load_state(rows: Iterable[tuple[Any, ...]]) -> tuple[State, Presence]:
    state = State()
    lies: Mapping[str, list[str]] = {"ready": [], "wake": []}
    there: set[str] = set()
    for what, a, b, c, d in rows:
        if what == "slot":
            borrowed_from = None if c is None else int(c)
            probe, token, *occupies = d.split()
            state.taken[int(b)] = Taken(int(a), borrowed_from, probe != "0", tuple(occupies), token)
        elif what == "mark":
            state.marks[a] = int(b)
        elif what == "setting":
            state.settings[a] = load(b, f"setting {a}")
        elif what == "lending":
            state.lendings.append(Lending(int(a), int(b), int(c)))
        elif what == "limit":
            state.limits.add(a)
        elif what == "pause":
            if d == EVERYWHERE:
                state.pause = Pause(a, b, int(c))
            else:
                state.host_pauses[d] = Pause(a, b, int(c), d)
        elif what == "breaker":
            failures, probe_at = d.split()
            state.breakers[a] = HostTrouble(WaitKind(b), c, int(failures), int(probe_at))
        elif what == "reserved":
            state.reservations = None
        elif what in lies:
            lies[what].append(a)
        else:
            there.add(what)
    presence = Presence(
        woken="woken" in there,
        ready=frozenset(lies["ready"]),
        next_wake=min((int(each) for each in lies["wake"] if each is not None), default=None),
        cancelling="cancelling" in there,
        unproven="unproven" in there,
        held="held" in there,
        contended="contended" in there,
        products="products" in there,
        awaited="awaited" in there,
    )
    return state, presence
