"""A store on PostgreSQL, where one plain job is added by a function of the server: to tell it every
time what to do takes longer than to do it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.clock import SystemClock
from headway.core.model import POSITION_GAP
from headway.store.rows import dump, written
from headway.store.sqlstore import SqlStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headway.clock import Clock
    from headway.core.model import JobId
    from headway.store.base import Alike
    from headway.store.pgwire import Ready
    from headway.store.postgres import PostgresDatabase
    from headway.store.seam_adding import Model


class PostgresStore(SqlStore):
    def __init__(self, database: PostgresDatabase, clock: Clock) -> None:
        super().__init__(database, clock)
        self._server = database

    def add_alike(self, kinds: Sequence[Alike]) -> JobId | None:
        model, params = kinds[0]
        if len(kinds) > 1 or len(params) > 1 or not self._server.can_add_one():
            return super().add_alike(kinds)
        known = model.ready
        ready = known[1] if known is not None and known[0] is self else self._get_ready(model)
        at = None if isinstance(self._clock, SystemClock) else self._clock.now()
        (text,) = map(dump, params.values())
        self.writes += 1
        return self._surely(lambda: self._server.add_one(ready, text, at))

    def _get_ready(self, model: Model) -> Ready:
        """What is the same for all jobs of a model, as it is sent."""
        values = {**written(model), "gap": POSITION_GAP}
        ready = self._server.ready_to_add(self.queries["add_one_alike"].sql, values)
        model.ready = self, ready
        return ready
