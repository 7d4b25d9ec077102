"""The part of a step that starts jobs. It is the last to decide, and the first to act.

A claim is committed before its process is started. A crash in between leaves a claim without a
start record, which recovery undoes.
"""

from headway.base.clock import SECOND
from headway.core.model import Claim, WaitKind
from headway.core.plan import Batch
from headway.jobs.facts import next_pass, spacing
from headway.jobs.part import Part
from headway.jobs.routes import ENDS_CAME, UNSETTLED_RUNS
from headway.jobs.settings import store_setting
from headway.store.transaction import ReadTx, WriteTx
from headway.worker.attempts import do_all
from headway.worker.tools import Tools

SWEEP_EVERY = 10.0
LOOK_AGAIN = 1.0
STRAINED_AGAIN = 3.0
MOST_UNANSWERED = 500  # launches that the parent may owe an answer for


class DispatchPart(Part):
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._planner = tools.planner
        self._launches = tools.launches
        self._next_sweep = self._before = tools.clock.monotonic() + SWEEP_EVERY
        self._claims: tuple[Claim, ...] = ()  # to be launched
        self._delay: float | None = None

    def take_in(self) -> None:
        self._claims, self._before = (), self._next_sweep
        self._planner.begin()
        self._tools.has_duties |= self._tools.now >= self._next_sweep

    def step(self, tx: WriteTx) -> None:
        tools = self._tools
        tools.cancelling = tx.claims.cancelling() if tools.is_busy() else set()
        limit = self._limit(tx)
        tools.planned = tools.dispatching and limit != 0 and self._parent_is_there(tx)
        if tools.planned:
            step = self._planner.step(tx, limit=limit)
            self._claims = step.started
            tools.started = [claim.job_id for claim in step.started]
            tools.more |= self._sweep(tx) or step.more
        tools.served = set(self._planner.served)
        self._delay = self._until(tx)

    def undo(self) -> None:
        self._planner.undo()
        self._next_sweep = self._before

    def committed(self) -> None:
        claims, self._claims = self._claims, ()
        tools = self._tools
        do_all(
            (
                lambda: tools.pool.send([each for each in claims if each.function_host]),
                lambda: self._launches.launch([each for each in claims if not each.function_host]),
                lambda: tools.ends.judge(self._planner.restored),
            )
        )

    def delay(self) -> float | None:
        return self._delay

    def _limit(self, tx: ReadTx) -> int | Batch | None:
        """With a spawn delay a worker makes one pass per delay; else all that there are."""
        if self._tools.limit is not None:
            return self._tools.limit
        if not spacing(tx):
            return max(0, MOST_UNANSWERED - self._launches.unanswered())
        most = int(store_setting(tx.settings.all(), "scheduler.batch_size"))
        return Batch(most, most)

    def _parent_is_there(self, tx: WriteTx) -> bool:
        """Without a parent nothing can be started, which is the host's trouble and no job's."""
        trouble = self._launches.parent_trouble
        if trouble is not None and tx.hosts.trouble(self._tools.host.id) is None:
            self._tools.settler.host_failed(tx, WaitKind.PRESSURE, trouble)
        return trouble is None

    def _sweep(self, tx: WriteTx) -> bool:
        if self._tools.now < self._next_sweep:
            return False
        self._next_sweep = self._tools.now + SWEEP_EVERY
        return bool(self._planner.sweep(tx, tx.now() - int(SWEEP_EVERY * SECOND)))

    def _until(self, tx: ReadTx) -> float | None:
        """The seconds until time itself may let a job start; 0 if this step left work to the next:
        what it ended may end a run, and a claim that it found again is judged after it."""
        if tx.settings.marks()[UNSETTLED_RUNS] == ENDS_CAME or self._planner.restored:
            return 0.0
        times: list[float] = []
        instants: list[int | None] = []
        trouble = tx.hosts.trouble(self._tools.host.id)
        if trouble is not None:
            instants.append(trouble.probe_at if trouble.probe_at > tx.now() else None)
            times.append(LOOK_AGAIN)
        if self._tools.planned:
            instants += [tx.waits.next_wake(), self._planner.look_again_at, next_pass(tx)]
            if tx.jobs.anything_active():
                times.append(max(0.0, self._next_sweep - self._tools.now))
                if self._planner.strained:
                    times.append(STRAINED_AGAIN)
        times += [max(0, each - tx.now()) / SECOND for each in instants if each is not None]
        return min(times, default=None)
