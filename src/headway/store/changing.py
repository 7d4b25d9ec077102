"""How a write transaction changes rows: named queries, and what must be read again afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from headway.store.graphreading import GraphReadTx
from headway.store.state import Whereabouts, changes_state, whereabouts_after

if TYPE_CHECKING:
    from headway.store.base import Filing
    from headway.store.queries import Query


class Changing(GraphReadTx):
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
        if self._state is not None and changes_state(query.name, query.table):
            self._state = None
        if self._whereabouts is not None and query.table is not None:
            known = whereabouts_after(self._whereabouts, query.name, query.table)
            self._whereabouts = known

    def _follow_filed(self, before: Whereabouts | None, filings: Sequence[Filing]) -> None:
        """Jobs were filed; `before` is what was known until then."""
        self._whereabouts = before.with_filed(filings) if before is not None else None
        if self._state is not None:
            self._state.filed(filings)

    def _all(self, query: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        named = self._named[query]
        self._forget(named)
        return self._database.execute(named.sql, parameters)

    def _many(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a change for each of these; for none, nothing is done."""
        rows = iter(rows)
        first = next(rows, None)
        if first is None:
            return
        named = self._named[query]
        self._forget(named)
        self._database.execute_many(named.sql, chain((first,), rows))
