"""Where jobs stand in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.model import POSITION_GAP, Job, JobId
from headway.store.access import Table
from headway.store.rows import dump

if TYPE_CHECKING:
    from headway.core.order import Key, Levelled, Neighbours, Standing

_PLACE = ("id", "level", "position")
_AT_ONCE = 5000


class QueueOrderReader(Table):
    """The order of the queue as a read transaction shows it."""

    def neighbours(self, level: int, place: Key, without: JobId, limit: int) -> Neighbours:
        """The waiting jobs of this level around a place, so many on each side, without this job."""
        from headway.core.order import Neighbours, Standing

        position, created_at, job_id = place
        found = (
            self._db.all(
                query,
                level=level,
                position=position,
                created_at=created_at,
                id=job_id,
                without=without,
                limit=limit,
            )
            for query in ("stand_before", "stand_after")
        )
        before, after = (tuple(Standing(*row) for row in rows) for rows in found)
        return Neighbours(before, after)

    def nth_of_level(self, level: int, others: int, without: JobId) -> Standing | None:
        """The waiting job of the level that so many others stand before; it walks past them."""
        from headway.core.order import Standing

        row = self._db.one("nth_of_level", level=level, others=others, without=without)
        return Standing(*row) if row else None

    def in_dispatch_order(self) -> list[Levelled]:
        """All that have not ended."""
        from headway.core.order import Levelled

        return [Levelled(*row) for row in self._db.all("in_dispatch_order")]

    def locks_waited_for(self) -> list[str]:
        """The topics of all locks that somebody is parked under."""
        return [row[0] for row in self._db.all("locks_waited_for")]

    def waiting(self, limit: int) -> list[Job]:
        """The waiting jobs, in the order of dispatch."""
        return self._readable(self._db.all("queue", limit=limit))

    def ids(self, limit: int) -> list[JobId]:
        """The same, by their ids alone."""
        return [row[0] for row in self._db.all("queue_ids", limit=limit)]


class QueueOrderTable(QueueOrderReader):
    """The order of the queue as a write transaction changes it."""

    def place(self, places: Sequence[tuple[JobId, int, int]]) -> None:
        """Give jobs that have not ended these levels and positions, wherever copies of them are."""
        for begin in range(0, len(places), _AT_ONCE):
            some = places[begin : begin + _AT_ONCE]
            ids = self._db.json([job_id for job_id, _, _ in some])
            rows = dump([dict(zip(_PLACE, each, strict=True)) for each in some])
            self._db.send("place_jobs", ids=ids, rows=rows)
            self._db.send("place_waits", ids=ids, rows=rows)
        if places:
            last = max(position for _, _, position in places)
            self._db.send("stand_ahead", position=last, gap=POSITION_GAP)
