"""Durations and instants as people write them, and back. Pure."""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from headway.base.errors import InvalidInputError

MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}
LONGEST = 100 * 366 * 86_400_000_000
LARGEST = 1 << 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What code may give for them.
Duration = str | float | timedelta
Instant = str | date  # a datetime is a date, too
_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d|w)")
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.I)


def _named(what: str, text: str) -> str:
    return f"{what} {text!r}" if what else repr(text)


def parse_duration(text: str, what: str = "") -> int:
    """`90s`, `1h30m`, `1.5h`, `250ms` as microseconds; `what` is the option or key that has it."""
    stripped = text.strip()
    parts = _PART.findall(stripped)
    if not parts or "".join(number + unit for number, unit in parts) != stripped:
        raise InvalidInputError(
            f"{_named(what, text)} is not a duration; write it like 90s, 10m, 1h30m or 2d"
        )
    total = sum(float(number) * MICROSECONDS[unit] for number, unit in parts)
    if total > LONGEST:
        raise InvalidInputError(f"{_named(what, text)} is longer than a hundred years")
    return round(total)


def read_duration(given: Any, what: str) -> int:
    """A `Duration` as microseconds; a number is of seconds."""
    if isinstance(given, str):
        return parse_duration(given, what)
    if isinstance(given, timedelta):
        micros = given // timedelta(microseconds=1)
    elif isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < LONGEST:
        micros = int(given * 1_000_000)
    else:
        raise InvalidInputError(
            f"{what} is {given!r}, not a duration; give seconds, a timedelta or a text like '90s'"
        )
    if 0 <= micros <= LONGEST:
        return micros
    raise InvalidInputError(f"{what} is {given!r}; it must be 0 s or more, up to a hundred years")


def show_duration(micros: int) -> str:
    """The two largest units: `3d 4h`, `2m 5s`, `1.5s`, `20ms`."""
    if micros < 0:
        return "-" + show_duration(-micros)
    if micros < 1_000_000:
        return f"{micros // 1000}ms"
    if micros < 60_000_000:
        seconds, tenths = micros // 1_000_000, micros // 100_000 % 10
        return f"{seconds}.{tenths}s" if micros % 1_000_000 else f"{seconds}s"
    seconds = micros // 1_000_000
    shown: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count or shown:
            shown.append(f"{count}{unit}")
        if len(shown) == 2:
            break
    return " ".join(part for part in shown if not part.startswith("0"))


def exact_duration(micros: int) -> str:
    """In the largest unit that it is a whole number of, so that reading it gives the same."""
    units = reversed(MICROSECONDS.items())
    unit, size = next((unit, size) for unit, size in units if micros % size == 0)
    return f"{micros // size}{unit}" if micros else "0s"


def parse_instant(text: str, now: int, zone: tzinfo | None = None, *, what: str = "") -> int:
    """An RFC 3339 time, `+10m` from now, or the next `22:30`, as µs UTC. Without an offset it is
    the time of this zone, else of the machine's."""
    stripped = text.strip()
    if stripped.startswith("+"):
        return now + parse_duration(stripped[1:], what)
    if _CLOCK.fullmatch(stripped):
        return min(each for each in _showings(stripped, now, zone) if each > now)
    try:
        moment = datetime.fromisoformat(stripped)
        if zone is not None and moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        since_epoch = moment.astimezone(UTC) - EPOCH
    except (ValueError, OverflowError):
        raise InvalidInputError(
            f"{_named(what, text)} is not a time; write it like 2026-11-15T22:30, "
            "2026-11-15T22:30:00Z, 22:30 or +10m"
        ) from None
    return since_epoch // timedelta(microseconds=1)


def _showings(text: str, now: int, zone: tzinfo | None) -> list[int]:
    """When a clock of the zone shows this time, from yesterday to the day after tomorrow. A time
    that it shows twice is there twice; one that it skips is as much later as it skips."""
    hour, minute, second = (int(part or 0) for part in _CLOCK.fullmatch(text).groups())  # type: ignore[union-attr]
    today = (EPOCH + timedelta(microseconds=now)).astimezone(zone).replace(tzinfo=zone)
    at = today.replace(hour=hour, minute=minute, second=second, microsecond=0, fold=0)
    found = []
    for days in (-1, 0, 1, 2):
        wall = at + timedelta(days=days)
        for each in (wall, wall.replace(fold=1)):
            # Not `astimezone`, which takes a skipped time of the machine's zone for an earlier one.
            moment = datetime.fromtimestamp(each.timestamp(), UTC)
            is_shown = moment.astimezone(zone).replace(tzinfo=None) == each.replace(tzinfo=None)
            if is_shown or not each.fold:
                found.append((moment - EPOCH) // timedelta(microseconds=1))
    return found


def read_instant(given: Any, now: int, what: str) -> int:
    """An `Instant` as µs UTC."""
    if isinstance(given, str):
        return parse_instant(given, now, what=what)
    if isinstance(given, date):
        return parse_instant(given.isoformat(), now, what=what)
    raise InvalidInputError(
        f"{what} is {given!r}, not a time; give a datetime or a text like '2026-11-15T22:30'"
    )


def parse_since(text: str, now: int, what: str = "--since") -> int:
    """A time that has passed: `2h` ago, the last `22:30`, or an instant."""
    stripped = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", stripped):
        raise InvalidInputError(
            f"{what} {text!r} has no unit; write {stripped}m, {stripped}h or {stripped}d"
        )
    if _CLOCK.fullmatch(stripped):
        return max(each for each in _showings(stripped, now, None) if each <= now)
    if _PART.match(stripped):
        return now - parse_duration(stripped, what)
    try:
        return parse_instant(stripped, now)
    except InvalidInputError:
        raise InvalidInputError(
            f"{what} {text!r} is not a time; write it like 2h, 22:30 or 2026-11-15T22:30"
        ) from None


def show_instant(instant: int | None) -> str | None:
    """RFC 3339 in UTC."""
    if instant is None:
        return None
    moment = datetime.fromtimestamp(instant // 1_000_000, UTC)
    fraction = f".{instant % 1_000_000:06d}"
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + fraction + "Z"


def parse_size(text: str, what: str = "") -> int:
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise InvalidInputError(f"{_named(what, text)} is not a size; write it like 64MiB or 10G")
    size = float(match[1]) * _SIZES[match[2].lower()]
    if size > LARGEST:
        raise InvalidInputError(f"{_named(what, text)} is larger than any disk")
    return round(size)


def show_size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
