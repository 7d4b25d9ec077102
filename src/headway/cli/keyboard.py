"""The keys and the signals of a terminal that is drawn on as a whole; afterwards it is as before.

Leaving by a key, by Ctrl-C or by a signal gives it back; so does Ctrl-Z, until the program goes on.
"""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, Protocol


class FullScreen(Protocol):
    """What draws on the terminal."""

    def set_alt_screen(self, enable: bool = True) -> bool: ...

    def show_cursor(self, show: bool = True) -> object: ...


class Keyboard:
    """The keys of the terminal, one by one and unseen, and the signals that are about it."""

    def __init__(self, screen: FullScreen) -> None:
        self._screen = screen
        self._fd = sys.stdin.fileno() if sys.stdin.isatty() else -1
        self._before: list[Any] = termios.tcgetattr(self._fd) if self._fd >= 0 else []
        self._signalled = -1
        self._was_away = False

    def discard(self) -> None:
        """Forget what was pressed and not read."""
        if self._fd >= 0:
            termios.tcflush(self._fd, termios.TCIFLUSH)

    def was_away(self) -> bool:
        """Whether the terminal was given away since this was asked last."""
        was, self._was_away = self._was_away, False
        return was

    def pressed_within(self, seconds: float) -> bytes:
        """What is pressed within this time; nothing if that is over, or the terminal has another
        size."""
        readable = [fd for fd in (self._fd, self._signalled) if fd >= 0]
        ready = select.select(readable, [], [], seconds)[0]
        if self._signalled in ready and signal.SIGTSTP in os.read(self._signalled, 256):
            self._stop()
        if self._fd not in ready:
            return b""
        pressed = os.read(self._fd, 256)
        if not pressed:
            self._fd = -1  # nobody will press anything any more
        return pressed

    @contextmanager
    def by_key(self) -> Iterator[None]:
        """Keys come at once and are not shown; afterwards the terminal is as it was."""
        self._listen()
        try:
            yield
        finally:
            self._restore()

    @contextmanager
    def by_signal(self) -> Iterator[None]:
        """Ctrl-Z and a new size are seen between two frames: a handler may come in the middle of
        a write, and must not write itself. The interpreter writes their numbers into a pipe at
        once; a handler of ours would run only after a wait that has just begun."""
        self._signalled, writing_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        woken = signal.set_wakeup_fd(writing_end, warn_on_full_buffer=False)
        noted = (signal.SIGTSTP, signal.SIGWINCH)
        before = {each: signal.signal(each, lambda *_: None) for each in noted}
        try:
            yield
        finally:
            signal.set_wakeup_fd(woken)
            for each, was in before.items():
                signal.signal(each, was)
            os.close(writing_end)
            os.close(self._signalled)

    def _stop(self) -> None:
        """Give the terminal to the shell and, when continued, take it again."""
        self._screen.set_alt_screen(False)
        self._screen.show_cursor(True)
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._was_away = True
        self._listen()
        self._screen.set_alt_screen(True)
        self._screen.show_cursor(False)

    def _listen(self) -> None:
        if self._fd >= 0:
            tty.setcbreak(self._fd, termios.TCSANOW)

    def _restore(self) -> None:
        if self._before:
            with suppress(termios.error):  # it may be closed
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._before)


@contextmanager
def signals_end_it() -> Iterator[None]:
    """A signal that would end us at once ends us in good order."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
