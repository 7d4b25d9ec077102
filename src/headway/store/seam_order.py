"""The verbs of the seam about where jobs stand in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from headway.core.model import Job, JobId

if TYPE_CHECKING:
    from headway.core.order import Key, Levelled, Neighbours, Standing


class OrderReadTx(Protocol):
    def neighbours(self, level: int, place: Key, without: JobId, limit: int) -> Neighbours:
        """Who waits in this level around a place, so many on each side, without this job."""

    def nth_of_level(self, level: int, others: int, without: JobId) -> Standing | None:
        """The waiting job of the level that so many others stand before; it walks past them."""

    def in_dispatch_order(self) -> list[Levelled]:
        """All that have not ended."""

    def locks_waited_for(self) -> list[str]:
        """The topics of all locks that somebody is filed under."""

    def queue(self, limit: int) -> list[Job]:
        """What waits, in the order of dispatch."""


class OrderWriteTx(OrderReadTx, Protocol):
    def place_jobs(self, places: Sequence[tuple[JobId, int, int]]) -> None:
        """Give jobs that have not ended these levels and positions, wherever copies of them are."""
