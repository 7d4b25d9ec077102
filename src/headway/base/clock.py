"""The only reader of time. Everything else is handed an instant.

Instants are integers: microseconds since the epoch, UTC. Durations are microseconds too.
"""

import time
from typing import Protocol

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


class Clock(Protocol):
    def now(self) -> int:
        """The present instant, µs UTC."""

    def monotonic(self) -> float:
        """Seconds that never go back; for measuring waits inside one process."""

    def since_boot(self) -> float:
        """The same, but also counting while the machine sleeps: what a wall clock should show."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.monotonic()

    def since_boot(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
