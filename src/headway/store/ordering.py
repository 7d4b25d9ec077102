"""The verbs about where jobs stand in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.model import POSITION_GAP, Job, JobId
from headway.store.changing import Changing
from headway.store.graphreading import GraphReadTx
from headway.store.rows import dump

if TYPE_CHECKING:
    from headway.core.order import Key, Levelled, Neighbours, Standing

_PLACE = ("id", "level", "position")
_AT_ONCE = 5000


class OrderReadTx(GraphReadTx):
    def neighbours(self, level: int, place: Key, without: JobId, limit: int) -> Neighbours:
        from headway.core.order import Neighbours, Standing

        position, created_at, job_id = place
        found = (
            self._all(
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
        from headway.core.order import Standing

        row = self._one("nth_of_level", level=level, others=others, without=without)
        return Standing(*row) if row else None

    def in_dispatch_order(self) -> list[Levelled]:
        from headway.core.order import Levelled

        return [Levelled(*row) for row in self._all("in_dispatch_order")]

    def locks_waited_for(self) -> list[str]:
        return [row[0] for row in self._all("locks_waited_for")]

    def queue(self, limit: int) -> list[Job]:
        return self._readable(self._all("queue", limit=limit))


class OrderWriteTx(OrderReadTx, Changing):
    def place_jobs(self, places: Sequence[tuple[JobId, int, int]]) -> None:
        for begin in range(0, len(places), _AT_ONCE):
            some = places[begin : begin + _AT_ONCE]
            ids = self._database.json([job_id for job_id, _, _ in some])
            rows = dump([dict(zip(_PLACE, each, strict=True)) for each in some])
            self._tell("place_jobs", ids=ids, rows=rows)
            self._tell("place_waits", ids=ids, rows=rows)
        if places:
            last = max(position for _, _, position in places)
            self._tell("stand_ahead", position=last, gap=POSITION_GAP)
