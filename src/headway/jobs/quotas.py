"""Resources and rates as people write them, and back. Pure."""

import re

from headway.base.errors import InvalidInputError
from headway.base.units import MICROSECONDS, parse_duration, show_duration
from headway.core.model import Rate

WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,63}")
_UNITS = {"sec": "1s", "second": "1s", "min": "1m", "minute": "1m", "hour": "1h", "day": "1d"}
LONGEST_PERIOD = 31 * MICROSECONDS["d"]
MOST_STARTS = 100_000


def check_word(what: str, word: str) -> str:
    """A name that limits and settings can be about: one word."""
    if not WORD.fullmatch(word):
        raise InvalidInputError(
            f"{what} {word!r} may have letters, digits and . _ / -, at most 64 of them, and begins "
            "with a letter or digit"
        )
    return word


def parse_rate(text: str) -> Rate:
    """`claude=10/min`, `api=100/h`, `mail=5/90s`; `claude` alone goes by the settings."""
    key, equals, limit = text.partition("=")
    check_word("rate", key)
    return Rate(key, *parse_limit(limit)) if equals else Rate(key)


def parse_limit(text: str) -> tuple[int, int]:
    """How many starts in which period: `10/min` or `5/90s`."""
    count, slash, period = text.strip().partition("/")
    if not slash or not count.strip().isdecimal():
        raise InvalidInputError(f"{text!r} is not a rate; write it like 10/min, 100/h or 5/90s")
    unit = period.strip()
    if unit in MICROSECONDS:
        unit = f"1{unit}"
    starts, micros = int(count), parse_duration(_UNITS.get(unit, unit), "rate")
    if not 1 <= starts <= MOST_STARTS or not 1 <= micros <= LONGEST_PERIOD:
        raise InvalidInputError(
            f"{text!r} is not a rate between 1 and {MOST_STARTS} starts in at most 31 days"
        )
    return starts, micros


def limit_text(count: int, period: int) -> str:
    return f"{count}/{show_duration(period).replace(' ', '')}"


def rate_text(rate: Rate) -> str:
    return rate.key if rate.most is None else f"{rate.key}={limit_text(rate.most, rate.period)}"
