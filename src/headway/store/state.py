"""The small state of the scheduler, as one query tells it: what the door asks for in every step.

A transaction asks once and keeps it true: what it changes itself it also changes here, and what is
not known to leave it as it is makes it be asked for anew. Nobody else writes meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headway.core.facts import Occupant
from headway.core.model import Claim, HostTrouble, JobId, Pause, Stage, WaitKind
from headway.core.reservations import Reservation
from headway.store.base import Filing, Lending, Slots
from headway.store.rows import load

EVERYWHERE = "all"  # the scope of a pause; else a host's id
# Changes of these tables are changes of the state; of those, of where something lies.
_OF_STATE = frozenset(
    {"settings", "pauses", "breakers", "marks", "lendings", "claims", "reservations"}
)
_OF_WHEREABOUTS = frozenset({"jobs", "claims", "produces", "edges"})
# Queries whose effect on the state is also written here by those who run them, or is none.
_FOLLOWED = frozenset(
    {
        *("add_claims", "end_claims", "forget_claim", "prove_claim_gone", "renew_leases"),
        *("claim_calls", "end_claims_of_calls"),
        *("set_mark", "add_to_mark", "note_dispatch"),
    }
)
# Queries that wake: from wherever a job lies it is moved to those that are to be looked at.
_WAKE = frozenset(
    {
        *("wake_topic", "wake_next", "wake_jobs", "wake_chain_borrowers", "wake_dependents"),
        "wake_everything",
    }
)
# Queries that only take away from where something lies, or leave it there.
_TAKE_AWAY = _FOLLOWED | {
    *("claim_jobs", "finish_jobs", "touch_checked", "place_jobs"),
    *("start_calls", "finish_calls", "satisfy_chains", "satisfy_chains_of_calls", "fail_chain"),
}


class Whereabouts(NamedTuple):
    """Where something lies at all, so that nobody looks where nothing can be."""

    woken: bool
    ready: frozenset[str]  # the queues in which jobs stand at the door
    next_wake: int | None
    cancelling: bool
    unproven: bool
    held: bool  # locks
    products: bool  # what any job declares to make
    awaited: bool  # edges to jobs that have not ended

    def with_filed(self, filings: Sequence[Filing]) -> Whereabouts:
        """After jobs that were looked at were put where they wait."""
        times = [each.wake_at for each in filings if each.wake_at is not None]
        at_door = {each.job.queue for each in filings if each.stage is Stage.READY}
        return self._replace(
            ready=self.ready | at_door,
            next_wake=min((*times, *_some(self.next_wake)), default=None),
        )

    def after(self, query: str, table: str | None) -> Whereabouts | None:
        """What is still known after this query; None: it must be asked for anew."""
        if table not in _OF_WHEREABOUTS or query in _TAKE_AWAY:
            return self._replace(held=True) if query == "hold_locks" else self
        if query in _WAKE and self.next_wake is None:  # else one may have had its time, and has not
            return self._replace(woken=True)
        return None


def _some(instant: int | None) -> tuple[int, ...]:
    return () if instant is None else (instant,)


class Taken(NamedTuple):
    """A live claim as the door counts it."""

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
        self.limits: set[str] = set()  # the topics of limits that anyone may be filed under
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
    def is_changed_by(query: str, table: str | None) -> bool:
        return table in _OF_STATE and query not in _FOLLOWED

    def filed(self, filings: Iterable[Filing]) -> None:
        """Jobs were put where they wait, perhaps for a limit."""
        topics = (topic for each in filings for topic in each.topics)
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


def load_state(rows: Iterable[tuple[Any, ...]]) -> tuple[State, Whereabouts]:
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
    whereabouts = Whereabouts(
        woken="woken" in there,
        ready=frozenset(lies["ready"]),
        next_wake=min((int(each) for each in lies["wake"] if each is not None), default=None),
        cancelling="cancelling" in there,
        unproven="unproven" in there,
        held="held" in there,
        products="products" in there,
        awaited="awaited" in there,
    )
    return state, whereabouts
