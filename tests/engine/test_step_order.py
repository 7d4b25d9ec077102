"""The order of one step: first what has happened is taken in, then is decided, and that comes last.

Each test makes a single step, so that what a later step would repair does not count.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness import Bench, wait_for
from headway.clock import SECOND, SystemClock
from headway.core.reservations import Reservation
from headway.core.states import Status
from headway.engine.single import single_step
from headway.store import open_store
from headway.store.base import Store
from headway.submission import parse_lock
from headway.supervise.evidence import Evidence
from headway.testing import FakeClock


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
        claim = tx.claim_of(job)
    assert claim is not None
    evidence = Evidence(claim.folder, claim.token)
    record = wait_for(evidence.read_started, what="the start record")
    watched = bench.engine.finisher._watched[claim.token]
    bench.until(lambda: watched.pidfd is not None, "the engine to watch it")
    return int(record.supervisor_pid)


def die(bench: Bench, job: int) -> None:
    """Kill the job's supervisor and notice it; nothing is decided yet."""
    os.kill(supervisor_of(bench, job), signal.SIGKILL)
    finisher = bench.engine.finisher
    # Whether its command, or what the parent says, is noticed first is left to chance.
    wait_for(lambda: [key.data() for key, _ in finisher.selector.select(0)] and finisher._ended)
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
    os.kill(supervisor_of(bench, dead), signal.SIGKILL)
    bench.crash()
    client = bench.client

    started = single_step(bench.store, bench.home, bench.config, client.host, bench.clock, limit=1)

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
        number = tx.take_reservation_id()
        tx.reserve(Reservation(number, "t", "ann", "", bench.client.host.id, 1, now, now + SECOND))
        tx.grant("t", None)
    job = bench.submit("sleep", "60")
    bench.step()
    assert bench.engine.started == []
    bench.clock.advance(2)  # type: ignore[attr-defined]
    return lambda: job


def a_schedule_that_is_due(bench: Bench) -> Callable[[], int]:
    bench.client.add_schedule(name="hourly", every="1h", argv=["sleep", "60"])
    bench.step()
    bench.clock.advance(3600)  # type: ignore[attr-defined]

    def made() -> int:
        (slot,) = bench.client.schedule_slots("hourly", 10)
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
