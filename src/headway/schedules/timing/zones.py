"""Time zones as a list of changes of the clock, out of the machine's tz data.

`zoneinfo` answers what the clock shows at an instant. Schedules need the other question too: when
does the clock change, and by how much? So a year of a zone is read once, day by day. Where two days
differ, bisection finds the second of the change. Nothing since 1970 changes twice
within a day.

Seconds since the epoch throughout: `at` is UTC, `at + before` and `at + after` are what the
clock shows at the change, by the old and by the new offset.
"""

import difflib
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from headway.base.errors import InvalidInputError

DAY = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR = 9_998
# How far the search for the next change goes; then it begins again with the same offset.
_YEARS_AT_ONCE = 2
# Kept beside the zones in some tz databases: with leap seconds, copies, and what is no fixed place.
_NOT_ZONES = ("right/", "posix/")
_NO_PLACES = {"localtime", "posixrules", "Factory", ""}


class Change(NamedTuple):
    """The clock is put from one offset to another; equal ones mean: nothing changes so far."""

    at: int
    before: int
    after: int

    @property
    def shift(self) -> int:
        return self.after - self.before


class Zone:
    """The clock of one zone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._info = None if name == "UTC" else _info(name)
        self._years: dict[int, tuple[Change, ...]] = {}

    @property
    def info(self) -> tzinfo:
        return self._info or UTC

    def offset(self, at: int) -> int:
        """By how many seconds the clock is ahead of UTC."""
        if self._info is None:
            return 0
        delta = (_EPOCH + timedelta(seconds=at)).astimezone(self._info).utcoffset() or timedelta()
        return delta.days * DAY + delta.seconds

    def next_change(self, after: int) -> Change:
        """The first one later than this instant, or one that changes nothing a few years on."""
        year = _year(after)
        for each in range(year, year + _YEARS_AT_ONCE):
            for change in self._of(each):
                if change.at > after:
                    return change
        offset = self.offset(after)
        return Change(_begin(year + _YEARS_AT_ONCE), offset, offset)

    def last_change(self, until: int) -> Change | None:
        """The latest one at or before this instant, if it is about a year old at the most."""
        year = _year(until)
        for each in (year, year - 1):
            for change in reversed(self._of(each)):
                if change.at <= until:
                    return change
        return None

    def _of(self, year: int) -> tuple[Change, ...]:
        found = self._years.get(year)
        if found is None:
            found = self._years[year] = tuple(self._look(year)) if self._info else ()
        return found

    def _look(self, year: int) -> list[Change]:
        changes = []
        start, end = _begin(year), _begin(year + 1)
        before = self.offset(start - 1)
        for day in range(start - 1, end - 1, DAY):
            until = min(day + DAY, end - 1)
            after = self.offset(until)
            if after != before:
                changes.append(Change(self._moment(day, until), before, after))
                before = after
        return changes

    def _moment(self, low: int, high: int) -> int:
        """The first second with the new offset."""
        old = self.offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(middle) == old:
                low = middle
            else:
                high = middle
        return high


@lru_cache(maxsize=1024)
def zone_of(name: str) -> Zone:
    """The zone of this name; InvalidInputError, with the nearest names, if there is none."""
    return Zone(name)


def zones_version() -> str:
    """The release of the tz data in use, like 2025b; empty where nobody says."""
    import zoneinfo

    for folder in zoneinfo.TZPATH:
        if not Path(folder, "Europe").is_dir():
            continue
        for name, word in (("tzdata.zi", "# version "), ("+VERSION", "")):
            try:
                with Path(folder, name).open(encoding="utf-8", errors="replace") as file:
                    line = file.readline(100).strip()
            except OSError:
                continue
            if line.startswith(word):
                return line.removeprefix(word)
        return ""
    try:
        from importlib.metadata import PackageNotFoundError, version

        return version("tzdata")
    except PackageNotFoundError:
        return ""


def _info(name: str) -> tzinfo:
    import zoneinfo

    if name in _NO_PLACES or name.startswith(_NOT_ZONES):
        raise _unknown(name)
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise _unknown(name) from None


def _unknown(name: str) -> InvalidInputError:
    import zoneinfo

    names = {each.lower(): each for each in sorted(zoneinfo.available_timezones())}
    cities = {each.rpartition("/")[2]: each for each in names if "/" in each}
    asked = name.strip().lower().replace(" ", "_")[:100]
    near = difflib.get_close_matches(asked, names, n=1, cutoff=0.9 if len(asked) > 4 else 1)
    near = near or [cities[each] for each in difflib.get_close_matches(asked, cities, 1, 0.9)]
    if not names:
        hint = "this machine has no tz data: install its package tzdata, or use UTC"
    elif near:
        hint = f"did you mean {names[near[0]]}?"
    else:
        hint = "write it like Europe/Berlin, America/New_York or UTC"
    return InvalidInputError(f"timezone {name[:100]!r} is not known; {hint}")


def _year(at: int) -> int:
    return min(max((_EPOCH + timedelta(seconds=at)).year, 2), _LAST_YEAR)


def _begin(year: int) -> int:
    return (datetime(min(year, _LAST_YEAR + 1), 1, 1, tzinfo=UTC) - _EPOCH).days * DAY
