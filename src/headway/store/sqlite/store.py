"""A store on SQLite, where one plain job is added with nothing around it: a submit is one commit,
and whatever else it does is felt beside that."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headway.core.model import POSITION_GAP
from headway.store import bulk
from headway.store.queries import parameters_of
from headway.store.rows import dump, written
from headway.store.sqlite.database import COMMIT
from headway.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from headway.base.clock import Clock
    from headway.core.model import JobId
    from headway.store.new_jobs import Alike, Model
    from headway.store.sqlite.database import SqliteDatabase

_OF_ITS_OWN = 5  # parameters that no model has: a job's place, what it is given and when


class _Ready(NamedTuple):
    """The parameters that are the same for all jobs of a model."""

    of_job: tuple[Any, ...]
    actor: str
    event_data: str


class _Next(NamedTuple):
    """The place of the next job, as long as nobody writes: of this version of the file."""

    version: int
    place: tuple[int, int, int] | None


class SqliteStore(Store):
    def __init__(self, database: SqliteDatabase, clock: Clock) -> None:
        super().__init__(database, clock)
        self._file = database
        self._next = _Next(-1, None)
        self._place = self.queries["place_of_one_alike"].sql
        self._add = self.queries["add_one_alike"].sql
        self._add_and_commit = ";\n".join(
            (self._add, self.queries["tell_of_one_alike"].sql, COMMIT)
        )

    def add_alike(self, kinds: Sequence[Alike]) -> JobId | None:
        model, params = kinds[0]
        if len(kinds) > 1 or len(params) > 1 or not bulk.ENABLED:
            return super().add_alike(kinds)
        known = model.ready
        ready = known[1] if known is not None and known[0] is self else self._get_ready(model)
        (text,) = map(dump, params.values())
        file = self._file
        with self._turn:
            self.writes += 1
            file.begin_write()
            try:
                now = self._clock.now()
                version, place = self._next
                if version != file.version():
                    (place,) = file.execute(self._place, ()) or (None,)
                if place is None:
                    file.rollback()
                    return None
                job_id, ahead, event = place
                where = job_id, POSITION_GAP * job_id + ahead, event
                event_row = now, ready.actor, job_id, ready.event_data
                file.finish(self._add_and_commit, (*where, text, now, *ready.of_job, *event_row))
                self._next = _Next(file.version(), (job_id + 1, ahead, event + 1))
            except BaseException:
                file.rollback()
                raise
        return job_id

    def _get_ready(self, model: Model) -> _Ready:
        values = written(model)
        names = parameters_of(self._add)[_OF_ITS_OWN:]
        of_job = tuple(values[name] for name in names)
        ready = _Ready(of_job, model.job.submitted_by, values["told"])
        model.ready = self, ready
        return ready
