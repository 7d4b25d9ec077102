"""The function that runs here as a job, if one does, and the exceptions by which it ends its job.

`functions.current` has what a function may ask about its job; this is what every room may know.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Token

    from headway.base.units import Duration


class RunningFunction(Protocol):
    """A function that runs as a job."""

    job_id: int
    token: str

    def waits(self, waiting: bool, /) -> None:
        """It waits for another job: its host may call another function meanwhile."""


class Skip(Exception):  # noqa: N818  it is no error
    """Raised by a function that has nothing to do: its job ends as skipped."""


class Retry(Exception):  # noqa: N818
    """Raised by a function that asks to be called again: the chain's next job, after a while."""

    after = 0  # microseconds

    def __init__(self, reason: str = "", *, after: Duration = 0) -> None:
        from headway.base.units import read_duration

        super().__init__(reason)
        self.after = read_duration(after, "after")


def wait_before(asked: Retry) -> int:
    """The next try, in microseconds; a class of the user's own may have set anything."""
    from headway.base.units import LONGEST

    return max(0, min(int(asked.after), LONGEST))


_inside: ContextVar[RunningFunction | None] = ContextVar("headway_current", default=None)


def inside() -> RunningFunction | None:
    """The function that the caller is part of, if it runs as a job."""
    return _inside.get()


def become(job: RunningFunction | None) -> Token[RunningFunction | None]:
    """Enter a job's context; `leave` takes what this returns."""
    return _inside.set(job)


def leave(before: Token[RunningFunction | None]) -> None:
    _inside.reset(before)
