"""Who decides by what he saw is refused if that has changed since, and nothing is changed."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Bench
from headway.base.errors import ChangedMeanwhileError, ConflictError, InvalidOperationError
from headway.client import Client
from headway.core.order import Place, Side
from headway.core.states import WAITING
from headway.jobs.groups import Plan
from headway.jobs.request import Request
from headway.store.new_jobs import Event

HOUR = 3_600_000_000
TWO = [Request(argv=("true",), delay=HOUR)] * 2


@pytest.fixture
def asking(bench: Bench) -> int:
    """A job that waits for a person, and one behind it."""
    job = bench.submit("true", require_approval=True, delay=HOUR)
    bench.submit("true", delay=HOUR)
    return job


def everything(bench: Bench) -> tuple[Any, ...]:
    with bench.store.read() as tx:
        jobs = tx.jobs.active()
        return jobs, tx.events.last()


Verb = Callable[[Client, int, str], Any]

OF_A_JOB: dict[str, Verb] = {
    "edit": lambda client, job, seen: client.jobs.edit(job, name="other", revision=seen),
    "move": lambda client, job, seen: client.jobs.move(job, Place(Side.BACK), revision=seen),
    "approve": lambda client, job, seen: client.jobs.approve(job, revision=seen),
    "reject": lambda client, job, seen: client.jobs.reject(job, "no", revision=seen),
}


@pytest.mark.parametrize("verb", OF_A_JOB.values(), ids=OF_A_JOB)
def test_what_was_seen_before_a_change_counts_no_more(
    bench: Bench, asking: int, verb: Verb
) -> None:
    client = bench.client
    seen = client.jobs.revision(asking)
    client.jobs.edit(asking, env={"TOKEN": "another"})  # which no document shows
    before = everything(bench)
    with pytest.raises(ChangedMeanwhileError) as refused:
        verb(client, asking, seen)
    assert str(refused.value) == (
        f"job-{asking} has changed since you looked at it; look again: "
        f"headway jobs show job-{asking}"
    )
    assert refused.value.exit_code == 4 and isinstance(refused.value, ConflictError)
    assert everything(bench) == before
    verb(client, asking, client.jobs.revision(asking))
    assert client.jobs.revision(asking) != seen


def test_the_pin_is_moved_by_who_has_seen_the_present_one(bench: Bench, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        names = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        subprocess.run(["git", *names, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    job = bench.submit("true", pin_head="", cwd=str(tmp_path), delay=HOUR)
    seen = bench.client.jobs.revision(job)
    git("commit", "-q", "--allow-empty", "-m", "second")
    bench.client.jobs.repin(job, revision=seen)
    with pytest.raises(ChangedMeanwhileError, match=f"^job-{job} has changed"):
        bench.client.jobs.repin(job, revision=seen)


@pytest.mark.parametrize("verb", OF_A_JOB.values(), ids=OF_A_JOB)
def test_a_job_that_was_put_into_a_group_has_changed(bench: Bench, asking: int, verb: Verb) -> None:
    client = bench.client
    seen, shown = client.jobs.revision(asking), client.document(asking)
    client.groups.create(Plan(), [asking])
    assert client.document(asking) != shown, "its group"
    with pytest.raises(ChangedMeanwhileError, match=f"^job-{asking} has changed"):
        verb(client, asking, seen)
    told = bench.events(asking)[-1]
    assert (told.kind, told.data, told.actor) == ("edited", {"fields": ["group"]}, "tester")


def test_a_wait_is_no_change(bench: Bench, asking: int) -> None:
    seen = bench.client.jobs.revision(asking)
    for status in sorted(WAITING):
        bench.store.transact(
            lambda tx, kind=status.value: tx.events.add([Event(kind, asking)], actor="worker")
        )
    assert bench.client.jobs.revision(asking) == seen
    bench.client.jobs.approve(asking, revision=seen)


def test_a_revision_is_the_epoch_and_the_number_of_the_last_change(bench: Bench) -> None:
    jobs = [submitted.job_id for submitted in bench.client.submit_many(TWO)]
    alone = bench.submit("true", delay=HOUR)
    epoch = bench.client.events.epoch()
    for job in (*jobs, alone):
        (submitted,) = bench.events(job)
        assert bench.client.jobs.revision(job) == f"{epoch}-{submitted.seq}"
    bench.client.jobs.edit(alone, name="other")
    assert bench.client.jobs.revision(alone) == f"{epoch}-{bench.client.events.last()}"


def test_what_cannot_be_done_at_all_says_so_whatever_was_seen(bench: Bench, asking: int) -> None:
    """So a second approval names the first, and does not send its author back to look."""
    client = bench.client
    seen = client.jobs.revision(asking)
    client.jobs.approve(asking, revision=seen)
    with pytest.raises(ConflictError, match="was already approved by tester") as refused:
        client.jobs.approve(asking, revision=seen)
    assert not isinstance(refused.value, ChangedMeanwhileError)
    client.cancel([asking])
    with pytest.raises(InvalidOperationError, match=r"^Cannot modify params"):
        client.jobs.edit(asking, name="other", revision=seen)
    with pytest.raises(InvalidOperationError, match="cannot be moved"):
        client.jobs.move(asking, Place(Side.BACK), revision=seen)


def test_a_queue_is_reordered_by_who_has_seen_it(bench: Bench) -> None:
    client = bench.client
    first, second, third = (bench.submit("true", delay=HOUR) for _ in range(3))
    shown = client.jobs.queue()
    assert shown.revision == client.jobs.queue_revision()
    client.jobs.edit(first, name="other")
    assert client.jobs.queue_revision() == shown.revision, "the order is the same"
    client.jobs.move(third, Place(Side.FRONT))
    before = everything(bench)
    with pytest.raises(ChangedMeanwhileError) as refused:
        client.jobs.reorder([second, first], revision=shown.revision)
    assert str(refused.value) == (
        "the queue has changed since you looked at it; look again: headway jobs list --queue"
    )
    assert everything(bench) == before
    client.jobs.reorder([second, first], revision=client.jobs.queue_revision())
    assert [each["id"] for each in client.jobs.queue().documents] == [
        f"job-{each}" for each in (third, second, first)
    ]
    client.cancel([third])
    assert client.jobs.queue_revision() != shown.revision


def test_what_is_shown_to_decide_by_carries_its_revision(bench: Bench, asking: int) -> None:
    seen = bench.client.jobs.revision(asking)
    (asked,) = bench.client.jobs.approvals()
    assert asked["revision"] == seen
