"""When is an entry of a jobs file due? Pure; instants and durations are microseconds.

An interval counts from the end of the last run's chain, so runs never pile up. A cron rule is due
at the first slot after the last run's start; of slots that were missed there is one run. An entry
that was held back stays due, and is asked about again ever more rarely.
"""

from typing import NamedTuple, Protocol

SECOND = 1_000_000
ASK_AGAIN_FIRST = 1 * SECOND
ASK_AGAIN_LAST = 60 * SECOND  # each may fetch the poll
CLOCK_TOLERANCE = 10 * SECOND
NEVER = 253_402_300_799_000_000  # the end of the year 9999


class EntryRule(Protocol):
    def next_after(self, instant: int) -> int | None: ...


class Timing(NamedTuple):
    """Either an interval, with what takes its place while there is other work and while there is
    none, or a rule."""

    interval: int = 0
    active: int | None = None
    idle: int | None = None
    rule: EntryRule | None = None

    @property
    def follows_other_work(self) -> bool:
        return self.rule is None and (self.active is not None or self.idle is not None)

    def present_interval(self, busy: bool) -> int:
        instead = self.active if busy else self.idle
        return self.interval if instead is None else instead

    def shortest_interval(self) -> int:
        return min(self.present_interval(busy=True), self.present_interval(busy=False))


def next_look(timing: Timing, *, started: int | None, ended: int | None, since: int) -> int:
    """Before when it cannot be due; `since` is when the entry came, or its rule was changed."""
    if timing.rule is not None:
        return timing.rule.next_after(since if started is None else max(started, since)) or NEVER
    return since if ended is None else ended + timing.shortest_interval()


def is_due(timing: Timing, *, ended: int | None, next_at: int, now: int, busy: bool) -> bool:
    return due_at(timing, ended=ended, next_at=next_at, busy=busy) <= now


def due_at(timing: Timing, *, ended: int | None, next_at: int, busy: bool) -> int:
    """When it will be, if there is as much other work then as now."""
    if timing.rule is not None or ended is None:
        return next_at
    return max(next_at, ended + timing.present_interval(busy))


def ask_again_after(waited: int, timing: Timing) -> int:
    """How long to leave one alone that was held back, if it was last left alone for so long."""
    longest = ASK_AGAIN_LAST
    if timing.rule is None:
        longest = max(ASK_AGAIN_FIRST, min(longest, timing.shortest_interval()))
    return min(longest, max(ASK_AGAIN_FIRST, 2 * waited))


def after_a_clock_went_back(timing: Timing, *, next_at: int, ended: int | None, now: int) -> int:
    """When to check, if this was found before: never later than what would be found now.

    A slot that lies only a little ahead stays taken: small corrections of a clock are common, and
    do not make it run twice.
    """
    if timing.rule is None:
        latest = next_look(timing, started=None, ended=not_in_future(ended, now), since=now)
        return min(next_at, latest)
    if next_at <= (timing.rule.next_after(now + CLOCK_TOLERANCE) or NEVER):
        return next_at
    return timing.rule.next_after(now) or NEVER


def not_in_future(ended: int | None, now: int) -> int | None:
    """A clock that went back must not hold up an entry until it has caught up."""
    return None if ended is None else min(ended, now)
