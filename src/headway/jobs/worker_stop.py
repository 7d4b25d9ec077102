"""End the background worker of a home, as its signal does: jobs that run go on without it.

A worker in the foreground belongs to whoever started it, or to the system's service, and is left
alone.
"""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from headway.base.clock import SECOND
from headway.base.errors import ConflictError, TimedOutError
from headway.base.worker_lock import COMING, START, STAYS, WorkerLock
from headway.core.model import JobId
from headway.core.states import Status
from headway.jobs.context import Context

COMES_UP_WITHIN = 10.0
LEAVES_AFTER_GRACE = 10.0
_POLL_SECONDS = 0.02


class StoppedWorker(NamedTuple):
    """The worker that has ended, and what it left."""

    pid: int
    running: tuple[JobId, ...]
    queued: int


def stop_worker(context: Context) -> StoppedWorker | None:
    """End the background worker and wait until it has gone; None if no worker is there."""
    lock = WorkerLock(context.home.worker_lock)
    _wait(context, lambda: not lock.is_held(COMING) or lock.is_held(STAYS), COMES_UP_WITHIN)
    if not lock.is_held(START, 3):
        return None
    pid = lock.read_pid()
    if lock.is_held(STAYS):  # else it is leaving already
        # It is recorded before it has come up: until then nobody knows what sort it is.
        _wait(context, lambda: not lock.is_held(COMING), COMES_UP_WITHIN)
        pid = _background_pid(context, pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    within = context.config.micros("worker.grace") / SECOND + LEAVES_AFTER_GRACE
    if not _wait(context, lambda: not lock.is_held(START), within):
        raise TimedOutError(
            f"the worker (pid {pid}) was asked to end and is still there; "
            f"{context.home.worker_log} may say why"
        )
    return StoppedWorker(pid or 0, *_what_is_left(context))


def _background_pid(context: Context, pid: int | None) -> int:
    """The worker's process, if it is one in the background."""
    with context.store.read() as tx:
        newest = tx.hosts.recent_workers(context.host.id, 1)
    if not newest or newest[0].pid != pid or newest[0].mode != "background":
        raise ConflictError(
            f"the worker (pid {pid}) is not one in the background; end it with Ctrl-C where it "
            "runs, or with `headway service remove` if the system keeps it"
        )
    return newest[0].pid


def _what_is_left(context: Context) -> tuple[tuple[JobId, ...], int]:
    with context.store.read() as tx:
        running = tuple(sorted(tx.claims.slots().running))
        counts = tx.jobs.count_active()
    return running, sum(count for status, count in counts.items() if status is not Status.RUNNING)


def _wait(context: Context, condition: Callable[[], bool], seconds: float) -> bool:
    give_up_at = context.clock.monotonic() + seconds
    while not condition():
        if context.clock.monotonic() >= give_up_at:
            return False
        context.clock.sleep(_POLL_SECONDS)
    return True
