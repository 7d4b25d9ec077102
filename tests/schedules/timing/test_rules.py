"""When rules are due; what they may say."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import TZPATH

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.base.errors import InvalidInputError
from headway.schedules.timing.rules import Cron, Every, Once, TimingRule, parse_cron, rule_of
from headway.schedules.timing.zones import zone_of, zones_version

SECOND = 1_000_000
HOUR = 3600 * SECOND


def instant(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


def following(rule: TimingRule, after: str, count: int) -> list[str]:
    found, slot = [], instant(after)
    for _ in range(count):
        following = rule.next_after(slot)
        assert following is not None and following > slot
        slot = following
        found.append(f"{datetime.fromtimestamp(slot // SECOND, UTC):%Y-%m-%d %H:%M}")
    return found


@pytest.mark.req("D9", "D16")
def test_a_daily_time_fires_on_the_day_after_the_clocks_went_forward() -> None:
    # fault E1
    rule = parse_cron("30 0 * * *", "Europe/Berlin")
    assert following(rule, "2026-03-28T00:00", 3) == [
        "2026-03-28 23:30",  # 00:30 on the 29th, an hour and a half before the change
        "2026-03-29 22:30",  # 00:30 on the 30th
        "2026-03-30 22:30",
    ]


@pytest.mark.req("D16")
@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        # 02:30 does not exist: right after the gap. Times with a star go by what passes.
        ("30 2 * * *", "2026-03-28T12:00", ["2026-03-29 01:00", "2026-03-30 00:30"]),
        ("30 * * * *", "2026-03-29T00:00", ["2026-03-29 00:30", "2026-03-29 01:30"]),
        # 02:30 comes twice: the first time. Those with a star come both times.
        ("30 2 * * *", "2026-10-24T12:00", ["2026-10-25 00:30", "2026-10-26 01:30"]),
        ("30 * * * *", "2026-10-25T00:00", ["2026-10-25 00:30", "2026-10-25 01:30"]),
    ],
)
def test_a_gap_loses_no_fixed_time_and_a_fold_doubles_none(
    expression: str, after: str, expected: list[str]
) -> None:  # fault E1, fault E2
    assert following(parse_cron(expression, "Europe/Berlin"), after, 2) == expected


@pytest.mark.req("D9")
def test_one_to_five_is_monday_to_friday() -> None:
    rule = parse_cron("0 9 * * 1-5")
    days = [datetime.fromisoformat(each) for each in following(rule, "2026-11-15T00:00", 10)]
    assert [f"{each:%a}" for each in days] == ["Mon", "Tue", "Wed", "Thu", "Fri"] * 2


@pytest.mark.parametrize(
    ("expression", "after", "expected"),
    [
        ("0 0 29 2 *", "2026-01-01T00:00", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("0 0 29 2 *", "2096-02-29T00:00", ["2104-02-29 00:00", "2108-02-29 00:00"]),
        ("*/30 23 29 2 *", "2096-02-29T23:30", ["2104-02-29 23:00", "2104-02-29 23:30"]),
        ("0 0 29 2 */7", "2026-01-01T00:00", ["2032-02-29 00:00", "2060-02-29 00:00"]),
        ("0 0 31 * *", "2026-01-31T00:00", ["2026-03-31 00:00", "2026-05-31 00:00"]),
        ("0 0 L * *", "2028-01-31T00:00", ["2028-02-29 00:00", "2028-03-31 00:00"]),
        ("0 0 * * tue#2", "2026-11-15T00:00", ["2026-12-08 00:00", "2027-01-12 00:00"]),
        ("0 0 * * 5L", "2026-11-15T00:00", ["2026-11-27 00:00", "2026-12-25 00:00"]),
        ("0 0 13 * FRI", "2026-11-09T00:00", ["2026-11-13 00:00", "2026-11-20 00:00"]),
        ("0 0 1-7 * */7", "2026-11-02T00:00", ["2026-12-06 00:00", "2027-01-03 00:00"]),
        ("15 10 1 JAN,jul *", "2026-11-15T00:00", ["2027-01-01 10:15", "2027-07-01 10:15"]),
        ("50/5 12 * * *", "2026-11-15T12:50", ["2026-11-15 12:55", "2026-11-16 12:50"]),
        ("@hourly", "2026-11-15T12:30", ["2026-11-15 13:00", "2026-11-15 14:00"]),
        ("@daily", "2026-11-15T12:30", ["2026-11-16 00:00", "2026-11-17 00:00"]),
        ("@midnight", "2026-11-15T12:30", ["2026-11-16 00:00", "2026-11-17 00:00"]),
        ("@weekly", "2026-11-15T12:30", ["2026-11-22 00:00", "2026-11-29 00:00"]),
        ("@monthly", "2026-11-15T12:30", ["2026-12-01 00:00", "2027-01-01 00:00"]),
        ("@yearly", "2026-11-15T12:30", ["2027-01-01 00:00", "2028-01-01 00:00"]),
        ("@annually", "2026-11-15T12:30", ["2027-01-01 00:00", "2028-01-01 00:00"]),
    ],
)
def test_dates(expression: str, after: str, expected: list[str]) -> None:
    # fault E3
    assert following(parse_cron(expression), after, 2) == expected


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        # half an hour, which cronsim alone does not see in these two
        ("45 * * * *", "Australia/Lord_Howe", "2026-10-03T15:15", ["2026-10-03 15:45"]),
        ("0 */2 * * *", "Australia/Lord_Howe", "2026-04-04T14:00", ["2026-04-04 15:30"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00", ["2026-10-03 15:30"]),
        ("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00", ["2026-04-04 14:45"]),
        # the day that never was
        ("30 0 * * *", "Pacific/Apia", "2011-12-29T11:00", ["2011-12-30 10:30"]),
        # three hours forward are a correction, three hours back are not
        ("30 1 * * *", "Antarctica/Casey", "2020-10-03T15:00", ["2020-10-04 14:30"]),
        ("30 22 * * *", "Antarctica/Casey", "2021-03-13T11:00", ["2021-03-13 11:30"]),
        ("30 22 * * *", "Antarctica/Casey", "2021-03-13T12:00", ["2021-03-14 14:30"]),
        # two times that were passed over, and the one after the gap, are one slot
        ("0,30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00", ["2026-03-29 01:00"]),
    ],
)
def test_clock_changes(expression: str, zone: str, after: str, expected: list[str]) -> None:
    # faults E1 and E2
    assert following(parse_cron(expression, zone), after, 1) == expected


@pytest.mark.parametrize(
    ("expression", "zone", "reason"),
    [
        ("", "UTC", "is empty; write five fields"),
        (" \n", "UTC", "is empty"),
        ("0 0 * *", "UTC", "it has 4 fields; write five"),
        ("0", "UTC", "it has 1 field;"),
        ("0 0 0 * * *", "UTC", "it has six fields, but cron knows no seconds"),
        ("0 " * 100 + "0", "UTC", "it is longer than 200 characters"),
        ("@reboot", "UTC", "a start of the machine is not a time; see `headway service install`"),
        ("@fortnightly", "UTC", "there is no such word; use one of @yearly,"),
        ("@daily *", "UTC", "there is no such word"),
        ("60 * * * *", "UTC", "'60' is not possible as minute; it is 0 to 59"),
        ("0 24 * * *", "UTC", "'24' is not possible as hour; it is 0 to 23"),
        ("0 0 0 * *", "UTC", "'0' is not possible as day-of-month; it is 1 to 31"),
        ("0 0 32 2 *", "UTC", "'32' is not possible as day-of-month; it is 1 to 31"),
        ("0 0 * 13 *", "UTC", "'13' is not possible as month; it is 1 to 12 or JAN to DEC"),
        ("0 0 * * 8", "UTC", "'8' is not possible as day-of-week"),
        ("0 0 * * MON#6", "UTC", "'MON#6' is not possible as day-of-week"),
        ("*/0 * * * *", "UTC", "'*/0' is not possible as minute"),
        ("0 0 ? * *", "UTC", "'?' is not possible as day-of-month"),
        ("-5 0 * * *", "UTC", "'-5' is not possible as minute"),
        ("0 0 * * ſun", "UTC", "it has letters that are not ASCII"),
        ("50-10 * * * *", "UTC", "'50-10' goes backwards as minute"),
        ("0 0 * * FRI-MON", "UTC", "'FRI-MON' goes backwards as day-of-week; write two"),
        ("0 0 31 2 *", "UTC", "no month of '2' has a day '31'; use L"),
        ("30 2 30 2 *", "UTC", "no month of '2' has a day '30'"),
        ("0 0 31 feb,apr *", "UTC", "no month of 'feb,apr' has a day '31'"),
        ("0 0 */31 2 1#5", "UTC", "no such day exists"),
        ("0 0 * * *", "Europe/Berlni", "timezone 'Europe/Berlni' is not known; did you mean"),
        ("0 0 * * *", "europe/berlin", "is not known; did you mean Europe/Berlin?"),
        ("0 0 * * *", "berlin", "is not known; did you mean Europe/Berlin?"),
        ("0 0 * * *", "CEST", "is not known; write it like Europe/Berlin"),
        ("0 0 * * *", "right/Europe/Berlin", "is not known"),
        ("0 0 * * *", "Europe", "is not known"),
        ("0 0 * * *", "localtime", "is not known"),
        ("0 0 * * *", "../zoneinfo/Europe/Berlin", "is not known"),
        ("0 0 * * *", "/etc/localtime", "is not known"),
        ("0 0 * * *", "Mars\0", "is not known"),
        ("0 0 * * *", "", "is not known"),
        ("0 0 * * *", "x" * 5000, "is not known"),
    ],
)
@pytest.mark.req("D16")
def test_what_cannot_be_is_refused_with_the_reason(expression: str, zone: str, reason: str) -> None:
    # faults E3 and E6
    with pytest.raises(InvalidInputError) as refused:
        parse_cron(expression, zone)
    assert reason in str(refused.value) and len(str(refused.value)) < 600


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(alphabet="0159-*/,#LWMONjan @\t", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        rule = parse_cron(text, "Europe/Berlin")
    except InvalidInputError:
        return
    slot = rule.next_after(0)
    assert slot is not None and slot % (60 * SECOND) == 0


EXPRESSIONS = st.tuples(
    st.sampled_from(["*", "*/7", "0", "3,17", "1-5", "2-50/3"]),
    st.sampled_from(["*", "*/5", "0", "3,17", "1-5", "2-20/3"]),
    st.sampled_from(["*", "1", "L", "*/10"]),
    st.sampled_from(["*", "3,10", "*/2"]),
    st.sampled_from(["*", "0", "MON-FRI", "SUN#1"]),
).map(" ".join)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    EXPRESSIONS,
    st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"]),
    st.integers(instant("2025-01-01T00:00"), instant("2030-01-01T00:00")),
    st.integers(0, 40 * 24 * HOUR),
    st.integers(0, 20),
)
def test_counting_slots_is_walking_them(
    expression: str, zone: str, after: int, long: int, most: int
) -> None:
    assert_counted(parse_cron(expression, zone), after, after + long, most)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.integers(SECOND, 24 * HOUR),
    st.integers(-10 * HOUR, 10 * HOUR),
    st.integers(-20 * HOUR, 20 * HOUR),
    st.integers(-HOUR, 20 * HOUR),
    st.integers(0, 10),
)
def test_intervals_are_counted_in_closed_form(
    period: int, anchor: int, after: int, long: int, most: int
) -> None:
    assert_counted(Every(period, anchor), after, after + long, most)
    following = Every(period, anchor).next_after(after)
    assert after < following <= after + period and (following - anchor) % period == 0


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(), st.integers(), st.integers(), st.integers(0, 2))
def test_an_instant_is_counted_once(at: int, after: int, until: int, most: int) -> None:
    assert_counted(Once(at), after, until, most)


def assert_counted(rule: TimingRule, after: int, until: int, most: int) -> None:
    walked: list[int] = []
    slot = rule.next_after(after)
    while slot is not None and slot <= until and len(walked) < most:
        walked.append(slot)
        slot = rule.next_after(slot)
    before, last = [None, None, *walked][-2:]
    assert rule.slots_until(after, until, most) == (len(walked), before, last)


def test_a_slot_is_later_than_the_instant() -> None:
    noon = instant("2026-11-15T12:00")
    rule = parse_cron("0 12 * * *")
    assert rule.next_after(noon - 1) == noon
    assert rule.next_after(noon) == noon + 24 * HOUR
    assert Every(HOUR, noon).next_after(noon) == noon + HOUR
    assert Every(HOUR, noon).next_after(noon - 1) == noon
    assert Every(HOUR, noon).next_after(noon - 25 * HOUR) == noon - 24 * HOUR
    assert Once(noon).next_after(noon - 1) == noon and Once(noon).next_after(noon) is None


@pytest.mark.parametrize("far", [-(10**18), 10**18, 253_402_300_799 * SECOND])
def test_times_that_no_calendar_has_end_the_search(far: int) -> None:
    assert parse_cron("0 0 29 2 *", "Europe/Berlin").next_after(far) is None


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        (
            {"cron": " 0  9 * * 1-5", "timezone": "Europe/Berlin"},
            Cron("0 9 * * 1-5", "Europe/Berlin"),
        ),
        ({"cron": "@daily"}, Cron("@daily", "UTC")),
        ({"every": HOUR, "anchor": 5}, Every(HOUR, 5)),
        ({"at": 5}, Once(5)),
    ],
)
def test_a_document_means_a_rule(document: dict[str, object], rule: TimingRule) -> None:
    assert rule_of(document) == rule


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"cron": 5},
        {"cron": "0 0 * * *", "timezone": None},
        {"cron": "0 0 * * *", "at": 5},
        {"every": "1h", "anchor": 0},
        {"every": HOUR},
        {"every": 999_999, "anchor": 0},
        {"every": 101 * 366 * 24 * HOUR, "anchor": 0},
        {"at": None},
    ],
)
def test_other_documents_are_refused(document: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        rule_of(document)


@pytest.mark.req("D16")
def test_other_tz_data_give_other_slots_and_another_version(tmp_path: Path) -> None:
    # fault E6
    script = (
        "from headway.schedules.timing.zones import zones_version\n"
        "from headway.schedules.timing.rules import parse_cron\n"
        "rule = parse_cron('0 0 * * *', 'Europe/Berlin')\n"
        f"print(zones_version(), rule.next_after({instant('2026-06-01T10:00')}))"
    )
    installed = next(Path(each) for each in TZPATH if Path(each, "Europe").is_dir())
    (tmp_path / "Europe").mkdir()
    shutil.copy(installed / "Asia" / "Tokyo", tmp_path / "Europe" / "Berlin")
    (tmp_path / "tzdata.zi").write_text("# version 2099z\n")
    said = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env={**os.environ, "PYTHONTZPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split()
    assert said == ["2099z", str(instant("2026-06-01T15:00"))]
    assert zones_version() != "2099z"
    assert parse_cron("0 0 * * *", "Europe/Berlin").next_after(
        instant("2026-06-01T10:00")
    ) == instant("2026-06-01T22:00")


def test_utc_needs_no_tz_data() -> None:
    assert zone_of("UTC").next_change(0).shift == 0 and zone_of("UTC").last_change(0) is None
