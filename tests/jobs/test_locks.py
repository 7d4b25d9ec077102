"""Locks: all or nothing, shared or exclusive, fair."""

import random
from collections.abc import Callable, Iterable

import pytest

from harness import Bench
from headway.base.clock import SystemClock
from headway.core.model import Lock, LockMode
from headway.core.states import WAITING, Status
from headway.jobs.specification import parse_lock
from headway.jobs.views.locks import locks as locks_now
from headway.testing.clock import FakeClock


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


def test_nobody_waiting_for_capacity_passes_those_who_join_the_first_sharer(
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


def order_of_starts(bench: Bench, jobs: Iterable[int]) -> list[int]:
    """By the record: events are numbered in the order of their commits."""
    seqs = {
        job: event.seq for job in jobs for event in bench.events(job) if event.kind == "running"
    }
    return sorted(seqs, key=lambda job: seqs[job])


@pytest.mark.req("V70")
@pytest.mark.parametrize("priority", [0, -5], ids=["equal", "lower"])
def test_two_hundred_sharers_that_keep_coming_do_not_pass_one_exclusive_job(
    make_bench: Callable[..., Bench], priority: int
) -> None:
    """Without the writer's reservation each of them would start at once: the key is shared and
    slots are free, so at every moment a reader would hold it."""
    bench = make_bench(max_active=-1)
    reader = bench.submit("sleep", "60", locks=locks("repo:shared"))
    bench.step()
    writer = bench.submit("sleep", "60", locks=locks("repo"))
    bench.step()
    late = []
    for _ in range(200):
        late.append(bench.submit("true", locks=locks("repo:shared"), priority=priority))
        bench.step()
    assert {bench.status(each) for each in late} == {Status.WAITING_ON_LOCKS}
    assert bench.status(writer) is Status.WAITING_ON_LOCKS
    bench.client.cancel([reader])
    bench.until(lambda: bench.status(writer) is Status.RUNNING)
    assert {bench.status(each) for each in late} == {Status.WAITING_ON_LOCKS}
    bench.client.cancel(late[3:])
    bench.client.cancel([writer])
    bench.until_ended(*late[:3])
    assert order_of_starts(bench, [writer, *late[:3]])[0] == writer


def test_a_sharer_of_higher_priority_goes_before_a_waiting_exclusive_job(
    make_bench: Callable[..., Bench],
) -> None:
    """Fair means the order of dispatch, and a priority is the right to go first."""
    bench = make_bench(max_active=-1)
    bench.submit("sleep", "60", locks=locks("repo:shared"))
    writer = bench.submit("true", locks=locks("repo"))
    bench.step()
    urgent = bench.submit("sleep", "60", locks=locks("repo:shared"), priority=1)
    bench.step()
    assert bench.status(urgent) is Status.RUNNING
    assert bench.status(writer) is Status.WAITING_ON_LOCKS


def test_waiters_get_a_lock_in_the_order_of_dispatch(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=-1)
    holder = bench.submit("sleep", "60", locks=locks("repo"))
    bench.step()
    priorities = (0, 3, -1, 3, 0, 7, -1)
    jobs = [bench.submit("true", locks=locks("repo"), priority=each) for each in priorities]
    bench.step()
    expected = sorted(jobs, key=lambda job: bench.job(job).order)
    (lock,) = locks_now(bench.client.context)
    assert [each["job"] for each in lock["waiters"]] == [f"job-{job}" for job in expected]
    bench.client.cancel([holder])
    bench.until_ended(*jobs)
    assert order_of_starts(bench, jobs) == expected


def held(bench: Bench) -> dict[int, dict[str, LockMode]]:
    found: dict[int, dict[str, LockMode]] = {}
    with bench.store.read() as tx:
        for lock in tx.claims.locks_held():
            found.setdefault(lock.job_id, {})[lock.key] = lock.mode
    return found


@pytest.mark.req("V70", "V71")
@pytest.mark.parametrize("seed", [1, 2])
def test_no_job_ever_holds_one_lock_while_it_waits_for_another(
    make_bench: Callable[..., Bench], seed: int
) -> None:
    """Why there is no deadlock: it takes a circle of jobs of which each holds what the next one
    lacks. Here a job has all of its locks, or none and then nobody can lack anything because of it.
    The waiters themselves stand in one order, so they cannot wait for each other in a circle."""
    chance = random.Random(seed)
    bench = make_bench(max_active=6)
    asked: dict[int, dict[str, LockMode]] = {}
    for _ in range(30):
        keys = chance.sample("abcde", chance.randint(1, 4))
        wanted = tuple(Lock(key, chance.choice(list(LockMode))) for key in keys)
        priority = chance.randint(-1, 1)
        job = bench.submit(
            "sleep", "0.0" + str(chance.randint(1, 9)), locks=wanted, priority=priority
        )
        asked[job] = {lock.key: lock.mode for lock in wanted}

    def holds_all_or_nothing() -> bool:
        holding = held(bench)
        for job, keys in holding.items():
            assert bench.status(job) not in WAITING, f"job-{job} waits and holds {sorted(keys)}"
            assert keys == asked[job], "all of them"
        for key in "abcde":
            modes = [keys[key] for keys in holding.values() if key in keys]
            assert len(modes) <= 1 or set(modes) == {LockMode.SHARED}, "alone, or all share it"
        return all(bench.status(each) is Status.SUCCEEDED for each in asked)

    bench.until(holds_all_or_nothing, "all of them to end, so nothing was deadlocked")
    assert held(bench) == {}
    assert locks_now(bench.client.context) == []


@pytest.mark.req("V71")
def test_the_view_names_holders_and_waiters_and_who_reserves(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(max_active=3, clock=clock)
    holder = bench.submit("sleep", "60", locks=locks("repo:shared"), name="reads")
    bench.step()
    clock.advance(300)
    writer = bench.submit("true", locks=locks("repo", "docs"), name="writes")
    bench.submit("sleep", "60")
    bench.submit("sleep", "60")
    last = bench.submit("true", locks=locks("repo"))
    bench.step()
    docs, repo = locks_now(bench.client.context)
    assert (docs["key"], docs["holders"]) == ("docs", [])
    assert [(each["job"], each["reserves"]) for each in docs["waiters"]] == [
        (f"job-{writer}", True)
    ]
    (held_by,) = repo["holders"]
    assert (held_by["job"], held_by["name"], held_by["mode"]) == (
        f"job-{holder}",
        "reads",
        "shared",
    )
    assert held_by["held_ms"] == 300_000
    assert [(each["job"], each["mode"], each["reserves"]) for each in repo["waiters"]] == [
        (f"job-{writer}", "exclusive", True),
        (f"job-{last}", "exclusive", False),
    ], "the last one lacks a slot as well"
