"""Schedules, and what became of their slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headway.base.errors import DataError
from headway.core.states import Status
from headway.store.access import Table
from headway.store.rows import dump, load
from headway.store.tables.settings import SettingsTable

if TYPE_CHECKING:
    from headway.core.fire import Active, Firing, Schedule
    from headway.store.records import Missed

MARK = "next_fire_at"


class SchedulesReader(Table):
    """Schedules as a read transaction shows them."""

    def by_id(self, ids: Sequence[int]) -> dict[int, Schedule]:
        rows = self._db.all("schedules_by_id", ids=self._db.json(ids))
        return {row[0]: _schedule(row) for row in rows}

    def named(self, name: str) -> Schedule | None:
        row = self._db.one("schedule_named", name=name)
        return _schedule(row) if row else None

    def all(self) -> list[Schedule]:
        """By their ids."""
        return [_schedule(row) for row in self._db.all("all_schedules")]

    def due(self, now: int, limit: int) -> list[Schedule]:
        """Those that are to fire by then, the longest due first."""
        return [_schedule(row) for row in self._db.all("due_schedules", now=now, limit=limit)]

    def to_review(self, zones: str, now: int, *, after: int, limit: int) -> list[Schedule]:
        """Of those with greater ids the enabled ones whose next slot was found with other time
        zones, or at a time that has yet to come."""
        asked = {"zones": zones, "now": now, "after": after, "limit": limit}
        return [_schedule(row) for row in self._db.all("schedules_to_review", **asked)]

    def active_jobs(self, names: Sequence[str]) -> dict[str, list[Active]]:
        """By what made them (`schedule-3`), the jobs that have not ended, the oldest first. A
        workflow run is one: the first of its jobs that runs stands for it, else the oldest."""
        from headway.core.fire import Active

        found: dict[str, dict[tuple[int | None, int], Active]] = {}
        rows = self._db.all("active_of_schedules", schedules=self._db.json(names))
        for name, job_id, status, run in rows:
            each = Active(job_id, status == Status.RUNNING, run)
            known = found.setdefault(name, {})
            key = (run, job_id if run is None else 0)
            if key not in known or (each.running and not known[key].running):
                known[key] = each
        return {name: [*known.values()] for name, known in found.items()}

    def fired_ahead(self, ids: Sequence[int]) -> dict[int, int]:
        """Of each schedule the first slot that fired of those that are yet to come, if any did: a
        clock went back."""
        return dict(self._db.all("fired_ahead", ids=self._db.json(ids)))

    def last_firings(self, ids: Sequence[int]) -> dict[int, Firing]:
        """Of each schedule the newest record before its next slot."""
        rows = self._db.all("last_firings", ids=self._db.json(ids))
        return {row[0]: _firing(row) for row in rows}

    def firings(self, schedule_id: int, limit: int) -> list[Firing]:
        """The newest first."""
        rows = self._db.all("firings_of", schedule_id=schedule_id, limit=limit)
        return [_firing(row) for row in rows]

    def missed(self, ids: Sequence[int]) -> dict[int, Missed]:
        from headway.store.records import Missed

        rows = self._db.all("missed_of_schedules", ids=self._db.json(ids))
        return {row[0]: Missed(*row[1:]) for row in rows}


class SchedulesTable(SchedulesReader):
    """Schedules as a write transaction changes them."""

    def take_id(self) -> int:
        return int(self._db.all("take_schedule_id")[0][0])

    def put(self, schedule: Schedule) -> None:
        """In the place of the one with the same id, if there is one. How far it has fired stays."""
        self._db.send(
            "put_schedule",
            **{
                **schedule._asdict(),
                "document": dump(schedule.document),
                "enabled": int(schedule.enabled),
            },
        )

    def move(self, moved: Iterable[Schedule]) -> None:
        """How far they have come; of one that was changed since it was read, nothing."""
        self._db.many("move_schedules", (_moved(each) for each in moved))

    def note_next_fire(self) -> None:
        """After any change: when the first of all is to fire is known to every step."""
        row = self._db.one("next_fire")
        SettingsTable(self._db).set_mark(MARK, (row[0] if row else None) or 0)

    def remove(self, schedule_id: int) -> bool:
        """With its records; its jobs stay. False if there is none."""
        self._db.send("remove_firings", schedule_id=schedule_id)
        return self._db.change("remove_schedule", id=schedule_id) == 1

    def add_firings(self, firings: Iterable[Firing]) -> None:
        """A slot that is there already is refused: none fires twice."""
        rows = (each._asdict() | {"outcome": each.outcome.value} for each in firings)
        self._db.many("add_firings", rows)

    def grow_firings(self, firings: Iterable[Firing]) -> None:
        """Ranges of skipped slots have become longer."""
        self._db.many("grow_firings", (_grown(each) for each in firings))

    def take_back_skipped(self, schedule_id: int, after: int) -> list[Firing]:
        """Remove the skipped ranges that reach beyond an instant, and say which those were."""
        asked = {"schedule_id": schedule_id, "after": after}
        found = [_firing(row) for row in self._db.all("skipped_ahead", **asked)]
        if found:
            self._db.send("take_back_skipped", **asked)
        return found

    def forget_firings(self, before: int, keep: int, *, after: int, limit: int) -> int | None:
        """Of so many schedules with greater ids forget records that were made before an instant,
        and all but the newest so many; the last of their ids, None if there are no more."""
        ids = [row[0] for row in self._db.all("schedules_after", after=after, limit=limit)]
        for schedule_id in ids:
            oldest = self._db.one("oldest_kept", schedule_id=schedule_id, keep=keep)
            asked = {"schedule_id": schedule_id, "before": before}
            last = self._db.one("last_of_old", **asked, until=oldest[0] if oldest else 0)
            if last is not None and last[0] is not None:
                self._db.send("note_forgotten", id=schedule_id, until=last[0])
                self._db.send("forget_firings", schedule_id=schedule_id, until=last[0])
        return ids[-1] if len(ids) == limit else None


def _moved(schedule: Schedule) -> dict[str, Any]:
    fields = ("id", "version", "changed_at", "next_slot", "next_fire_at", "looked_at", "zones")
    return {each: getattr(schedule, each) for each in (*fields, "last_slot", "last_job")}


def _grown(firing: Firing) -> dict[str, Any]:
    fields = ("schedule_id", "slot", "last_slot", "slots", "at")
    return {each: getattr(firing, each) for each in fields}


def _schedule(row: tuple[Any, ...]) -> Schedule:
    from headway.core.fire import Schedule

    schedule_id, name, document, enabled, *rest = row
    shown = f"schedule-{schedule_id}"
    try:
        loaded = load(document, shown)
    except (DataError, RecursionError) as error:  # the step that fires it disables it
        loaded = {"damaged": str(error)}
    if not isinstance(loaded, dict):
        loaded = {"damaged": f"{shown} cannot be read: it is no object; run `headway doctor`"}
    return Schedule(schedule_id, name, loaded, bool(enabled), *rest)


def _firing(row: tuple[Any, ...]) -> Firing:
    from headway.core.fire import Firing, SlotOutcome

    schedule_id, slot, last_slot, slots, outcome, *rest = row
    return Firing(schedule_id, slot, last_slot, slots, SlotOutcome(outcome), *rest)
