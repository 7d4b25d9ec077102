"""The order of one step: first what has happened is taken in, then is decided, and that comes last.

Each test makes a single step, so that what a later step would repair does not count.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness import DEADLINE, Bench, wait_for
from headway.base.clock import SECOND, SystemClock
from headway.base.errors import StoreFullError, WorkerPresentError
from headway.base.worker_lock import START, WorkerLock
from headway.client import Client
from headway.core.reservations import Reservation
from headway.core.states import Status
from headway.jobs.context import Context
from headway.jobs.specification import parse_lock
from headway.store import open_store
from headway.store.store import Store
from headway.store.transaction import WriteTx
from headway.supervise.evidence import Evidence
from headway.testing.clock import FakeClock
from headway.worker.one_pass import single_step
from headway.worker.planner import PlannedStep


@contextmanager
def another_connection(bench: Bench) -> Iterator[Store]:
    url = bench.home.store_url or f"sqlite://{bench.home.database}"
    store = open_store(url, bench.clock, create=False)
    try:
        yield store
    finally:
        store.close()


def supervisor_of(bench: Bench, job: int) -> int:
    """Its pid, once the command runs and the engine watches it."""
    with bench.store.read() as tx:
        claim = tx.claims.of_job(job)
    assert claim is not None
    evidence = Evidence(claim.folder, claim.token)
    record = wait_for(evidence.read_started, what="the start record")
    watched = bench.engine.launches._watched[claim.token]
    bench.until(lambda: watched.pidfd is not None, "the engine to watch it")
    return int(record.supervisor_pid)


def is_free(evidence: Evidence) -> bool:
    fd = evidence.try_lock()
    if fd is not None:
        os.close(fd)
    return fd is not None


def kill_supervisor(bench: Bench, job: int) -> None:
    """Kill the job's supervisor. Its child has the lock, too, until it first runs: till then nobody
    can judge the claim."""
    os.kill(supervisor_of(bench, job), signal.SIGKILL)
    with bench.store.read() as tx:
        claim = tx.claims.of_job(job)
    assert claim is not None
    wait_for(lambda: is_free(Evidence(claim.folder, claim.token)), what="its lock to be free")


def die(bench: Bench, job: int) -> None:
    """Kill the job's supervisor and notice it; nothing is decided yet."""
    kill_supervisor(bench, job)
    launches = bench.engine.launches
    # Whether its command, or what the parent says, is noticed first is left to chance.
    wait_for(lambda: [key.data() for key, _ in launches.watchlist.select(0)] and launches._ended)
    assert bench.status(job) is Status.RUNNING


@pytest.mark.req("V98")
def test_one_step_fails_a_dead_process_and_goes_by_that_in_what_it_decides(bench: Bench) -> None:
    dead = bench.submit("sleep", "600", locks=(parse_lock("repo"),))
    dependent = bench.submit("true", after=(dead,))
    waiter = bench.submit("sleep", "60")
    bench.step()
    die(bench, dead)

    bench.step()

    assert bench.status(dead) is Status.FAILED
    assert bench.client.document(dead)["run"]["error"] == (
        "Scheduler crash recovery: outcome_unknown"
    )
    blocked = bench.client.document(dependent)
    assert blocked["state"] == "blocked_by_dependency"
    assert blocked["reason"] == f"dependency failed for job job-{dead} (failed)"
    assert bench.engine.started == [waiter], "its slot is free in the same step"
    assert bench.status(waiter) is Status.RUNNING


@pytest.mark.req("V98")
def test_the_step_that_fails_a_dead_process_makes_its_retry(bench: Bench) -> None:
    dead = bench.submit("sleep", "600", retries=1, retry_base=0)
    dependent = bench.submit("true", after=(dead,))
    bench.step()
    die(bench, dead)

    bench.step()

    retry = bench.last(dead)
    assert (bench.status(dead), retry.retry_of) == (Status.FAILED, dead)
    assert bench.engine.started == [retry.id]
    assert bench.status(dependent) is Status.WAITING_ON_DEPS, "the chain goes on"


@pytest.mark.req("V98")
def test_a_pass_without_a_worker_fails_dead_processes_first(bench: Bench) -> None:
    dead = bench.submit("sleep", "600")
    dependent = bench.submit("true", after=(dead,))
    waiter = bench.submit("true")
    bench.step()
    kill_supervisor(bench, dead)
    bench.crash()
    client = bench.client

    started = single_step(
        bench.store, bench.home, bench.config, client.context.host, bench.clock, limit=1
    )

    assert started == [waiter]
    assert bench.status(dead) is Status.FAILED
    assert bench.status(dependent) is Status.BLOCKED_BY_DEPENDENCY
    bench.engine.recover()
    bench.until_ended(waiter)


# -- dispatch is the last part of a step ----------------------------------------------------------


def a_dead_process(bench: Bench) -> Callable[[], int]:
    dead = bench.submit("sleep", "600")
    bench.step()
    die(bench, dead)
    job = bench.submit("sleep", "60")
    return lambda: job


def an_overdue_direct_call(bench: Bench) -> Callable[[], int]:
    with bench.store.write() as tx:
        now = tx.now()
        number = tx.reservations.take_id()
        tx.reservations.add(
            Reservation(number, "t", "ann", "", bench.client.context.host.id, 1, now, now + SECOND)
        )
        tx.reservations.grant("t", None)
    job = bench.submit("sleep", "60")
    bench.step()
    assert bench.engine.started == []
    bench.clock.advance(2)  # type: ignore[attr-defined]
    return lambda: job


def a_schedule_that_is_due(bench: Bench) -> Callable[[], int]:
    bench.client.schedules.add(name="hourly", every="1h", argv=["sleep", "60"])
    bench.step()
    bench.clock.advance(3600)  # type: ignore[attr-defined]

    def made() -> int:
        (slot,) = bench.client.schedules.slots("hourly", 10)
        return int(slot["job"].removeprefix("job-"))

    return made


HEALTH = [a_dead_process, an_overdue_direct_call, a_schedule_that_is_due]


@pytest.mark.req("G5")
@pytest.mark.parametrize("prepare", HEALTH)
def test_dispatch_comes_last_in_a_step_and_goes_by_all_that_was_done_before_it(
    make_bench: Callable[..., Bench], prepare: Callable[[Bench], Callable[[], int]]
) -> None:
    bench = make_bench(clock=FakeClock(SystemClock().now()))
    expected = prepare(bench)
    bench.step()
    assert bench.engine.started == [expected()]


@pytest.mark.req("V80")
def test_a_step_that_fails_leaves_the_job_queued_and_the_next_one_starts_it_once(
    bench: Bench,
) -> None:
    ledger = bench.folder / "ledger"
    job = bench.submit("sh", "-c", f"echo ran >> {ledger}")
    plan = bench.engine.planner.step

    def full(tx: WriteTx, *, limit: int | None = None) -> PlannedStep:
        plan(tx, limit=limit)
        assert tx.jobs.by_id([job])[job].status is Status.RUNNING, "it was about to be started"
        raise StoreFullError("the disk is full")

    bench.engine.planner.step = full  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(StoreFullError):
            bench.step()
        assert bench.status(job) is Status.QUEUED
        assert bench.client.document(job)["run"] is None and bench.kinds(job) == ["submitted"]
    bench.engine.planner.step = plan  # type: ignore[method-assign]
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED and ledger.read_text() == "ran\n"


# -- a pause that comes in between ----------------------------------------------------------------


def client_of(bench: Bench, store: Store, actor: str) -> Client:
    environ = bench.client.context.environ
    return Client(
        Context(bench.home, bench.config, store, bench.clock, environ=environ, actor=actor)
    )


@pytest.mark.req("G38")
@pytest.mark.parametrize("when", ["before it has planned", "after it has planned"])
def test_a_pause_that_is_set_during_a_step_survives_what_the_step_saves(
    bench: Bench, when: str
) -> None:
    bench.client.set_setting("scheduler.max_active", 2)
    first, second, third = (bench.submit("sleep", "60") for _ in range(3))
    asking = threading.Event()

    def pause() -> None:
        with another_connection(bench) as store:
            store.changed()  # it is connected
            asking.set()
            client_of(bench, store, "ann").pause("lunch")

    pauser = threading.Thread(target=pause)
    plan = bench.engine.planner.step

    def disturbed(tx: WriteTx, *, limit: int | None = None) -> PlannedStep:
        planned = plan(tx, limit=limit) if when.startswith("after") else None
        pauser.start()
        assert asking.wait(DEADLINE)
        return planned or plan(tx, limit=limit)

    bench.engine.planner.step = disturbed  # type: ignore[method-assign]
    bench.step()
    bench.engine.planner.step = plan  # type: ignore[method-assign]
    pauser.join(DEADLINE)

    with bench.store.read() as tx:
        pause_in_force, marks = tx.settings.pause_in_force(), tx.settings.marks()
        told = [each.kind for each in tx.events.since(0, 100)]
    assert pause_in_force is not None
    assert (pause_in_force.actor, pause_in_force.reason) == ("ann", "lunch")
    assert bench.engine.started == [first, second], "the step had begun before the pause"
    assert (marks["last_dispatch_count"], bool(marks["last_dispatch_at"])) == (2, True)
    assert told.count("running") == 2 and told[-1] == "paused"
    bench.client.cancel([first, second])
    bench.until(lambda: bench.status(first) is bench.status(second) is Status.CANCELLED)
    bench.turn()
    assert bench.status(third) is Status.QUEUED and bench.client.document(third)["wait"] == {
        "kind": "paused",
        "detail": "paused by ann: lunch",
    }


class Interrupted(FakeClock):
    """Something happens while a pass waits between two starts."""

    def __init__(self) -> None:
        super().__init__(SystemClock().now())
        self.meanwhile: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.meanwhile()
        super().sleep(seconds)


@pytest.fixture
def interrupted() -> Interrupted:
    return Interrupted()


@pytest.fixture
def spaced(make_bench: Callable[..., Bench], interrupted: Interrupted) -> Bench:
    """Three jobs that a pass would start, one each second."""
    bench = make_bench(clock=interrupted, max_active=3)
    bench.client.set_setting("scheduler.spawn_delay", "1s")
    for _ in range(3):
        bench.submit("sleep", "60")
    return bench


def one_pass(bench: Bench) -> list[int]:
    host = bench.client.context.host
    return single_step(bench.store, bench.home, bench.config, host, bench.clock, limit=3)


@pytest.mark.req("G38")
def test_a_pause_that_is_set_during_a_pass_stops_it_and_stays(
    spaced: Bench, interrupted: Interrupted
) -> None:
    interrupted.meanwhile = lambda: spaced.client.pause("lunch")
    assert one_pass(spaced) == [1]
    with spaced.store.read() as tx:
        assert tx.settings.pause_in_force() is not None
        assert tx.settings.marks()["last_dispatch_count"] == 1
    spaced.engine.recover()


@pytest.mark.req("G6", "V17")
def test_a_pass_has_the_lock_for_as_long_as_it_lasts_and_a_second_does_nothing(
    spaced: Bench, interrupted: Interrupted
) -> None:
    refused = []

    def second() -> None:
        with spaced.store.read() as tx:
            before = tx.events.last()
        with pytest.raises(WorkerPresentError):
            one_pass(spaced)
        with spaced.store.read() as tx:
            assert tx.events.last() == before
        refused.append(before)

    interrupted.meanwhile = second
    assert one_pass(spaced) == [1, 2, 3]
    assert len(refused) == 2, "between each two of them"
    lock = WorkerLock(spaced.home.worker_lock)
    assert lock.take(START), "afterwards it is free"
    lock.close()
    spaced.engine.recover()


# -- one step decides for all ---------------------------------------------------------------------


@pytest.mark.req("V2")
def test_one_step_decides_for_every_job_keeps_why_each_waits_and_starts_the_others(
    bench: Bench,
) -> None:
    """Nothing but the step can have looked at them: each submit meets a store that has not yet
    begun anything."""
    bench.client.set_setting("scheduler.max_active", 3)
    repo = (parse_lock("repo"),)
    first = bench.submit("sleep", "60", locks=repo, priority=9, produces=("custom:r:1",))
    kept = {
        bench.submit("true", after=(first,)): ("waiting_on_deps", "dependencies"),
        bench.submit("true", needs=("custom:r:1",)): ("waiting_on_deps", "dependencies"),
        bench.submit("true", require_approval=True): ("waiting_on_approval", "approval"),
        bench.submit("true", locks=repo): ("waiting_on_locks", "locks"),
        bench.submit("true", delay=3600 * SECOND): ("queued", "time"),
    }
    doomed = bench.submit("true", needs=("custom:nobody:1",))
    other, last = bench.submit("sleep", "60"), bench.submit("sleep", "60", priority=-1)
    late = bench.submit("true", priority=-2)

    bench.step()

    assert bench.engine.started == [first, other, last]
    with another_connection(bench) as store, store.read() as tx:  # as another process sees it
        jobs = tx.jobs.by_id([*kept, doomed, first, other, last, late])
    for each, (status, kind) in kept.items():
        wait = jobs[each].wait
        assert (jobs[each].status.value, wait and wait.kind.value) == (status, kind)
    assert jobs[doomed].status is Status.BLOCKED_BY_DEPENDENCY
    assert {jobs[each].status for each in (first, other, last)} == {Status.RUNNING}
    assert {jobs[each].wait for each in (first, other, last)} == {None}
    assert jobs[late].status is Status.QUEUED
    assert bench.client.document(late)["wait"]["kind"] == "capacity"
