"""The whole path: what is submitted runs once, and its outcome is kept."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Bench
from headway.base.errors import ConflictError, NotFoundError
from headway.core.states import Status
from headway.jobs.approvals import approve
from headway.jobs.specification import parse_lock


@pytest.mark.req("E1", "V76", "V8", "E5", "E6", "V81")
def test_a_command_runs_and_its_outcome_is_kept(bench: Bench) -> None:
    good = bench.submit("sh", "-c", "echo out; echo err >&2")
    bad = bench.submit("sh", "-c", "exit 7")
    assert bench.status(good) is Status.QUEUED and bench.job(good).position == 100
    assert bench.client.document(good)["run"] is None

    bench.until_ended(good, bad)

    done = bench.client.document(good)
    assert (done["state"], done["status"], done["run"]["status"]) == (
        "succeeded",
        "COMPLETED",
        "COMPLETED",
    )
    assert done["run"]["exit_code"] == 0
    failed = bench.client.document(bad)
    assert (failed["state"], failed["run"]["exit_code"]) == ("failed", 7)
    folder = Path(bench.home.job(good))
    assert (folder / "stdout.log").read_text() == "out\n"
    assert (folder / "stderr.log").read_text() == "err\n"
    assert json.loads((folder / "outcome.json").read_bytes())["exit_code"] == 0
    copy = json.loads((folder / "job.json").read_bytes())["job"]
    assert copy["state"] == "succeeded" and copy["run"]["exit_code"] == 0


@pytest.mark.req("D17")
def test_by_default_one_job_runs_at_a_time_and_the_loop_goes_on_after_a_failure(
    bench: Bench,
) -> None:
    jobs = [bench.submit("sh", "-c", f"exit {code}") for code in (1, 0, 3)]
    bench.step()
    assert [bench.status(job) for job in jobs] == [Status.RUNNING, Status.QUEUED, Status.QUEUED]
    assert [job.status for job in bench.until_ended(*jobs)] == [
        Status.FAILED,
        Status.SUCCEEDED,
        Status.FAILED,
    ]
    bench.step()  # an empty queue is no error


@pytest.mark.req("E4", "E5")
def test_running_and_the_run_are_stored_before_the_program_starts(bench: Bench) -> None:
    script = (
        f"import sys; sys.path[:0] = {[each for each in sys.path if each]!r};"
        "from headway.client import connect; document = connect().document(1);"
        "print(document['state'], document['run']['run_id'], document['run']['status'])"
    )
    job = bench.submit(sys.executable, "-c", script)
    bench.until_ended(job)
    assert Path(bench.home.job(job), "stdout.log").read_text() == "running run-1 None\n"


@pytest.mark.req("D4")
def test_dispatch_is_by_priority_then_position_then_age(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench()
    ledger = bench.folder / "ledger"
    jobs = {
        name: bench.submit("sh", "-c", f"echo {name} >> {ledger}", priority=priority)
        for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5))
    }
    bench.until_ended(*jobs.values())
    assert ledger.read_text().split() == ["b", "d", "a", "c"]


@pytest.mark.req("V48", "V49", "V50")
def test_dependents_wait_for_success_and_are_blocked_by_failure(bench: Bench) -> None:
    gate = bench.folder / "gate"
    first = bench.submit("sh", "-c", f"while ! test -e {gate}; do sleep 0.01; done")
    second = bench.submit("true", after=(first,))
    third = bench.submit("false", after=(second,))
    fourth = bench.submit("true", after=(third,))
    fifth = bench.submit("true", after=(fourth,))
    bench.step()
    waiting = bench.client.document(second)
    assert waiting["state"] == "waiting_on_deps"
    assert waiting["wait"] == {"kind": "dependencies", "detail": f"waiting on job job-{first}"}
    gate.touch()
    bench.until_ended(fifth)
    assert [bench.status(job) for job in (first, second, third)] == [
        Status.SUCCEEDED,
        Status.SUCCEEDED,
        Status.FAILED,
    ]
    blocked = bench.client.document(fourth)
    assert blocked["state"] == "blocked_by_dependency"
    assert blocked["reason"] == f"dependency failed for job job-{third} (failed)"
    assert blocked["run"] is None and blocked["status"] == "CANCELLED"
    assert (
        bench.client.document(fifth)["reason"]
        == f"dependency failed for job job-{fourth} (blocked_by_dependency)"
    )


def test_an_unknown_predecessor_is_refused_and_nothing_is_written(bench: Bench) -> None:
    with pytest.raises(NotFoundError, match="job-99"):
        bench.submit("true", after=(99,))
    assert bench.client.listing(everything=True) == []


def test_a_job_waits_for_its_time(make_bench: Callable[..., Bench]) -> None:
    from headway.base.clock import SystemClock
    from headway.testing.clock import FakeClock

    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    job = bench.submit("true", delay=60_000_000)
    bench.step()
    document = bench.client.document(job)
    assert document["state"] == "queued" and document["wait"]["kind"] == "time"
    clock.advance(59.0)
    bench.step()
    assert bench.status(job) is Status.QUEUED
    clock.advance(1.0)
    bench.step()
    assert bench.status(job) is Status.RUNNING
    bench.until_ended(job)


@pytest.mark.req("E9")
def test_the_loop_goes_on_however_a_job_ended_and_whatever_was_told_of_it(bench: Bench) -> None:
    deaf = ("sh", "-c", "exit 9")  # who is told of the end fails
    ends = {
        bench.submit("true"): Status.SUCCEEDED,
        bench.submit("false"): Status.FAILED,
        bench.submit("sh", "-c", "exit 75", skip_exit_codes=(75,)): Status.SKIPPED,
        bench.submit("true", on_finish=deaf): Status.SUCCEEDED,
        bench.submit("false", on_finish=deaf): Status.FAILED,
        bench.submit("sh", "-c", "kill -9 $$"): Status.FAILED,
    }
    last = bench.submit("true", priority=-1)
    bench.until_ended(*ends, last)
    assert {job: bench.status(job) for job in ends} == ends
    assert bench.status(last) is Status.SUCCEEDED
    made = list(range(last + 1, last + 3))
    bench.until_ended(*made)
    assert {bench.status(each) for each in made} == {Status.FAILED}, "nobody could be told"
    assert {job: bench.status(job) for job in ends} == ends
    bench.until_ended(bench.submit("true"))


@pytest.mark.req("E3")
def test_a_step_with_nothing_to_do_does_nothing_and_says_when_to_look_again(bench: Bench) -> None:
    for _ in range(3):
        assert 0 < bench.step() <= 30
        assert bench.engine.started == []
    bench.until_ended(bench.submit("true"))
    assert 0 < bench.step() <= 30
    with bench.store.read() as tx:
        kinds = [each.kind for each in tx.events.since(0, 100)]
    assert kinds == ["submitted", "running", "succeeded"]


@pytest.mark.req("V73")
def test_every_kind_of_wait_is_remembered_once_in_the_order_of_the_first_time(
    bench: Bench,
) -> None:
    bench.client.set_setting("scheduler.max_active", 2)
    repo = (parse_lock("repo"),)
    gate = bench.folder / "gate"
    first = bench.submit(shell=f"until [ -e {gate} ]; do sleep 0.01; done")
    job = bench.submit("true", after=(first,), locks=repo, require_approval=True)
    history = ["dependencies"]

    def waits(kind: str) -> None:
        bench.until(lambda: (bench.job(job).wait or (None,))[0] == kind, kind)
        if kind not in history:
            history.append(kind)
        assert bench.job(job).waited_on == tuple(history)

    waits("dependencies")
    gate.touch()
    waits("approval")
    holder = bench.submit("sleep", "60", locks=repo, priority=9)
    bench.until(lambda: bench.status(holder) is Status.RUNNING)
    approve(bench.client.context, job)
    waits("locks")
    bench.client.pause("a break")
    bench.client.cancel([holder])
    waits("paused")
    holder = bench.submit("sleep", "60", locks=repo, priority=9)
    bench.client.resume()
    bench.until(lambda: bench.status(holder) is Status.RUNNING)
    waits("locks")
    bench.client.cancel([holder])
    bench.until_ended(job)
    assert bench.job(job).waited_on == ("dependencies", "approval", "locks", "paused")
    assert bench.client.document(job)["waited_on"] == history


@pytest.mark.req("V73", "V74")
def test_waits_are_remembered_once_each_and_cleared_at_the_start(bench: Bench) -> None:
    first = bench.submit("sleep", "0.2")
    second = bench.submit("true", after=(first,), locks=())
    bench.step()
    assert bench.job(second).waited_on == ("dependencies",)
    bench.until_ended(second)
    job = bench.job(second)
    assert job.wait is None and job.waited_on == ("dependencies",)


def test_skip_exit_code_settles_as_skipped_and_does_not_satisfy_after(bench: Bench) -> None:
    skipped = bench.submit("sh", "-c", "exit 75", skip_exit_codes=(75,), retries=3)
    dependent = bench.submit("true", after=(skipped,))
    bench.until_ended(dependent)
    document = bench.client.document(skipped)
    assert (document["state"], document["run"]["status"]) == ("skipped", "SKIPPED")
    assert bench.status(dependent) is Status.BLOCKED_BY_DEPENDENCY


def test_on_finish_becomes_a_job_when_the_chain_has_ended(bench: Bench) -> None:
    out = bench.folder / "out"
    script = f"echo $HEADWAY_FINISHED_JOB $HEADWAY_FINISHED_STATE >> {out}"
    job = bench.submit("false", retries=1, retry_base=0, on_finish=("sh", "-c", script))
    bench.until_ended(job)
    bench.until(lambda: out.exists() and out.read_text())
    assert out.read_text() == "job-2 failed\n"


def test_the_same_key_gives_the_same_job_and_another_specification_is_refused(
    bench: Bench,
) -> None:
    first = bench.submit("echo", "a", key="nightly")
    assert bench.submit("echo", "a", key="nightly") == first
    with pytest.raises(ConflictError, match=f"job-{first}"):
        bench.submit("echo", "b", key="nightly")
    assert len(bench.client.listing(everything=True)) == 1
    assert bench.submit("true") == first + 1, "no number is used up"


def test_the_submitters_environment_umask_and_directory_are_used(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.client.context.environ = {**bench.client.context.environ, "COLOUR": "blue"}
    (bench.folder / "work").mkdir()
    monkeypatch.chdir(bench.folder / "work")
    job = bench.submit(
        "sh", "-c", "echo $COLOUR $SIZE $(pwd) $(umask) $HEADWAY_JOB_ID", env={"SIZE": "9"}
    )
    bench.until_ended(job)
    import os

    mask = os.umask(0)
    os.umask(mask)
    words = Path(bench.home.job(job), "stdout.log").read_text().split()
    assert words == ["blue", "9", str(bench.folder / "work"), f"{mask:04o}", f"job-{job}"]
    assert bench.client.document(job)["params"]["env"] == ["SIZE"]
    for file in Path(bench.home.environments).iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
    bench.store.backup(str(bench.folder / "copy.db"))
    assert b"blue" not in (bench.folder / "copy.db").read_bytes()


def test_many_are_submitted_as_one_and_a_key_among_them_counts_once(bench: Bench) -> None:
    from headway.jobs.request import Request

    requests = [
        Request(argv=("true",), key="a"),
        Request(argv=("true",), priority=5),
        Request(argv=("true",), key="a"),
        Request(argv=("true",)),
    ]
    submitted = bench.client.submit_many(requests)
    assert [(each.job_id, each.created) for each in submitted] == [
        (1, True),
        (2, True),
        (1, False),
        (3, True),
    ]
    assert [bench.job(job).position for job in (1, 2, 3)] == [100, 200, 300]
    with pytest.raises(NotFoundError):
        bench.client.submit_many([Request(argv=("true",)), Request(argv=("true",), after=(99,))])
    assert len(bench.client.listing(everything=True)) == 3, "all of them or none"


@pytest.mark.req("D8", "V8")
def test_the_files_of_a_job_are_copies_and_the_store_alone_is_believed(bench: Bench) -> None:
    done, failed = bench.submit("true"), bench.submit("false")
    bench.until_ended(done, failed)
    waiting = bench.submit("true", after=(done,))
    before = bench.client.listing(everything=True)
    folder = Path(bench.home.job(done))
    told = json.loads((folder / "job.json").read_text())
    told["job"] |= {"state": "failed", "status": "FAILED"}
    (folder / "job.json").write_text(json.dumps(told))
    (folder / "outcome.json").write_text('{"exit_code": 9}')
    shutil.rmtree(bench.home.job(failed))
    made_up = Path(bench.home.job(99))
    made_up.mkdir()
    told["job"] |= {"id": "job-99", "state": "queued", "status": "QUEUED"}
    (made_up / "job.json").write_text(json.dumps(told))
    bench.crash().recover()
    assert bench.client.listing(everything=True) == before
    with pytest.raises(NotFoundError):
        bench.job(99)
    bench.until_ended(waiting)
    assert bench.status(waiting) is Status.SUCCEEDED, "what it waited for has succeeded"
