"""How far awaited jobs are, on both stores."""

from collections.abc import Callable

import pytest

from harness import Bench
from headway.base.errors import NotFoundError, TimedOutError
from headway.core.states import Status
from headway.jobs.groups import Plan
from headway.jobs.request import Request
from headway.jobs.views.awaited import AwaitedJobs, awaited_jobs, awaited_members


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(max_active=1)


def awaited(bench: Bench, *ids: int, this_only: bool = False, most: int = 9) -> AwaitedJobs:
    return awaited_jobs(bench.client.context, ids, this_only=this_only, most=most)


def test_all_are_counted_and_what_runs_or_went_wrong_is_described_first(bench: Bench) -> None:
    done, bad = bench.submit("true"), bench.submit("false")
    bench.until_ended(done)
    bench.until_ended(bad)
    waiting, running = bench.submit("true", priority=-1), bench.submit("sleep", "60")
    bench.until(lambda: bench.status(running) is Status.RUNNING)
    seen = awaited(bench, done, waiting, bad, running, done)
    assert [each.job.id for each in seen.jobs] == [done, waiting, bad, running]
    assert seen.counts == {
        Status.SUCCEEDED: 1,
        Status.FAILED: 1,
        Status.QUEUED: 1,
        Status.RUNNING: 1,
    }
    assert [each.wait for each in seen.jobs] == [None, "the one slot is in use", None, None]
    few = awaited(bench, done, waiting, bad, running, most=2)
    assert [each.job.id for each in few.jobs] == [bad, running] and few.counts == seen.counts
    assert awaited(bench, done, most=0).jobs == []


def test_jobs_of_the_same_name_say_how_long_it_takes(bench: Bench) -> None:
    before = bench.submit("sleep", "0.01", name="build")
    bench.until_ended(before)
    running, unknown = bench.submit("sleep", "60", name="build"), bench.submit("true", name="new")
    bench.until(lambda: bench.status(running) is Status.RUNNING)
    first, second = awaited(bench, running, unknown).jobs
    took = bench.job(before).finished_at - bench.job(before).started_at  # type: ignore[operator]
    assert first.ends_at == bench.job(running).started_at + took  # type: ignore[operator]
    assert second.ends_at is None
    # Nobody knows any more once the first takes longer than usual, as on a busy machine.
    assert second.starts_at in (None, first.ends_at)


def test_a_retry_takes_the_place_of_what_it_repeats_unless_told_otherwise(bench: Bench) -> None:
    job = bench.submit("false", retries=1, retry_base=3600 * 1_000_000)
    bench.until(lambda: bench.status(job) is Status.FAILED)
    (shown,) = awaited(bench, job).jobs
    assert shown.job.retry_of == job and shown.job.status is Status.QUEUED
    (shown,) = awaited(bench, job, this_only=True).jobs
    assert shown.job.id == job and shown.job.status is Status.FAILED


def test_members_of_a_group_are_awaited_in_their_order(bench: Bench) -> None:
    bench.client.pause("look")
    requests = [Request(argv=("true",), cwd="/", name=name) for name in "abc"]
    bench.client.groups.submit(requests, Plan(name="g"))
    seen = awaited_members(bench.client.context, "g", most=2)
    assert [each.job.name for each in seen.jobs] == ["a", "b"]
    assert seen.counts == {Status.QUEUED: 1, Status.WAITING_ON_DEPS: 2}
    with pytest.raises(TimedOutError, match=r"group-1 \(g\) has not ended: job-1 is still queued"):
        bench.client.groups.wait("g", timeout=0.02)
    bench.client.groups.cancel("g")
    assert bench.client.groups.wait("g")["counts"] == {"cancelled": 3}
    with pytest.raises(NotFoundError, match="there is no group 'h'"):
        bench.client.groups.wait("h")
