"""Capacity: pause, cap, passes; one function behind status, dry run and dispatch."""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest

from harness import Bench
from headway.base.clock import SystemClock
from headway.client import Client
from headway.core.model import shown
from headway.core.states import Status
from headway.jobs.context import Context
from headway.jobs.specification import parse_lock
from headway.store import open_store
from headway.store.store import Store
from headway.testing.clock import FakeClock


class Recorder:
    """Stands between the store and its database and writes down which queries are asked."""

    def __init__(self, store: Store) -> None:
        self.asked: list[str] = []
        names = {query.sql: query.name for query in store.queries.all().values()}
        execute, ask = store.database.execute, store.database.ask

        def recording(sql: str, parameters: object) -> object:
            self.asked.append(names.get(sql, sql))
            return execute(sql, parameters)  # type: ignore[arg-type]

        def recording_all(questions: Sequence[tuple[str, Any]]) -> object:
            self.asked.extend(names.get(sql, sql) for sql, _ in questions)
            return ask(questions)

        store.database.execute = recording  # type: ignore[assignment,method-assign]
        store.database.ask = recording_all  # type: ignore[assignment,method-assign]


@pytest.mark.req("G7", "G36")
def test_a_pause_holds_everything_and_is_known_before_any_job_is_looked_for(bench: Bench) -> None:
    running = bench.submit("sleep", "0.3")
    bench.step()
    bench.client.pause("lunch")
    bench.client.pause("again")
    job = bench.submit("true")
    bench.step()
    document = bench.client.document(job)
    assert document["wait"] == {"kind": "paused", "detail": "paused by tester: lunch"}
    status = bench.client.scheduler.status()
    assert (status["paused"], status["paused_by"], status["reason"]) == (
        True,
        "tester",
        "paused by tester: lunch",
    )
    bench.until(lambda: bench.status(running) is Status.SUCCEEDED)
    recorder = Recorder(bench.store)  # type: ignore[arg-type]
    bench.step()
    assert bench.status(job) is Status.QUEUED
    assert "present_state" in recorder.asked
    assert "ready" not in recorder.asked, "no job is looked for while paused"
    assert bench.client.resume() and not bench.client.resume()
    bench.until_ended(job)


@pytest.mark.req("G37")
def test_a_pause_and_its_end_are_each_written_whole_or_not_at_all(bench: Bench) -> None:
    """What fails after the state was written, and before the event, leaves neither."""
    client, real = bench.client, bench.store.transact

    def cut_short(tell: Callable[[Any], Any]) -> Any:
        def tell_until_the_power_goes(tx: Any) -> Any:
            def gone(*told: object, **named: object) -> None:
                raise RuntimeError("the power is gone")

            tx.events.add = gone
            return tell(tx)

        return real(tell_until_the_power_goes)

    def state() -> tuple[object, int, int]:
        with bench.store.read() as tx:
            return (
                tx.settings.pause_in_force(),
                tx.events.last(),
                tx.settings.marks()["crashes_forgiven_at"],
            )

    for act in (lambda: client.pause("lunch"), client.resume):
        before = state()
        bench.store.transact = cut_short  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="the power is gone"):
            act()
        bench.store.transact = real  # type: ignore[method-assign]
        assert state() == before
        act()
        assert state() != before


@pytest.mark.req("G37")
def test_of_many_who_pause_at_once_one_is_the_whole_state(bench: Bench) -> None:
    names = [f"person-{n}" for n in range(4)]
    ready = threading.Barrier(len(names) + 1)
    seen: set[tuple[str, str | None]] = set()

    def pause(name: str) -> None:
        url = bench.home.store_url or f"sqlite://{bench.home.database}"
        with closing(open_store(url, bench.clock, create=False)) as store:
            client = Client(
                Context(bench.home, bench.config, store, bench.clock, environ={}, actor=name)
            )
            ready.wait()
            answer = client.pause(f"reason of {name}")
            seen.add((answer.actor, answer.reason))

    threads = [threading.Thread(target=pause, args=(name,)) for name in names]
    for each in threads:
        each.start()
    ready.wait()
    while any(each.is_alive() for each in threads):
        with bench.store.read() as tx:
            found = tx.settings.pause_in_force()
        if found is not None:
            seen.add((found.actor, found.reason))
    ((actor, reason),) = seen
    assert reason == f"reason of {actor}", "who is told is who paused"
    with bench.store.read() as tx:
        assert [(each.kind, each.actor) for each in tx.events.since(0, 9)] == [("paused", actor)]


def test_a_pause_between_two_steps_starts_nothing_and_stays(bench: Bench) -> None:
    first, second = bench.submit("true"), bench.submit("true")
    bench.step()
    bench.client.pause(None)
    bench.until(lambda: bench.status(first) is Status.SUCCEEDED)
    bench.turn()
    assert bench.status(second) is Status.QUEUED
    with bench.store.read() as tx:
        assert tx.settings.pause_in_force() is not None
        assert tx.settings.marks()["last_dispatch_count"] == 1


def test_a_pause_lets_doomed_jobs_end(bench: Bench) -> None:
    first = bench.submit("sh", "-c", "sleep 0.1; exit 1")
    second = bench.submit("true", after=(first,))
    bench.step()
    bench.client.pause(None)
    bench.until_ended(second)
    assert bench.status(second) is Status.BLOCKED_BY_DEPENDENCY


@pytest.mark.req("G25", "D17")
@pytest.mark.parametrize(("cap", "running"), [(1, 1), (3, 3), (-1, 5), (0, 5)])
def test_the_cap_bounds_what_runs_and_direct_mode_lifts_it(
    make_bench: Callable[..., Bench], cap: int, running: int
) -> None:
    bench = make_bench(max_active=cap)
    jobs = [bench.submit("sleep", "60") for _ in range(5)]
    bench.step()
    assert [bench.status(job) for job in jobs].count(Status.RUNNING) == running
    status = bench.client.scheduler.status()
    assert status["mode"] == ("deferred" if cap > 0 else "direct")
    assert status["active"] == running
    assert status["free"] == (0 if cap > 0 else None)


@pytest.mark.req("G25")
def test_lowering_the_cap_starts_nothing_until_under_it(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=3)
    jobs = [bench.submit("sleep", "60") for _ in range(4)]
    bench.step()
    bench.client.set_setting("scheduler.max_active", 1)
    bench.client.cancel(jobs[:2])
    bench.until(lambda: bench.status(jobs[1]) is Status.CANCELLED)
    bench.turn()
    assert bench.status(jobs[3]) is Status.QUEUED
    bench.client.cancel([jobs[2]])
    bench.until(lambda: bench.status(jobs[3]) is Status.RUNNING)


def test_dry_run_and_status_agree_with_dispatch(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=2)
    jobs = [bench.submit("sleep", "60", priority=n) for n in range(3)]
    would = [shown(job.id) for job in bench.client.scheduler.dry_run(10).to_dispatch]
    assert bench.client.scheduler.status()["queued_ready"] == 3
    bench.step()
    started = [f"job-{job}" for job in reversed(jobs) if bench.status(job) is Status.RUNNING]
    assert would == started == ["job-3", "job-2"]


@pytest.mark.req("G4")
def test_a_dry_run_commits_nothing(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=2)
    for options in ({}, {"locks": (parse_lock("repo"),)}, {"needs": ("custom:nobody:1",)}):
        bench.submit("true", **options)
    waiting = bench.submit("true", after=(1,))
    url = bench.home.store_url or f"sqlite://{bench.home.database}"
    with closing(open_store(url, bench.clock, create=False)) as other:
        other.changed()
        plan = bench.client.scheduler.dry_run(1)
        assert [job.id for job in plan.to_dispatch] == [1]
        assert not other.changed(), "another connection would see any commit"
        bench.client.cancel([waiting])
        assert other.changed()


@pytest.mark.req("G8")
def test_one_pass_starts_at_most_the_batch_and_a_spawn_delay_spaces_passes(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock, max_active=10)
    jobs = [bench.submit("sleep", "60") for _ in range(5)]
    bench.client.set_setting("scheduler.spawn_delay", "10s")
    bench.client.set_setting("scheduler.batch_size", 2)

    def running() -> int:
        return [bench.status(job) for job in jobs].count(Status.RUNNING)

    delay = bench.step()
    assert running() == 2 and delay <= 10
    bench.step()
    assert running() == 2
    clock.advance(10)
    bench.step()
    assert running() == 4


@pytest.mark.req("D1")
def test_params_cannot_change_once_the_job_runs(bench: Bench) -> None:
    from headway.base.errors import ConflictError

    job = bench.submit("sleep", "60")
    bench.step()
    database = bench.store.database  # type: ignore[attr-defined]
    with pytest.raises(ConflictError, match="Cannot modify params"):
        database.execute(f"update jobs set params = '{{}}' where id = {job}", {})
    assert bench.job(job).params["argv"] == ["sleep", "60"]


def test_every_transition_and_action_is_on_record_with_its_actor(bench: Bench) -> None:
    first = bench.submit("sh", "-c", "exit 1", retries=1, retry_base=0)
    second = bench.submit("true", after=(first,))
    bench.client.pause("why not")
    bench.client.resume()
    bench.until_ended(second)
    with bench.store.read() as tx:
        events = tx.events.since(0, 1000)
    told = [(event.kind, event.job_id, event.actor) for event in events]
    assert told == [
        ("submitted", first, "tester"),
        ("submitted", second, "tester"),
        ("waiting_on_deps", second, "tester"),
        ("paused", None, "tester"),
        ("resumed", None, "tester"),
        ("running", first, "worker-test"),
        ("failed", first, "worker-test"),
        ("retried", first, "worker-test"),
        ("submitted", 3, "worker-test"),
        ("running", 3, "worker-test"),
        ("failed", 3, "worker-test"),
        ("blocked_by_dependency", second, "worker-test"),
    ]
    assert all(event.at > 0 for event in events)


def test_why_names_every_objection_and_the_place_in_the_queue(bench: Bench) -> None:
    from headway.jobs.specification import parse_lock

    bench.submit("sleep", "60", locks=(parse_lock("repo"),))
    bench.step()
    ahead = bench.submit("true", priority=5)
    job = bench.submit("true", locks=(parse_lock("repo"),))
    bench.step()
    bench.client.pause("night")
    answer = bench.client.jobs.why(job)
    assert [each["kind"] for each in answer["objections"]] == ["locks", "paused"]
    assert "repo is held by job-1" in answer["objections"][0]["remedy"]
    assert (answer["place"], answer["queued"]) == (2, 2)
    assert bench.client.jobs.why(ahead)["place"] == 1


def test_the_log_budget_holds_new_starts_with_a_reason(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(settings={"logs.budget": "1KiB"})  # fault B4
    noisy = bench.submit("sh", "-c", "head -c 4096 /dev/zero")
    bench.until_ended(noisy)
    job = bench.submit("true")
    bench.step()
    wait = bench.client.document(job)["wait"]
    assert wait["kind"] == "storage"
    assert wait["detail"] == "all logs together use 4.0 KiB of the 1.0 KiB that logs.budget allows"


def test_a_missed_wake_up_is_found_and_recorded(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock, max_active=2)
    bench.may_miss = True  # it is provoked
    first = bench.submit("true")
    second = bench.submit("true", after=(first,))
    bench.step()
    database = bench.store.database  # type: ignore[attr-defined]
    bench.until(lambda: bench.status(first) is Status.SUCCEEDED)
    bench.until_ended(second)
    third = bench.submit("true", delay=3_600_000_000)
    bench.step()
    database.execute("update jobs set not_before = null, wake_at = null where id = 3", {})
    clock.advance(21)
    assert bench.missed_wake_ups() == [third], "one that would be found"
    bench.until_ended(third)
    assert bench.missed_wake_ups() == [third], "one that was found"
    assert "missed_wake_up" in bench.kinds(third)
    assert "missed_wake_up" not in bench.kinds(second)


def test_a_worker_does_not_gather_descriptors(make_bench: Callable[..., Bench]) -> None:
    import os

    bench = make_bench(max_active=8)  # fault B12
    bench.until_ended(*[bench.submit("true") for _ in range(8)])
    before = len(os.listdir("/proc/self/fd"))
    bench.until_ended(*[bench.submit("true") for _ in range(120)])
    assert len(os.listdir("/proc/self/fd")) <= before
