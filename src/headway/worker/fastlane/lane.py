"""The fast lane as the worker's step uses it: what it claims, settles, remembers and sends."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from headway.core.facts import Capacity
from headway.core.plaincalls import everything_may_start
from headway.functions.pool.host import News, Returned
from headway.jobs.facts import spacing
from headway.store.transaction import WriteTx
from headway.worker.fastlane.claims import MOST_AT_ONCE, BulkClaims, LaneCall, ends_among
from headway.worker.fastlane.memory import Memory
from headway.worker.fastlane.steps import FastSteps, Quiet, by_store
from headway.worker.shortcut import ShortcutPart
from headway.worker.tools import Tools


class FastLanePart(ShortcutPart):
    def __init__(self, tools: Tools) -> None:
        super().__init__(tools)
        self._tools = tools
        self._claims = BulkClaims(tools.host, tools.worker_id, tools.pool, tools.lease)
        self.steps = FastSteps(tools.store, tools.pool, self._claims, tools.worker_id, tools.times)
        self._memory = Memory(tools.store, tools.probes)
        self._quiet: Quiet | None = None
        self._before = self.steps.last

    def fast_step(self) -> float | None:
        self._tools.pool.processes.keep_up(self._tools.now)
        delay = self.steps.step(self._tools.now)
        self.started = self.steps.started
        return delay

    # -- in a full step ------------------------------------------------------------------------

    def take_in(self) -> None:
        self._quiet, self._before = None, self.steps.last
        self.steps.stop()
        self._claims.begin()

    def write(self, *, undisturbed: bool) -> AbstractContextManager[WriteTx]:
        # Whatever else there is to do is rare, or could not be done twice.
        tools = self._tools
        routine = not tools.has_duties and self._before is None
        return self._write(usable=undisturbed and routine and _has_others(tools.news))

    @contextmanager
    def _write(self, *, usable: bool) -> Iterator[WriteTx]:
        tools = self._tools
        with self._memory.write(usable=usable) as tx:
            self._memory.recall(tx)
            if tools.store.shared and tools.dispatching and not tools.has_duties:
                calls = min(tools.pool.places(), MOST_AT_ONCE)
                (tx.calls.prefetch if any(tools.news) else tx.waits.prefetch)(calls)
            yield tx

    def was_wrong(self) -> None:
        self._memory.was_wrong()

    def settle(self, tx: WriteTx, returned: Sequence[Returned]) -> Sequence[Returned]:
        ends, others = ends_among(returned)
        if ends:
            awaited = tx.calls.anyone_awaits()
            ends_by_store = by_store(tx, self._tools.times, ends)
            tx.calls.finish(ends_by_store, actor=self._tools.worker_id, awaited=awaited)
        return others

    def start(self, tx: WriteTx, capacity: Capacity, limit: int | None) -> tuple[int, bool]:
        """Claim plain calls, if no other job can stand before them."""
        tools = self._tools
        if tools.probes.expected() or not tools.pool.is_known:
            return 0, True
        if not everything_may_start(capacity) or not tx.calls.are_alone(tools.planner.queues):
            return 0, True
        calls = self._claims.head(tx, capacity, limit)
        if calls:
            self._claims.claim(tx, calls, tx.claims.slots().used)
        return len(calls), not self._claims.is_clear

    def step(self, tx: WriteTx) -> None:
        """At the end of the transaction: what the next steps may rely on."""
        tools = self._tools
        tools.started += [each.call.job_id for each in self._claims.taken]
        if tools.planned:
            if self.steps.last and not tools.started:
                tx.settings.note_dispatch(*self.steps.last)
            self.steps.last = None
            if not tools.more and not spacing(tx):
                self._quiet = self._seen_quiet(tx)
        self._memory.keep(tx)

    def undo(self) -> None:
        self._claims.undo()
        self._memory.forget()
        self.steps.last = self._before

    def committed(self) -> None:
        self._claims.committed()
        self._claims.send()

    def go_on(self, delay: float) -> None:
        self.steps.go_on(self._quiet, now=self._tools.now, delay=delay)

    def _seen_quiet(self, tx: WriteTx) -> Quiet | None:
        """None: something else than calls may be to be done soon."""
        tools, planner = self._tools, self._tools.planner
        if tools.probes.next_in() is not None or not tx.calls.are_alone(planner.queues):
            return None
        if planner.leaves_some:  # what is ours is not at the head
            return None
        return self.steps.seen(tx, planner.capacity(tx))


def _has_others(news: News) -> bool:
    """Whether calls ended that were not claimed here."""
    return bool(news.ended) or any(not isinstance(each.call, LaneCall) for each in news.returned)
