"""A host whose clock is wrong, on a store that several hosts share: what is written there is true
by the store's clock.

Supervisors and function hosts go by the machine's clock. So it is the store's clock that is another
one here, which comes to the same.
"""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness import Bench, wait_for
from headway.base.clock import SECOND, SystemClock
from headway.core.model import WaitKind
from headway.core.states import Status
from headway.functions.tasks import Task
from headway.supervise.evidence import Evidence
from headway.worker.step import LENDING_PERIOD
from headway.worker.store_time import StoreTime

OFF = 600 * SECOND
MOMENT = 60 * SECOND  # that a step may take on a busy machine

TASKS = """
import time
import headway

app = headway.App()

@app.task
def well():
    time.sleep(0.01)
    return 1

@app.task(retries=1, retry_base="2s")
def fails():
    raise ValueError("no")

@app.task
def later():
    raise headway.Retry("not yet", after="30s")
"""


class Wall:
    """The machine's clock, so far ahead."""

    def __init__(self, ahead: int) -> None:
        self.ahead = ahead
        self._system = SystemClock()

    def now(self) -> int:
        return self._system.now() + self.ahead

    def monotonic(self) -> float:
        return self._system.monotonic()

    def since_boot(self) -> float:
        return self._system.since_boot()

    def sleep(self, seconds: float) -> None:
        self._system.sleep(seconds)


class Far:
    """A bench whose clock is as far behind the store's, or ahead of it."""

    def __init__(self, folder: Path, url: str, ahead: int) -> None:
        (folder / "far_tasks.py").write_text(TASKS)
        self.here, self.there = Wall(0), Wall(ahead)
        self.bench = Bench(
            folder,
            store_url=url,
            clock=self.here,
            store_clock=self.there,
            max_active=4,
            settings={"app.modules": ("far_tasks",)},
        )
        (folder / ".headway/config.toml").write_text("[worker]\nautostart = false\n")
        module: dict[str, Any] = {"__name__": "far_tasks"}
        exec(compile(TASKS, "far_tasks.py", "exec"), module)
        module["app"]._context = self.bench.client.context
        module["app"]._pid = os.getpid()
        self._module = module

    def task(self, name: str) -> Task[..., Any]:
        found: Task[..., Any] = self._module[name]
        return found

    def ended_in_time(self, job_id: int, begun: int) -> None:
        """By the store's clock, and not before it was started."""
        job = self.bench.job(job_id)
        assert job.started_at is not None and job.finished_at is not None
        assert begun <= job.started_at <= job.finished_at <= self.there.now()
        assert job.finished_at - job.started_at < MOMENT


@pytest.fixture(params=[OFF, -OFF], ids=["behind", "ahead"])
def far(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> Iterator[Far]:
    made = Far(tmp_path, postgres_url, request.param)
    yield made
    made.bench.close()


class Told(NamedTuple):
    """A store whose clock was told by an answer that took so long."""

    present_at: int
    error: int
    shared: bool = True

    def present(self) -> int:
        return self.present_at

    def clock_error(self) -> int:
        return self.error

    def now(self) -> int:
        return self.present_at


@pytest.mark.parametrize(
    ("present", "error", "ahead"),
    [(984, 20, 0), (1_000, 20, 0), (980, 20, 0), (900, 20, -80), (1_100, 20, 100), (900, 0, -100)],
)
def test_a_slow_answer_makes_no_difference_between_clocks(
    present: int, error: int, ahead: int
) -> None:
    class Ours(SystemClock):
        def now(self) -> int:
            return 1_000

    store: Any = Told(present, error)
    times = StoreTime(store, Ours())(store)
    assert times is not None and times.ahead == ahead


def test_a_host_whose_clock_is_the_servers_needs_no_shift(
    tmp_path: Path, postgres_url: str
) -> None:
    bench = Bench(tmp_path, store_url=postgres_url, clock=SystemClock())
    with bench.store.write() as tx:
        times = StoreTime(bench.store, SystemClock())(tx)
    bench.close()
    assert times is not None and times.ahead == 0


def outcome_of(bench: Bench, job_id: int) -> dict[str, Any]:
    rows = bench.store.database.execute(  # type: ignore[attr-defined]
        "select document from evidence where job_id = %(id)s", {"id": job_id}
    )
    document: dict[str, Any] = json.loads(rows[0][0])
    return document


def test_a_command_ends_by_the_clock_of_the_store(far: Far) -> None:
    begun = far.there.now()
    job = far.bench.submit("sleep", "0.05")
    far.bench.until_ended(job)
    far.ended_in_time(job, begun)
    ended = far.bench.job(job)
    told = outcome_of(far.bench, job)
    assert told["finished_at"] == ended.finished_at
    assert ended.started_at is not None and told["started_at"] >= ended.started_at
    assert (ended.finished_at or 0) - ended.started_at >= 50_000, "it is moved, not made up"


def test_a_retry_waits_by_the_clock_of_the_store(far: Far) -> None:
    begun = far.there.now()
    job = far.bench.submit("false", retries=1, retry_base=30 * SECOND)
    far.bench.until(lambda: far.bench.status(job) is Status.FAILED)
    far.ended_in_time(job, begun)
    settled = next(each.at for each in far.bench.events(job) if each.kind == "failed")
    assert far.bench.last(job).not_before == settled + 30 * SECOND
    far.bench.step()
    assert far.bench.last(job).status is Status.QUEUED


def test_what_cannot_be_launched_is_tried_again_by_the_clock_of_the_store(far: Far) -> None:
    begun = far.there.now()
    job = far.bench.submit("/nowhere/at/all", check=False)
    waiting = far.bench.until(lambda: far.bench.job(job).launch_failures and far.bench.job(job))
    assert begun + SECOND <= waiting.not_before <= far.there.now() + SECOND
    assert waiting.launch_wait is WaitKind.LAUNCH


def test_calls_end_and_wait_by_the_clock_of_the_store(far: Far) -> None:
    bench = far.bench
    bench.until(lambda: bench.engine.pool.is_known, "the tasks to be known")
    begun = far.there.now()
    well = [far.task("well").submit() for _ in range(6)]  # some of them in quick steps
    fails, later = far.task("fails").submit(), far.task("later").submit()
    while not all(bench.status(each.job_id) is Status.SUCCEEDED for each in well):
        for key, _ in bench.engine.launches.watchlist.select(0.05):
            key.data()
        bench.step(undisturbed=True)
    bench.until(lambda: bench.status(later.job_id) is Status.FAILED)
    bench.until(lambda: bench.status(fails.job_id) is Status.FAILED)
    for each in (*well, fails, later):
        far.ended_in_time(each.job_id, begun)
    for each, pause in ((fails, 2), (later, 30)):
        at = next(each.at for each in bench.events(each.job_id) if each.kind == "failed")
        assert bench.last(each.job_id).not_before == at + pause * SECOND


def test_an_outcome_that_is_read_much_later_is_moved_by_the_clocks_alone(far: Far) -> None:
    begun = far.there.now()
    job = far.bench.submit("true")
    far.bench.step()
    (claim,) = far.bench.engine.launches.claims
    wait_for(lambda: Evidence(claim.folder, claim.token).read_outcome(), what="its outcome")
    far.here.ahead += OFF // 2
    far.there.ahead += OFF // 2
    far.bench.crash().recover()
    assert far.bench.status(job) is Status.SUCCEEDED
    finished = far.bench.job(job).finished_at
    assert finished is not None and begun <= finished <= begun + MOMENT


def test_what_recovery_finds_out_is_told_by_the_clock_of_the_store(far: Far) -> None:
    begun = far.there.now()
    job = far.bench.submit("sleep", "60")
    far.bench.step()
    (claim,) = far.bench.engine.launches.claims
    evidence = Evidence(claim.folder, claim.token)
    started = wait_for(evidence.read_started, what="its start")
    os.kill(started.supervisor_pid, signal.SIGKILL)  # it alone, so that nobody writes an outcome
    os.close(wait_for(evidence.try_lock, what="its end"))
    far.bench.crash().recover()
    assert far.bench.job(job).reason == "Scheduler crash recovery: outcome_unknown"
    far.ended_in_time(job, begun)


def test_a_worker_comes_up_by_the_clock_of_the_store(far: Far) -> None:
    bench = far.bench
    worker = bench.new_worker()
    begun = far.there.now()
    worker._register()
    with bench.store.read() as tx:
        (record,) = tx.hosts.recent_workers(bench.client.context.host.id, 1)
    assert begun <= record.started_at <= far.there.now()
    worker._engine.launches.watchlist.close()


def test_what_is_granted_after_a_suspend_is_granted_by_the_clock_of_the_store(far: Far) -> None:
    far.bench.step()
    far.here.ahead += 3600 * SECOND
    far.there.ahead += 3600 * SECOND
    far.bench.step()
    granted = far.bench.engine.tools.granted_until
    assert far.there.now() - MOMENT <= granted - LENDING_PERIOD <= far.there.now()
