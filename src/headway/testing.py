"""For tests: a clock that moves only when told to."""

from headway.clock import SECOND


class FakeClock:
    """Starts at the given instant (µs UTC) and stands still until `advance`."""

    def __init__(self, start: int) -> None:
        self._now = start
        self._monotonic = 1000.0

    def now(self) -> int:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        self._now += int(seconds * SECOND)
        self._monotonic += seconds
