"""What the nouns of a transaction share: named queries, the instant, and the step cache."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from headway.store.rows import dump
from headway.store.step_cache import StepCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from headway.core.model import Job, JobId
    from headway.store.database import Statements
    from headway.store.queries import Queries
    from headway.store.rows import Row
    from headway.store.scheduler_state import State


class Access:
    """The named queries within one transaction. Nothing here refers back to the transaction, so
    that all of it goes when the transaction does."""

    __slots__ = ("_instant", "at_once", "cache", "database", "queries", "unreadable")

    def __init__(
        self, database: Statements, queries: Queries, now: int | Callable[[], int]
    ) -> None:
        """`now` may be known only later: a shared database sends it with the first answer."""
        self.database = database
        self.queries = queries
        self._instant = now
        self.unreadable: dict[JobId, str] = {}
        self.cache = StepCache()
        # Whether a question costs a round trip, so that several are better asked together.
        self.at_once = queries.at_once

    @property
    def now(self) -> int:
        """The instant of this transaction; every row that it writes carries the same."""
        if callable(self._instant):
            self._instant = self._instant()
        return self._instant

    def drop_state(self) -> None:
        """The state of the scheduler must be read again when it is next needed."""
        self.cache.state = None

    def json(self, values: Sequence[Any]) -> Any:
        """A set of values as one parameter."""
        return self.database.json(values)

    def all(self, query: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        named = self.queries[query]
        if named.changes:
            self.cache.forget(named)
        return self.database.execute(named.sql, parameters)

    def one(self, query: str, /, **parameters: Any) -> tuple[Any, ...] | None:
        rows = self.all(query, **parameters)
        return rows[0] if rows else None

    def ask(self, questions: Mapping[str, Mapping[str, Any]], /) -> list[list[Any]]:
        """The answers to several queries that change nothing, each with its parameters."""
        return self.database.ask([(self.queries[each].sql, questions[each]) for each in questions])

    def change(self, query: str, /, **parameters: Any) -> int:
        """Run a change and say how many rows it touched."""
        self.all(query, **parameters)
        return self.database.changes()

    def send(self, query: str, /, **parameters: Any) -> None:
        """Run a change whose row count is not needed: it may be sent along with the next."""
        named = self.queries[query]
        self.cache.forget(named)
        self.database.send(named.sql, parameters)

    def many(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a change for each of these; for none, nothing is done."""
        rows = iter(rows)
        first = next(rows, None)
        if first is None:
            return
        named = self.queries[query]
        self.cache.forget(named)
        self.database.execute_many(named.sql, chain((first,), rows))

    def listed(self, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """The parameters of a table given by `$LISTS`, whose columns have these names."""
        if self.at_once:
            columns = map(list, zip(*rows, strict=True))
            return {f"given_{name}": each for name, each in zip(names, columns, strict=True)}
        return {"rows": dump(rows)}


class Table:
    """A noun of a transaction: what can be done with the rows of one kind."""

    __slots__ = ("_cache", "_db")

    def __init__(self, db: Access) -> None:
        self._db = db
        self._cache = db.cache

    def _present(self) -> State:
        """The state of the scheduler, read once, until this transaction itself changes it."""
        cache = self._cache
        if cache.state is None:
            from headway.store.scheduler_state import load_state

            cache.state, cache.presence = load_state(self._db.all("present_state"))
        return cache.state

    def _readable(self, rows: Iterable[Row], read: Callable[[Row], Job] | None = None) -> list[Job]:
        """The jobs of these rows; one that cannot be read is remembered and stops nobody else."""
        from headway.base.errors import DataError
        from headway.store.rows import load_job

        read = read or load_job
        jobs = []
        for row in rows:
            try:
                jobs.append(read(row))
            except DataError as error:
                self._db.unreadable[row[0]] = str(error)
        return jobs
