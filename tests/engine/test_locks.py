"""Locks: all or nothing, shared or exclusive, fair."""

from collections.abc import Callable

import pytest

from harness import Bench
from headway.core.states import Status
from headway.submission import parse_lock


def locks(*texts: str) -> tuple[object, ...]:
    return tuple(parse_lock(text) for text in texts)


@pytest.mark.req("V70", "V71", "V72")
def test_exclusive_jobs_take_turns_and_shared_ones_run_together(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=10)
    readers = [bench.submit("sleep", "60", locks=locks("repo:shared")) for _ in range(2)]
    writer = bench.submit("true", locks=locks("repo"))
    late_reader = bench.submit("true", locks=locks("repo:shared"))
    other = bench.submit("true", locks=locks("docs"))
    bench.step()
    assert [bench.status(each) for each in readers] == [Status.RUNNING, Status.RUNNING]
    assert bench.status(other) is Status.RUNNING
    document = bench.client.document(writer)
    assert document["state"] == "waiting_on_locks"
    assert document["wait"] == {"kind": "locks", "detail": "waiting on locks"}
    assert bench.status(late_reader) is Status.WAITING_ON_LOCKS, "the writer goes first"
    bench.client.cancel(readers)
    bench.until_ended(writer, late_reader)
    assert bench.job(writer).finished_at <= bench.job(late_reader).started_at  # type: ignore[operator]


@pytest.mark.req("V70")
def test_a_job_takes_all_of_its_locks_or_none(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=10)
    holder = bench.submit("sleep", "60", locks=locks("a"))
    both = bench.submit("true", locks=locks("a", "b"), priority=-1)
    bench.step()
    assert bench.status(both) is Status.WAITING_ON_LOCKS
    ahead = bench.submit("true", locks=locks("b"))
    bench.until_ended(ahead)
    assert bench.status(both) is Status.WAITING_ON_LOCKS, "b was free for a job before it"
    bench.client.cancel([holder])
    bench.until_ended(both)


def test_readers_arriving_without_end_do_not_starve_a_writer(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=3)
    readers = [bench.submit("sleep", "0.1", locks=locks("repo:shared")) for _ in range(3)]
    writer = bench.submit("true", locks=locks("repo"))
    for _ in range(20):
        readers.append(bench.submit("sleep", "0.05", locks=locks("repo:shared")))
    bench.until_ended(writer)
    bench.until_ended(*readers)
    order = sorted([writer, *readers], key=lambda each: bench.job(each).started_at or 0)
    assert order.index(writer) == 3, "only the readers that were there before it went first"


def test_a_waiter_that_could_not_run_anyway_reserves_nothing(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=10)
    slow = bench.submit("sleep", "60")
    bench.submit("true", locks=locks("repo"), after=(slow,))
    free = bench.submit("true", locks=locks("repo"))
    bench.until_ended(free)
    assert bench.status(free) is Status.SUCCEEDED


def test_a_reserved_key_is_passed_on_when_its_waiter_is_cancelled(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=10)
    bench.submit("sleep", "60", locks=locks("a"))
    reserver = bench.submit("true", locks=locks("a", "b"))
    waiter = bench.submit("true", locks=locks("b"))
    bench.step()
    assert bench.status(waiter) is Status.WAITING_ON_LOCKS
    bench.client.cancel([reserver])
    bench.until_ended(waiter)
    assert bench.status(waiter) is Status.SUCCEEDED


def test_many_waiters_on_one_lock_all_get_it_once_each(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=4)
    ledger = bench.folder / "ledger"
    script = f"echo in >> {ledger}; sleep 0.01; echo out >> {ledger}"
    jobs = [bench.submit("sh", "-c", script, locks=locks("repo")) for _ in range(12)]
    bench.until_ended(*jobs)
    assert ledger.read_text().split() == ["in", "out"] * 12


def test_nobody_at_the_door_passes_those_who_join_the_first_sharer(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=3)
    holder = bench.submit("sleep", "60", locks=locks("a"))
    sharers = [bench.submit("sleep", "60", locks=locks("a:shared")) for _ in range(2)]
    others = [bench.submit("sleep", "60") for _ in range(2)]
    last = bench.submit("sleep", "60")
    bench.step()
    assert [bench.status(each) for each in sharers] == [Status.WAITING_ON_LOCKS] * 2
    assert bench.status(last) is Status.QUEUED
    bench.engine.dispatching = False
    bench.client.cancel([holder, others[0]])
    bench.until_ended(holder, others[0])
    bench.engine.dispatching = True
    bench.step()
    assert [bench.status(each) for each in sharers] == [Status.RUNNING] * 2, "they came before"
    assert bench.status(last) is Status.QUEUED
