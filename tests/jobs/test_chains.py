"""Retry chains: each try is a new job, the last one decides, backoff is really enforced."""

from collections.abc import Callable

import pytest

from harness import Bench
from headway.base.clock import SystemClock
from headway.base.errors import ConflictError
from headway.core.states import Status
from headway.jobs.approvals import reject
from headway.testing.clock import FakeClock

SECOND = 1_000_000


@pytest.mark.req("E16", "E17", "E18", "D13", "D7", "V30")
def test_three_retries_make_four_executions_and_then_no_more(bench: Bench) -> None:
    first = bench.submit("false", retries=3, retry_base=0)
    last = bench.until_ended(first)[0]
    chain = bench.client.jobs.chain(first)
    assert [each["id"] for each in chain] == ["job-1", "job-2", "job-3", "job-4"]
    assert [each["retry_of"] for each in chain] == [None, "job-1", "job-2", "job-3"]
    assert [each["attempt"] for each in chain] == [1, 2, 3, 4]
    assert {each["run"]["exit_code"] for each in chain} == {1}
    assert last.reason == "exit code 1; attempt 4 of 4, no retry is left"
    bench.turn()
    assert len(bench.client.jobs.chain(first)) == 4


@pytest.mark.req("E19")
def test_the_nth_retry_waits_base_times_two_to_the_n_minus_one_also_across_restarts(
    make_bench: Callable[..., Bench],
) -> None:
    # Supervisors use the real clock, and ours stands still: it is moved on to each retry.
    clock = FakeClock(SystemClock().now() + 3600 * SECOND)
    bench = make_bench(clock=clock)
    first = bench.submit("false", retries=3, retry_base=10 * SECOND)
    for nth, pause in enumerate((10, 20, 40), start=1):
        bench.until(lambda nth=nth: len(bench.client.jobs.chain(first)) == nth + 1)
        failed = bench.client.jobs.chain(first)[-2]
        job = bench.last(first)
        finished = bench.job(int(failed["id"][4:])).finished_at
        assert finished is not None and job.not_before == finished + pause * SECOND
        bench.crash().recover()
        assert bench.job(job.id).not_before == job.not_before
        clock.advance(pause)


@pytest.mark.req("E19")
def test_a_retry_does_not_start_before_its_time(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    first = bench.submit("false", retries=1, retry_base=3600 * SECOND)
    bench.until(lambda: bench.last(first).id != first)
    retry = bench.last(first)
    clock.advance(3590)
    bench.step()
    assert bench.status(retry.id) is Status.QUEUED
    assert bench.client.document(retry.id)["wait"]["kind"] == "time"
    clock.advance(20)
    bench.step()
    assert bench.status(retry.id) is Status.RUNNING
    bench.until_ended(first)


def test_dependents_wait_through_all_retries_and_see_only_the_end(bench: Bench) -> None:
    script = "test $HEADWAY_ATTEMPT = 3"
    flaky = bench.submit("sh", "-c", script, retries=3, retry_base=0)
    doomed = bench.submit("false", retries=2, retry_base=0)
    happy = bench.submit("true", after=(flaky,))
    sad = bench.submit("true", after=(doomed,))
    bench.until_ended(happy, sad)
    assert bench.status(happy) is Status.SUCCEEDED
    assert bench.status(flaky) is Status.FAILED, "the first try stays as it was"
    assert bench.job(sad).reason == f"dependency failed for job job-{doomed} (failed)"
    blocked_at = bench.job(sad).finished_at
    last_try = bench.last(doomed).finished_at
    assert blocked_at is not None and last_try is not None and blocked_at >= last_try


@pytest.mark.req("E7")
def test_only_a_failure_is_retried(bench: Bench) -> None:
    succeeded = bench.submit("true", retries=3)
    skipped = bench.submit("sh", "-c", "exit 9", retries=3, skip_exit_codes=(9,))
    bench.until_ended(succeeded, skipped)
    assert len(bench.client.jobs.chain(succeeded)) == len(bench.client.jobs.chain(skipped)) == 1


def test_retry_on_names_what_is_retried(bench: Bench) -> None:
    listed = bench.submit("sh", "-c", "exit 75", retries=1, retry_base=0, retry_on=("75",))
    other = bench.submit("sh", "-c", "exit 1", retries=1, retry_base=0, retry_on=("75",))
    killed = bench.submit("sh", "-c", "kill -9 $$", retries=1, retry_base=0, retry_on=("signal",))
    bench.until_ended(listed, other, killed)
    assert [len(bench.client.jobs.chain(each)) for each in (listed, other, killed)] == [2, 1, 2]


@pytest.mark.req("V79", "D13")
def test_a_manual_retry_continues_the_chain_with_a_fresh_budget(bench: Bench) -> None:
    job = bench.submit("false", retries=1, retry_base=0)
    bench.until_ended(job)
    by_hand = bench.client.retry(job)
    assert (by_hand.retry_of, by_hand.attempt, by_hand.retries_used) == (2, 3, 0)
    bench.until_ended(job)
    assert [each["attempt"] for each in bench.client.jobs.chain(job)] == [1, 2, 3, 4]

    dependent = bench.submit("true", after=(job,))
    bench.until_ended(dependent)
    assert bench.status(dependent) is Status.BLOCKED_BY_DEPENDENCY
    again = bench.client.retry(dependent)
    bench.until_ended(dependent)
    assert bench.status(again.id) is Status.BLOCKED_BY_DEPENDENCY, "what it waits for still failed"


def test_a_retry_is_refused_after_success(bench: Bench) -> None:
    job = bench.submit("true")
    bench.until_ended(job)
    with pytest.raises(ConflictError, match="succeeded"):
        bench.client.retry(job)
    assert len(bench.client.jobs.chain(job)) == 1


def test_a_retried_job_holds_new_dependents_again(bench: Bench) -> None:
    job = bench.submit("sh", "-c", "test -e go")
    bench.until_ended(job)
    bench.client.pause("hold")
    retry = bench.client.retry(job)
    waiting = bench.submit("true", after=(job,))
    bench.client.resume()
    bench.step()
    assert bench.status(waiting) is Status.WAITING_ON_DEPS
    bench.until_ended(waiting)
    assert bench.status(retry.id) is Status.FAILED


@pytest.mark.req("V79")
def test_what_is_blocked_is_retried_by_hand_alone(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    failed = bench.submit("false")
    after = bench.submit("true", after=(failed,), retries=3, retry_base=0)
    asked = bench.submit("true", require_approval=True, retries=3, retry_base=0)
    bench.until(lambda: bench.status(asked) is Status.WAITING_ON_APPROVAL)
    reject(bench.client.context, asked, "no")
    bench.until_ended(failed, after)
    for _ in range(3):
        clock.advance(24 * 3600)
        bench.step()
    blocked = {after: Status.BLOCKED_BY_DEPENDENCY, asked: Status.BLOCKED_BY_APPROVAL}
    for job, status in blocked.items():
        assert (bench.status(job), bench.last(job).id) == (status, job)
        again = bench.client.retry(job)
        assert (again.retry_of, bench.status(job)) == (job, status)
        assert bench.last(job).id == again.id
