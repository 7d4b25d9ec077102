"""What Debian's cron would do, by walking the minutes as it does.

Shares nothing with the product but the tz data: it reads expressions by itself, and asks at each
real minute what the clock shows. Cron counts minutes of its own (`virtual`) and compares them with
the clock at each wake-up; the four cases below are its definition (cron.c of Vixie cron 3.0pl1).
"""

import calendar
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

MINUTE = 60
DAY = 24 * 60
THREE_HOURS = 180
EPOCH = date(1970, 1, 1)
WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


class Expression:
    """Five fields, read one by one."""

    def __init__(self, text: str) -> None:
        minute, hour, self.day, month, self.weekday = WORDS.get(text, text).lower().split()
        self.wild = minute[0] == "*" or hour[0] == "*"
        minutes, hours = numbers(minute, 0, 59), numbers(hour, 0, 23)
        self.times = {60 * each + other for each in hours for other in minutes}
        self.months = numbers(month, 1, 12, dict(zip(MONTHS, range(1, 13), strict=True)))

    def matches(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        by_day = any(self._is_day(part, day) for part in self.day.split(","))
        by_weekday = any(self._is_weekday(part, day) for part in self.weekday.split(","))
        if self.day[0] == "*" or self.weekday[0] == "*":
            return by_day and by_weekday
        return by_day or by_weekday

    def _is_day(self, part: str, day: date) -> bool:
        last = calendar.monthrange(day.year, day.month)[1]
        if part == "l":
            return day.day == last
        if part == "lw":
            rest = [day.replace(day=each) for each in range(last, 0, -1)]
            return day == next(each for each in rest if each.isoweekday() <= 5)
        return day.day in numbers(part, 1, 31)

    def _is_weekday(self, part: str, day: date) -> bool:
        names = dict(zip(DAYS, range(7), strict=True))
        if part[-1] == "l":
            later = day + timedelta(days=7)
            return day.isoweekday() % 7 == int(part[:-1]) % 7 and later.month != day.month
        if "#" in part:
            name, nth = part.split("#")
            wanted = names[name] if name in names else int(name)
            earlier = day - timedelta(days=7 * int(nth))
            just = earlier.month != day.month and (earlier + timedelta(days=7)).month == day.month
            return just and day.isoweekday() % 7 == wanted % 7
        return bool({day.isoweekday(), day.isoweekday() % 7} & numbers(part, 0, 7, names))


def numbers(field: str, low: int, high: int, names: dict[str, int] | None = None) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        body, _, step = part.partition("/")
        if body == "*":
            first, last = low, high
        else:
            ends = [(names or {}).get(each) for each in body.split("-")]
            ends = [int(w) if e is None else e for e, w in zip(ends, body.split("-"), strict=True)]
            first = ends[0]
            last = ends[1] if len(ends) == 2 else (high if step else first)
        found.update(range(first, last + 1, int(step or 1)))
    return found


class Wakeup(NamedTuple):
    """At a minute (UTC, since the epoch) cron looks for jobs of a minute that a clock shows."""

    at: int
    shown: int
    wild: bool
    fixed: bool


def wakeups(zone: ZoneInfo, start: int, end: int) -> Iterator[Wakeup]:
    """What cron looks for in [start, end), when it has been running for long."""
    virtual = clock(zone, start - 1)
    for at in range(start, end):
        shown = clock(zone, at)
        difference = shown - virtual
        if difference == 1 or difference > THREE_HOURS or difference <= -THREE_HOURS:
            virtual = shown
            yield Wakeup(at, shown, True, True)
        elif difference > 5:
            yield Wakeup(at, shown, True, False)
            while virtual < shown:
                virtual += 1
                yield Wakeup(at, virtual, False, True)
        elif difference > 0:
            while virtual < shown:
                virtual += 1
                yield Wakeup(at, virtual, True, True)
        else:
            yield Wakeup(at, shown, True, False)


def clock(zone: ZoneInfo, minute: int) -> int:
    """The minute since the epoch that the clock shows."""
    offset = datetime.fromtimestamp(minute * MINUTE, zone).utcoffset()
    assert offset is not None
    return minute + offset // timedelta(minutes=1)


def fires(expression: Expression, looks: Iterable[Wakeup]) -> list[int]:
    """The minutes at which a job of this expression is started, once each."""
    days: dict[int, bool] = {}
    found: list[int] = []
    for at, shown, wild, fixed in looks:
        if shown % DAY in expression.times and (wild if expression.wild else fixed):
            day = shown // DAY
            if day not in days:
                days[day] = expression.matches(EPOCH + timedelta(days=day))
            if days[day] and (not found or found[-1] != at):
                found.append(at)
    return found


def changes(zone: ZoneInfo, first: int, last: int) -> list[tuple[int, int, int]]:
    """(minute UTC, offset before, offset after) of each change in these years, by their hours."""
    start = int(datetime(first, 1, 1, tzinfo=UTC).timestamp()) // MINUTE
    end = int(datetime(last + 1, 1, 1, tzinfo=UTC).timestamp()) // MINUTE
    found: list[tuple[int, int, int]] = []
    before = clock(zone, start - 1) - (start - 1)
    for hour in range(start - 1, end, 60):
        until = min(hour + 60, end - 1)
        if clock(zone, until) - until == before:
            continue
        for at in range(hour + 1, until + 1):
            after = clock(zone, at) - at
            if after != before:
                found.append((at, before, after))
                before = after
    return found
