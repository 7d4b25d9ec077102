"""Wake-ups that only the sweep would make up for. Each bench looks for missed ones at its end."""

from collections.abc import Callable

import pytest

from grouped import TRUE, group_of, states
from harness import Bench
from headway.core.states import Status
from headway.jobs.groups import Plan, create
from headway.jobs.specification import parse_lock

HOUR = 3_600_000_000


def test_who_is_behind_several_that_are_cancelled_together_has_its_turn(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=3)
    stays = ("sleep", "600")
    _, jobs = group_of(bench, stays, TRUE, TRUE, stays, on_failure="continue")
    bench.step()
    bench.client.cancel(jobs[1:3])
    bench.client.cancel(jobs[:1])
    bench.until(lambda: bench.status(jobs[3]) is Status.RUNNING)
    assert states(bench, jobs[:3]) == [Status.CANCELLED] * 3


def test_a_new_worker_looks_at_everything_once(bench: Bench) -> None:
    """Whatever an old worker, or an older program, has filed where nobody would find it."""
    job = bench.submit("sleep", "600", delay=HOUR)
    bench.step()
    database = bench.store.database  # type: ignore[attr-defined]
    database.execute("update jobs set not_before = null, wake_at = null where id = 1", {})
    bench.step()
    assert bench.status(job) is Status.QUEUED
    bench.crash().recover()
    bench.step()
    assert bench.status(job) is Status.RUNNING


@pytest.mark.parametrize("verb", ["cancel", "end"])
def test_a_lock_that_is_given_up_goes_to_who_waits_for_it(
    make_bench: Callable[..., Bench], verb: str
) -> None:
    bench = make_bench(max_active=3)
    repo = (parse_lock("repo"),)
    first = bench.submit("sleep", "600" if verb == "cancel" else "0", locks=repo)
    second = bench.submit("sleep", "600", locks=repo)
    bench.step()
    if verb == "cancel":
        bench.client.cancel([first])
    bench.until(lambda: bench.status(second) is Status.RUNNING)


def test_who_joins_a_group_and_must_wait_its_turn_gives_up_what_was_promised_to_it(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=5)
    bench.submit("sleep", "600", locks=(parse_lock("held"),))
    later = bench.submit("true", delay=HOUR)
    member = bench.submit("true", locks=(parse_lock("held"), parse_lock("free")))
    waiter = bench.submit("sleep", "600", locks=(parse_lock("free"),))
    bench.step()
    assert bench.status(waiter) is Status.WAITING_ON_LOCKS
    create(bench.client.context, Plan(), [later, member])
    bench.step()
    assert bench.status(member) is Status.WAITING_ON_DEPS
    assert bench.status(waiter) is Status.RUNNING
