"""Events: the append-only record of transitions and of operators' actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.core.model import JobId
from headway.store.access import Table
from headway.store.new_jobs import Event
from headway.store.rows import dump, dump_pairs, load

_SIMPLE = frozenset({str, int})


class EventsReader(Table):
    """Events as a read transaction shows them."""

    def of_job(self, job_id: JobId) -> list[Event]:
        return [_event(row) for row in self._db.all("events_of_job", job_id=job_id)]

    def last_changes(self, ids: Sequence[JobId]) -> dict[JobId, int]:
        """Of each of these jobs the number of its newest event that is no wait."""
        rows = self._db.all("last_changes", ids=self._db.json(ids))
        return {job_id: seq or 0 for job_id, seq in rows}

    def since(self, seq: int, limit: int) -> list[Event]:
        return [_event(row) for row in self._db.all("events_since", seq=seq, limit=limit)]

    def of_kinds(self, kinds: Sequence[str], *, after: int, limit: int) -> list[Event]:
        """The first so many of these kinds."""
        asked = {"seq": after, "kinds": self._db.json(kinds), "limit": limit}
        return [_event(row) for row in self._db.all("events_of_kinds", **asked)]

    def last(self) -> int:
        row = self._db.one("last_event")
        return row[0] or 0 if row else 0


class EventsTable(EventsReader):
    """Events as a write transaction adds them."""

    def add(self, events: Iterable[Event], *, actor: str) -> None:
        rows = (
            {
                "at": self._db.now,
                "actor": event.actor or actor,
                "kind": event.kind,
                "job_id": event.job_id,
                "data": _data(event.data) if event.data else "{}",
            }
            for event in events
        )
        self._db.many("add_events", rows)


def _event(row: tuple[Any, ...]) -> Event:
    seq, at, actor, kind, job_id, data = row
    return Event(kind, job_id, load(data, f"event {seq}"), actor, at, seq)


def _data(data: Mapping[str, Any]) -> str:
    for value in data.values():
        if type(value) not in _SIMPLE:  # True and 1 are equal, and not the same
            return dump(data)
    return dump_pairs(tuple(data.items()))
