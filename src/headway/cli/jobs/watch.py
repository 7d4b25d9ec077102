"""`headway jobs schedule --watch`: the summary, drawn in place while things change.

The store is read when somebody committed; the clock and the last line of output are looked at every
time. Leaving by `q`, by Ctrl-C or by a signal gives the terminal back as it was.
"""

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from rich.console import Console
from rich.live import Live

from headway.base.errors import StoreBusyError
from headway.cli.jobs.frame import Frame, Running, draw
from headway.cli.jobs.last_line import last_line
from headway.cli.render import colourful
from headway.client import Client
from headway.core.model import Job, JobId
from headway.jobs.views.graph.loader import RECENT, count_buckets, load_schedule, recent_failures
from headway.jobs.views.graph.model import GraphSchedule, Node, count_rows

LEAVES = b"qQ"


def watch_schedule(
    connect: Callable[[], Client],
    *,
    everything: bool,
    focus: JobId | None,
    top: int,
    interval: float,
) -> int:
    """Draw until somebody leaves; the exit code."""
    view = WatchedView(
        connect(), connect, everything=everything, focus=focus, top=top, interval=interval
    )
    view.refresh()  # what cannot be shown is said before the screen is taken
    console = Console(highlight=False, markup=False, emoji=False, no_color=not colourful())
    with _signals_end_it(), Live(console=console, screen=True, auto_refresh=False) as live:
        keyboard = Keyboard(live)
        with keyboard.by_key(), keyboard.by_signal():
            while True:
                view.refresh()
                live.update(draw(view.frame(), console.size), refresh=True)
                if keyboard.leaves_within(interval):
                    return 0


class WatchedView:
    """What the watch knows, read anew only if something changed."""

    def __init__(
        self,
        client: Client,
        connect: Callable[[], Client] | None = None,
        *,
        everything: bool,
        focus: JobId | None,
        top: int,
        interval: float,
    ) -> None:
        self._client = client
        self._connect = connect
        self._everything = everything
        self._focus = focus
        self._top = top
        self._interval = interval
        self._seen: int | None = None
        self._schedule: GraphSchedule
        self._counts: dict[str, int] = {}
        self._failures: list[Job] = []
        self._trouble: str | None = None
        self._started: dict[JobId, Running] = {}

    def refresh(self) -> bool:
        """Read the store if somebody committed since; False if that was not needed."""
        try:
            if self._connect is not None and self._client.context.was_empty_and_is_not():
                self._client, self._seen = self._connect(), None
            seen = self._client.context.changes()
            if seen == self._seen:
                return False
            self._read()
            self._seen, self._trouble = seen, None
        except StoreBusyError as error:
            if self._seen is None:
                raise
            self._trouble = str(error)
        return True

    def _read(self) -> None:
        self._started.clear()
        focused = self._focus is not None
        loaded = load_schedule(
            self._client.context,
            everything=self._everything,
            focus=self._focus,
            top=None if focused else self._top,
        )
        self._counts = count_rows(loaded) if focused else count_buckets(self._client.context)
        self._schedule = loaded.first(self._top) if focused else loaded
        self._failures = recent_failures(self._client.context, self._focus)

    def frame(self) -> Frame:
        now = self._client.context.now()
        return Frame(
            now=now,
            interval=self._interval,
            counts=self._counts,
            schedule=self._schedule,
            running=self._running,
            worker=self._client.context.worker_is_there(),
            trouble=self._trouble,
            failures=[job for job in self._failures if (job.finished_at or 0) >= now - RECENT],
        )

    def _running(self, node: Node) -> Running:
        """What the pane tells. Where and since when it runs changes only with the store."""
        if node.id not in self._started:
            started = Running(started_at=self._client.job(node.id).started_at)
            there = self._client.jobs.ran_elsewhere(node.id)
            self._started[node.id] = started._replace(host=there.host) if there else started
        known = self._started[node.id]
        if known.host is not None:
            return known
        return known._replace(line=last_line(self._client.context.home.job(node.id)))


class Keyboard:
    """The keys of the terminal, one by one and unseen, and the signals that are about it."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._fd = sys.stdin.fileno() if sys.stdin.isatty() else -1
        self._before: list[Any] = termios.tcgetattr(self._fd) if self._fd >= 0 else []
        self._signalled = -1

    def leaves_within(self, seconds: float) -> bool:
        """Wait so long, or until the terminal has another size; True if someone wants to leave."""
        readable = [fd for fd in (self._fd, self._signalled) if fd >= 0]
        ready = select.select(readable, [], [], seconds)[0]
        if self._signalled in ready and signal.SIGTSTP in os.read(self._signalled, 256):
            self._stop()
        if self._fd not in ready:
            return False
        pressed = os.read(self._fd, 256)
        if not pressed:
            self._fd = -1  # nobody will press anything any more
        return any(key in LEAVES for key in pressed)

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
        console = self._live.console
        console.set_alt_screen(False)
        console.show_cursor(True)
        self._restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._listen()
        console.set_alt_screen(True)
        console.show_cursor(False)

    def _listen(self) -> None:
        if self._fd >= 0:
            tty.setcbreak(self._fd, termios.TCSANOW)

    def _restore(self) -> None:
        if self._before:
            with suppress(termios.error):  # it may be closed
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._before)


@contextmanager
def _signals_end_it() -> Iterator[None]:
    """A signal that would end us at once ends us in good order."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
