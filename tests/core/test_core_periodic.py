"""When an entry of a jobs file is due."""

import pytest

from headway.core.periodic import (
    NEVER,
    SECOND,
    Timing,
    after_a_clock_went_back,
    ask_again_after,
    due_at,
    is_due,
    next_look,
    not_in_future,
)

NOW = 1_000 * SECOND
MINUTE = Timing(interval=60 * SECOND)
SCALED = Timing(interval=60 * SECOND, active=10 * SECOND, idle=300 * SECOND)


class Hourly:
    def next_after(self, instant: int) -> int | None:
        return (instant // (3600 * SECOND) + 1) * 3600 * SECOND


class Over:
    def next_after(self, instant: int) -> int | None:
        return None


@pytest.mark.req("O4")
@pytest.mark.parametrize(
    ("timing", "ended_ago", "busy", "due"),
    [
        (MINUTE, None, False, True),
        (MINUTE, 59, False, False),
        (MINUTE, 60, False, True),
        (MINUTE, 60, True, True),
        (SCALED, 9, True, False),
        (SCALED, 10, True, True),
        (SCALED, 10, False, False),
        (SCALED, 299, False, False),
        (SCALED, 300, False, True),
        (Timing(60 * SECOND, active=10 * SECOND), 59, False, False),
        (Timing(60 * SECOND, active=10 * SECOND), 60, False, True),
        (Timing(60 * SECOND, idle=300 * SECOND), 60, True, True),
    ],
)
def test_due_is_never_run_or_the_present_interval_after_the_last_end(
    timing: Timing, ended_ago: int | None, busy: bool, due: bool
) -> None:
    ended = None if ended_ago is None else NOW - ended_ago * SECOND
    next_at = next_look(timing, started=ended, ended=ended, since=NOW)
    assert is_due(timing, ended=ended, next_at=next_at, now=NOW, busy=busy) is due


@pytest.mark.req("O25")
def test_the_first_look_is_made_when_the_shortest_interval_is_over() -> None:
    assert next_look(SCALED, started=NOW, ended=NOW, since=0) == NOW + 10 * SECOND
    assert due_at(SCALED, ended=NOW, next_at=NOW + 10 * SECOND, busy=False) == NOW + 300 * SECOND
    asked_later = NOW + 900 * SECOND
    assert due_at(SCALED, ended=NOW, next_at=asked_later, busy=False) == asked_later
    assert SCALED.follows_other_work and not MINUTE.follows_other_work


@pytest.mark.parametrize(
    ("started", "since", "slot"),
    [(None, NOW, 3600), (None, 3600 * SECOND, 7200), (3600 * SECOND, 0, 7200), (5, NOW, 3600)],
)
def test_a_rule_is_due_at_its_first_slot_after_the_last_start(
    started: int | None, since: int, slot: int
) -> None:
    timing = Timing(rule=Hourly())
    next_at = next_look(timing, started=started, ended=started, since=since)
    assert next_at == slot * SECOND
    late = 10 * slot * SECOND  # whatever else was missed: it is due once
    assert is_due(timing, ended=started, next_at=next_at, now=late, busy=True)
    assert not is_due(timing, ended=started, next_at=next_at, now=next_at - 1, busy=True)


def test_a_rule_without_another_slot_is_never_due() -> None:
    assert next_look(Timing(rule=Over()), started=None, ended=None, since=NOW) == NEVER


@pytest.mark.parametrize(
    ("timing", "waits"),
    [
        (MINUTE, [1, 2, 4, 8, 16, 32, 60, 60]),
        (Timing(interval=3600 * SECOND), [1, 2, 4, 8, 16, 32, 60, 60]),
        (Timing(interval=3 * SECOND), [1, 2, 3, 3]),
        (Timing(interval=SECOND // 2), [1, 1]),
        (Timing(rule=Hourly()), [1, 2, 4, 8, 16, 32, 60]),
    ],
)
def test_one_that_is_held_back_is_asked_about_ever_more_rarely(
    timing: Timing, waits: list[int]
) -> None:
    waited, found = 0, []
    for _ in waits:
        waited = ask_again_after(waited, timing)
        found.append(waited // SECOND)
    assert found == waits


def test_an_end_in_the_future_counts_as_one_now() -> None:
    assert not_in_future(NOW + 5, NOW) == NOW and not_in_future(NOW - 5, NOW) == NOW - 5
    assert not_in_future(None, NOW) is None


HOUR = 3600


@pytest.mark.parametrize(
    ("timing", "now", "ended", "next_at", "at"),
    [
        (MINUTE, 100, 90, 150, 150),  # nothing is wrong
        (MINUTE, 100, 90, 50, 50),
        (MINUTE, 100, 900, 960, 160),
        (MINUTE, 100, None, 900, 100),
        (MINUTE, 100, None, 100, 100),
        (SCALED, 100, 900, 910, 110),
        (Timing(rule=Hourly()), 100, 90, HOUR, HOUR),
        (Timing(rule=Hourly()), 100, 90, 5 * HOUR, HOUR),
        (Timing(rule=Hourly()), HOUR - 9, None, 2 * HOUR, 2 * HOUR),  # a small correction
        (Timing(rule=Hourly()), HOUR - 11, None, 2 * HOUR, HOUR),
        (Timing(rule=Over()), 100, None, NEVER // SECOND, NEVER // SECOND),
    ],
)
def test_after_a_clock_went_back_no_look_is_later_than_one_found_now(
    timing: Timing, now: int, ended: int | None, next_at: int, at: int
) -> None:
    found = after_a_clock_went_back(
        timing,
        next_at=next_at * SECOND,
        ended=None if ended is None else ended * SECOND,
        now=now * SECOND,
    )
    assert found == at * SECOND
