"""What a function may ask about the job it runs as."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from headway.errors import InvalidInputError, NotFoundError
from headway.functions.journal import line
from headway.hints import json_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.units import Duration

LONGEST_TEXT = 500


def storable(text: str) -> str:
    """The text with escapes for what no store keeps as text: NUL, and halves of characters."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


class Skip(Exception):  # noqa: N818  it is no error
    """Raised by a function that has nothing to do: its job ends as skipped."""


class Retry(Exception):  # noqa: N818
    """Raised by a function that asks to be called again: the chain's next job, after a while."""

    after = 0  # microseconds

    def __init__(self, reason: str = "", *, after: Duration = 0) -> None:
        from headway.units import read_duration

        super().__init__(reason)
        self.after = read_duration(after, "after")


def wait_before(asked: Retry) -> int:
    """The next try, in microseconds; a class of the user's own may have set anything."""
    from headway.units import LONGEST

    return max(0, min(int(asked.after), LONGEST))


class Current:
    """The job that the calling function is. Of use only while it runs."""

    cancel: Callable[[], None] | None = None  # of an async function
    ended = False  # what threads and coroutines that it left behind print is no part of its log
    _cancelled = False
    _log: logging.Logger | None = None

    def __init__(
        self,
        job_id: int,
        attempt: int,
        token: str,
        add: Callable[[str], None],
        waits: Callable[[bool], None] = lambda waiting: None,
    ) -> None:
        self.job_id = job_id
        self.attempt = attempt
        self.token = token
        self._add = add
        self.waits = waits  # its host may call another function meanwhile

    @property
    def id(self) -> str:
        return f"job-{self.job_id}"

    @property
    def log(self) -> logging.Logger:
        """A logger whose lines go to the job's own stderr."""
        if self._log is None:
            self._log = logging.Logger(self.id)
            handler = logging.StreamHandler()  # stderr, which belongs to the job
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
            self._log.addHandler(handler)
        return self._log

    def progress(self, fraction: float, text: str = "") -> None:
        """Tell those who watch how far it has come, from 0 to 1."""
        if not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
            raise InvalidInputError(f"progress {fraction!r} is not a number from 0 to 1")
        problem = json_value(text, "")
        if problem or not isinstance(text, str):
            raise InvalidInputError(f"progress: the text {problem or 'is not a str'}")
        self._add(line("p", self.token, [round(fraction, 4), storable(text[:LONGEST_TEXT])]))

    def cancelled(self) -> bool:
        """Whether someone asked for this job's end; it is ended by force after its grace."""
        return self._cancelled

    def ask_to_end(self) -> None:
        """From the host: the job was cancelled."""
        self._cancelled = True
        if self.cancel is not None:
            self.cancel()


_current: ContextVar[Current | None] = ContextVar("headway_current", default=None)


def current() -> Current:
    """The job that this function runs as."""
    found = _current.get()
    if found is None:
        raise NotFoundError(
            "this function does not run as a job; current() is for tasks, not for threads "
            "that they start"
        )
    return found


def present() -> Current | None:
    return _current.get()


def become(job: Current | None) -> Any:
    """Enter a job's context; `leave` takes what this returns."""
    return _current.set(job)


def leave(before: Any) -> None:
    _current.reset(before)
