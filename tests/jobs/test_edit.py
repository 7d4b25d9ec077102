"""A job can be changed while it waits, whole or not at all, and never once it runs."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Bench
from headway.base.errors import InvalidInputError, InvalidOperationError, NotFoundError
from headway.core.model import ApprovalState, Stage
from headway.core.states import Status
from headway.jobs.approvals import approve
from headway.jobs.edit import Changes, edit
from headway.jobs.specification import parse_lock

HOUR = 3_600_000_000


@pytest.fixture
def waiting(bench: Bench) -> int:
    return bench.submit("true", name="night", labels={"a": "1"}, delay=HOUR, env={"X": "1"})


def fields_of(bench: Bench, job: int) -> list[Any]:
    return [each.data["fields"] for each in bench.events(job) if each.kind == "edited"]


def test_everything_that_may_change_changes_and_the_rest_stays(bench: Bench, waiting: int) -> None:
    before = bench.job(waiting)
    changes = Changes(
        argv=("echo", "hello"),
        name="day",
        slug="short",
        labels={"b": "2"},
        priority=5,
        env={"Y": "2"},
        cwd=str(bench.folder),
        timeout=60_000_000,
        grace=1_000_000,
    )
    edited = edit(bench.client.context, waiting, changes)
    after = bench.job(waiting)
    assert after.params == {
        "argv": ["echo", "hello"],
        "env": {"X": "1", "Y": "2"},
        "cwd": str(bench.folder),
        "timeout_seconds": 60.0,
        "grace_seconds": 1.0,
    }
    assert (after.name, after.slug, after.priority) == ("day", "short", 5)
    assert after.labels == {"a": "1", "b": "2"}
    assert (after.not_before, after.created_at) == (before.not_before, before.created_at)
    whole = ["name", "slug", "labels", "priority", "command", "env", "cwd", "timeout", "grace"]
    assert fields_of(bench, waiting) == [whole] == [list(edited.fields)]


def test_what_runs_is_what_it_was_changed_to(bench: Bench) -> None:
    job = bench.submit("false", delay=200_000)
    edit(bench.client.context, job, Changes(argv=("sh", "-c", "exit $CODE"), env={"CODE": "3"}))
    (last,) = bench.until_ended(job)
    assert last.reason == "exit code 3"
    assert bench.client.document(job)["run"]["params_snapshot"]["argv"][0] == "sh"


@pytest.mark.req("D1")
def test_a_running_and_an_ended_job_cannot_be_changed(bench: Bench) -> None:
    job = bench.submit("sleep", "60", grace=0)
    bench.until(lambda: bench.status(job) is Status.RUNNING)
    before = bench.job(job)
    with pytest.raises(InvalidOperationError, match=r"^Cannot modify params") as refused:
        edit(bench.client.context, job, Changes(argv=("true",)))
    assert refused.value.exit_code == 4
    with pytest.raises(InvalidOperationError, match=r"^Cannot modify params"):
        edit(bench.client.context, job, Changes(name="other"))
    assert bench.job(job) == before
    bench.client.cancel([job])
    bench.until_ended(job)
    with pytest.raises(InvalidOperationError, match=r"^Cannot modify params: .* is cancelled"):
        edit(bench.client.context, job, Changes(priority=3))
    assert "edited" not in bench.kinds(job)


def test_the_waiting_retry_of_a_job_is_named(bench: Bench) -> None:
    job = bench.submit("false", retries=1, retry_base=HOUR)
    bench.until(lambda: bench.last(job).id != job)
    again = bench.last(job).id
    with pytest.raises(InvalidOperationError, match=f"of its chain job-{again} waits"):
        edit(bench.client.context, job, Changes(name="other"))
    edit(bench.client.context, again, Changes(argv=("true",)))
    assert bench.job(again).name == "true", "it had the name of its command"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (Changes(argv=("no-such-program",), name="x"), "was not found"),
        (Changes(cwd="/no/such/folder", name="x"), "no directory"),
        (Changes(priority=10**9, name="x"), "priority"),
        (Changes(slug="a b", name="x"), "slug"),
        (Changes(name=""), "name"),
        (Changes(env={"1": "x"}, name="x"), "variable"),
        (Changes(argv=("true",), shell="true"), "not both"),
        (Changes(timeout=0, name="x"), "timeout"),
        (Changes(labels={"a b": "x"}, name="x"), "label"),
        (Changes(argv=("true", "x" * 2_000_000), name="x"), "larger than 1 MiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_nothing_is_half_applied(bench: Bench, waiting: int, changes: Changes, why: str) -> None:
    before = bench.job(waiting)
    with pytest.raises(InvalidInputError, match=why):
        edit(bench.client.context, waiting, changes)
    assert bench.job(waiting) == before
    assert fields_of(bench, waiting) == []


def test_a_program_is_looked_for_with_the_jobs_own_path(bench: Bench, waiting: int) -> None:
    tools = bench.folder / "tools"
    tools.mkdir()
    (tools / "mine").write_text("#!/bin/sh\n")
    (tools / "mine").chmod(0o755)
    with pytest.raises(InvalidInputError, match="was not found"):
        edit(bench.client.context, waiting, Changes(argv=("mine",)))
    edit(bench.client.context, waiting, Changes(argv=("mine",), env={"PATH": str(tools)}))
    edit(bench.client.context, waiting, Changes(argv=("nowhere",), check=False))
    assert bench.job(waiting).params["argv"] == ["nowhere"]
    edit(bench.client.context, waiting, Changes(priority=1))  # and it is not looked for again


def test_what_is_like_that_already_is_no_change(bench: Bench, waiting: int) -> None:
    edited = edit(
        bench.client.context, waiting, Changes(name="night", labels={"a": "1"}, priority=0)
    )
    assert edited.fields == () and fields_of(bench, waiting) == []


def test_an_unknown_job_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFoundError):
        edit(bench.client.context, 99, Changes(name="x"))


def test_a_relative_directory_is_that_of_who_edits(
    bench: Bench, waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.folder / "inside").mkdir()
    monkeypatch.chdir(bench.folder)
    edit(bench.client.context, waiting, Changes(cwd="inside"))
    assert bench.job(waiting).params["cwd"] == os.path.join(bench.folder, "inside")


def test_another_priority_is_a_place_behind_those_that_have_it(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench()
    bench.client.pause("all are to wait")
    late, first, second = (bench.submit("true", priority=each) for each in (0, 5, 5))
    bench.step()
    edit(bench.client.context, late, Changes(priority=5))
    assert bench.job(late).position > bench.job(second).position
    edit(bench.client.context, first, Changes(priority=7))
    edit(bench.client.context, first, Changes(priority=5))
    with bench.store.read() as tx:
        order = [job.id for job in sorted(tx.jobs.active(), key=lambda job: job.order)]
    assert order == [second, late, first]


def test_a_job_of_less_priority_gives_up_what_it_had_reserved(
    make_bench: Callable[..., Bench],
) -> None:
    """Two want a lock that is held; the first had it reserved, and now comes last."""
    bench = make_bench(max_active=3)
    locks = (parse_lock("k"),)
    gate = bench.folder / "gate"
    holder = bench.submit(shell=f"while ! test -e {gate}; do sleep 0.01; done", locks=locks)
    bench.until(lambda: bench.status(holder) is Status.RUNNING)
    ledger = bench.folder / "ledger"
    high = bench.submit(shell=f"echo high >>{ledger}", locks=locks, priority=5)
    low = bench.submit(shell=f"echo low >>{ledger}", locks=locks)
    bench.until(lambda: bench.job(low).stage is Stage.PARKED)
    with bench.store.read() as tx:
        assert {each.job_id for each in tx.claims.lock_views(["k"])["k"].reservers} == {high}
    edit(bench.client.context, high, Changes(priority=-5))
    bench.step()
    with bench.store.read() as tx:
        assert {each.job_id for each in tx.claims.lock_views(["k"])["k"].reservers} == {low}
    gate.touch()
    bench.until_ended(high, low)
    assert Path(ledger).read_text().split() == ["low", "high"]


def test_an_edited_job_is_looked_at_again(bench: Bench) -> None:
    job = bench.submit("true", delay=HOUR)
    bench.until(lambda: bench.job(job).stage is Stage.PARKED)
    edit(bench.client.context, job, Changes(name="other"))
    assert bench.job(job).stage is Stage.WOKEN


def test_an_approval_is_of_the_command_that_was_seen(bench: Bench) -> None:
    job = bench.submit("true", require_approval=True, delay=HOUR)
    approve(bench.client.context, job)
    edit(bench.client.context, job, Changes(name="other", priority=3))
    approval = bench.job(job).approval
    assert approval is not None and approval.state is ApprovalState.APPROVED
    edit(bench.client.context, job, Changes(argv=("false",)))
    approval = bench.job(job).approval
    assert approval is not None and approval.state is ApprovalState.PENDING
    assert (approval.requested_by, approval.decided_by) == ("tester", None)
    assert bench.events(job)[-1].data == {
        "fields": ["command"],
        "approval": "asked for again",
    }


def test_the_key_still_belongs_to_the_edited_job(bench: Bench) -> None:
    job = bench.submit("true", key="nightly", delay=HOUR)
    edit(bench.client.context, job, Changes(argv=("false",)))
    assert bench.submit("true", key="nightly", delay=HOUR) == job
