"""A cancel takes along all that comes after, and nothing else."""

import pytest

from harness import Bench
from headway.base.errors import ConflictError
from headway.core.states import Status

CANCELLED = Status.CANCELLED


def test_all_active_jobs_down_the_line_are_cancelled_and_named(bench: Bench) -> None:
    begun = bench.folder / "begun"
    root = bench.submit("sh", "-c", f"touch {begun}; exec sleep 60", grace=100_000)
    left = bench.submit("true", after=(root,))
    maker = bench.submit("true", after=(root,), produces=("custom:report:june",))
    reader = bench.submit("true", needs=("custom:report:june",))
    below = bench.submit("true", after=(left, reader))
    beside = bench.submit("sleep", "60", grace=100_000)
    bench.until(begun.exists)
    results = bench.client.jobs.cancel_downstream([root])
    assert [each.job_id for each in results] == [root, left, maker, reader, below]
    assert [each.was_running for each in results] == [True, False, False, False, False]
    ended = bench.until_ended(root, left, maker, reader, below)
    assert {job.status for job in ended} == {CANCELLED}
    assert {job.reason for job in ended} == {"cancelled by tester"}
    bench.until(lambda: bench.status(beside) is Status.RUNNING)


def test_one_transaction_cancels_them_all(bench: Bench) -> None:
    bench.client.pause("nothing is to start")
    root = bench.submit("true")
    others = [bench.submit("true", after=(root,)) for _ in range(3)]
    bench.client.jobs.cancel_downstream([root])
    at = {bench.job(each).finished_at for each in (root, *others)}
    assert len(at) == 1 and None not in at


def test_what_has_ended_is_left_and_what_follows_from_it_is_not(bench: Bench) -> None:
    root = bench.submit("true")
    bench.until_ended(root)
    middle = bench.submit("true", after=(root,))
    bench.until_ended(middle)
    last = bench.submit("true", after=(middle,), delay=3_600_000_000)
    assert [each.job_id for each in bench.client.jobs.cancel_downstream([root])] == [last]
    assert [bench.status(each) for each in (root, middle)] == [Status.SUCCEEDED] * 2
    assert bench.status(last) is CANCELLED


def test_nothing_left_to_cancel_is_refused(bench: Bench) -> None:
    root = bench.submit("true")
    below = bench.submit("true", after=(root,))
    bench.until_ended(root, below)
    with pytest.raises(ConflictError, match=f"job-{root} has already ended"):
        bench.client.jobs.cancel_downstream([root])


def test_a_retry_is_reached_through_the_job_that_it_repeats(bench: Bench) -> None:
    root = bench.submit("false", retries=1, retry_base=3_600_000_000)
    below = bench.submit("true", after=(root,))
    bench.until(lambda: bench.last(root).id != root)
    again = bench.last(root).id
    results = bench.client.jobs.cancel_downstream([root, again])
    assert [(each.asked_for, each.job_id) for each in results] == [(root, again), (below, below)]


def test_a_job_that_was_named_twice_is_cancelled_once(bench: Bench) -> None:
    job = bench.submit("true", delay=3_600_000_000)
    (result,) = bench.client.cancel([job, job])
    assert result.job_id == job and bench.kinds(job).count("cancelled") == 1
