"""Fires schedules: their slots become jobs in the transaction of the step in which they are due.

A mark says when the first of all is due, so a step in which none is asks nothing. Any number of
workers may do this: the first to write fires a slot, and its record lets nobody fire it again.

When a worker begins, and when the clock went back, all schedules are reviewed before any fires:
those whose time zones have other rules now, and those whose slots lie in the future again. A
bounded part in each step, like everything here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from headway.base.clock import SECOND, Clock
from headway.base.crashpoints import reach
from headway.base.errors import HeadwayError, StoreError
from headway.base.home import Home
from headway.base.units import show_duration, show_instant
from headway.core.fire import (
    Active,
    Fired,
    Firing,
    Overlap,
    Schedule,
    Share,
    SkippedSlots,
    SlotOutcome,
    SlotRule,
    fire,
    rewound,
    rezoned,
    shared_out,
)
from headway.core.model import JobId, JobSpec
from headway.store.new_jobs import Event
from headway.store.transaction import WriteTx

if TYPE_CHECKING:
    from headway.schedules.fire import Maker
    from headway.workflows.prepared import PreparedRun

# In one step, which holds up all who write: schedules, and what these may do together. There is at
# least one slot and one job for each.
FIRED_AT_ONCE = 200
AT_ONCE = Share(slots=20_000, jobs=200)
REVIEWED_AT_ONCE = 200
JUMP = 10 * SECOND  # how far a clock must be off what has passed
LONGEST_REASON = 300
# What one schedule, its template or its place may have wrong with it. The store itself is another
# matter: what is wrong with it is wrong with the whole step.
_BROKEN = (
    *(HeadwayError, ValueError, TypeError, LookupError, AttributeError, RecursionError, OSError),
)
_Found = TypeVar("_Found")
_Given = ParamSpec("_Given")


class _CommittedState(NamedTuple):
    """The state as of the last committed step."""

    wall: int | None = None
    since_boot: float = 0.0
    reviewed: int | None = 0  # schedules up to this id; None: all


class _Result(NamedTuple):
    """The decision about a schedule, the jobs of its slots, and the slots that were skipped."""

    schedule: Schedule
    fired: Fired
    jobs: list[tuple[int, JobId]]
    skipped: list[SkippedSlots]

    def moved(self, now: int, zones: str) -> Schedule:
        schedule = self.schedule
        last_slot, last_job = (
            self.jobs[-1] if self.jobs else (schedule.last_slot, schedule.last_job)
        )
        return schedule._replace(
            next_slot=self.fired.next_slot,
            next_fire_at=self.fired.next_fire_at,
            looked_at=now,
            zones=zones,
            last_slot=last_slot,
            last_job=last_job,
        )

    def is_due(self, now: int) -> bool:
        at = self.fired.next_fire_at
        return at is not None and at <= now


class _SlotJob(NamedTuple):
    """A job for a slot."""

    result: _Result
    slot: int
    spec: JobSpec | PreparedRun


class Timekeeper:
    def __init__(
        self, home: Home, clock: Clock, *, shared: bool, actor: str, host_id: str | None = None
    ) -> None:
        self._home = home
        self._host_id = host_id
        self.left_to_others = False  # whether one is due that another host has to fire
        self._clock = clock
        self._shared = shared
        self._actor = actor
        self._known = self._seen = _CommittedState()
        self._zones: str | None = None

    def committed(self) -> None:
        self._known = self._seen

    def step(self, tx: WriteTx) -> bool:
        """Fire what is due; whether there is more to do at once."""
        self._seen = self._notice_jump(tx)
        marks = tx.settings.marks()
        if marks["next_schedule_id"] == 1:
            return False
        if self._seen.reviewed is not None and not self._review(tx, self._seen.reviewed):
            return True
        due_at = tx.settings.marks()["next_fire_at"]
        self.left_to_others = False
        return bool(due_at) and due_at <= tx.now() and self._fire(tx)

    def _notice_jump(self, tx: WriteTx) -> _CommittedState:
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
                tx.events.add([Event("clock_jumped", None, data)], actor=self._actor)
                reviewed = 0 if jump < 0 else reviewed
        return _CommittedState(wall, since_boot, reviewed)

    # -- firing --------------------------------------------------------------------------------

    def _fire(self, tx: WriteTx) -> bool:
        from headway.schedules.fire import Maker

        found = tx.schedules.due(tx.now(), FIRED_AT_ONCE)
        due = [each for each in found if not self._is_elsewhere(each)]
        self.left_to_others = len(due) < len(found)
        active = tx.schedules.active_jobs([each.shown for each in due])
        results = self._decide_all(tx, due, active)
        self._make(Maker(tx, self._home, shared=self._shared), results, active)
        self._record(tx, results)
        tx.schedules.move(each.moved(tx.now(), self._present_zones()) for each in results)
        tx.schedules.note_next_fire()
        reach("timekeeper.fired")
        return len(due) == FIRED_AT_ONCE or any(each.is_due(tx.now()) for each in results)

    def _is_elsewhere(self, schedule: Schedule) -> bool:
        """The file of a workflow is on the host of its schedule, so that one fires it."""
        other = schedule.host_id not in (None, self._host_id)
        return self._shared and other and schedule.document.get("workflow") is not None

    def _decide_all(
        self, tx: WriteTx, due: Sequence[Schedule], active: Mapping[str, Sequence[Active]]
    ) -> list[_Result]:
        """Those that have the least to catch up are asked first: what they leave is there for the
        others, and nobody waits for one that has slept for a year."""
        ahead = tx.schedules.fired_ahead([each.id for each in due])
        left, found = AT_ONCE, []
        for position in reversed(range(len(due))):
            each = due[position]
            decided = self._decide(
                tx,
                each,
                active.get(each.shown, ()),
                ahead.get(each.id),
                _share_of(each, shared_out(left, position + 1)),
            )
            if decided is not None:
                left = Share(left.slots - decided.looked_at, left.jobs - len(decided.slots))
                found.append(_Result(each, decided, [], list(decided.skipped)))
        return found[::-1]

    def _decide(
        self,
        tx: WriteTx,
        schedule: Schedule,
        active: Sequence[Active],
        taken: int | None,
        share: Share,
    ) -> Fired | None:
        found = _attempt(_fired, schedule, tx.now(), active, taken, share)
        if isinstance(found, Exception):
            self._put_to_rest(tx, schedule, found)
            return None
        return found

    def _put_to_rest(self, tx: WriteTx, schedule: Schedule, error: Exception) -> None:
        """One that cannot be read, or whose time zone is gone, must not stop the others."""
        reason = schedule.document.get("damaged") or _one_line(error)
        tx.schedules.move([schedule._replace(next_slot=None, next_fire_at=None)])
        data = {"schedule": schedule.shown, "name": schedule.name, "reason": reason}
        tx.events.add([Event("schedule_stopped", None, data)], actor=self._actor)

    def _make(
        self, maker: Maker, results: Sequence[_Result], active: Mapping[str, list[Active]]
    ) -> None:
        """Make the jobs. What cannot be made is a skipped slot, and no reason to stop a step."""
        wanted: list[_SlotJob] = []
        for result in results:
            slots = result.fired.slots
            spec = _attempt(maker.specify, result.schedule) if slots else None
            if isinstance(spec, Exception):
                result.skipped.extend(_refused(slot, spec) for slot in slots)
            elif spec is not None:
                wanted += [_SlotJob(result, slot, spec) for slot in slots]
        for (result, slot, _), made in zip(wanted, _added(maker, wanted), strict=True):
            if isinstance(made, Exception):
                result.skipped.append(_refused(slot, made))
            else:
                result.jobs.append((slot, made))
        for result in results:
            schedule = result.schedule
            before = active.get(schedule.shown)
            if result.jobs and before and schedule.overlap is Overlap.REPLACE:
                maker.replace(before, actor=schedule.shown)

    def _record(self, tx: WriteTx, results: Sequence[_Result]) -> None:
        """Each slot once: a row for one that fired, one for all in a row that were skipped for the
        same reason."""
        with_skipped = [each.schedule.id for each in results if each.skipped]
        last = tx.schedules.last_firings(with_skipped) if with_skipped else {}
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
                events.append(_slot_event(each, named))
        tx.schedules.grow_firings(grown)
        tx.schedules.add_firings(added)
        tx.events.add(events, actor=self._actor)

    # -- reviewing -----------------------------------------------------------------------------

    def _review(self, tx: WriteTx, after: int) -> bool:
        """Review some more schedules; returns whether those were the last."""
        zones, now = self._present_zones(), tx.now()
        found = tx.schedules.to_review(zones, now, after=after, limit=REVIEWED_AT_ONCE)
        reviewed = []
        for each in found:
            seen = _attempt(self._reviewed, tx, each)
            if isinstance(seen, Exception):
                self._put_to_rest(tx, each, seen)
            else:
                reviewed.append(seen._replace(zones=zones))
        tx.schedules.move(reviewed)
        if found:
            tx.schedules.note_next_fire()
        complete = len(found) < REVIEWED_AT_ONCE
        self._seen = self._seen._replace(reviewed=None if complete else found[-1].id)
        return complete

    def _reviewed(self, tx: WriteTx, schedule: Schedule) -> Schedule:
        rule, now = _rule(schedule), tx.now()
        if schedule.looked_at <= now:
            return rezoned(schedule, rule, now)
        from headway.schedules.fire import take_back_ahead

        take_back_ahead(tx, schedule, rule)
        return rewound(schedule, rule, now)

    def _present_zones(self) -> str:
        if self._zones is None:
            from headway.schedules.timing.zones import zones_version

            self._zones = zones_version()
        return self._zones


def _attempt(
    do: Callable[_Given, _Found], *given: _Given.args, **named: _Given.kwargs
) -> _Found | Exception:
    """What comes of it, or what is broken."""
    try:
        return do(*given, **named)
    except StoreError:
        raise
    except _BROKEN as error:
        return error


def _added(maker: Maker, wanted: Sequence[_SlotJob]) -> list[JobId | Exception]:
    """Those of a host together; if one is refused one by one, so that it is only that one."""
    found: list[JobId | Exception] = []
    places = {id(each): place for place, each in enumerate(wanted)}

    def together(each: _SlotJob) -> tuple[str | None, int]:
        """A run is made by itself."""
        alone = -1 if isinstance(each.spec, JobSpec) else places[id(each)]
        return each.result.schedule.host_id, alone

    for _, some in groupby(wanted, key=together):
        asked = [(each.result.schedule, each.spec) for each in some]
        made = _attempt(maker.add_of_slots, asked)
        if isinstance(made, Exception):
            for each in asked:
                alone = _attempt(maker.add_of_slots, [each])
                found.append(alone if isinstance(alone, Exception) else alone[0])
        else:
            found += made
    return found


def _share_of(schedule: Schedule, share: Share) -> Share:
    """A run may be thousands of jobs, so a step makes one of a schedule."""
    alone = schedule.document.get("workflow") is not None
    return share._replace(jobs=min(share.jobs, 1)) if alone else share


def _refused(slot: int, error: Exception) -> SkippedSlots:
    return SkippedSlots(slot, slot, 1, _one_line(error))


def _fired(
    schedule: Schedule, now: int, active: Sequence[Active], taken: int | None, share: Share
) -> Fired:
    return fire(schedule, _rule(schedule), now, active, taken, share)


def _rule(schedule: Schedule) -> SlotRule:
    from headway.schedules.timing.rules import rule_of

    return rule_of(schedule.document["rule"])


def _in_order(result: _Result, now: int) -> list[Firing]:
    schedule_id = result.schedule.id
    fired = [
        Firing(schedule_id, slot, slot, 1, SlotOutcome.FIRED, None, job_id, now)
        for slot, job_id in result.jobs
    ]
    skipped = [
        Firing(
            schedule_id,
            each.first,
            each.last,
            each.slots,
            SlotOutcome.SKIPPED,
            each.reason,
            None,
            now,
        )
        for each in result.skipped
    ]
    return sorted([*fired, *skipped], key=lambda each: each.slot)


def _goes_on(newest: Firing, following: Firing) -> bool:
    return newest.outcome is following.outcome is SlotOutcome.SKIPPED and (
        newest.reason == following.reason
    )


def _slot_event(firing: Firing, named: dict[str, str]) -> Event:
    if firing.job_id is not None:
        slot = {"slot": show_instant(firing.slot)}
        return Event("schedule_fired", firing.job_id, {**named, **slot})
    data = {"slots": firing.slots, "from": show_instant(firing.slot), "reason": firing.reason}
    return Event("schedule_skipped", None, {**named, **data})


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__
