"""A silent server: is it slow, or is it gone? Nobody waits for it without a bound.

A connection can be dead without an error: the server hangs, its host is stopped, or the network
drops all packets. The kernel notices only what it has to send again. So after a while without an
answer, the caller asks over another connection whether the server still works on the query. Only
then does it wait on.
"""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import psycopg

from headway.store.patience import Patience

LOOK_SECONDS = 0.1  # between two checks whether to wait on
LONGEST = 600.0  # for one answer, however busy the server says it is
LONGEST_UNSEEN = 30.0  # where nobody knows which of its processes that is, as behind a pooler

Made = TypeVar("Made")


class Silence:
    """From a question on, until an answer comes."""

    def __init__(self, patience: Patience, at_work: Callable[[], bool | None] | None) -> None:
        """`at_work` says whether the server is, or None if it lives and cannot know."""
        self._patience = patience
        self._at_work = at_work
        self._since = time.monotonic()
        self._ask_at = self._since + patience.answer

    def received(self) -> None:
        """Something was: it begins anew."""
        self._since = time.monotonic()
        self._ask_at = self._since + self._patience.answer

    def go_on(self) -> None:
        """No answer came: wait on, or raise."""
        now = time.monotonic()
        if self._patience.is_over:
            raise psycopg.OperationalError("it is not waited for any longer")
        if now < self._ask_at:
            return
        silent = now - self._since
        answer = self._at_work() if self._at_work is not None else False
        if answer is False or silent > (LONGEST if answer else LONGEST_UNSEEN):
            raise psycopg.OperationalError(f"it has not answered for {silent:.0f} s")
        self._ask_at = time.monotonic() + self._patience.answer


def in_time(make: Callable[[], Made], drop: Callable[[Made], None], patience: Patience) -> Made:
    """The result of `make`, run in a thread, if it comes in time; a late one is dropped. So a call
    that cannot be interrupted is waited for with a bound."""
    attempt = _Attempt(make, drop)
    threading.Thread(target=attempt.go, daemon=True).start()
    while not attempt.done.wait(LOOK_SECONDS):
        if patience.is_over and attempt.leave():
            raise psycopg.OperationalError("it is not waited for any longer")
    if attempt.failure is not None:
        raise attempt.failure
    return attempt.made.pop()


class _Attempt(Generic[Made]):
    def __init__(self, make: Callable[[], Made], drop: Callable[[Made], None]) -> None:
        self._make = make
        self._drop = drop
        self._deciding = threading.Lock()
        self._left = False
        self.done = threading.Event()
        self.made: list[Made] = []
        self.failure: BaseException | None = None

    def go(self) -> None:
        try:
            self.made.append(self._make())
        except BaseException as error:
            self.failure = error
        with self._deciding:
            self.done.set()
            left = self._left
        if left and self.made:
            self._drop(self.made.pop())

    def leave(self) -> bool:
        """Whether nobody takes it any more; False: it has just come."""
        with self._deciding:
            self._left = not self.done.is_set()
            return self._left
