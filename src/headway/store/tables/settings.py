"""Settings that the store keeps, pauses, and the marks: numbers that every step knows."""

from __future__ import annotations

from typing import Any

from headway.core.model import Pause
from headway.store.access import Table
from headway.store.rows import dump

EVERYWHERE = "all"  # the scope of a pause; else a host's id


class SettingsReader(Table):
    """Settings, pauses and marks as a read transaction shows them."""

    def all(self) -> dict[str, Any]:
        return dict(self._present().settings)

    def pause_in_force(self, host_id: str | None = None) -> Pause | None:
        """The pause of everything, or else of this host; without a host, or else of any."""
        state = self._present()
        if host_id is not None:
            return state.pause or state.host_pauses.get(host_id)
        return state.pause or next(iter(state.host_pauses.values()), None)

    def host_pauses(self) -> list[Pause]:
        """The pauses of single hosts."""
        return list(self._present().host_pauses.values())

    def marks(self) -> dict[str, int]:
        return dict(self._present().marks)


class SettingsTable(SettingsReader):
    """Settings, pauses and marks as a write transaction changes them."""

    def set(self, key: str, value: Any, *, by: str) -> None:
        self._db.send("set_setting", key=key, value=dump(value), at=self._db.now, by=by)

    def unset(self, key: str) -> None:
        self._db.send("unset_setting", key=key)

    def pause(self, pause: Pause) -> bool:
        scope = pause.host_id or EVERYWHERE
        given = {"actor": pause.actor, "reason": pause.reason, "at": pause.at}
        return self._db.change("pause", scope=scope, **given) == 1

    def resume(self) -> bool:
        """End every pause; False if there was none."""
        return self._db.change("resume") > 0

    def set_mark(self, name: str, value: int) -> None:
        self._db.send("set_mark", name=name, value=value)
        if self._cache.state is not None and name in self._cache.state.marks:
            self._cache.state.marks[name] = value

    def add_to_mark(self, name: str, amount: int) -> None:
        self._db.send("add_to_mark", name=name, amount=amount)
        if self._cache.state is not None and name in self._cache.state.marks:
            self._cache.state.marks[name] += amount

    def note_dispatch(self, at: int, count: int) -> None:
        """When jobs were last started, and how many."""
        self._db.send("note_dispatch", at=at, count=count)
        if self._cache.state is not None:
            self._cache.state.marks["last_dispatch_at"] = at
            self._cache.state.marks["last_dispatch_count"] = count
