"""Cron expressions: what they may say, and which instants they mean.

The fields are read, and the calendar is walked, by cronsim; here are the limits of what is
accepted, and the clock. Five fields (minute, hour, day of the month, month, day of the week), names
(`MON`, `jan`), lists, ranges, steps, `L` and `LW` as a day of the month, `5L` (the last Friday),
`MON#2` (the second Monday), and the `@daily` family. `5/15` is `5-59/15`. Where neither the day of
the month nor the day of the week begins with `*`, one of both is enough; else both must match.

When clocks change, the rules are those of Debian's cron, which compares the minutes on the clock
with a count of its own. They come to this:

- A rule is *wild* when its minute or its hour begins with `*` (also `*/10`); else it is *fixed*.
- Wild rules follow the clock as it is: at each real minute, the time shown matches or it does not.
  What is passed over does not fire, and what comes twice fires twice.
- Fixed rules fire once for each time. When the clock goes forward by less than three hours, the
  times that were passed over fire at the moment of the change (a slot is an instant, so several of
  them are one slot). When it goes back by three hours or less, times that come again do not fire
  again, until the clock has caught up with where it was.
- Greater changes are corrections: the new time counts at once, for all rules. So nothing of
  30 December 2011 fires in Pacific/Apia, where that day never was, and nothing is made good for
  when Antarctica/Casey goes three hours forward.

(Forward by three hours is great and back by three hours is not: cron compares the minute after the
change with the one before, and one minute has passed in between. Changes of less than five minutes,
which it treats as having slept, no zone has had since 1972.)
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice

from cronsim import CronSim, CronSimError

from headway.base.errors import InvalidInputError
from headway.schedules.timing.zones import DAY, Change, Zone, zone_of

LONGEST = 200
SECOND = 1_000_000
FAMILY = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, or L for the last one",
    "month": "1 to 12 or JAN to DEC",
    "day-of-week": "0 to 7 or SUN to SAT, or like MON#2 (second Monday) and 5L (last Friday)",
}
FORM = "write five fields, minute hour day month weekday, like '30 0 * * *' or '0 9 * * 1-5'"
THREE_HOURS = 3 * 3600
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Any will do: a date that exists comes again within forty years, and cronsim searches fifty.
_SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)
# Within what calendars can show, with the years that are searched ahead and back.
_EARLIEST = -62_000_000_000
_LATEST = 250_000_000_000

Counted = tuple[int, int | None, int | None]


@dataclass(frozen=True)
class Cron:
    """The times that match `expression` on the clocks of `timezone`."""

    expression: str
    timezone: str = "UTC"
    calendar: CronSim = field(init=False, repr=False, compare=False)
    zone: Zone = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "calendar", _read(self.expression))
        object.__setattr__(self, "zone", zone_of(self.timezone))

    @property
    def wild(self) -> bool:
        """Whether the rule follows the clock as it is (the module says what that means)."""
        _second, minute, hour, *_rest = self.calendar.parts
        return minute.startswith("*") or hour.startswith("*")

    def next_after(self, instant: int) -> int | None:
        second = next(self.seconds_after(instant // SECOND), None)
        return None if second is None else second * SECOND

    def slots_until(self, after: int, until: int, most: int) -> Counted:
        count, before, last = 0, None, None
        end = until // SECOND
        for second in islice(self.seconds_after(after // SECOND), most):
            if second > end:
                break
            count, before, last = count + 1, last, second
        return (
            count,
            None if before is None else before * SECOND,
            None if last is None else last * SECOND,
        )

    def shown_after(self, wall: int) -> Iterator[int]:
        """The matching times on a clock that never changes, later than this one."""
        calendar = copy.copy(self.calendar)
        calendar.dt = _EPOCH + timedelta(seconds=wall)
        try:
            for moment in calendar:
                since = moment - _EPOCH
                yield since.days * DAY + since.seconds
        except OverflowError:  # the year 10,000
            return

    def seconds_after(self, after: int) -> Iterator[int]:
        """The slots later than this second, in order."""
        if not _EARLIEST < after < _LATEST:
            return
        zone, wild = self.zone, self.wild
        offset, change, last = zone.offset(after), zone.next_change(after), after
        shown = self.shown_after(self._shown_until(after, offset))
        wall = next(shown, None)
        while wall is not None and wall < _LATEST:
            if wall - offset < change.at:
                if wall - offset > last:
                    last = wall - offset
                    yield last
                wall = next(shown, None)
                continue
            first = change.at + change.after
            passed_over = wall < first
            if passed_over and not wild and not is_correction(change):
                last = change.at
                yield last
            if passed_over or (change.shift < 0 and (wild or is_correction(change))):
                shown = self.shown_after(first - 1)
                wall = next(shown, None)
            offset, change = change.after, zone.next_change(change.at)

    def _shown_until(self, after: int, offset: int) -> int:
        """The time on the clock up to which everything has been."""
        if not self.wild:
            change = self.zone.last_change(after)
            if change and change.shift < 0 and not is_correction(change):
                return max(after + offset, change.at + change.before - 1)
        return after + offset


@lru_cache(maxsize=1024)
def parse_cron(text: str, timezone: str = "UTC") -> Cron:
    """InvalidInputError says what is wrong, why, and how to write it."""
    return Cron(" ".join(text.split()) if len(text) <= LONGEST else text, timezone)


def is_correction(change: Change) -> bool:
    """Whether the new time counts at once, for all rules."""
    return change.shift >= THREE_HOURS or change.shift < -THREE_HOURS


def _read(text: str) -> CronSim:
    if len(text) > LONGEST:
        raise _refused(text[:20] + "...", f"it is longer than {LONGEST} characters", FORM)
    if not text.isascii():
        raise _refused(text, "it has letters that are not ASCII", FORM)
    expression = _expanded(text)
    count = len(expression.split())
    if count == 0:
        raise InvalidInputError(f"the cron expression is empty; {FORM}")
    if count == 6:
        raise _refused(text, "it has six fields, but cron knows no seconds", f"{FORM}, or --every")
    if count != 5:
        raise _refused(text, f"it has {count} field{'s' if count > 1 else ''}", FORM)
    try:
        calendar = CronSim(expression, _SOME_DAY)
    except CronSimError as error:
        raise _refused(text, *_reason(expression.split(), str(error))) from None
    if next(copy.copy(calendar), None) is None:
        raise _refused(text, "no such day exists", "check the day, the month and the weekday")
    return calendar


def _expanded(text: str) -> str:
    word = text.strip().lower()
    if not word.startswith("@"):
        return text
    if word == "@reboot":
        raise _refused(
            text, "a start of the machine is not a time", "see `headway service install`"
        )
    if word not in FAMILY:
        raise _refused(text, "there is no such word", f"use one of {', '.join(FAMILY)}")
    return FAMILY[word]


def _reason(fields: list[str], said: str) -> tuple[str, str]:
    """What is wrong with the field that cronsim names, and what it may hold."""
    name = said.removeprefix("Bad ")
    if name not in FIELDS:
        return said, FORM
    at = list(FIELDS).index(name)
    if name == "day-of-month":
        try:
            CronSim(f"0 0 {fields[2]} * *", _SOME_DAY)
        except CronSimError:
            pass
        else:
            return (
                f"no month of {fields[3]!r} has a day {fields[2]!r}",
                "use L for the last day of a month",
            )
    if backwards := _backwards(fields, at):
        return f"{backwards!r} goes backwards as {name}", "write two, like FRI-SAT,SUN-MON"
    return f"{fields[at]!r} is not possible as {name}", f"it is {FIELDS[name]}"


def _backwards(fields: list[str], at: int) -> str | None:
    """The range whose ends are possible, but not in this order."""
    for part in fields[at].partition("/")[0].split(","):
        first, dash, last = part.partition("-")
        swapped = [*fields[:at], f"{last}-{first}", *fields[at + 1 :]]
        try:
            if dash and CronSim(" ".join(swapped), _SOME_DAY):
                return part
        except CronSimError:
            continue
    return None


def _refused(text: str, why: str, what_next: str) -> InvalidInputError:
    return InvalidInputError(f"cron {text!r} cannot be used: {why}; {what_next}")
