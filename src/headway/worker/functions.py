"""The part of a step that settles function calls, and keeps their hosts up."""

from collections.abc import Sequence

from headway.core.model import TASKS_TOPIC, Claim
from headway.functions.pool.host import CallEnd, News
from headway.jobs.part import Part
from headway.store.transaction import WriteTx
from headway.worker.tools import Tools

LOOK_AGAIN = 1.0
WRITE_EVERY = 10.0  # seconds after which a host says again which functions it knows


class FunctionsPart(Part):
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._pool = tools.pool
        self._processes = tools.pool.processes
        self._start_in: float | None = None
        self._next_look = self._next_write = self._before = tools.clock.monotonic()

    def adopt(self, claims: Sequence[Claim]) -> None:
        """Take up the function calls of an earlier worker."""
        if not claims:
            return
        with self._tools.store.write() as tx:
            jobs = tx.jobs.running([claim.job_id for claim in claims])
            self._settle(tx, self._pool.adopt([(each, jobs[each.job_id]) for each in claims]))
        self._pool.committed()

    def take_in(self) -> None:
        tools = self._tools
        self._before = self._next_write
        self._start_in = self._processes.keep_up(tools.now) if tools.dispatching else None
        tools.news = self._pool.take_in()
        tools.has_duties |= self._processes.news or self._must_write_tasks()

    def step(self, tx: WriteTx) -> None:
        self._settle(tx, self._tools.news)
        if self._must_write_tasks():
            mine = [
                each for each in tx.hosts.tasks_reported() if each.host_id == self._tools.host.id
            ]
            if not all(each.is_up for each in mine):  # others may have parked what we know
                tx.waits.wake_topics([TASKS_TOPIC])
            self._write_tasks(tx)

    def undo(self) -> None:
        news, self._tools.news = self._tools.news, News([], [])
        self._pool.put_back(news)
        self._next_write = self._before

    def committed(self) -> None:
        tools = self._tools
        tools.news = News([], [])
        self._pool.committed()
        if tools.cancelling:
            self._pool.cancel(tools.cancelling, tools.clock.monotonic())
        if tools.now >= self._next_look:
            self._next_look = tools.now + LOOK_AGAIN
            self._pool.look()

    def delay(self) -> float | None:
        times = [] if self._start_in is None else [self._start_in]
        if self._pool.needs_a_look:
            times.append(LOOK_AGAIN / 2)
        if self._tools.store.shared and self._processes.wanted:
            times.append(max(0.0, self._next_write - self._tools.now))
        return min(times, default=None)

    def _settle(self, tx: WriteTx, news: News) -> None:
        """Settle the calls that ended, and keep what they returned and reported."""
        if self._processes.news:
            self._write_tasks(tx)
            tx.waits.wake_topics([TASKS_TOPIC])
        if self._pool.progress:
            tx.jobs.keep_progress(list(self._pool.progress.values()))
        if self._pool.steps:
            tx.steps.keep(self._pool.steps_to_keep())
        others = self._tools.shortcut.settle(tx, news.returned)
        self._settle_one_by_one(tx, [*news.ended, *(each.in_full() for each in others)])

    def _settle_one_by_one(self, tx: WriteTx, ends: Sequence[CallEnd]) -> None:
        if not ends:
            return
        cancelling = tx.claims.cancelling()
        known = {
            each.job.id: each.job
            for each in ends
            if each.job is not None and each.job.id not in cancelling
        }
        settler = self._tools.settler
        ended = settler.apply(tx, [each.settles for each in ends], known)
        results = {each.claim.token: each.result for each in ends if each.result is not None}
        if results:
            tx.jobs.keep_results(
                [(c.job_id, results[c.token]) for c, _ in ended if c.token in results]
            )

    def _must_write_tasks(self) -> bool:
        """Other hosts leave functions to this one as long as it says that it knows them."""
        tools = self._tools
        return tools.store.shared and self._processes.wanted and tools.now >= self._next_write

    def _write_tasks(self, tx: WriteTx) -> None:
        self._next_write = self._tools.clock.monotonic() + WRITE_EVERY
        processes = self._processes
        tx.hosts.know_tasks(self._tools.host.id, sorted(processes.tasks), processes.trouble)
