"""The content that a job reads is kept with it: durable, private, read again by retries, and gone
with the job."""

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError, StoreFullError
from headway.core.retention import RetentionRule
from headway.core.states import Status
from headway.jobs.inputs import ABANDONED_AFTER, MOST_INPUT, kept_inputs, remove_abandoned
from headway.jobs.insert import Submitted
from headway.jobs.request import Request
from headway.jobs.retention import gc


def kept(bench: Bench) -> list[Path]:
    """All files of content that are there, also such as belong to no job."""
    found = [*Path(bench.home.jobs).glob("*/stdin"), *Path(bench.home.run).glob("stdin.*")]
    return sorted(found)


def output(bench: Bench, job: int) -> bytes:
    return Path(bench.home.job(job), "stdout.log").read_bytes()


def test_a_job_reads_what_was_given_with_it(bench: Bench) -> None:
    job = bench.submit("cat", input=b"hi\n")
    (file,) = kept(bench)
    assert file == Path(bench.home.job(job), "stdin")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    bench.until_ended(job)
    assert output(bench, job) == b"hi\n"


def test_a_retry_reads_it_again(bench: Bench) -> None:
    script = "cat; test $HEADWAY_ATTEMPT = 2"
    job = bench.submit("sh", "-c", script, input=b"x", retries=1, retry_base=0)
    bench.until(lambda: bench.last(job).status is Status.SUCCEEDED)
    assert output(bench, bench.last(job).id) == b"x"
    assert [each.parent.name for each in kept(bench)] == [str(job)]


def test_gc_removes_it_with_the_job(bench: Bench) -> None:
    bench.until_ended(bench.submit("cat", input=b"x"))
    gc(bench.client.context, RetentionRule(0, None))
    assert kept(bench) == []


def test_an_empty_content_is_none(bench: Bench) -> None:
    job = bench.submit("cat", input=b"")
    assert kept(bench) == []
    assert "input" not in bench.job(job).params


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Request(argv=("cat",), input=b"x", after=(99,)), NotFoundError),
        (Request(argv=("cat",), input=b"x" * (MOST_INPUT + 1)), InvalidInputError),
        (Request(argv=("cat",), input=b"x", any_host=True), InvalidInputError),
        (Request(argv=("cat",), input=b"x", stdin="/dev/null"), InvalidInputError),
    ],
    ids=["in the transaction", "too large", "any host", "and a file"],
)
def test_a_refused_submit_keeps_nothing(
    bench: Bench, request_: Request, error: type[Exception]
) -> None:
    with pytest.raises(error):
        bench.client.submit(request_)
    assert (kept(bench), os.listdir(bench.home.jobs)) == ([], [])


def test_a_key_stands_for_the_content_too(bench: Bench) -> None:
    first = bench.client.submit(Request(argv=("cat",), key="k", input=b"one"))
    again = bench.client.submit(Request(argv=("cat",), key="k", input=b"one"))
    assert (again.job_id, again.created) == (first.job_id, False)
    with pytest.raises(ConflictError):
        bench.client.submit(Request(argv=("cat",), key="k", input=b"two"))
    assert [each.read_bytes() for each in kept(bench)] == [b"one"]


def test_many_jobs_have_each_its_own(bench: Bench) -> None:
    requests = [Request(argv=("cat",), input=content) for content in (b"a", None, b"b", b"a")]
    submitted = [each.job_id for each in bench.client.submit_many(requests)]
    bench.until_ended(*submitted)
    assert [output(bench, each) for each in submitted] == [b"a", b"", b"b", b"a"]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """As a full disk: no write goes beyond this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_refuses_the_job_and_leaves_nothing(bench: Bench) -> None:
    with files_of_at_most(4096), pytest.raises(StoreFullError, match="cannot keep stdin"):
        bench.client.submit(Request(argv=("cat",), input=b"x" * 10_000))
    assert kept(bench) == []
    assert bench.client.listing() == []


def test_what_was_placed_for_a_job_that_is_not_there_is_taken_back(bench: Bench) -> None:
    """Placing is the last act of the transaction, so only its commit can fail after it."""
    there = bench.submit("cat", input=b"x")
    numbers = [Submitted(there + 1, created=True)]
    with pytest.raises(StoreFullError), kept_inputs(bench.store, bench.home, [b"y"]) as place:
        place(numbers)
        assert len(kept(bench)) == 2
        raise StoreFullError("the commit failed")
    assert os.listdir(bench.home.jobs) == [str(there)]


def test_a_transaction_that_begins_anew_places_it_once_more(bench: Bench) -> None:
    first, second = bench.submit("true"), bench.submit("true")
    with kept_inputs(bench.store, bench.home, [b"y"]) as place:
        place([Submitted(first, created=True)])
        place([Submitted(second, created=True)])
    assert Path(bench.home.job(second), "stdin").read_bytes() == b"y"


def test_a_dead_submitters_file_goes_after_an_hour(bench: Bench) -> None:
    left = Path(bench.home.run, "stdin.0123.tmp")
    left.write_bytes(b"x")
    written = left.stat().st_mtime
    remove_abandoned(bench.home, written + ABANDONED_AFTER - 1)
    assert kept(bench) == [left]
    remove_abandoned(bench.home, written + ABANDONED_AFTER + 1)
    assert kept(bench) == []
