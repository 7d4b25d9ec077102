"""Many jobs that are alike: a statement for each kind, whatever their number."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from headway.core.model import POSITION_GAP
from headway.store import bulk
from headway.store.access import Table
from headway.store.rows import dump, written
from headway.store.tables.jobs import JobsTable

if TYPE_CHECKING:
    from headway.store.new_jobs import Alike


class BulkInsert(Table):
    """Jobs that wait for nothing and concern no other, added together."""

    def add(self, kinds: Sequence[Alike]) -> int | None:
        """Add jobs that wait for nothing, concern no other and have one priority, each with its
        event. The first id, that of place 0; None if nothing was done, for an ageing is set."""
        first, position, ageing, _ = JobsTable(self._db).next_places()
        if ageing is not None or not bulk.ENABLED:
            return None
        self._add_kinds(kinds, first, position)
        self._db.drop_state()  # its mark of the next id is another now
        return first

    def _add_kinds(self, kinds: Sequence[Alike], first: int, position: int) -> None:
        """A statement for each kind."""
        for model, params in kinds:
            # A text in a text: not every database takes in every letter that one may have.
            rows = [(place, dump(each)) for place, each in params.items()]
            places = {"first": first, "position": position, "gap": POSITION_GAP, "at": self._db.now}
            given = {**written(model), **places, **self._db.listed(("place", "params"), rows)}
            self._db.send("add_alike", **given)
        if len(kinds) == 1:
            model, params = kinds[0]
            self._db.send("tell_alike", data=written(model)["told"], first=first, count=len(params))
        else:
            self._add_submitted(kinds, first)

    def _add_submitted(self, kinds: Sequence[Alike], first: int) -> None:
        """In the order of the jobs, as all events are."""
        now = self._db.now
        events = [
            {
                "at": now,
                "actor": model.job.submitted_by,
                "kind": "submitted",
                "job_id": first + place,
                "data": written(model)["told"],
            }
            for model, params in kinds
            for place in params
        ]
        if len(kinds) > 1:
            events.sort(key=itemgetter("job_id"))
        self._db.many("add_events", events)
