"""Which ended jobs a rule takes."""

import pytest

from headway.core.retention import (
    DAY,
    EndPlace,
    RetentionLimits,
    RetentionRule,
    automatic,
    limits_of,
)

NOW = 1_000 * DAY


def limits(rule: RetentionRule, nth: EndPlace | None = None) -> RetentionLimits:
    return limits_of(rule, now=NOW, nth_newest=nth)


def place(days_ago: float, job_id: int = 5) -> EndPlace:
    return EndPlace(NOW - round(days_ago * DAY), job_id)


@pytest.mark.parametrize(
    ("rule", "nth", "ended", "goes"),
    [
        (automatic(30, 0), None, place(30), False),
        (automatic(30, 0), None, place(30.01), True),
        (automatic(0, 0), None, place(900), False),
        (automatic(0, 10), None, place(900), False),  # there are fewer than ten
        (automatic(0, 10), place(2), place(2), False),  # the tenth
        (automatic(0, 10), place(2), place(2.1), True),
        (automatic(0, 10), place(0.5), place(0.9), False),  # of the last day
        (automatic(0, 10), place(0.5), place(1.1), True),
        (automatic(30, 10), place(40), place(31), True),  # either is enough
        (RetentionRule(0, None), None, place(0), True),
        (RetentionRule(0, None), None, place(-1), True),  # a clock that was ahead
        (RetentionRule(7, None), None, place(6.9), False),
        (RetentionRule(None, 3), place(0.1, 7), place(0.1, 7), False),
        (RetentionRule(None, 3), place(0.1, 7), place(0.1, 6), True),  # by hand: no last day
        (RetentionRule(None, 0), None, place(0), True),
    ],
)
def test_what_a_rule_takes(
    rule: RetentionRule, nth: EndPlace | None, ended: EndPlace, goes: bool
) -> None:
    found = limits(rule, nth)
    assert found.take(ended) is goes
    if goes:
        assert found.until is not None and ended.at < found.until, "and it is looked at"


def test_a_rule_that_says_nothing_looks_at_nothing() -> None:
    assert limits(automatic(0, 0)).until is None


def test_only_what_a_rule_may_take_is_looked_at() -> None:
    assert limits(automatic(30, 0)).until == NOW - 30 * DAY
    assert limits(automatic(0, 10), place(0.5)).until == NOW - DAY
    assert limits(automatic(0, 10), place(2)).until == place(2).at + 1
