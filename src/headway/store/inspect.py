"""Read a store without changing it, also one that is damaged, old or new. For the doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from headway.store import queries
from headway.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headway.base.clock import Clock
    from headway.store.database import Database
    from headway.store.postgres.database import PostgresDatabase
    from headway.store.sqlite.database import SqliteDatabase

MOST_NAMED = 5
Seen = TypeVar("Seen")

# What can never be if all goes well: the query that finds it, and what it means.
INVARIANTS = {
    "running_without_claim": "running, but nobody holds a claim",
    "running_without_run": "running without the record of a run",
    "claim_without_running_job": "claimed, but not running",
    "lock_without_holder": "holding a lock without a claim",
    "edge_to_missing_job": "waiting for a job that is not there",
    "waiting_without_stage": "waiting where no planning step looks",
    "status_against_finish": "ended by status or by time, but not by both",
    "run_against_job": "with a run that contradicts the job",
    "job_beside_run": "about a subject that a workflow run is open for",
}


class Breaker(NamedTuple):
    host_id: str
    kind: str
    cause: str
    failures: int


class Numbers(NamedTuple):
    jobs: int
    active: int


class Inspection:
    """One store, opened to read it; the caller closes it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.store = Store(database, clock)

    def close(self) -> None:
        self.database.close()

    def schema(self) -> int:
        """Its number; 0 where there is none."""
        file = self._file
        if file is not None:
            return self._within(file.schema)
        from headway.store.postgres import admin as serverside

        return self._within(lambda: serverside.schema(self._server))

    def name(self) -> str | None:
        """That of a store on a server, if it was given one."""
        if self._file is not None:
            return None
        self._within(self._server.version)
        return self._server.name

    def server_version(self) -> int:
        from headway.store.postgres import admin as serverside

        return self._within(lambda: serverside.server_version(self._server))

    def damage(self) -> list[str]:
        """The damage that the database itself finds; a server checks its own files."""
        file = self._file
        return [] if file is None else self._within(file.integrity_check)

    def missing_objects(self) -> list[str]:
        """Tables, indexes and triggers that the schema has and this store has not."""
        return sorted(queries.objects(self.database.dialect) - self._within(self._objects))

    def _objects(self) -> set[str]:
        file = self._file
        if file is not None:
            return file.objects()
        from headway.store.postgres import admin as serverside

        return serverside.objects(self._server)

    @property
    def _file(self) -> SqliteDatabase | None:
        from headway.store.sqlite.database import SqliteDatabase

        return self.database if isinstance(self.database, SqliteDatabase) else None

    @property
    def _server(self) -> PostgresDatabase:
        return cast("PostgresDatabase", self.database)

    def broken(self) -> dict[str, list[int]]:
        """The invariants that do not hold, each with some of the jobs that it does not hold for."""
        found = {name: self._ids(name, limit=MOST_NAMED) for name in INVARIANTS}
        return {name: ids for name, ids in found.items() if ids}

    def unwritten_groups(self) -> list[int]:
        """Some of the groups whose end was not recorded."""
        return self._ids("unwritten_groups", limit=MOST_NAMED)

    def newest_event(self) -> int | None:
        value = self._rows("newest_event")[0][0]
        return None if value is None else int(value)

    def now(self) -> int:
        with self.store.read() as tx:
            return tx.now()

    def known(self, ids: Sequence[int]) -> set[int]:
        return set(self._ids("known_ids", ids=self.database.json(ids)))

    def ended_here(self, host_id: str) -> set[int]:
        """Jobs that were run by this host and are over."""
        return set(self._ids("ids_with_run", host_id=host_id))

    def breakers(self) -> list[Breaker]:
        return [Breaker(*row) for row in self._rows("breakers")]

    def numbers_now(self) -> Numbers:
        """Within a transaction of the caller's."""
        row = self.database.execute(self.store.queries["count_jobs"].sql, {})[0]
        return Numbers(int(row[0]), int(row[1]))

    def next_id(self) -> int:
        return int(self._rows("next_job_id")[0][0])

    def next_id_now(self) -> int:
        """Within a transaction of the caller's."""
        rows = self.database.execute(self.store.queries["next_job_id"].sql, {})
        return int(rows[0][0])

    def _ids(self, query: str, **parameters: Any) -> list[int]:
        return [int(row[0]) for row in self._rows(query, **parameters)]

    def _rows(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        sql = self.store.queries[query].sql
        return self._within(lambda: self.database.execute(sql, parameters))

    def _within(self, look: Callable[[], Seen]) -> Seen:
        self.database.begin_read()
        try:
            return look()
        finally:
            self.database.rollback()


def inspect(url: str, clock: Clock) -> Inspection:
    """Open the store at this URL; what is missing is not made, what is old is not migrated."""
    if url.startswith("sqlite://"):
        from headway.store.sqlite.database import look

        return Inspection(look(url.removeprefix("sqlite://")), clock)
    from headway.store.postgres.database import PostgresDatabase

    return Inspection(PostgresDatabase(url), clock)
