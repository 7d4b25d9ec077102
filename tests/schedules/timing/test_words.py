"""Rules in words, and the next slots with what is odd about them."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.schedules.timing.rules import Every, Once, parse_cron
from headway.schedules.timing.upcoming import upcoming
from headway.schedules.timing.words import MONTHS, WEEKDAYS, in_words
from timing.oracle import Expression, numbers

SECOND = 1_000_000


def instant(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/10 * * * *", "every 10 minutes"),
        ("0,10,20,30,40,50 * * * *", "every 10 minutes"),
        ("*/7 * * * *", "at every 7th minute from 0 to 56 of every hour"),
        ("0 * * * *", "every hour"),
        ("*/90 * * * *", "every hour"),
        ("5 * * * *", "every hour at minute 5"),
        ("5,6 * * * *", "at minutes 5 and 6 of every hour"),
        ("0 */2 * * *", "every 2 hours"),
        ("15 */6 * * *", "at 00:15, 06:15, 12:15 and 18:15 every day"),
        ("0 */5 * * *", "at 00:00, 05:00, 10:00, 15:00 and 20:00 every day"),
        ("30 0 * * *", "at 00:30 every day"),
        ("0 9 * * 1-5", "at 09:00 Monday to Friday"),
        ("0 9 * * MON,WED,FRI", "at 09:00 on Monday, Wednesday and Friday"),
        ("0 9 * * 0,6", "at 09:00 on Saturday and Sunday"),
        ("0 9 * * 0-7", "at 09:00 every day"),
        ("0 9,17 * * *", "at 09:00 and 17:00 every day"),
        ("*/15 9-17 * * MON-FRI", "every 15 minutes from 09:00 to 17:45 Monday to Friday"),
        ("* 2 * * *", "every minute from 02:00 to 02:59"),
        ("10-20 3 * * *", "at minutes 10 to 20 of hour 3"),
        ("0 0 L * *", "at 00:00 on the last day of the month"),
        ("0 0 LW * *", "at 00:00 on the last working day (Monday to Friday) of the month"),
        ("0 0 15,L * *", "at 00:00 on the 15th and the last day of the month"),
        ("0 0 * * TUE#2", "at 00:00 on the second Tuesday of the month"),
        ("0 0 * * 5L", "at 00:00 on the last Friday of the month"),
        ("0 0 1 1 *", "at 00:00 on the 1st of January"),
        ("0 0 29 2 *", "at 00:00 on the 29th of February"),
        ("0 0 * 6-8 *", "at 00:00 every day in June to August"),
        ("0 0 * 12 0", "at 00:00 on Sunday in December"),
        ("0 0 13 * FRI", "at 00:00 on the 13th of the month, and on Friday"),
        (
            "0 0 1,15 * MON-FRI",
            "at 00:00 on the 1st and the 15th of the month, and on Monday to Friday",
        ),
        ("0 0 1-7 * */7", "at 00:00 on the 1st to 7th of the month if it is Sunday"),
        ("0 0 1-31 * MON", "at 00:00 every day"),
        ("0 0 */2 * *", "at 00:00 on every 2nd day from the 1st to the 31st of the month"),
    ],
)
def test_the_common_shapes_read_well(expression: str, words: str) -> None:
    assert in_words(parse_cron(expression, "Europe/Berlin")) == f"{words}, Europe/Berlin"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "every second"),
        (60, "every minute"),
        (600, "every 10 minutes"),
        (5400, "every 1 hour 30 minutes"),
        (90061, "every 1 day 1 hour 1 minute 1 second"),
        (1.5, "every 1.5 seconds"),
        (14 * 86400, "every 14 days"),
    ],
)
def test_intervals_in_words(seconds: float, words: str) -> None:
    assert in_words(Every(int(seconds * SECOND), 0)) == words


def test_an_instant_in_words() -> None:
    once = Once(instant("2026-11-15T22:30") + 999)
    assert in_words(once) == "once, on 2026-11-15 at 22:30:00 UTC"


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.integers(2, max(2, (high - low) // 2)).map(lambda by: f"*/{by}")
    part = st.one_of(number.map(str), span, step)
    parts = st.lists(st.one_of(number.map(str), span), min_size=1, max_size=4).map(",".join)
    return st.one_of(st.just("*"), part, parts)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 7))
def test_words_name_every_field_that_restricts(
    minute: str, hour: str, day: str, month: str, weekday: str
) -> None:
    text = " ".join((minute, hour, day, month, weekday))
    words = in_words(parse_cron(text))
    assert words == in_words(parse_cron(text)) and words.endswith(", UTC")
    times = Expression(text).times
    told = [int(h) * 60 + int(m) for h, m in re.findall(r"(\d\d):(\d\d)", words)]
    assert set(told) <= times  # whatever time is named is one
    if len(times) < 24 * 60:
        assert words.split(",")[0] != "every minute"
    months = numbers(month, 1, 12)
    named = {name for name in MONTHS if name in words}
    assert bool(named) == (len(months) < 12)
    assert named <= {MONTHS[each - 1] for each in months}
    days = numbers(day, 1, 31)
    weekdays = {each % 7 for each in numbers(weekday, 0, 7)}
    either = day[0] != "*" and weekday[0] != "*"
    any_day = len(days) == 31 or (either and len(weekdays) == 7)
    any_weekday = len(weekdays) == 7 or (either and len(days) == 31)
    assert bool(re.search(r"\d(st|nd|rd|th) (to|of|and|day)|the \d", words)) >= (not any_day)
    named = {name for name in WEEKDAYS if name in words}
    assert bool(named) == (not any_weekday)
    assert named <= {WEEKDAYS[(each - 1) % 7] for each in weekdays}


def odd(expression: str, zone: str, after: str, count: int) -> list[tuple[str, str | None]]:
    found = upcoming(parse_cron(expression, zone), instant(after), count)
    return [(each.local, each.odd) for each in found]


def test_a_time_that_does_not_exist_is_told() -> None:
    assert odd("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00", 3) == [
        ("2026-03-28T02:30:00+01:00", None),
        (
            "2026-03-29T03:00:00+02:00",
            "02:30 does not exist on this day: fires at 03:00, right after the clocks go forward",
        ),
        ("2026-03-30T02:30:00+02:00", None),
    ]
    [(_, several)] = odd("0,10,20,30 2 * * *", "Europe/Berlin", "2026-03-29T00:00", 1)
    assert several == (
        "02:00 to 02:30 do not exist on this day: fires once at 03:00, "
        "right after the clocks go forward"
    )


def test_a_time_that_comes_twice_is_told() -> None:
    assert odd("30 2 * * *", "Europe/Berlin", "2026-10-25T00:00", 2) == [
        ("2026-10-25T02:30:00+02:00", "02:30 comes twice on this day: fires the first time only"),
        ("2026-10-26T02:30:00+01:00", None),
    ]


def test_wild_rules_say_what_is_passed_over_and_what_is_repeated() -> None:
    assert odd("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:30", 2) == [
        (
            "2026-03-29T03:00:00+02:00",
            "02:00 and 02:30 do not exist on this day: passed over, as the clocks go forward",
        ),
        ("2026-03-29T03:30:00+02:00", None),
    ]
    assert odd("0 * * * *", "Europe/Berlin", "2026-10-24T23:30", 3) == [
        ("2026-10-25T02:00:00+02:00", "02:00 comes twice on this day: this is the first time"),
        ("2026-10-25T02:00:00+01:00", "02:00 comes twice on this day: this is the second time"),
        ("2026-10-25T03:00:00+01:00", None),
    ]
    [(_, skipped)] = odd("*/30 2 29 3 *", "Europe/Berlin", "2025-04-01T00:00", 1)
    assert skipped == (
        "2026-03-29 02:00 and 2026-03-29 02:30 do not exist: passed over, as the clocks go forward"
    )


def test_a_day_that_never_was_is_told() -> None:
    [(local, told)] = odd("30 0 * * *", "Pacific/Apia", "2011-12-29T12:00", 1)
    assert local == "2011-12-31T00:30:00+14:00"
    assert told == "2011-12-30 00:30 does not exist: passed over, as the clocks go forward by 1d"


def test_intervals_and_instants_are_shown_in_utc() -> None:
    assert upcoming(Every(90 * SECOND, 0), 0, 2) == [
        (90 * SECOND, "1970-01-01T00:01:30+00:00", "1970-01-01T00:01:30.000000Z", None),
        (180 * SECOND, "1970-01-01T00:03:00+00:00", "1970-01-01T00:03:00.000000Z", None),
    ]
    assert [each.slot for each in upcoming(Once(5), 0, 10)] == [5]
    assert upcoming(Once(5), 5, 10) == [] and upcoming(Once(5), 0, 0) == []
