"""Limits of a provider in the words of its program: whether a text tells of one, and until when.

A runner's file has patterns, of which the first that fits counts. A group of it says when work may
go on: `epoch` (seconds, or milliseconds), `seconds` (also as `2h 13m`), or `time` (`15:04`, `3pm`,
an ISO instant, perhaps with a zone in brackets). Pure, but for the zone of this host.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, tzinfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GROUPS = ("epoch", "seconds", "time")
SECOND = 1_000_000
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[dhms])[a-z]*", re.I)
_CLOCK = re.compile(r"(\d{1,2})(?::(\d{2}))?(?::(\d{2}))?\s*([ap])?\.?m?\.?", re.I)
_ZONE = re.compile(r"\(([A-Za-z_]+(?:/[A-Za-z_+-]+)*)\)\s*$")


class LimitMet:
    """A limit, and the instant in microseconds from which on work may go on; None: unknown."""

    __slots__ = ("again_at",)

    def __init__(self, again_at: int | None) -> None:
        self.again_at = again_at


def limit_in(texts: Iterable[str], patterns: Sequence[str], now: int) -> LimitMet | None:
    """What the first pattern that fits any of the texts says; None: they tell of no limit."""
    said = [text for text in texts if text]
    for pattern in patterns:
        for text in said:
            found = re.search(pattern, text, re.IGNORECASE)
            if found is not None:
                return LimitMet(_instant(found.groupdict(), now))
    return None


def _instant(groups: dict[str, str | None], now: int) -> int | None:
    for name, read in (("epoch", _epoch), ("seconds", _span), ("time", _time)):
        text = groups.get(name)
        if text is not None:
            try:
                return read(text.strip(), now)
            except (ValueError, OverflowError, OSError):
                return None
    return None


def _epoch(text: str, now: int) -> int:
    seconds = float(text)
    return round((seconds / 1000 if seconds > 1e11 else seconds) * SECOND)


def _span(text: str, now: int) -> int | None:
    try:
        return now + round(float(text) * SECOND)
    except ValueError:
        parts = _SPAN.findall(text)
    if not parts:
        return None
    seconds = sum(
        float(number) * (0.001 if unit.lower() == "ms" else _UNITS[unit[0].lower()])
        for number, unit in parts
    )
    return now + round(seconds * SECOND)


def _time(text: str, now: int) -> int | None:
    """An instant, or the next time that a clock shows this."""
    named = _ZONE.search(text)
    here = datetime.fromtimestamp(now / SECOND).astimezone(_zone(named[1]) if named else None)
    text = _ZONE.sub("", text).strip()
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        instant = datetime.fromisoformat(text)
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=here.tzinfo)
        return round(instant.timestamp() * SECOND)
    hour, minute, second = (int(each or 0) for each in clock.groups()[:3])
    if clock[4]:
        hour = hour % 12 + (12 if clock[4].lower() == "p" else 0)
    then = here.replace(hour=hour, minute=minute, second=second, microsecond=0)
    if then <= here:
        then += timedelta(days=1)
    return round(then.timestamp() * SECOND)


def _zone(name: str) -> tzinfo | None:
    """None, which is this host's, where the zone is not known."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
