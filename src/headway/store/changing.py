"""How a write transaction changes rows: named queries, and what must be read again afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headway.store.graphreading import GraphReadTx

# What `present_state` reads, these write.
_CHANGE_THE_STATE = frozenset(
    {
        *("take_ids", "take_places", "add_claims", "end_claims", "forget_claim"),
        *("lend", "end_lending", "end_lendings_of_jobs", "end_expired_lendings"),
        *("set_setting", "pause", "resume", "set_mark", "add_to_mark"),
        *("open_breaker", "close_breaker", "close_all_breakers"),
    }
)


class Changing(GraphReadTx):
    def _run(self, query: str, /, **parameters: Any) -> int:
        """Run a change and say how many rows it touched."""
        self._forget_state(query)
        self._database.execute(self._named[query].sql, parameters)
        return self._database.changes()

    def _tell(self, query: str, /, **parameters: Any) -> None:
        """Run a change whose effect is not looked at: it may be sent along with the next."""
        self._forget_state(query)
        self._database.tell(self._named[query].sql, parameters)

    def _forget_state(self, query: str) -> None:
        if query in _CHANGE_THE_STATE:
            self._state = None

    def _all(self, query: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
        self._forget_state(query)
        return super()._all(query, **parameters)

    def _many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        self._forget_state(name)
        self._database.execute_many(self._named[name].sql, rows)
