"""Durations, instants and sizes: what people write is taken at its word or refused by name."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.base.errors import InvalidInputError
from headway.base.units import (
    LONGEST,
    MICROSECONDS,
    parse_duration,
    parse_instant,
    parse_since,
    parse_size,
    show_duration,
    show_instant,
    show_size,
)

SECOND, MINUTE, HOUR, DAY = (MICROSECONDS[unit] for unit in "smhd")
NOW = 1_800_000_000_000_000  # 2027-01-15T08:00:00Z
IN_RANGE = st.integers(-2_000_000_000_000_000, 7_000_000_000_000_000)  # 1906 to 2191


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the local time zone of this process."""

    def use(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield use
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("0s", 0),
        ("90s", 90 * SECOND),
        ("10m", 10 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("1.5h", 90 * MINUTE),
        ("250ms", 250_000),
        ("7us", 7),
        ("2d", 2 * DAY),
        ("1w1d", 8 * DAY),
        ("0.1s", 100_000),
        (" 5s ", 5 * SECOND),
        ("36600d", LONGEST),
    ],
)
def test_a_duration_is_read(text: str, micros: int) -> None:
    assert parse_duration(text) == micros


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "5",
        "s",
        "-5s",
        "+5s",
        "5 s",
        "1h 30m",
        "5sec",
        "5S",
        "1e3s",
        "1.s",
        ".5s",
        "5s!",
        "x5s",
        "1h30",
        "inf",
        "nan",
        "5s\n5",
        "36601d",
        pytest.param("9" * 300 + "s", id="300-digits"),
        pytest.param("9" * 400 + "s", id="400-digits"),
    ],
)
def test_what_is_no_duration_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        parse_duration(text, "--delay")
    assert str(refusal.value).startswith(f"--delay {text!r}"[:60])
    assert refusal.value.exit_code == 5


@pytest.mark.parametrize(
    ("micros", "shown"),
    [
        (0, "0ms"),
        (999, "0ms"),
        (20_000, "20ms"),
        (SECOND, "1s"),
        (1_500_000, "1.5s"),
        (125 * SECOND, "2m 5s"),
        (MINUTE, "1m"),
        (HOUR, "1h"),
        (HOUR + SECOND, "1h"),
        (10 * HOUR + 10 * MINUTE, "10h 10m"),
        (3 * DAY + 4 * HOUR + 5 * MINUTE, "3d 4h"),
        (DAY, "1d"),
        (-125 * SECOND, "-2m 5s"),
    ],
)
def test_a_duration_is_shown_in_its_two_largest_units(micros: int, shown: str) -> None:
    assert show_duration(micros) == shown


@given(st.integers(0, LONGEST))
def test_a_shown_duration_reads_back_to_what_it_shows(micros: int) -> None:
    read = parse_duration(show_duration(micros).replace(" ", ""))
    coarseness = max(SECOND // 10, *(size for size in (HOUR, MINUTE) if micros >= 24 * size), 0)
    assert abs(read - micros) <= max(coarseness, SECOND if micros >= MINUTE else 0)
    assert show_duration(read) == show_duration(micros) or micros < MINUTE


@given(st.integers(0, LONGEST // DAY), st.sampled_from(sorted(MICROSECONDS)))
def test_a_count_and_a_unit_are_that_long(count: int, unit: str) -> None:
    if count * MICROSECONDS[unit] <= LONGEST:
        assert parse_duration(f"{count}{unit}") == count * MICROSECONDS[unit]


@given(st.text())
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    for parse in (parse_duration, parse_size, lambda each: parse_instant(each, NOW)):
        try:
            assert isinstance(parse(text), int)
        except InvalidInputError as error:
            assert repr(text)[:20] in str(error) or repr(text.strip()[1:])[:20] in str(error)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2027-01-15T08:00:00Z", NOW),
        ("2027-01-15T08:00Z", NOW),
        ("2027-01-15T10:00:00+02:00", NOW),
        ("2027-01-15T03:00:00-05:00", NOW),
        ("2027-01-15T08:00:00.000001Z", NOW + 1),
        ("1969-12-31T23:59:59Z", -SECOND),
        (" 2027-01-15T08:00:00Z ", NOW),
        ("+10m", NOW + 10 * MINUTE),
        ("+0s", NOW),
    ],
)
def test_an_instant_is_read(text: str, instant: int) -> None:
    assert parse_instant(text, NOW) == instant


@pytest.mark.parametrize(
    ("zone_name", "hour"), [("UTC", 8), ("Etc/GMT-3", 11), ("Etc/GMT+5", 3), ("XXX-02", 10)]
)
def test_without_an_offset_an_instant_is_local(
    zone: Callable[[str], None], zone_name: str, hour: int
) -> None:
    zone(zone_name)
    assert parse_instant(f"2027-01-15T{hour:02d}:00", NOW) == NOW
    assert parse_instant("2027-01-15T08:00Z", NOW) == NOW, "an offset is stronger than the zone"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "tomorrow",
        "-10m",
        "+",
        "+10",
        "+-1s",
        "10m",
        "2027-13-01T00:00",
        "2027-02-30T00:00",
        "2027-01-15T25:00",
        "1800000000",
        "+36601d",
        pytest.param("0001-01-01T00:00:00+10:00"),
        pytest.param("9999-12-31T23:59:59-10:00"),
        pytest.param("0001-01-01T00:00"),
        pytest.param("+" + "9" * 400 + "s", id="400-digits"),
    ],
)
def test_what_is_no_instant_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        parse_instant(text, NOW, what="--at")
    assert f"--at {text.removeprefix('+')!r}"[:60] in str(refusal.value)


@pytest.mark.parametrize(
    ("instant", "shown"),
    [
        (None, None),
        (0, "1970-01-01T00:00:00.000000Z"),
        (NOW + 5, "2027-01-15T08:00:00.000005Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
    ],
)
def test_an_instant_is_shown_in_utc_to_the_microsecond(
    zone: Callable[[str], None], instant: int | None, shown: str | None
) -> None:
    zone("Etc/GMT+7")
    assert show_instant(instant) == shown


@given(IN_RANGE)
def test_a_shown_instant_reads_back_exactly(instant: int) -> None:
    shown = show_instant(instant)
    assert shown is not None
    assert parse_instant(shown, NOW) == instant
    assert datetime.fromisoformat(shown).tzinfo == UTC


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("1024", 1024),
        ("1k", 1024),
        ("1K", 1024),
        ("1KB", 1024),
        ("1KiB", 1024),
        ("64MiB", 64 << 20),
        ("10G", 10 << 30),
        ("1.5 GiB", 3 << 29),
        ("2t", 2 << 40),
        (" 7b ", 7),
    ],
)
def test_a_size_is_read(text: str, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize(
    "text",
    [
        "",
        "k",
        "-1",
        "+1",
        "1e3",
        "1kk",
        "1 k i b",
        "ten",
        "1.",
        "inf",
        "64MiBs",
        pytest.param("9" * 400 + "G", id="400-digits"),
    ],
)
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        parse_size(text, "logs.head")
    assert str(refusal.value).startswith(f"logs.head {text!r}"[:60])


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (64 << 20, "64.0 MiB"),
        (1 << 30, "1.0 GiB"),
        (1 << 40, "1.0 TiB"),
        (5 << 50, "5120.0 TiB"),
    ],
)
def test_a_size_is_shown(count: int, shown: str) -> None:
    assert show_size(count) == shown


@given(st.integers(0, 1 << 50))
def test_a_shown_size_reads_back_to_what_it_shows(count: int) -> None:
    assert abs(parse_size(show_size(count)) - count) <= max(0.051 * count, 0)


def at(text: str) -> int:
    return parse_instant(text, 0)


@pytest.mark.parametrize(
    ("now", "text", "next_one", "last_one"),
    [
        ("2026-11-15T20:00Z", "22:30", "2026-11-15T21:30Z", "2026-11-14T21:30Z"),
        ("2026-11-15T21:30Z", "22:30", "2026-11-16T21:30Z", "2026-11-15T21:30Z"),
        ("2026-11-15T20:00Z", "9:05:30", "2026-11-16T08:05:30Z", "2026-11-15T08:05:30Z"),
        # It is one hour less until then in the night in which the clock is put forward.
        ("2027-03-27T23:00Z", "22:30", "2027-03-28T20:30Z", "2027-03-27T21:30Z"),
        # 2:30 is skipped then: it comes when the clock shows 3:30.
        ("2027-03-27T23:00Z", "2:30", "2027-03-28T01:30Z", "2027-03-27T01:30Z"),
        # In autumn it is shown twice, and both count.
        ("2026-10-24T22:30Z", "2:30", "2026-10-25T00:30Z", "2026-10-24T00:30Z"),
        ("2026-10-25T00:45Z", "2:30", "2026-10-25T01:30Z", "2026-10-25T00:30Z"),
        ("2026-10-25T01:45Z", "2:30", "2026-10-26T01:30Z", "2026-10-25T01:30Z"),
    ],
)
def test_a_time_of_day_is_the_next_one_or_the_last_one_on_the_local_clock(
    zone: Callable[[str], None], now: str, text: str, next_one: str, last_one: str
) -> None:
    zone("Europe/Berlin")
    assert show_instant(parse_instant(text, at(now))) == show_instant(at(next_one))
    assert show_instant(parse_since(text, at(now))) == show_instant(at(last_one))
    zone("UTC")
    berlin = ZoneInfo("Europe/Berlin")
    assert show_instant(parse_instant(text, at(now), berlin)) == show_instant(at(next_one))


@pytest.mark.parametrize("text", ["24:00", "22:60", "22:3", "22", ":30"])
def test_what_no_clock_shows_is_no_time(text: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a time"):
        parse_instant(text, NOW)


@pytest.mark.parametrize("text", ["5", "1.5", " 90 "])
def test_a_number_without_a_unit_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="has no unit; write"):
        parse_since(text, NOW)
