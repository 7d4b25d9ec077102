"""What is cleaned up unasked, and what is not."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Bench
from headway.base.clock import SystemClock
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.core.fire import Firing, SlotOutcome
from headway.core.states import Status
from headway.testing.clock import FakeClock
from headway.worker.janitor import EVERY, LOG_LIMIT, Janitor

DAY = 86_400.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(SystemClock().now())


@pytest.fixture
def bench(make_bench: Callable[..., Bench], clock: FakeClock) -> Bench:
    return make_bench(clock=clock)


@pytest.fixture
def janitor(bench: Bench, clock: FakeClock) -> Janitor:
    host_id = bench.client.context.host.id
    return Janitor(bench.store, bench.home, clock, host_id=host_id, actor="worker-test")


def environments(bench: Bench) -> set[str]:
    return set(os.listdir(bench.home.environments))


def submit_with(bench: Bench, colour: str, **options: object) -> tuple[int, str]:
    """A job, and the name of the environment that it alone has."""
    before = environments(bench)
    bench.client.context.environ = {**bench.client.context.environ, "COLOUR": colour}
    job = bench.submit("true", **options)
    (name,) = environments(bench) - before
    return job, name


def test_an_unused_environment_goes_after_a_week(
    bench: Bench, janitor: Janitor, clock: FakeClock
) -> None:
    job, name = submit_with(bench, "blue")
    bench.until_ended(job)
    clock.advance(6.9 * DAY)
    assert janitor.drop_stale_environments() == []
    assert environments(bench) == {name}
    clock.advance(0.2 * DAY)
    assert janitor.drop_stale_environments() == [name]
    assert environments(bench) == set()
    assert janitor.drop_stale_environments() == []


def test_nothing_goes_where_another_store_may_need_it(
    bench: Bench, janitor: Janitor, clock: FakeClock
) -> None:
    job, name = submit_with(bench, "blue")
    bench.until_ended(job)
    make_home(Home(bench.home.path, "sqlite:///elsewhere/headway.db"))
    clock.advance(8 * DAY)
    assert janitor.drop_stale_environments() == [] and environments(bench) == {name}


def test_an_environment_stays_while_an_active_job_needs_it(
    bench: Bench, janitor: Janitor, clock: FakeClock
) -> None:
    done, unused = submit_with(bench, "blue")
    bench.until_ended(done)
    waiting, needed = submit_with(bench, "red", delay=int(30 * DAY * 1e6))
    clock.advance(20 * DAY)
    assert janitor.drop_stale_environments() == [unused]
    assert environments(bench) == {needed}
    clock.advance(10 * DAY)
    assert [job.status for job in bench.until_ended(waiting)] == [Status.SUCCEEDED]


def test_a_later_submit_keeps_an_old_environment(
    bench: Bench, janitor: Janitor, clock: FakeClock
) -> None:
    job, name = submit_with(bench, "blue")
    bench.until_ended(job)
    path = Path(bench.home.environments, name)
    eight_days_ago = clock.now() / 1e6 - 8 * DAY
    os.utime(path, (eight_days_ago, eight_days_ago))
    bench.until_ended(bench.submit("true"))
    assert environments(bench) == {name}
    assert janitor.drop_stale_environments() == []


def test_an_environment_stays_for_a_week_after_its_last_job_ended(
    bench: Bench, janitor: Janitor, clock: FakeClock
) -> None:
    """So that a job which waited for long can be retried by hand."""
    job, name = submit_with(bench, "blue")
    long_ago = clock.now() / 1e6 - 30 * DAY
    os.utime(Path(bench.home.environments, name), (long_ago, long_ago))
    bench.until_ended(job)
    assert janitor.drop_stale_environments() == []
    assert environments(bench) == {name}
    clock.advance(7.1 * DAY)
    assert janitor.drop_stale_environments() == [name]


def test_what_a_killed_submit_left_behind_goes_too(
    bench: Bench, janitor: Janitor, clock: FakeClock
) -> None:
    torn = Path(bench.home.environments, "0" * 64 + ".4711.tmp")
    torn.write_text("{")
    assert janitor.drop_stale_environments() == []
    clock.advance(8 * DAY)
    assert janitor.drop_stale_environments() == [torn.name]


def test_an_environment_that_a_janitor_died_over_is_put_back(bench: Bench) -> None:
    job, name = submit_with(bench, "blue")
    path = Path(bench.home.environments, name)
    path.rename(f"{path}.aside")
    bench.crash().recover()
    assert environments(bench) == {name}
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED


def test_the_janitor_cleans_at_once_and_then_every_hour(
    bench: Bench, janitor: Janitor, clock: FakeClock
) -> None:
    job, _ = submit_with(bench, "blue")
    bench.until_ended(job)
    assert janitor.step() == pytest.approx(EVERY)
    clock.advance(8 * DAY)
    assert janitor.step() == pytest.approx(EVERY) and environments(bench) == set()
    clock.advance(EVERY / 2)
    assert janitor.step() == EVERY / 2


@pytest.mark.parametrize(("size", "left"), [(LOG_LIMIT, LOG_LIMIT), (LOG_LIMIT + 1, 0)])
def test_the_workers_log_is_cut_at_its_limit(
    bench: Bench, janitor: Janitor, size: int, left: int
) -> None:
    log = Path(bench.home.worker_log)
    log.write_bytes(b"x" * size)
    janitor.step()
    assert log.stat().st_size == left


def test_records_of_slots_are_kept_for_a_month_and_a_thousand(
    bench: Bench, janitor: Janitor, clock: FakeClock
) -> None:
    for name in ("often", "rarely"):
        bench.client.schedules.add(name=name, every="100d", argv=["true"])
    now, day = clock.now(), int(DAY * 1e6)
    with bench.store.write() as tx:
        tx.schedules.add_firings(_fired(1, now - number, now) for number in range(1, 1201))
        tx.schedules.add_firings(_fired(2, now - days * day, now - days * day) for days in (29, 31))
    while janitor.step() < 1:
        pass
    assert [len(bench.client.schedules.slots(name, 9999)) for name in ("often", "rarely")] == [
        1000,
        1,
    ]


def _fired(schedule_id: int, slot: int, at: int) -> Firing:
    return Firing(schedule_id, slot, slot, 1, SlotOutcome.FIRED, None, 1, at)
