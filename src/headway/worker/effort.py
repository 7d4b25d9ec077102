"""Work that a worker tries again and again. An error is reported and never ends the worker.

This is the one place where an error of a worker's own work ends. It cannot be known which errors
there are: a lost connection, a full disk, a mistake of ours. After each the same holds: what was
half done is undone, nothing is lost, and it is tried again after a pause that grows. Only a store
that must not be touched any more ends the worker.
"""

import traceback
from collections.abc import Callable

from headway.base.clock import Clock
from headway.base.errors import (
    HeadwayError,
    SchemaTooNewError,
    StoreBusyError,
    StoreCorruptError,
    StoreFailedError,
    StoreReplacedError,
)

# A file that is damaged, exchanged, or that the disk may have lost parts of; or another's format.
LEAVES = (StoreCorruptError, StoreReplacedError, StoreFailedError, SchemaTooNewError)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
# A server that is away, or a writer that holds the lock, is gone soon; and jobs wait for us.
FIRST_MOMENT, LONGEST_MOMENT = 0.1, 2.0
SOONEST = 1.0  # before that not even news is a reason to try again

Say = Callable[[str], None]


class Effort:
    """One of these, with what stands in its way."""

    def __init__(
        self, name: str, clock: Clock, say: Say, *, forgives: type[Exception] = Exception
    ) -> None:
        self.name = name
        self._forgives = forgives
        self.failures = 0  # in a row
        self.error: str | None = None  # the last of them
        self.since = 0  # by the clock on the wall
        self.again_at = 0.0
        self._failed_at = 0.0
        self._clock = clock
        self._say = say

    def make(self, work: Callable[[], object]) -> bool:
        """Whether it could be done now."""
        try:
            work()
        except LEAVES:
            raise
        except self._forgives as error:
            self._failed(error)
            return False
        if self.failures:
            self.failures, self.error, self.again_at = 0, None, 0.0
            self._say(f"can {self.name} again")
        return True

    def may_be_made(self, now: float, *, news: bool = False) -> bool:
        """Whether the pause is over; by `news` it is cut short."""
        return now >= (self._soonest if news else self.again_at)

    def pause(self, now: float, *, news: bool = False) -> float:
        """How much of it is left."""
        return max(0.0, (self._soonest if news else self.again_at) - now)

    @property
    def _soonest(self) -> float:
        return min(self.again_at, self._failed_at + SOONEST)

    def _failed(self, error: Exception) -> None:
        text = f"{type(error).__name__}: {error}" if _is_odd(error) else str(error)
        first, longest = FIRST_PAUSE, LONGEST_PAUSE
        if isinstance(error, StoreBusyError):
            first, longest = FIRST_MOMENT, LONGEST_MOMENT
        self._failed_at = self._clock.monotonic()
        self.again_at = self._failed_at + min(longest, first * 2 ** min(self.failures, 10))
        if not self.failures:
            self.since = self._clock.now()
        self.failures += 1
        if text != self.error:
            self._say(f"cannot {self.name}: {text}; running jobs go on, it is tried again")
            if _is_odd(error):
                self._say("".join(traceback.format_exception(error)).rstrip())
        self.error = text


def _is_odd(error: Exception) -> bool:
    """An error that was not foreseen is reported with its traceback."""
    return not isinstance(error, HeadwayError | OSError)
