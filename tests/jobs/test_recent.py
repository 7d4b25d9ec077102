"""What ended of late, and what of it nobody has seen to."""

from collections.abc import Callable

import pytest

from harness import Bench
from headway.core.states import Status
from headway.store.transaction import WriteTx
from headway.testing.clock import FakeClock

DAY = 86_400


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_700_000_000_000_000)


@pytest.fixture
def yard(make_bench: Callable[..., Bench], clock: FakeClock) -> Bench:
    bench = make_bench(clock=clock)
    bench.client.pause("nothing shall start")
    return bench


def end(bench: Bench, job_id: int, status: Status) -> None:
    def transaction(tx: WriteTx) -> None:
        job = tx.jobs.by_id([job_id])[job_id]
        assert tx.jobs.end_waiting(job, status, "for the test", None)

    bench.store.transact(transaction)


def ids(documents: list[dict[str, object]]) -> list[object]:
    return [each["id"] for each in documents]


def test_failures_stay_until_they_are_retried_or_a_day_has_passed(
    yard: Bench, clock: FakeClock
) -> None:
    ends = [Status.FAILED, Status.BLOCKED_BY_DEPENDENCY, Status.CANCELLED]
    ends += [Status.BLOCKED_BY_APPROVAL, Status.SKIPPED, Status.SUCCEEDED, Status.FAILED]
    for status in ends:
        end(yard, yard.submit("true"), status)
        clock.advance(1)
    found = yard.client.jobs.recent()
    assert ids(found.failed) == ["job-7", "job-1", "job-2"], "causes before what they block"
    assert ids(found.ended) == [f"job-{number}" for number in range(7, 0, -1)]
    assert (found.last_day[Status.FAILED], found.last_minute) == (2, 7)
    yard.client.retry(7)
    assert ids(yard.client.jobs.recent().failed) == ["job-1", "job-2"]
    clock.advance(60)
    assert yard.client.jobs.recent().last_minute == 0
    clock.advance(DAY)
    assert ids(yard.client.jobs.recent().failed) == []
    assert len(yard.client.jobs.recent().ended) == 7, "the newest ends, however old"


def test_many_that_were_cancelled_hide_no_failure(yard: Bench, clock: FakeClock) -> None:
    end(yard, yard.submit("true"), Status.FAILED)
    for _ in range(5):
        clock.advance(1)
        yard.client.cancel([yard.submit("true")])
    found = yard.client.jobs.recent(limit=2)
    assert ids(found.failed) == ["job-1"] and ids(found.ended) == ["job-6", "job-5"]


def test_what_is_usual_is_told_by_name(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    bench.until_ended(bench.submit("true", name="quick"))
    found = bench.client.jobs.recent()
    assert set(found.usual) == {"quick"} and found.usual["quick"] >= 0
    assert found.active == {} and found.last_day == {Status.SUCCEEDED: 1}


def test_the_first_of_the_queue_are_read_alone(yard: Bench) -> None:
    for number in range(4):
        yard.submit("true", name=f"n{number}")
    found = yard.client.jobs.queue(limit=2, most_read=2)
    assert ids(found.documents) == ["job-1", "job-2"] and found.more
    assert ids(yard.client.jobs.queue(most_read=2, name="n3").documents) == []
    assert ids(yard.client.jobs.queue(name="n3").documents) == ["job-4"]
