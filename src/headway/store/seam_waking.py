"""The seam for what a planning step looks at first: who is woken, and what they still wait for."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from headway.core.facts import Predecessor
from headway.core.model import Job, JobId

ROUND_JOBS = 200  # as many as are looked at together


class Remembered(NamedTuple):
    """How things stood at the end of a transaction."""

    awaited: bool  # someone waits for the end of another
    known: Any  # the store's own


class ReadsWaking(Protocol):
    def look_around(self, calls: int) -> None:
        """Ask for the state, for so many plain calls and for the woken jobs together, at the
        beginning: all of it will be needed, and where questions travel they travel once."""

    def woken(self, limit: int, queues: Sequence[str] = ("",)) -> list[Job]:
        """Jobs of these queues to look at, in dispatch order."""

    def predecessors(self, jobs: Iterable[Job]) -> dict[JobId, tuple[Predecessor, ...]]:
        """What is unmet: at most the first failed and one pending edge of each job."""


class WritesWaking(Protocol):
    def remember(self) -> Remembered | None:
        """What this transaction knows of how things stand, for a later one in which nobody else can
        have changed it; None: not enough."""

    def recall(self, known: Remembered) -> None:
        """At the beginning: know this, as if it had been asked. It is refused if a transaction of
        this process was undone since: perhaps the one that remembers it, and it never was so."""

    def chains_succeeded(self, chains: Sequence[JobId]) -> None:
        """Who waits for one of these chains need not wait for it any more, and is woken."""

    def note_dispatch(self, at: int, count: int) -> None:
        """When jobs were last started, and how many."""
