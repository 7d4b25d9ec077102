"""A job that lacks a lock and something of a limit, too, keeps no lock from others."""

from collections.abc import Callable

from harness import Bench
from headway.base.clock import SystemClock
from headway.core.model import Lock
from headway.core.states import Status
from headway.testing.clock import FakeClock

AWAY = ("sleep", "600")


def test_a_lock_passes_by_a_job_that_lacks_more(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(clock=FakeClock(SystemClock().now()), max_active=10)
    bench.client.set_setting("scheduler.limits.resource.gpu", 1)
    bench.submit(*AWAY, resources=("gpu",))
    held = bench.submit(*AWAY, locks=(Lock("a"),))
    bench.submit(*AWAY, locks=(Lock("b"),))
    bench.step()
    first = bench.submit(*AWAY, locks=(Lock("a"), Lock("b")), resources=("gpu",))
    second = bench.submit(*AWAY, locks=(Lock("a"),))
    bench.step()
    bench.client.cancel([held])
    bench.until(lambda: bench.status(held) is Status.CANCELLED)
    bench.until(lambda: bench.status(second) is Status.RUNNING)
    assert bench.status(first) is Status.WAITING_ON_LOCKS
    assert "missed_wake_up" not in bench.kinds(second)


def test_a_promised_lock_is_given_up_when_a_limit_is_gone_too(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(clock=FakeClock(SystemClock().now()), max_active=10)
    bench.client.set_setting("scheduler.limits.resource.gpu", 1)
    bench.submit(*AWAY, locks=(Lock("a"),))
    bench.step()
    first = bench.submit(*AWAY, locks=(Lock("a"), Lock("b")), resources=("gpu",))
    bench.step()
    second = bench.submit(*AWAY, locks=(Lock("b"),))
    bench.step()
    assert bench.status(second) is Status.WAITING_ON_LOCKS, "b is promised"
    bench.submit(*AWAY, resources=("gpu",), priority=1)
    bench.step()
    with bench.store.write() as tx:
        tx.waits.wake([first])
    bench.until(lambda: bench.status(second) is Status.RUNNING)
    assert "missed_wake_up" not in bench.kinds(second)
