"""The rules that say when something is due: a cron expression, an interval, one instant.

Slots are instants in µs UTC. Rules never change and know no present: every question names its time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from headway.base.errors import InvalidInputError
from headway.base.units import LONGEST, exact_duration
from headway.schedules.timing.cron import Counted, Cron, parse_cron

__all__ = ["Cron", "Every", "Once", "TimingRule", "parse_cron", "rule_of"]

SHORTEST = 1_000_000


class TimingRule(Protocol):
    def next_after(self, instant: int) -> int | None:
        """The first slot later than this instant; None when there is none any more."""

    def slots_until(self, after: int, until: int, most: int) -> Counted:
        """How many slots are later than `after` and not later than `until`, but at most `most`
        are counted; and of these the last but one, and the last."""


@dataclass(frozen=True)
class Every:
    """Every `period`, so that `anchor` is one of the slots, however clocks are set. The past has no
    end: a clock may go back behind the anchor, and then the slots go on from there. Since when one
    means these slots, the schedule knows."""

    period: int
    anchor: int

    def __post_init__(self) -> None:
        if not SHORTEST <= self.period <= LONGEST:
            raise InvalidInputError(
                f"every {exact_duration(self.period)} is not possible; "
                "an interval is at least 1s and at most a hundred years"
            )

    def next_after(self, instant: int) -> int:
        return self.anchor + (self._passed(instant) + 1) * self.period

    def slots_until(self, after: int, until: int, most: int) -> Counted:
        passed = self._passed(after)
        count = max(0, min(self._passed(until) - passed, most))
        last = self.anchor + (passed + count) * self.period
        return count, last - self.period if count > 1 else None, last if count else None

    def _passed(self, instant: int) -> int:
        return (instant - self.anchor) // self.period


@dataclass(frozen=True)
class Once:
    at: int

    def next_after(self, instant: int) -> int | None:
        return self.at if self.at > instant else None

    def slots_until(self, after: int, until: int, most: int) -> Counted:
        return (1, None, self.at) if after < self.at <= until and most > 0 else (0, None, None)


def rule_of(document: Mapping[str, Any]) -> TimingRule:
    """The rule that a document means: `{"cron", "timezone"}`, `{"every", "anchor"}` or `{"at"}`."""
    match document:
        case {"cron": str(text), **rest} if rest.keys() <= {"timezone"}:
            timezone = rest.get("timezone", "UTC")
            if isinstance(timezone, str):
                return parse_cron(text, timezone)
        case {"every": int(period), "anchor": int(anchor), **rest} if not rest:
            return Every(period, anchor)
        case {"at": int(at), **rest} if not rest:
            return Once(at)
    raise InvalidInputError(
        f"{dict(document)!r:.200} is not a rule; it has cron and timezone, every and anchor, or at"
    )
