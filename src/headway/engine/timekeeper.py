"""Fires schedules: their slots become jobs in the transaction of the step in which they are due.

A mark says when the first of all is due, so a step in which none is asks nothing. Any number of
workers may do this: whoever writes first fires a slot, and its record lets nobody fire it again.

When a worker begins, and when the clock went back, all schedules are reviewed before any fires:
those whose time zones have other rules now, and those whose slots lie in the future again. A
bounded part in each step, like everything here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from headway.clock import SECOND, Clock
from headway.core.fire import (
    Active,
    Fired,
    Firing,
    Outcome,
    Overlap,
    Rule,
    Schedule,
    Share,
    Skipped,
    fire,
    rewound,
    rezoned,
    shared_out,
)
from headway.core.model import JobId
from headway.crashpoints import reach
from headway.errors import HeadwayError, StoreError
from headway.home import Home
from headway.store.base import Event, WriteTx
from headway.units import show_duration, show_instant

if TYPE_CHECKING:
    from headway.firing import Maker

# In one step, which holds up all who write: schedules, and what these may do together. There is at
# least one slot and one job for each.
FIRED_AT_ONCE = 200
AT_ONCE = Share(slots=20_000, jobs=200)
REVIEWED_AT_ONCE = 200
JUMP = 10 * SECOND  # how far a clock must be off what has passed
LONGEST_REASON = 300
# What one schedule, its template or its place may have wrong with it. The store itself is another
# matter: what is wrong with it is wrong with the whole step.
_BROKEN = (HeadwayError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


class _Known(NamedTuple):
    """What was seen in the last step that was committed."""

    wall: int | None = None
    since_boot: float = 0.0
    reviewed: int | None = 0  # schedules up to this id; None: all


class _Result(NamedTuple):
    """A schedule that went on, the jobs that its slots became, and what was skipped."""

    schedule: Schedule
    jobs: list[tuple[int, JobId]]
    skipped: list[Skipped]

    def is_due(self, now: int) -> bool:
        at = self.schedule.next_fire_at
        return at is not None and at <= now


class Timekeeper:
    def __init__(self, home: Home, clock: Clock, *, shared: bool, actor: str) -> None:
        self._home = home
        self._clock = clock
        self._shared = shared
        self._actor = actor
        self._known = self._seen = _Known()
        self._zones: str | None = None

    def committed(self) -> None:
        self._known = self._seen

    def step(self, tx: WriteTx) -> bool:
        """Fire what is due; whether there is more to do at once."""
        self._seen = self._notice_jump(tx)
        marks = tx.marks()
        if marks["next_schedule_id"] == 1:
            return False
        if self._seen.reviewed is not None and not self._review(tx, self._seen.reviewed):
            return True
        due_at = tx.marks()["next_fire_at"]
        return bool(due_at) and due_at <= tx.now() and self._fire(tx)

    def _notice_jump(self, tx: WriteTx) -> _Known:
        """A clock that is set leaves a trace; one that went back lets slots come again."""
        wall, since_boot = tx.now(), self._clock.since_boot()
        before, reviewed = self._known, self._known.reviewed
        if before.wall is not None:
            passed = int((since_boot - before.since_boot) * SECOND)
            jump = wall - before.wall - passed
            if abs(jump) > JUMP:
                data = {
                    "by": show_duration(jump),
                    "from": show_instant(before.wall + passed),
                    "to": show_instant(wall),
                }
                tx.add_events([Event("clock_jumped", None, data)], actor=self._actor)
                reviewed = 0 if jump < 0 else reviewed
        return _Known(wall, since_boot, reviewed)

    # -- firing --------------------------------------------------------------------------------

    def _fire(self, tx: WriteTx) -> bool:
        from headway.firing import Maker

        due = tx.due_schedules(tx.now(), FIRED_AT_ONCE)
        active = tx.active_of_schedules([each.shown for each in due])
        maker = Maker(tx, self._home, shared=self._shared)
        results = [
            self._apply(maker, each, decided, active.get(each.shown, []), tx.now())
            for each, decided in self._decide_all(tx, due, active)
        ]
        self._record(tx, results)
        tx.move_schedules(result.schedule for result in results)
        tx.note_next_fire()
        reach("timekeeper.fired")
        return len(due) == FIRED_AT_ONCE or any(each.is_due(tx.now()) for each in results)

    def _decide_all(
        self, tx: WriteTx, due: Sequence[Schedule], active: Mapping[str, Sequence[Active]]
    ) -> list[tuple[Schedule, Fired]]:
        """Those that have the least to catch up are asked first: what they leave is there for the
        others, and nobody waits for one that has slept for a year."""
        ahead = tx.fired_ahead([each.id for each in due])
        left, found = AT_ONCE, []
        for position in reversed(range(len(due))):
            each = due[position]
            try:
                decided = fire(
                    each,
                    _rule(each),
                    tx.now(),
                    active.get(each.shown, ()),
                    ahead.get(each.id),
                    shared_out(left, position + 1),
                )
            except StoreError:
                raise
            except _BROKEN as error:
                self._put_to_rest(tx, each, error)
                continue
            left = Share(left.slots - decided.looked_at, left.jobs - len(decided.slots))
            found.append((each, decided))
        return found[::-1]

    def _put_to_rest(self, tx: WriteTx, schedule: Schedule, error: Exception) -> None:
        """One that cannot be read, or whose time zone is gone, must not stop the others."""
        reason = schedule.document.get("damaged") or _one_line(error)
        tx.move_schedules([schedule._replace(next_slot=None, next_fire_at=None)])
        data = {"schedule": schedule.shown, "name": schedule.name, "reason": reason}
        tx.add_events([Event("schedule_stopped", None, data)], actor=self._actor)

    def _apply(
        self, maker: Maker, schedule: Schedule, fired: Fired, active: list[Active], now: int
    ) -> _Result:
        """Make the jobs. What cannot be made is a skipped slot, and no reason to stop a step."""
        jobs: list[tuple[int, JobId]] = []
        skipped = list(fired.skipped)
        for slot in fired.slots:
            try:
                spec = maker.specify(schedule)
                if schedule.overlap is Overlap.REPLACE and active:
                    maker.replace(active, actor=schedule.shown)
                jobs.append((slot, maker.add(schedule, spec, actor=schedule.shown)))
            except StoreError:
                raise
            except (*_BROKEN, OSError) as error:
                skipped.append(Skipped(slot, slot, 1, _one_line(error)))
        last_slot, last_job = jobs[-1] if jobs else (schedule.last_slot, schedule.last_job)
        moved = schedule._replace(
            next_slot=fired.next_slot,
            next_fire_at=fired.next_fire_at,
            looked_at=now,
            zones=self._present_zones(),
            last_slot=last_slot,
            last_job=last_job,
        )
        return _Result(moved, jobs, skipped)

    def _record(self, tx: WriteTx, results: Sequence[_Result]) -> None:
        """Each slot once: a row for one that fired, one for all in a row that were skipped for the
        same reason."""
        with_skipped = [each.schedule.id for each in results if each.skipped]
        last = tx.last_firings(with_skipped) if with_skipped else {}
        added: list[Firing] = []
        grown: list[Firing] = []
        events: list[Event] = []
        for result in results:
            schedule = result.schedule
            named = {"schedule": schedule.shown, "name": schedule.name}
            newest = last.get(schedule.id)
            if newest is not None and newest.last_slot <= schedule.changed_at:
                newest = None
            for each in _in_order(result, tx.now()):
                if newest is not None and _goes_on(newest, each):
                    newest = newest._replace(
                        last_slot=each.last_slot, slots=newest.slots + each.slots, at=each.at
                    )
                    if added and (added[-1].schedule_id, added[-1].slot) == newest[:2]:
                        added[-1] = newest
                    else:
                        grown.append(newest)
                    continue
                newest = each
                added.append(each)
                events.append(_told(each, named))
        tx.grow_firings(grown)
        tx.add_firings(added)
        tx.add_events(events, actor=self._actor)

    # -- reviewing -----------------------------------------------------------------------------

    def _review(self, tx: WriteTx, after: int) -> bool:
        """Look at some more schedules; whether those were the last."""
        zones, now = self._present_zones(), tx.now()
        found = tx.schedules_to_review(zones, now, after=after, limit=REVIEWED_AT_ONCE)
        reviewed = []
        for each in found:
            try:
                reviewed.append(self._reviewed(tx, each)._replace(zones=zones))
            except StoreError:
                raise
            except _BROKEN as error:
                self._put_to_rest(tx, each, error)
        tx.move_schedules(reviewed)
        if found:
            tx.note_next_fire()
        complete = len(found) < REVIEWED_AT_ONCE
        self._seen = self._seen._replace(reviewed=None if complete else found[-1].id)
        return complete

    def _reviewed(self, tx: WriteTx, schedule: Schedule) -> Schedule:
        rule, now = _rule(schedule), tx.now()
        if schedule.looked_at <= now:
            return rezoned(schedule, rule, now)
        from headway.firing import take_back_ahead

        take_back_ahead(tx, schedule, rule)
        return rewound(schedule, rule, now)

    def _present_zones(self) -> str:
        if self._zones is None:
            from headway.timing.zones import zones_version

            self._zones = zones_version()
        return self._zones


def _rule(schedule: Schedule) -> Rule:
    from headway.timing.rules import rule_of

    return rule_of(schedule.document["rule"])


def _in_order(result: _Result, now: int) -> list[Firing]:
    schedule_id = result.schedule.id
    fired = [
        Firing(schedule_id, slot, slot, 1, Outcome.FIRED, None, job_id, now)
        for slot, job_id in result.jobs
    ]
    skipped = [
        Firing(
            schedule_id, each.first, each.last, each.slots, Outcome.SKIPPED, each.reason, None, now
        )
        for each in result.skipped
    ]
    return sorted([*fired, *skipped], key=lambda each: each.slot)


def _goes_on(newest: Firing, following: Firing) -> bool:
    return newest.outcome is following.outcome is Outcome.SKIPPED and (
        newest.reason == following.reason
    )


def _told(firing: Firing, named: dict[str, str]) -> Event:
    if firing.job_id is not None:
        slot = {"slot": show_instant(firing.slot)}
        return Event("schedule_fired", firing.job_id, {**named, **slot})
    data = {"slots": firing.slots, "from": show_instant(firing.slot), "reason": firing.reason}
    return Event("schedule_skipped", None, {**named, **data})


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__
