"""The due slots of a schedule: which fire, which are skipped and why, and when to check again.

A slot is an instant that the schedule's rule names. Slots are taken in order: `next_slot` is the
first that nothing is known of, and every one before it was fired or skipped. However late it is
called, one call handles a bounded number of them and leaves the rest to the next. Slots that are
skipped in a row are one range.

Pure: the rule, the time and the jobs that are still active are given.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from headway.core.model import JobId, shown, shown_run

MOST_LOOKED_AT = 5_000  # slots in one call
MOST_FIRED = 100
Counted = tuple[int, int | None, int | None]
MOST_ACTIVE = 1_000  # jobs of one schedule that have not ended
MINUTE = 60_000_000
MISSED = "missed: no worker looked at that time"
_MASK = (1 << 64) - 1


class SlotRule(Protocol):
    """When slots are; instants are µs UTC."""

    def next_after(self, instant: int) -> int | None:
        """The first slot strictly after; None: there is none any more."""

    def slots_until(self, after: int, until: int, most: int) -> Counted:
        """How many slots lie in (after, until], counting no more than `most`; of those counted the
        last but one, and the last."""


class CatchUp(StrEnum):
    """The policy for slots that were missed."""

    LATEST = "latest"  # the newest within the window fires
    ALL = "all"  # each within the window fires
    NONE = "none"  # none that is older than a minute fires


class Overlap(StrEnum):
    """The policy for a slot while a job of an earlier one is active."""

    SKIP = "skip"
    QUEUE = "queue"
    REPLACE = "replace"


class SlotOutcome(StrEnum):
    FIRED = "fired"
    SKIPPED = "skipped"


class Schedule(NamedTuple):
    """`document` is what its author said; the rest is how far it has come."""

    id: int
    name: str
    document: Mapping[str, Any]
    enabled: bool
    version: int  # counts its changes
    host_id: str | None  # where its commands start; None: anywhere
    created_at: int
    created_by: str
    changed_at: int  # no slot at or before this
    next_slot: int | None  # None: none will come
    next_fire_at: int | None  # that slot and its jitter; None also while it is disabled
    looked_at: int  # when `next_slot` was found
    zones: str  # the version of the time zones that it was found with
    last_slot: int | None = None  # the last that fired
    last_job: JobId | None = None
    forgotten: int | None = None  # of slots up to here no record is kept any more

    @property
    def catch_up(self) -> CatchUp:
        return CatchUp(self.document["catch_up"])

    @property
    def window(self) -> int:
        return MINUTE if self.catch_up is CatchUp.NONE else int(self.document["window"])

    @property
    def overlap(self) -> Overlap:
        return Overlap(self.document["overlap"])

    @property
    def jitter(self) -> int:
        return int(self.document["jitter"])

    @property
    def shown(self) -> str:
        return shown_schedule(self.id)


class Active(NamedTuple):
    """A job that has not ended, or a workflow run with such jobs: one of them stands for it."""

    job_id: JobId
    running: bool
    run: int | None = None


class SkippedSlots(NamedTuple):
    """Slots in a row that do not fire, and why."""

    first: int
    last: int
    slots: int
    reason: str


class Firing(NamedTuple):
    """The stored record of one slot that fired, or of a range that was skipped."""

    schedule_id: int
    slot: int
    last_slot: int
    slots: int
    outcome: SlotOutcome
    reason: str | None
    job_id: JobId | None
    at: int


class Fired(NamedTuple):
    """The decision: a job for each of `slots`, records of skipped ranges, and the next slot."""

    slots: tuple[int, ...]
    skipped: tuple[SkippedSlots, ...]
    next_slot: int | None
    next_fire_at: int | None

    @property
    def looked_at(self) -> int:
        """How many slots something is known of now."""
        return len(self.slots) + sum(each.slots for each in self.skipped)


class Share(NamedTuple):
    """How much one call may do: slots to handle, and jobs to make."""

    slots: int = MOST_LOOKED_AT
    jobs: int = MOST_FIRED


WHOLE = Share()


def shared_out(left: Share, among: int) -> Share:
    """What one of so many may have of it, at least one of each if there are as many."""
    return Share(min(left.slots // among, WHOLE.slots), min(left.jobs // among, WHOLE.jobs))


def shown_schedule(schedule_id: int) -> str:
    return f"schedule-{schedule_id}"


def jitter_of(schedule_id: int, slot: int, jitter: int) -> int:
    """How much later than its slot it fires: the same wherever it is asked, less than `jitter`."""
    if jitter <= 0:
        return 0
    mixed = (schedule_id * 0x9E3779B97F4A7C15 + slot) & _MASK
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = ((mixed ^ (mixed >> shift)) * factor) & _MASK
    return (mixed ^ (mixed >> 31)) % jitter


def fires_at(schedule: Schedule, slot: int | None) -> int | None:
    return None if slot is None else slot + jitter_of(schedule.id, slot, schedule.jitter)


def fire(
    schedule: Schedule,
    rule: SlotRule,
    now: int,
    active: Sequence[Active],
    taken: int | None = None,
    share: Share = WHOLE,
) -> Fired:
    """What is due. `active` are its jobs that have not ended; `taken` is the first slot from
    `next_slot` on that fired already, before a clock went back: it is passed over. What is more
    than its share is left to the next call."""
    after = max((schedule.next_slot or 0) - 1, schedule.changed_at)
    if taken is not None and taken == rule.next_after(after):
        return _went_on(schedule, rule, (), (), taken)
    until = now if taken is None else min(now, taken - 1)
    if schedule.catch_up is CatchUp.ALL:
        slots, skipped, last = _each(schedule, rule, (after, until), now, share)
    else:
        slots, skipped, last = _latest(schedule, rule, (after, until), now, share.slots)
    slots, overlapping = _without_overlap(schedule.overlap, slots, active)
    return _went_on(schedule, rule, slots, (*skipped, *overlapping), last)


_Looked = tuple[tuple[int, ...], tuple[SkippedSlots, ...], int]
_Span = tuple[int, int]  # slots after the first instant and not after the second


def _went_on(
    schedule: Schedule,
    rule: SlotRule,
    slots: Sequence[int],
    skipped: Sequence[SkippedSlots],
    last: int,
) -> Fired:
    following = rule.next_after(last)
    return Fired(tuple(slots), tuple(skipped), following, fires_at(schedule, following))


def _latest(schedule: Schedule, rule: SlotRule, span: _Span, now: int, most: int) -> _Looked:
    """The newest due slot, if it lies in the window; it is known only when all were checked."""
    slots, before, last = _due(schedule, rule, span, now, most)
    if last is None:
        return (), (), span[0]
    is_newest = not _is_due(schedule, rule.next_after(last), now)
    if not is_newest or _is_too_old(schedule, last, now):
        return (), (_missed(rule, span[0], last, slots),), last
    if before is None:
        return (last,), (), last
    return (last,), (_missed(rule, span[0], before, slots - 1),), last


def _missed(rule: SlotRule, after: int, last: int, slots: int) -> SkippedSlots:
    return SkippedSlots(rule.next_after(after) or last, last, slots, MISSED)


def _each(schedule: Schedule, rule: SlotRule, span: _Span, now: int, share: Share) -> _Looked:
    """Every due slot in the window, the oldest first; what lies before the window is missed."""
    after, until = span
    skipped: list[SkippedSlots] = []
    missed = 0
    surely_too_old = min(now - schedule.window - max(schedule.jitter, 1), until)
    if surely_too_old > after:
        missed, _, last = rule.slots_until(after, surely_too_old, share.slots)
        if last is not None:
            skipped.append(_missed(rule, after, last, missed))
            after = last
    slots: list[int] = []
    while len(slots) < share.jobs and missed + len(slots) < share.slots:
        slot = rule.next_after(after)
        if slot is None or slot > until or not _is_due(schedule, slot, now):
            break
        if _is_too_old(schedule, slot, now):
            missed += 1
            _skip_one_more(skipped, after, slot)
        else:
            slots.append(slot)
        after = slot
    return tuple(slots), tuple(skipped), after


def _skip_one_more(skipped: list[SkippedSlots], before: int, slot: int) -> None:
    if skipped and skipped[-1].last == before:
        skipped[-1] = skipped[-1]._replace(last=slot, slots=skipped[-1].slots + 1)
    else:
        skipped.append(SkippedSlots(slot, slot, 1, MISSED))


def _due(schedule: Schedule, rule: SlotRule, span: _Span, now: int, most: int) -> Counted:
    """How many slots are due, the last but one of them, and the last. The jitter of the newest may
    not be over."""
    after, until = span
    surely = until - schedule.jitter
    slots, before, last = 0, None, None
    if surely > after:
        slots, before, last = rule.slots_until(after, surely, most)
    while slots < most:
        slot = rule.next_after(after if last is None else last)
        if slot is None or slot > until or not _is_due(schedule, slot, now):
            break
        slots, before, last = slots + 1, last, slot
    return slots, before, last


def _is_due(schedule: Schedule, slot: int | None, now: int) -> bool:
    at = fires_at(schedule, slot)
    return at is not None and at <= now


def _is_too_old(schedule: Schedule, slot: int, now: int) -> bool:
    """The window begins when the slot was to fire: its jitter is no delay that anybody caused."""
    return slot + jitter_of(schedule.id, slot, schedule.jitter) < now - schedule.window


def _without_overlap(
    overlap: Overlap, slots: tuple[int, ...], active: Sequence[Active]
) -> tuple[tuple[int, ...], tuple[SkippedSlots, ...]]:
    """Those that fire although, or because, jobs are active; the others with the reason."""
    objection = overlapping(overlap, active)
    if objection is not None:
        return (), _in_a_row(slots, objection)
    if overlap is Overlap.QUEUE:
        room = MOST_ACTIVE - len(active)
        return slots[:room], _in_a_row(slots[room:], _full(active))
    return slots, ()


_NOT_ENDED = ("is still running", "still waits", "has not ended", "have not ended")


def _full(active: Sequence[Active]) -> str:
    what = "runs" if any(each.run is not None for each in active) else "jobs"
    return f"{MOST_ACTIVE} of its {what} have not ended"


def overlapping(overlap: Overlap, active: Sequence[Active]) -> str | None:
    """Why no job, or run, may be made now, if those of earlier slots are active."""
    if not active:
        return None
    if overlap is Overlap.SKIP:
        first = active[0]
        if first.run is not None:
            return f"{shown_run(first.run)} has not ended"
        return f"{shown(first.job_id)} {'is still running' if first.running else 'still waits'}"
    return _full(active) if overlap is Overlap.QUEUE and len(active) >= MOST_ACTIVE else None


def _in_a_row(slots: Sequence[int], reason: str) -> tuple[SkippedSlots, ...]:
    return (SkippedSlots(slots[0], slots[-1], len(slots), reason),) if slots else ()


def sort_of_skip(reason: str) -> str:
    """Which sort of reason that is: `missed`, `overlap` or, where no job could be made,
    `refused`."""
    if reason == MISSED:
        return "missed"
    return "overlap" if reason.endswith(_NOT_ENDED) else "refused"


# -- clocks and zones that changed -----------------------------------------------------------------


def rewound(schedule: Schedule, rule: SlotRule, now: int) -> Schedule:
    """After a clock went back: what lies in the future again comes at its time. What fired is not
    fired again, which its record sees to; so nothing is taken back that has none any more."""
    changed_at = min(schedule.changed_at, now)
    waiting = schedule.next_slot
    if waiting is None or waiting > now:
        waiting = rule.next_after(max(now, schedule.forgotten or 0))
    return _found_anew(schedule._replace(changed_at=changed_at), waiting, now)


def rezoned(schedule: Schedule, rule: SlotRule, now: int) -> Schedule:
    """With other rules of its time zone: the slots after those that are known of already."""
    known = max(schedule.looked_at, schedule.changed_at)
    waiting = schedule.next_slot
    if waiting is None or waiting > known:
        waiting = rule.next_after(known)
    return _found_anew(schedule, waiting, now)


def begun(schedule: Schedule, rule: SlotRule, now: int) -> Schedule:
    """As it is from now on, when it was made, changed, enabled or disabled: earlier slots do not
    exist for it."""
    if not schedule.enabled:
        return schedule._replace(changed_at=now, looked_at=now, next_slot=None, next_fire_at=None)
    return _found_anew(schedule._replace(changed_at=now), rule.next_after(now), now)


def _found_anew(schedule: Schedule, slot: int | None, now: int) -> Schedule:
    return schedule._replace(next_slot=slot, next_fire_at=fires_at(schedule, slot), looked_at=now)


def kept_part(firing: Firing, rule: SlotRule, now: int) -> Firing | None:
    """Of a skipped range what does not lie in the future."""
    slots, _, last = rule.slots_until(firing.slot - 1, now, firing.slots)
    if last is None:
        return None
    return firing._replace(last_slot=last, slots=slots, at=min(firing.at, now))
