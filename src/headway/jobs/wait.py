"""Wait for a job to end, follow its output, and lend what the waiter holds meanwhile.

A process inside a running job that waits for another job of the same store lends its slot to that
job's chain and to all that it waits for; otherwise a cap of one would wait for itself. The lending
is a row that must be renewed, so it ends with its process. If the awaited jobs need a lock that the
waiter holds, waiting would never end, so it fails with that reason. A direct call that waits for a
job lends its slot in the same way. docs/protocols.md, section 13.
"""

import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from headway.base.clock import SECOND
from headway.base.current import RunningFunction
from headway.base.errors import TimedOutError, WaitDeadlockError
from headway.core.model import Job, JobId, Lock, shown
from headway.core.states import TERMINAL, Status
from headway.jobs.context import Context
from headway.jobs.facts import awaited_set
from headway.jobs.lookup import find_job, last_of_chain
from headway.jobs.references import parse_job_id
from headway.store.records import Lending
from headway.store.transaction import ReadTx, WriteTx

LENT_FOR = 15 * SECOND
RENEW_EVERY = 5.0
STEP_WITHIN = 2.0
LOOK_FOR_WORKER = 2.0
FASTEST_POLL = 0.01
SLOWEST_POLL = 0.1
_LOOK_AGAIN = 0.02

# The token of the reservation that the calling code runs in; in other processes the environment
# tells it.
HOLDING: ContextVar[str | None] = ContextVar("headway_holding", default=None)
RESERVATION = "HEADWAY_RESERVATION"


# The home of a test in which nobody starts a worker, as the fixture `headway_home` makes it.
TEST_HOME = "HEADWAY_TEST_HOME"


def refuse_endless_wait(context: Context) -> None:
    """Raise where nobody will ever bring what is waited for: in a test, without a worker."""
    home = os.environ.get(TEST_HOME)
    if home is None or os.path.realpath(home) != os.path.realpath(context.home.path):
        return
    if getattr(context.clock, "runs_jobs", False) or context.worker_is_there():
        return
    raise TimedOutError(
        "no worker is there, and none is started in the home of a test, so it would be waited for "
        "without end; call headway.testing.drain(app) before, or give the app a home with "
        "headway.testing.using; commands need a worker: headway work"
    )


class Waiter:
    """Watches one chain, or one job of it, until it ends."""

    def __init__(
        self,
        context: Context,
        job_id: JobId,
        *,
        this_only: bool = False,
        inside: "RunningFunction | None" = None,
    ) -> None:
        """`inside` is the function that waits, for what else its waiting lends."""
        self._context = context
        self._inside = inside
        self._job_id = job_id
        self._this_only = this_only
        self._poll = FASTEST_POLL
        self._timed = False
        self._seen = context.changes()
        self.job = self._look()

    def _look(self) -> Job:
        if self._this_only:
            return find_job(self._context, self._job_id)
        return last_of_chain(self._context, self._job_id)

    @property
    def ended(self) -> bool:
        return self.job.status in TERMINAL

    def pause(self) -> bool:
        """Wait a little; True if the store changed, in which case `job` was read again."""
        if not self._timed:
            refuse_endless_wait(self._context)
        self._context.clock.sleep(self._poll)
        self._poll = min(SLOWEST_POLL, self._poll * 1.2)
        changes = self._context.changes()
        if changes == self._seen:
            return False
        self._seen = changes
        self.job = self._look()
        return True

    def until_ended(
        self,
        *,
        timeout: float | None = None,
        wonder: Callable[[Job], None] | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Job:
        """Wait for its end. `wonder` is called once if it has not been started after a while, and
        `meanwhile` before each pause."""
        clock = self._context.clock
        deadline = None if timeout is None else clock.monotonic() + timeout
        self._timed = deadline is not None
        look_at = clock.monotonic() + LOOK_FOR_WORKER
        with lending(self._context, self.job, self._inside) as renew:
            while not self.ended:
                now = clock.monotonic()
                if deadline is not None and now >= deadline:
                    raise TimedOutError(f"{shown(self.job.id)} is still {self.job.status}")
                if now >= look_at:  # one that died since is replaced
                    look_at = now + LOOK_FOR_WORKER
                    if not self._context.worker_is_there():
                        self._context.wake()
                    if wonder is not None and self.job.status is not Status.RUNNING:
                        wonder(self.job)
                        wonder = None
                renew()
                if meanwhile is not None:
                    meanwhile()
                self.pause()
        return self.job


@contextmanager
def lending(
    context: Context, awaited: Job, inside: RunningFunction | None = None
) -> Iterator["Renewal"]:
    """Lend what the surrounding job holds, if there is one, until the block ends."""
    renewal = Renewal(context, awaited, inside)
    renewal()
    if inside is not None:
        inside.waits(True)
    try:
        yield renewal
    finally:
        if inside is not None:
            inside.waits(False)
        renewal.end()


class Renewal:
    """Called often; renews the loan when it is time and checks for a deadlock."""

    def __init__(
        self, context: Context, awaited: Job, inside: RunningFunction | None = None
    ) -> None:
        self._context = context
        self._chain = awaited.chain
        self._waiter = surrounding(context, inside)
        self._token = os.urandom(16).hex()
        self._next = 0.0

    def __call__(self) -> None:
        now = self._context.clock.monotonic()
        if self._waiter is None or now < self._next:
            return
        first = self._next == 0.0
        self._next = now + RENEW_EVERY
        waiter = self._waiter

        def lend(tx: WriteTx) -> None:
            refuse_deadlock(tx, waiter, self._chain)
            tx.claims.lend(self._token, Lending(waiter, self._chain, tx.now() + LENT_FOR))
            if first:
                tx.waits.wake_chains(awaited_set(tx, self._chain))

        self._context.store.transact(lend)
        if first:
            self._context.wake()

    def end(self) -> None:
        if self._waiter is not None:
            self._context.store.transact(lambda tx: tx.claims.end_lending(self._token))
            self._context.wake()


def surrounding(context: Context, inside: RunningFunction | None) -> JobId | None:
    """The holder of the slot that this code runs in: the direct call that it is part of, which is
    always inside of any job, or the running job, or none."""
    call = _surrounding_call(context)
    return call if call is not None else making_job(context, inside)


def _surrounding_call(context: Context) -> JobId | None:
    token = HOLDING.get() or context.environ.get(RESERVATION)
    if token is None:
        return None
    with context.store.read() as tx:
        held = tx.reservations.by_token(token)
    return held.occupant if held is not None and not held.waits else None


def making_job(context: Context, inside: RunningFunction | None) -> JobId | None:
    """The running job that this code is part of: the given function's, or the surrounding one."""
    if inside is not None:
        return _running_as(context, inside.job_id, inside.token)
    return surrounding_job(context)


def surrounding_job(context: Context) -> JobId | None:
    """The running job of this store that this process is part of."""
    environ = context.environ
    if environ.get("HEADWAY_HOME") != context.home.path or "HEADWAY_CLAIM" not in environ:
        return None
    if "HEADWAY_JOB_ID" not in environ:
        return None  # a function host is of no single job
    return _running_as(context, parse_job_id(environ["HEADWAY_JOB_ID"]), environ["HEADWAY_CLAIM"])


def _running_as(context: Context, job_id: JobId, token: str) -> JobId | None:
    with context.store.read() as tx:
        claim = tx.claims.of_job(job_id)
    return job_id if claim is not None and claim.token == token else None


def refuse_deadlock(tx: ReadTx, waiter: JobId, chain: JobId) -> None:
    """Raise if waiting would never end: the awaited set contains the waiter, or one that waits for
    it, or needs a lock that one of them holds."""
    waiting = tx.jobs.running(_those_who_wait(tx, waiter))
    awaited = awaited_set(tx, chain)
    for job in waiting.values():
        if job.chain in awaited:
            raise WaitDeadlockError(f"{shown(chain)} waits for {shown(job.id)}, which waits for it")
    held: dict[str, list[tuple[JobId, Lock]]] = {}
    for job in waiting.values():
        for lock in job.locks:
            held.setdefault(lock.key, []).append((job.id, lock))
    if held:
        for each in awaited:
            _refuse_needed_lock(tx.jobs.last_in_chain(each), held)


def _refuse_needed_lock(job: Job | None, held: Mapping[str, list[tuple[JobId, Lock]]]) -> None:
    if job is None or job.status is Status.RUNNING or job.status in TERMINAL:
        return
    for lock in job.locks:
        for holder, other in held.get(lock.key, ()):
            if lock.conflicts_with(other.mode):
                raise WaitDeadlockError(
                    f"{shown(job.id)} needs lock {lock.key}, which {shown(holder)} holds "
                    f"while it waits for it; submit it without --lock {lock.key}"
                )


def _those_who_wait(tx: ReadTx, waiter: JobId) -> list[JobId]:
    """The waiter, and every running job that waits for it, directly or not."""
    lendings = tx.claims.lendings()
    makers = {each.occupant: each.inside for each in tx.reservations.all()}
    found = [waiter]
    for each in found:
        chains = {job.chain for job in tx.jobs.by_id([each]).values()}
        more = [makers.get(each), *(loan.job_id for loan in lendings if loan.chain in chains)]
        found += dict.fromkeys(one for one in more if one is not None and one not in found)
    return found


def await_step(context: Context) -> bool:
    """Wait up to 2 s until the worker's step has passed what was committed before this call, also
    for a worker that is just coming up; False if none has."""
    from headway.base.worker_lock import COMING, WorkerLock

    give_up_at = context.clock.monotonic() + STEP_WITHIN
    coming = WorkerLock(context.home.worker_lock)
    while not (stepped := _asked_for_step(context)) and context.clock.monotonic() < give_up_at:
        if not context.worker_is_there():
            break
        if coming.is_held(COMING):
            context.clock.sleep(_LOOK_AGAIN)
    return stepped


def _asked_for_step(context: Context) -> bool:
    """The answer of the worker that is there; False if none is, or it takes too long."""
    folder = os.open(context.home.run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asker:
            asker.bind("")  # an address of the kernel's choosing, gone with the socket
            asker.settimeout(STEP_WITHIN)
            name = os.path.basename(context.home.worker_socket)
            asker.sendto(b"step", f"/proc/self/fd/{folder}/{name}")
            return asker.recv(16) == b"stepped"
    except OSError:
        return False
    finally:
        os.close(folder)


def exit_code_of(job: Job, exit_code: int | None, signal_name: str | None) -> int:
    """The exit code of `exec` and `jobs wait`: the job's own, or what stands for its end."""
    match job.status:
        case Status.SUCCEEDED | Status.SKIPPED:
            return 0
        case Status.CANCELLED:
            return 143
        case Status.BLOCKED_BY_DEPENDENCY | Status.BLOCKED_BY_APPROVAL:
            return 10
    if exit_code is not None:
        return exit_code
    if signal_name is not None:
        return 128 + signal.Signals[signal_name]
    return 1
