"""A clock for tests: it stands still until it is advanced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.base.clock import SECOND

if TYPE_CHECKING:
    pass


NEW_YEAR = 1_767_225_600 * SECOND  # 2026-01-01T00:00Z: a test sees the same times each day


class FakeClock:
    """Starts at the given instant (µs UTC) and stands still until `advance`."""

    def __init__(self, start: int = NEW_YEAR) -> None:
        self._now = start
        self._monotonic = 1000.0
        self._slept = 0.0

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def since_boot(self) -> float:
        return self.monotonic() + self._slept

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._now += int(seconds * SECOND)
        self._monotonic += seconds

    def suspend(self, seconds: float) -> None:
        """As when the machine sleeps: it is later, and no process saw time pass."""
        self._now += int(seconds * SECOND)
        self._slept += seconds
