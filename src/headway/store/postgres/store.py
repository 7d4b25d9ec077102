"""A store on PostgreSQL, where a function of the server adds one plain job: to send the statements
each time takes longer than to run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.base.clock import SystemClock
from headway.core.model import POSITION_GAP
from headway.store import bulk
from headway.store.rows import dump, written
from headway.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.base.clock import Clock
    from headway.core.model import JobId
    from headway.store.new_jobs import Alike, Model
    from headway.store.postgres.database import PostgresDatabase
    from headway.store.postgres.wire import Ready


class PostgresStore(Store):
    def __init__(self, database: PostgresDatabase, clock: Clock) -> None:
        super().__init__(database, clock)
        self._server = database

    def add_alike(self, kinds: Sequence[Alike]) -> JobId | None:
        model, params = kinds[0]
        if len(kinds) > 1 or len(params) > 1 or not bulk.ENABLED:
            return super().add_alike(kinds)
        if not self._server.can_add_one():
            return super().add_alike(kinds)
        known = model.ready
        ready = known[1] if known is not None and known[0] is self else self._get_ready(model)
        at = None if isinstance(self._clock, SystemClock) else self._clock.now()
        (text,) = map(dump, params.values())
        self.writes += 1
        return self._surely(lambda: self._server.add_one(ready, text, at))

    def _get_ready(self, model: Model) -> Ready:
        """The parameters that are the same for all jobs of a model, as they are sent."""
        values = {**written(model), "gap": POSITION_GAP}
        ready = self._server.ready_to_add(self.queries["add_one_alike"].sql, values)
        model.ready = self, ready
        return ready
