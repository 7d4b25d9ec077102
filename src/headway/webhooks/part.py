"""A part of the worker's step: it starts a courier when there is work for one.

The worker itself makes no body and sends nothing. Each step knows the marks of the store, and one
of them says that nobody wants any message. Otherwise a step asks one question, but not while a
courier lives.
"""

import os
import signal
import sys

from headway.base.clock import SECOND
from headway.base.crashpoints import reach
from headway.core.webhooks import CURSOR, DID_NOTHING, NOBODY, STAYS_FOR, WAITS_AT_MOST, Endpoint
from headway.jobs.part import Part, StepContext
from headway.store.tables.webhooks import endpoint_of
from headway.store.transaction import ReadTx, WriteTx

SHORT_LIFE = 5.0  # seconds; something is wrong with one that ends sooner
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0


class WebhooksPart(Part):
    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._process: CourierProcess | None = None
        self._pause = 0.0
        self._next_start = 0.0
        self._wanted = False
        self._delay: float | None = None

    @property
    def courier(self) -> int | None:
        """The process, if one lives."""
        return self._process.pid if self._process is not None else None

    def take_in(self) -> None:
        process = self._process
        if process is None or not process.has_ended():
            return
        self._process = None
        lived = self._context.clock.monotonic() - process.started_at
        useless = process.status == DID_NOTHING or lived < SHORT_LIFE
        self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * self._pause)) if useless else 0.0
        self._next_start = self._context.clock.monotonic() + self._pause

    def step(self, tx: WriteTx) -> None:
        self._wanted, self._delay = False, None
        cursor = tx.settings.marks()[CURSOR]
        if cursor == NOBODY or self._process is not None or not self._context.dispatching:
            return
        due_at = next_due(tx, cursor)
        if due_at is None:
            return
        left = (due_at - tx.now()) / SECOND
        paused = self._next_start - self._context.now
        self._delay = max(0.0, left, paused)
        self._wanted = self._delay == 0.0

    def committed(self) -> None:
        if self._wanted:
            self._delay = None
            self.start()

    def start(self) -> None:
        """Start a courier; what goes wrong with that holds up nobody."""
        context = self._context
        try:
            self._process = CourierProcess(context)
        except OSError as error:
            context.say(f"no courier could be started: {error.strerror or error}")
            self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * self._pause))
            self._next_start = context.clock.monotonic() + self._pause
            self._delay = self._pause

    def delay(self) -> float | None:
        return self._delay

    def needs_worker(self, tx: ReadTx, idle: float) -> bool:
        """Whether a worker that was idle for so many seconds must stay: something is to be sent
        within as long again, or within the pauses of the usual schedule. So a delivery comes to its
        end although nobody submits anything else."""
        cursor = tx.settings.marks()[CURSOR]
        due_at = None if cursor == NOBODY else next_due(tx, cursor)
        return due_at is not None and due_at <= tx.now() + max(int(idle * SECOND), STAYS_FOR)

    def close(self) -> None:
        """A courier that lives ends by itself, soon."""
        if self._process is not None:
            self._process.close()
            self._process = None


def next_due(tx: ReadTx, cursor: int) -> int | None:
    """When there is work for a courier; None: not before something happens."""
    if tx.events.last() > cursor:
        return 0
    receivers = tx.webhooks.receivers()
    endpoints = tx.webhooks.endpoints() if receivers else {}
    times = (
        _due(endpoints.get(endpoint_of(receiver)), due_at) for receiver, due_at in receivers.items()
    )
    return min((each for each in times if each is not None), default=None)


def _due(endpoint: Endpoint | None, due_at: int) -> int | None:
    """When a courier is needed: when it may send, or when what waits has waited too long because
    the endpoint is held or no host has its secret. That fails then, even if nothing else happens. A
    courier makes the secret of jobs."""
    if endpoint is None:
        return None
    if endpoint.send_at is None or (endpoint.fingerprint and not endpoint.holders):
        return due_at + WAITS_AT_MOST + 1
    return max(due_at, endpoint.send_at)


class CourierProcess:
    """A courier of this worker. It leaves when the line to it is closed, by hand or by our end."""

    def __init__(self, context: StepContext) -> None:
        self.started_at = context.clock.monotonic()
        self.status: int | None = None
        theirs, self._line = os.pipe2(os.O_CLOEXEC)
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-P", "-m", "headway.webhooks.courier", context.home.path],
                _environment(context),
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 0)],
                setsid=True,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
                setsigmask=[],
            )
        except BaseException:
            os.close(self._line)
            raise
        finally:
            os.close(theirs)
        reach("courier.started")
        self._watching = context.watchlist.watch(os.pidfd_open(self.pid), lambda: None)

    def has_ended(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid == 0:
                return False
            self.status = os.waitstatus_to_exitcode(status)
            self.close()
        return True

    def close(self) -> None:
        if self._line >= 0:
            os.close(self._line)
            self._line = -1
            self._watching.close()


def _environment(context: StepContext) -> dict[str, str]:
    store = {"HEADWAY_STORE": context.home.store_url} if context.home.store_url else {}
    return {**os.environ, **store}
