"""What could not be launched three times: given up, or tried again after a cool-down; and told."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Bench
from headway.base.clock import SystemClock
from headway.core.model import HostTrouble, WaitKind
from headway.core.states import Status
from headway.jobs.views.status import scheduler_status
from headway.jobs.views.why import why
from headway.testing.clock import FakeClock

SECOND = 1_000_000


@pytest.fixture
def cooled(make_bench: Callable[..., Bench]) -> Bench:
    bench = make_bench(clock=FakeClock(SystemClock().now()))
    bench.client.set_setting("scheduler.cooldown", "5m")
    return bench


def strike_out(bench: Bench, chain: int) -> None:
    """Let the last job of this chain fail to be launched three times."""
    job = bench.last(chain).id
    clock = bench.clock
    assert isinstance(clock, FakeClock)
    for strike in (1, 2):
        bench.until(lambda strike=strike: bench.job(job).launch_failures == strike)
        clock.advance(10)
    bench.until(lambda: bench.status(job) is Status.FAILED)


def appears(path: Path) -> None:
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)


def test_after_the_cooldown_it_is_tried_once_more_and_may_succeed(cooled: Bench) -> None:
    clock = cooled.clock
    assert isinstance(clock, FakeClock)
    program = cooled.folder / "late"
    job = cooled.submit(str(program), check=False, retries=2)
    follower = cooled.submit("true", after=(job,))
    strike_out(cooled, job)
    assert (cooled.job(job).reason or "").startswith("circuit-broken: ")
    second = cooled.last(job)
    assert (second.retry_of, second.retries_used) == (job, 0), "it burns no retry"
    cooled.step()
    told = cooled.client.document(second.id)
    assert told["wait"]["kind"] == "launch" and "late" in told["wait"]["detail"]
    assert "scheduler reset" in why(cooled.client.context, second.id)["objections"][0]["remedy"]
    clock.advance(200)
    cooled.crash().recover()
    cooled.step()
    assert cooled.status(second.id) is Status.QUEUED, "not before its time, also after a restart"

    clock.advance(120)
    strike_out(cooled, job)
    third = cooled.last(job)
    assert (third.retry_of, third.attempt) == (second.id, 3), "half-open, and it was shut again"
    appears(program)
    clock.advance(301)
    cooled.until_ended(job, follower)
    assert cooled.status(third.id) is Status.SUCCEEDED
    assert cooled.status(follower) is Status.SUCCEEDED, "who waits never saw a failure"


def test_a_reset_tries_at_once_what_cools_down(cooled: Bench) -> None:
    program = cooled.folder / "late"
    job = cooled.submit(str(program), check=False)
    strike_out(cooled, job)
    appears(program)
    second = cooled.last(job).id
    assert cooled.client.scheduler.reset() == ((), (second,))
    cooled.until_ended(job)
    assert cooled.status(second) is Status.SUCCEEDED


def test_a_job_that_cools_down_can_be_cancelled_and_stays_so(cooled: Bench) -> None:
    job = cooled.submit("no-such-program", check=False)
    strike_out(cooled, job)
    cooled.client.cancel([job])
    assert cooled.last(job).status is Status.CANCELLED
    cooled.clock.sleep(3600)
    cooled.step()
    assert len(cooled.client.jobs.chain(job)) == 2


def test_without_a_cooldown_nothing_is_tried_again_by_itself(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(clock=FakeClock(SystemClock().now()))
    job = bench.submit("no-such-program", check=False, retries=3)
    strike_out(bench, job)
    bench.clock.sleep(7 * 86_400)
    bench.step()
    assert len(bench.client.jobs.chain(job)) == 1
    bench.client.scheduler.reset()
    bench.step()
    assert len(bench.client.jobs.chain(job)) == 1, "what was given up is people's to retry"


def test_the_status_names_what_could_not_be_launched(cooled: Bench) -> None:
    quiet = scheduler_status(cooled.client.context)
    assert quiet["breakers"] == [] and quiet["launch_failures"]["count"] == 0
    assert quiet["circuit_broken"] == {"count": 0, "jobs": []}
    first = cooled.submit("no-such-program", check=False, name="struck")
    strike_out(cooled, first)
    struck = cooled.last(first).id
    cooled.client.set_setting("scheduler.cooldown", "0s")
    given_up = cooled.submit("no-such-program", check=False, name="given up")
    strike_out(cooled, given_up)
    trouble = HostTrouble(WaitKind.STORAGE, "no space", 3, cooled.clock.now() + 4 * SECOND)
    with cooled.store.write() as tx:
        tx.hosts.open_breaker("elsewhere", trouble)
        tx.hosts.open_breaker(cooled.client.context.host.id, trouble)
    told = scheduler_status(cooled.client.context)
    assert {each["host_id"] for each in told["breakers"]} == {
        "elsewhere",
        cooled.client.context.host.id,
    }
    for each in told["breakers"]:
        assert (each["kind"], each["cause"], each["failures"]) == ("storage", "no space", 3)
        assert each["since"] and each["probe_at"] > each["since"]
    assert told["launch_failures"]["count"] == 1
    [waiting] = told["launch_failures"]["jobs"]
    assert (waiting["id"], waiting["name"], waiting["failures"]) == (f"job-{struck}", "struck", 0)
    assert "No such file" in waiting["cause"] and waiting["next_try_at"]
    [ended] = told["circuit_broken"]["jobs"]
    assert (ended["id"], ended["name"]) == (f"job-{given_up}", "given up")
    assert ended["cause"].startswith("exec no-such-program") and ended["finished_at"]

    reset = cooled.client.scheduler.reset()
    assert set(reset.hosts) == {"elsewhere", cooled.client.context.host.id}
    assert reset.jobs == (struck,)
    told = scheduler_status(cooled.client.context)
    assert told["breakers"] == [] and told["launch_failures"]["count"] == 0
    assert told["circuit_broken"]["count"] == 1
    cooled.client.retry(given_up)
    assert scheduler_status(cooled.client.context)["circuit_broken"]["count"] == 0, (
        "somebody saw to it"
    )
    cooled.client.cancel([struck, given_up])


def test_what_was_given_up_is_told_for_a_day(cooled: Bench) -> None:
    cooled.client.set_setting("scheduler.cooldown", "0s")
    job = cooled.submit("no-such-program", check=False)
    strike_out(cooled, job)
    cooled.clock.sleep(86_000)
    assert scheduler_status(cooled.client.context)["circuit_broken"]["count"] == 1
    cooled.clock.sleep(1_000)
    assert scheduler_status(cooled.client.context)["circuit_broken"]["count"] == 0
