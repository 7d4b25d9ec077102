"""A worker whose step fails for whatever reason: it lives, tells, tries again, loses nothing."""

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from harness import Bench, wait_for
from headway.admin.doctor import examine
from headway.base.errors import DataError, StoreCorruptError, StoreUndoneError
from headway.core.states import Status
from headway.jobs.views.status import scheduler_status
from headway.jobs.views.why import why
from headway.supervise.evidence import Evidence
from headway.testing.clock import FakeClock


class Stepped:
    """A worker in its place, whose loop the test makes."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.said: list[str] = []
        self.worker = bench.new_worker(say=self.said.append)
        self.engine = self.worker._engine
        self.engine.launches.open()
        self.worker._come_in()
        self.errors: list[Exception] = []
        self._spoil(self.engine.planner)

    def _spoil(self, planner: Any) -> None:
        """At the very end of what a step does in its transaction."""
        plan = planner.step

        def step(*given: Any, **named: Any) -> Any:
            made = plan(*given, **named)
            if self.errors:
                raise self.errors[0]
            return made

        planner.step = step

    def round(self) -> None:
        self.worker._wishes.woken = True
        self.worker._step_if_due(self.bench.clock.monotonic())
        self.worker._note_trouble()

    def _at_rest(self) -> bool:
        self.worker._wait(0.0)
        self.bench.clock.advance(1)  # type: ignore[attr-defined]
        self.round()
        return not self.bench._live()

    def close(self) -> None:
        self.errors.clear()
        self.bench.client.pause("the test is over")
        wait_for(self._at_rest, what="all jobs to end")
        self.engine.close()
        self.worker._lock.close()


@pytest.fixture
def stepped(make_bench: Callable[..., Bench]) -> Iterator[Stepped]:
    bench = make_bench(clock=FakeClock(), max_active=4)
    made = Stepped(bench)
    yield made
    made.close()


def ended_outside(stepped: Stepped, job: int) -> None:
    """Its supervisor has left its outcome, of which the worker has not heard."""
    with stepped.bench.store.read() as tx:
        claim = tx.claims.of_job(job)
    assert claim is not None
    wait_for(lambda: Evidence(claim.folder, claim.token).read_outcome())
    stepped.engine.launches.receive(f"ended {claim.token}".encode())


@pytest.mark.parametrize(
    "error",
    [KeyError("13 (FD 13) is already registered"), DataError("a row"), StoreUndoneError("lost")],
    ids=["unforeseen", "data", "lost"],
)
def test_an_end_survives_steps_that_fail_and_is_settled_once(
    stepped: Stepped, error: Exception
) -> None:
    bench = stepped.bench
    job = bench.submit("sh", "-c", "exit 3")
    stepped.round()
    assert bench.status(job) is Status.RUNNING
    ended_outside(stepped, job)
    other = bench.submit("true")
    stepped.errors.append(error)
    for _ in range(3):
        bench.clock.advance(60)  # type: ignore[attr-defined]
        stepped.round()
        assert bench.status(job) is Status.RUNNING and bench.status(other) is Status.QUEUED
    stepped.errors.clear()
    bench.clock.advance(60)  # type: ignore[attr-defined]
    stepped.round()
    assert (bench.status(job), bench.status(other)) == (Status.FAILED, Status.RUNNING)
    assert bench.kinds(job).count("failed") == 1 and bench.kinds(other).count("started") <= 1
    assert sum("cannot step" in each for each in stepped.said) == 1
    assert stepped.said[-1] == "can step again"
    ended_outside(stepped, other)
    stepped.round()
    assert bench.status(other) is Status.SUCCEEDED
    assert stepped.engine.launches.watchlist.dead() == []


def test_a_failure_that_stays_is_tried_ever_more_rarely(stepped: Stepped) -> None:
    clock: Any = stepped.bench.clock
    stepped.bench.submit("true")
    stepped.errors.append(ZeroDivisionError("of ours"))
    tries = []
    effort = stepped.worker._stepping
    for _ in range(600):
        before = effort.failures
        stepped.worker._step_if_due(clock.monotonic())
        if effort.failures > before:
            tries.append(round(clock.monotonic()))
        clock.advance(0.5)
    gaps = [later - earlier for earlier, later in pairwise(tries)]
    assert gaps[:6] == [1, 2, 4, 8, 16, 32] and set(gaps[6:]) == {60}


def test_a_worker_that_cannot_step_says_so_wherever_it_is_asked(stepped: Stepped) -> None:
    bench = stepped.bench
    job = bench.submit("true")
    stepped.errors.append(ZeroDivisionError("of ours"))
    for _ in range(2):
        stepped.round()
        bench.clock.advance(60)  # type: ignore[attr-defined]
    told = scheduler_status(bench.client.context)
    assert told["worker_trouble"]["error"] == "ZeroDivisionError: of ours"
    assert told["reason"] == "the worker cannot step: ZeroDivisionError: of ours"
    assert why(bench.client.context, job)["worker_trouble"]["failures"] == 2
    findings = examine(bench.home.path, bench.home.store_url, {}, "/")
    assert any(each.check == "worker" and "of ours" in each.detail for each in findings)
    stepped.errors.clear()
    stepped.round()
    assert scheduler_status(bench.client.context)["worker_trouble"] is None


def test_a_store_that_is_damaged_still_ends_the_worker(stepped: Stepped) -> None:  # fault C4
    stepped.bench.submit("true")
    stepped.errors.append(StoreCorruptError("torn"))
    with pytest.raises(StoreCorruptError):
        stepped.round()
    stepped.errors.clear()


def test_who_fails_to_hear_is_left_alone_for_a_while_and_others_are_heard(
    stepped: Stepped,
) -> None:
    clock: Any = stepped.bench.clock
    ends = [os.pipe(), os.pipe()]
    heard: list[str] = []

    def fail() -> None:
        heard.append("bad")
        raise RuntimeError("cannot take it in")

    watchlist = stepped.engine.launches.watchlist
    watchings = [
        watchlist.watch(ends[0][0], fail),
        watchlist.watch(ends[1][0], lambda: heard.append("good")),
    ]
    for _, writing in ends:
        os.write(writing, b"x")
    for _ in range(5):
        stepped.worker._wait(0.0)
    assert heard.count("bad") == 1 and heard.count("good") == 5
    for pause in (1.0, 2.0, 4.0):
        clock.advance(pause)
        for _ in range(3):
            stepped.worker._wait(0.0)
    assert heard.count("bad") == 4
    for each in watchings:
        each.close()
    for _, writing in ends:
        os.close(writing)


def test_while_no_step_can_be_made_nothing_rings_all_the_time(stepped: Stepped) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x")
    heard: list[str] = []
    watching = stepped.engine.launches.watchlist.watch(reading, lambda: heard.append("rings"))
    stepped.bench.submit("true")
    stepped.errors.append(OSError(28, "full"))
    stepped.round()
    for _ in range(5):
        stepped.worker._wait(0.0)
    assert len(heard) == 1, "it is read in a step, and there is none"
    stepped.errors.clear()
    stepped.bench.clock.advance(5)  # type: ignore[attr-defined]
    stepped.round()
    stepped.worker._wait(0.0)
    assert len(heard) == 2
    watching.close()
    os.close(writing)
