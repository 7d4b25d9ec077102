"""A job that waits for another lends it what it holds, so a cap of one cannot wait for itself."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Bench, wait_for
from headway.base.clock import SECOND, SystemClock
from headway.core.states import Status
from headway.jobs.request import Request
from headway.jobs.specification import parse_lock
from headway.jobs.views.present import present_capacity
from headway.store.records import Lending
from headway.testing.clock import FakeClock

WAITER = """
import os, sys
from headway.client import connect
from headway.jobs.request import Request
from headway.jobs.specification import parse_lock
from headway.jobs.wait import Waiter
from headway.base.errors import HeadwayError
client = connect()
locks = tuple(parse_lock(text) for text in sys.argv[2:])
job = client.submit(Request(argv=("sh", "-c", sys.argv[1]), locks=locks))
try:
    ended = Waiter(client.context, job.job_id).until_ended()
except HeadwayError as error:
    print(error); sys.exit(error.exit_code)
print(ended.status)
"""


def waiter(script: str, *locks: str) -> tuple[str, ...]:
    return (sys.executable, "-c", WAITER, script, *locks)


def with_library(bench: Bench) -> Bench:
    """The job runs this very library."""
    path = os.pathsep.join(each for each in sys.path if each)
    bench.client.context.environ = {**bench.client.context.environ, "PYTHONPATH": path}
    Path(bench.home.config).write_text("[worker]\nautostart = false\n")
    return bench


def said(bench: Bench, job: int) -> str:
    return Path(bench.home.job(job), "stdout.log").read_text().strip()


def test_an_agent_that_runs_exec_inside_a_job_does_not_wait_for_itself(bench: Bench) -> None:
    with_library(bench)
    outer = bench.submit(*waiter("exit 0"))
    bystander = bench.submit("true")
    bench.until_ended(outer)
    assert said(bench, outer) == "succeeded"
    inner = bench.job(3)
    with bench.store.read() as tx:
        claim = tx.claims.last_of([inner.id]).get(inner.id)
        assert tx.claims.lendings() == []
    assert claim is not None and claim.borrowed_from == outer
    bench.until_ended(bystander)
    started = bench.job(bystander).started_at
    assert started is not None and started >= (bench.job(outer).finished_at or 0), (
        "the lent slot is for the awaited job only"
    )


def test_a_lock_that_the_waiter_holds_makes_the_waiting_fail(bench: Bench) -> None:
    with_library(bench)
    outer = bench.submit(*waiter("exit 0", "repo"), locks=(parse_lock("repo"),))
    bench.until_ended(outer)
    assert bench.status(outer) is Status.FAILED
    assert "job-2 needs lock repo, which job-1 holds while it waits for it" in said(bench, outer)
    assert bench.client.document(outer)["run"]["exit_code"] == 4


def test_what_the_awaited_job_waits_for_borrows_too(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench()
    lender = bench.submit("sleep", "60")
    bench.step()
    first = bench.submit("true")
    second = bench.submit("true", after=(first,))
    other = bench.submit("true", priority=5)
    bench.turn()
    assert bench.status(first) is Status.QUEUED
    with bench.store.write() as tx:
        tx.claims.lend("t", Lending(lender, second, tx.now() + 3600 * SECOND))
        tx.waits.wake_chains([first, second])
    bench.until_ended(second)
    assert bench.status(other) is Status.QUEUED


def test_who_makes_what_the_awaited_job_needs_borrows_too(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench()
    lender = bench.submit("sleep", "60")
    bench.step()
    maker = bench.submit("true", produces=("custom:a:report",))
    user = bench.submit("true", needs=("custom:a:report",))
    other = bench.submit("true", priority=5)
    bench.turn()
    with bench.store.write() as tx:
        tx.claims.lend("t", Lending(lender, user, tx.now() + 3600 * SECOND))
        tx.waits.wake_chains([user])
    bench.until_ended(maker, user)
    assert bench.status(other) is Status.QUEUED


def test_a_lending_that_is_not_renewed_ends_but_not_right_after_a_suspend(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    lender = bench.submit("sleep", "60")
    awaited = bench.submit("sleep", "60")
    bench.step()
    with bench.store.write() as tx:
        tx.claims.lend("t", Lending(lender, awaited, tx.now() + 15 * SECOND))
    bench.step()
    assert bench.status(awaited) is Status.RUNNING

    clock.advance(3600)  # the machine slept: nobody could renew
    bench.step()
    with bench.store.read() as tx:
        assert len(tx.claims.lendings()) == 1
    clock.advance(2)
    bench.step()
    clock.advance(4)
    bench.step()
    with bench.store.read() as tx:
        assert tx.claims.lendings() == []
        capacity = present_capacity(bench.client.context, tx)
    assert capacity.running == 2, "both count now"
    late = bench.submit("true")
    bench.client.cancel([awaited])
    bench.until(lambda: bench.status(awaited) is Status.CANCELLED)
    assert bench.status(late) is Status.QUEUED, "nothing starts until under the cap"


def test_only_the_running_claim_itself_can_lend(bench: Bench) -> None:
    from headway.jobs.wait import surrounding_job

    job = bench.submit("sleep", "60")
    bench.step()
    with bench.store.read() as tx:
        claim = tx.claims.of_job(job)
    assert claim is not None
    env = {
        "HEADWAY_HOME": bench.home.path,
        "HEADWAY_JOB_ID": f"job-{job}",
        "HEADWAY_CLAIM": claim.token,
    }
    bench.client.context.environ = env
    assert surrounding_job(bench.client.context) == job
    bench.client.context.environ = {**env, "HEADWAY_CLAIM": "0" * 32}
    assert surrounding_job(bench.client.context) is None
    bench.client.context.environ = {**env, "HEADWAY_HOME": "/elsewhere"}
    assert surrounding_job(bench.client.context) is None


@pytest.mark.parametrize("request_", [Request(argv=("true",))])
def test_a_waiter_outside_of_any_job_lends_nothing(bench: Bench, request_: Request) -> None:
    from headway.jobs.wait import lending

    job = bench.client.submit(request_)
    with lending(bench.client.context, bench.job(job.job_id)), bench.store.read() as tx:
        assert tx.claims.lendings() == []
    assert wait_for(lambda: True)


def test_waiting_for_what_waits_for_oneself_is_refused(bench: Bench) -> None:
    from headway.base.errors import WaitDeadlockError
    from headway.jobs.wait import refuse_deadlock

    job = bench.submit("sleep", "60")
    follower = bench.submit("true", after=(job,))
    last = bench.submit("true", after=(follower,))
    bench.step()
    with bench.store.read() as tx, pytest.raises(WaitDeadlockError, match="job-1"):
        refuse_deadlock(tx, job, last)


@pytest.mark.parametrize("limit", ["scheduler.max_active", "scheduler.limits.resource.gpu"])
def test_a_cap_that_is_lowered_below_those_who_wait_does_not_keep_them_waiting(
    make_bench: Callable[..., Bench], limit: str
) -> None:
    bench = make_bench(max_active=2)
    bench.client.set_setting(limit, 2)
    waiters = [bench.submit("sleep", "600", resources=("gpu",)) for _ in range(2)]
    bench.step()
    awaited = [bench.submit("true", resources=("gpu",)) for _ in range(2)]
    bench.client.set_setting(limit, 1)
    with bench.store.write() as tx:
        for waiter, job in zip(waiters, awaited, strict=True):
            tx.claims.lend(f"of {waiter}", Lending(waiter, job, tx.now() + 3600 * SECOND))
    for job in awaited:
        bench.until_ended(job)
        assert bench.status(job) is Status.SUCCEEDED


def test_nothing_starts_while_a_lender_goes_on_beside_who_borrowed_from_it(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=2)
    first, second = (bench.submit("sleep", "600") for _ in range(2))
    bench.step()
    borrower, other = bench.submit("sleep", "600"), bench.submit("sleep", "600")
    with bench.store.write() as tx:
        tx.claims.lend("first", Lending(first, borrower, tx.now() + 3600 * SECOND))
    bench.step()
    assert bench.status(borrower) is Status.RUNNING
    with bench.store.write() as tx:
        tx.claims.end_lending("first")
        tx.claims.lend("second", Lending(second, other, tx.now() + 3600 * SECOND))
    bench.step()
    assert bench.status(other) is Status.QUEUED, "three would do something where two may"
    bench.client.cancel([first])
    bench.until(lambda: bench.status(other) is Status.RUNNING)
