"""What every transaction stands on: how it asks named queries, how it changes rows, and what it
must ask for again afterwards."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from headway.store.rows import dump

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from headway.core.model import JobId
    from headway.store.queries import Queries, Query
    from headway.store.sqlstore import Statements
    from headway.store.state import State, Whereabouts
    from headway.store.waking import Woken


class Asking:
    def __init__(
        self,
        database: Statements,
        named: Queries,
        now: int | Callable[[], int],
    ) -> None:
        """`now` may be known only later: who shares a database learns it with the first answer."""
        self._database = database
        self._named = named
        self._instant = now
        self._unreadable: dict[JobId, str] = {}
        self._state: State | None = None
        self._whereabouts: Whereabouts | None = None
        self._crowded = False  # more are woken than are looked at together
        self._ahead: tuple[int, list[Any]] = 0, []  # plain calls, asked for with the state
        self._looked: Woken | None = None  # who is woken, with all that is to be known of them

    def now(self) -> int:
        """The instant of this transaction; every row it writes carries the same."""
        return self._now

    @property
    def _now(self) -> int:
        if callable(self._instant):
            self._instant = self._instant()
        return self._instant

    def _all(self, query: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._database.execute(self._named[query].sql, parameters)

    def _ask(self, questions: Mapping[str, Mapping[str, Any]], /) -> list[list[Any]]:
        """What several queries show that change nothing, each with its parameters."""
        return self._database.ask([(self._named[each].sql, questions[each]) for each in questions])

    def _one(self, query: str, /, **parameters: Any) -> tuple[Any, ...] | None:
        rows = self._all(query, **parameters)
        return rows[0] if rows else None


class Telling(Asking):
    def _run(self, query: str, /, **parameters: Any) -> int:
        """Run a change and say how many rows it touched."""
        self._all(query, **parameters)
        return self._database.changes()

    def _tell(self, query: str, /, **parameters: Any) -> None:
        """Run a change whose effect is not looked at: it may be sent along with the next."""
        named = self._named[query]
        self._forget(named)
        self._database.tell(named.sql, parameters)

    def _forget(self, query: Query) -> None:
        """What this query may have changed is asked for anew when it is needed."""
        if query.table == "jobs" and query.name != "finish_calls":
            self._ahead = 0, []
        if query.table in ("jobs", "edges"):
            self._looked = None
        if self._state is not None and self._state.is_changed_by(query.name, query.table):
            self._state = None
        if self._whereabouts is not None and query.table is not None:
            self._whereabouts = self._whereabouts.after(query.name, query.table)

    def _all(self, query: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        named = self._named[query]
        self._forget(named)
        return self._database.execute(named.sql, parameters)

    def _listed(self, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """The parameters of a table given by `$LISTS`, whose columns have these names."""
        if self._named.at_once:
            columns = map(list, zip(*rows, strict=True))
            return {f"given_{name}": each for name, each in zip(names, columns, strict=True)}
        return {"rows": dump(rows)}

    def _many(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a change for each of these; for none, nothing is done."""
        rows = iter(rows)
        first = next(rows, None)
        if first is None:
            return
        named = self._named[query]
        self._forget(named)
        self._database.execute_many(named.sql, chain((first,), rows))
