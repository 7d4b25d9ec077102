"""The next slots of a rule as people see them: on the clock of the zone, in UTC, and with a note
where clocks change around one."""

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import takewhile
from typing import NamedTuple

from headway.base.units import EPOCH, show_duration, show_instant
from headway.schedules.timing.cron import SECOND, Cron, is_correction
from headway.schedules.timing.rules import TimingRule
from headway.schedules.timing.zones import DAY, Change

# So many times that do not exist are named; the first and the last of more.
NAMED = 3


class Upcoming(NamedTuple):
    slot: int
    local: str  # RFC 3339 with the zone's offset
    utc: str
    odd: str | None


def upcoming(rule: TimingRule, after: int, count: int) -> list[Upcoming]:
    """The next `count` slots later than an instant; fewer if there are no more."""
    found: list[Upcoming] = []
    previous = after
    for slot in _slots(rule, after, count):
        odd = _odd(rule, slot // SECOND, previous // SECOND) if isinstance(rule, Cron) else None
        found.append(Upcoming(slot, _local(rule, slot), show_instant(slot) or "", odd))
        previous = slot
    return found


def _slots(rule: TimingRule, after: int, count: int) -> Iterator[int]:
    slot = rule.next_after(after)
    while slot is not None and count > 0:
        yield slot
        slot, count = rule.next_after(slot), count - 1


def _local(rule: TimingRule, slot: int) -> str:
    offset = rule.zone.offset(slot // SECOND) if isinstance(rule, Cron) else 0
    moment = EPOCH + timedelta(microseconds=slot)
    return moment.astimezone(timezone(timedelta(seconds=offset))).isoformat()


def _odd(rule: Cron, slot: int, previous: int) -> str | None:
    last, following = rule.zone.last_change(slot), rule.zone.next_change(slot)
    if last and last.shift < 0 and slot < last.at - last.shift:
        return f"{_shown(slot + last.after)} comes twice on this day: this is the second time"
    if following.shift < 0 and slot >= following.at + following.shift:
        once = not (rule.wild or is_correction(following))
        said = "fires the first time only" if once else "this is the first time"
        return f"{_shown(slot + following.before)} comes twice on this day: {said}"
    change = rule.zone.next_change(previous)
    while change.at <= slot:
        if skipped := _passed_over(rule, slot, change):
            return skipped
        change = rule.zone.next_change(change.at)
    return None


def _passed_over(rule: Cron, slot: int, change: Change) -> str | None:
    start, end = change.at + change.before, change.at + change.after
    walls = list(takewhile(lambda wall: wall < end, rule.shown_after(start - 1)))
    if not walls:
        return None
    day = (slot + change.after) // DAY
    names = [_shown(wall, dated=wall // DAY != day) for wall in walls]
    if len(names) > NAMED:
        gone = f"{names[0]} to {names[-1]} do not exist"
    elif len(names) > 1:
        gone = f"{', '.join(names[:-1])} and {names[-1]} do not exist"
    else:
        gone = f"{names[0]} does not exist"
    gone += " on this day" if walls[0] // DAY == day else ""
    if rule.wild:
        return f"{gone}: passed over, as the clocks go forward"
    if is_correction(change):
        return f"{gone}: passed over, as the clocks go forward by {_hours(change.shift)}"
    fires = "fires" if len(names) == 1 else "fires once"
    return f"{gone}: {fires} at {_shown(end)}, right after the clocks go forward"


def _hours(seconds: int) -> str:
    return show_duration(seconds * SECOND)


def _shown(wall: int, *, dated: bool = False) -> str:
    moment: datetime = EPOCH + timedelta(seconds=wall)
    return f"{moment:%Y-%m-%d %H:%M}" if dated else f"{moment:%H:%M}"
