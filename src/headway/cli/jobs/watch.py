"""`headway jobs schedule --watch`: the summary, drawn in place while things change.

The store is read when somebody committed; the clock and the last line of output are looked at every
time. Leaving by `q`, by Ctrl-C or by a signal gives the terminal back as it was.
"""

from collections.abc import Callable

from rich.console import Console
from rich.live import Live

from headway.base.errors import StoreBusyError
from headway.cli.jobs.frame import Frame, Running, draw
from headway.cli.jobs.last_line import last_line
from headway.cli.keyboard import Keyboard, signals_end_it
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
    with signals_end_it(), Live(console=console, screen=True, auto_refresh=False) as live:
        keyboard = Keyboard(live.console)
        with keyboard.by_key(), keyboard.by_signal():
            while True:
                view.refresh()
                live.update(draw(view.frame(), console.size), refresh=True)
                if any(key in LEAVES for key in keyboard.pressed_within(interval)):
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
