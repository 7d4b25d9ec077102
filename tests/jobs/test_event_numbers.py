"""The number of an event is never given twice: who has read up to it misses nothing."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import Bench
from headway.base.clock import SystemClock
from headway.base.errors import ConflictError, NotFoundError
from headway.core.model import JobId
from headway.core.retention import RetentionRule
from headway.core.states import TERMINAL
from headway.jobs.retention import Collector, forget_old_traces
from headway.store.new_jobs import Event
from headway.testing.clock import FakeClock

EVERYTHING = RetentionRule(0, None)
LONG = 3_000_000  # seconds


class Reader:
    """Reads events as a listener does: those behind the last that it has seen."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.last = 0
        self.seen: dict[int, tuple[object, ...]] = {}

    def read(self) -> list[Event]:
        with self.bench.store.read() as tx:
            assert tx.events.last() >= self.last, "the newest number has gone back"
            everything = tx.events.since(0, 100_000)
        numbers = [event.seq for event in everything]
        assert numbers == sorted(set(numbers))
        for event in everything:
            known = self.seen.setdefault(event.seq, (event.kind, event.job_id, event.at))
            assert known == (event.kind, event.job_id, event.at), "its number was another's"
        fresh = [event for event in everything if event.seq > self.last]
        self.last = max(numbers, default=self.last)
        return fresh


def collector(bench: Bench) -> Collector:
    return Collector(
        bench.store, bench.home, bench.client.context.host.id, actor="tester", rule=EVERYTHING
    )


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(clock=FakeClock(SystemClock().now()))


def ended(bench: Bench) -> JobId:
    job_id = bench.submit("true")
    bench.client.cancel([job_id])
    return job_id


def test_the_number_of_an_event_is_not_given_again_when_its_job_is_cleaned(bench: Bench) -> None:
    kept, gone = ended(bench), ended(bench)
    reader = Reader(bench)
    reader.read()
    collector(bench).clean(gone)
    assert [event.kind for event in reader.read()] == ["removed"]
    bench.submit("true")
    assert [event.kind for event in reader.read()] == ["submitted"]
    assert bench.job(kept).status in TERMINAL


def test_nor_when_all_that_ever_was_goes(bench: Bench) -> None:
    for _ in range(3):
        ended(bench)
    reader = Reader(bench)
    reader.read()
    bench.clock.advance(LONG)  # type: ignore[attr-defined]
    while collector(bench).step() is not None and reader.read():
        pass
    bench.clock.advance(LONG)  # type: ignore[attr-defined]
    forget_old_traces(bench.store, 1000)
    reader.read()
    bench.submit("true")
    assert [event.kind for event in reader.read()] == ["submitted"]


ACTS = ("submit", "chain", "end", "clean", "collect", "forget", "undone", "crash", "pause", "later")


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts=st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 20)), max_size=25))
def test_numbers_only_grow_whatever_happens(bench: Bench, acts: list[tuple[str, int]]) -> None:
    reader = Reader(bench)
    for act, number in acts:
        with suppress(ConflictError, NotFoundError):
            do(bench, act, number)
        reader.read()


def do(bench: Bench, act: str, number: int) -> None:
    with bench.store.read() as tx:
        jobs = tx.jobs.active()
        newest = tx.settings.marks()["next_job_id"] - 1
    match act:
        case "submit":
            bench.submit("true")
        case "chain":
            bench.submit("true", after=[job.id for job in jobs[:1]])
        case "end":
            bench.client.cancel([job.id for job in jobs[: 1 + number % 3]])
        case "clean":
            collector(bench).clean(max(1, newest - number % 4))
        case "collect":
            one = collector(bench)
            while one.step(1 + number) is not None:
                pass
        case "forget":
            forget_old_traces(bench.store, 1 + number)
        case "undone":
            with suppress(ZeroDivisionError):
                bench.store.transact(
                    lambda tx: tx.events.add([Event("set", None)], actor="x") or 1 / 0
                )
        case "crash":
            bench.crash()
        case "pause":
            bench.client.pause(None)
            bench.client.resume()
        case "later":
            bench.clock.advance(number * LONG / 10)  # type: ignore[attr-defined]
