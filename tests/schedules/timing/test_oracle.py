"""Cron rules against the walk over minutes, one change of each sort. (All: torture ZONES=all.)"""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from timing.everywhere import EXPRESSIONS, Window, changes_of, differences
from timing.oracle import Expression, fires, wakeups

# An hour and half an hour in both halves of the earth, at midnight, two hours, Ramadan, three
# hours forward (a correction) and back (none), a standard time that moved, a lost day, and none.
CHANGES = [
    ("Europe/Berlin", "2026-03-29T01:00"),
    ("Europe/Berlin", "2026-10-25T01:00"),
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("America/Havana", "2026-11-01T05:00"),
    ("America/Nuuk", "2026-03-29T01:00"),
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("Antarctica/Troll", "2026-10-25T01:00"),
    ("Africa/Casablanca", "2026-02-15T02:00"),
    ("Antarctica/Casey", "2020-10-03T16:01"),
    ("Antarctica/Casey", "2021-03-13T13:00"),
    ("Asia/Almaty", "2024-02-29T18:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("Asia/Kathmandu", "2026-03-29T01:00"),
]


@pytest.mark.req("D9", "D16")
@pytest.mark.parametrize(("zone", "at"), CHANGES)
def test_slots_are_those_of_a_walk_over_the_minutes(zone: str, at: str) -> None:
    # faults E1 and E2
    minute = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()) // 60
    compared, found = differences(Window(zone, minute, before=8 * 60, after=26 * 60, each=31))
    assert compared > len(EXPRESSIONS) and found == []


def test_the_changes_above_are_changes() -> None:
    for zone, at in CHANGES[:-1]:
        moment = datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp()
        around = (datetime.fromtimestamp(each, ZoneInfo(zone)) for each in (moment - 1, moment))
        before, after = (each.utcoffset() for each in around)
        assert before != after, zone


@pytest.mark.parametrize("zone", ["Antarctica/Casey", "Africa/El_Aaiun"])
def test_all_changes_of_a_clock_are_found(zone: str) -> None:
    _, seen, same = changes_of(zone)
    assert same and len(seen) > 5


def test_the_oracle_does_what_the_manual_of_cron_says() -> None:
    berlin = ZoneInfo("Europe/Berlin")

    def fired(text: str, day: str) -> list[str]:
        start = int(datetime.fromisoformat(day).replace(tzinfo=berlin).timestamp()) // 60
        found = fires(Expression(text), wakeups(berlin, start, start + 5 * 60))
        return [f"{datetime.fromtimestamp(60 * each, berlin):%H:%M}" for each in found]

    assert fired("30 2 * * *", "2026-03-29") == ["03:00"]
    assert fired("30 2 * * *", "2026-10-25") == ["02:30"]
    assert fired("*/30 2 * * *", "2026-03-29") == []
    assert fired("*/30 2 * * *", "2026-10-25") == ["02:00", "02:30", "02:00", "02:30"]
