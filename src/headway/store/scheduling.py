"""The verbs about schedules and their slots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headway.core.states import Status
from headway.errors import DataError
from headway.store.changing import Changing
from headway.store.graphreading import GraphReadTx
from headway.store.rows import dump, load

if TYPE_CHECKING:
    from headway.core.fire import Active, Firing, Schedule
    from headway.store.seam_schedules import Missed

MARK = "next_fire_at"


class ScheduleReadTx(GraphReadTx):
    def schedules(self, ids: Sequence[int]) -> dict[int, Schedule]:
        rows = self._all("schedules_by_id", ids=self._database.json(ids))
        return {row[0]: _schedule(row) for row in rows}

    def schedule_named(self, name: str) -> Schedule | None:
        row = self._one("schedule_named", name=name)
        return _schedule(row) if row else None

    def all_schedules(self) -> list[Schedule]:
        return [_schedule(row) for row in self._all("all_schedules")]

    def due_schedules(self, now: int, limit: int) -> list[Schedule]:
        return [_schedule(row) for row in self._all("due_schedules", now=now, limit=limit)]

    def schedules_to_review(
        self, zones: str, now: int, *, after: int, limit: int
    ) -> list[Schedule]:
        asked = {"zones": zones, "now": now, "after": after, "limit": limit}
        return [_schedule(row) for row in self._all("schedules_to_review", **asked)]

    def active_of_schedules(self, names: Sequence[str]) -> dict[str, list[Active]]:
        from headway.core.fire import Active

        found: dict[str, list[Active]] = {}
        rows = self._all("active_of_schedules", schedules=self._database.json(names))
        for name, job_id, status in rows:
            found.setdefault(name, []).append(Active(job_id, status == Status.RUNNING))
        return found

    def fired_ahead(self, ids: Sequence[int]) -> dict[int, int]:
        return dict(self._all("fired_ahead", ids=self._database.json(ids)))

    def last_firings(self, ids: Sequence[int]) -> dict[int, Firing]:
        rows = self._all("last_firings", ids=self._database.json(ids))
        return {row[0]: _firing(row) for row in rows}

    def firings(self, schedule_id: int, limit: int) -> list[Firing]:
        rows = self._all("firings_of", schedule_id=schedule_id, limit=limit)
        return [_firing(row) for row in rows]

    def missed(self, ids: Sequence[int]) -> dict[int, Missed]:
        from headway.store.seam_schedules import Missed

        rows = self._all("missed_of_schedules", ids=self._database.json(ids))
        return {row[0]: Missed(*row[1:]) for row in rows}


class ScheduleWriteTx(ScheduleReadTx, Changing):
    def take_schedule_id(self) -> int:
        return int(self._all("take_schedule_id")[0][0])

    def put_schedule(self, schedule: Schedule) -> None:
        self._tell(
            "put_schedule",
            **{
                **schedule._asdict(),
                "document": dump(schedule.document),
                "enabled": int(schedule.enabled),
            },
        )

    def move_schedules(self, moved: Iterable[Schedule]) -> None:
        self._many("move_schedules", (_moved(each) for each in moved))

    def note_next_fire(self) -> None:
        row = self._one("next_fire")
        self.set_mark(MARK, (row[0] if row else None) or 0)

    def remove_schedule(self, schedule_id: int) -> bool:
        self._tell("remove_firings", schedule_id=schedule_id)
        return self._run("remove_schedule", id=schedule_id) == 1

    def add_firings(self, firings: Iterable[Firing]) -> None:
        rows = (each._asdict() | {"outcome": each.outcome.value} for each in firings)
        self._many("add_firings", rows)

    def grow_firings(self, firings: Iterable[Firing]) -> None:
        self._many("grow_firings", (_grown(each) for each in firings))

    def take_back_skipped(self, schedule_id: int, after: int) -> list[Firing]:
        asked = {"schedule_id": schedule_id, "after": after}
        found = [_firing(row) for row in self._all("skipped_ahead", **asked)]
        if found:
            self._tell("take_back_skipped", **asked)
        return found

    def forget_firings(self, before: int, keep: int, *, after: int, limit: int) -> int | None:
        ids = [row[0] for row in self._all("schedules_after", after=after, limit=limit)]
        for schedule_id in ids:
            oldest = self._one("oldest_kept", schedule_id=schedule_id, keep=keep)
            asked = {"schedule_id": schedule_id, "before": before}
            last = self._one("last_of_old", **asked, until=oldest[0] if oldest else 0)
            if last is not None and last[0] is not None:
                self._tell("note_forgotten", id=schedule_id, until=last[0])
                self._tell("forget_firings", schedule_id=schedule_id, until=last[0])
        return ids[-1] if len(ids) == limit else None

    if TYPE_CHECKING:

        def set_mark(self, name: str, value: int) -> None: ...


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
    except (DataError, RecursionError) as error:  # who fires it finds it out, and puts it to rest
        loaded = {"damaged": str(error)}
    if not isinstance(loaded, dict):
        loaded = {"damaged": f"{shown} cannot be read: it is no object; run `headway doctor`"}
    return Schedule(schedule_id, name, loaded, bool(enabled), *rest)


def _firing(row: tuple[Any, ...]) -> Firing:
    from headway.core.fire import Firing, Outcome

    schedule_id, slot, last_slot, slots, outcome, *rest = row
    return Firing(schedule_id, slot, last_slot, slots, Outcome(outcome), *rest)
