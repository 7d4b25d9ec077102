"""Launch failures: of the job, three strikes; of the host, nobody's fault."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Bench, wait_for
from headway.base.clock import SystemClock
from headway.core.states import Status
from headway.supervise.evidence import Evidence
from headway.testing.clock import FakeClock
from headway.worker.dispatch import SWEEP_EVERY


@pytest.mark.req("G33", "G34", "G35", "V80")
def test_a_program_that_cannot_be_executed_gets_three_strikes(  # fault B10
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    job = bench.submit("no-such-program", check=False, retries=3)
    healthy = bench.submit("true")
    for strike, pause in ((1, 1.0), (2, 5.0)):
        bench.until(lambda strike=strike: bench.job(job).launch_failures == strike)
        document = bench.client.document(job)
        assert document["state"] == "queued" and document["run"] is None
        assert document["wait"]["kind"] == "launch"
        assert "No such file" in document["wait"]["detail"]
        clock.advance(pause + 1)
    bench.until_ended(job, healthy)
    document = bench.client.document(job)
    assert document["state"] == "failed"
    assert document["reason"].startswith("circuit-broken: exec no-such-program")
    assert document["run"]["exit_code"] == 127
    assert len(bench.client.jobs.chain(job)) == 1, "it is no failure of a run: nothing to retry"
    assert bench.status(healthy) is Status.SUCCEEDED


def test_a_file_that_is_not_executable_ends_with_126(  # fault B10
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    script = bench.folder / "plain"
    script.write_text("echo hello\n")
    job = bench.submit(str(script), check=False)
    for strike in (1, 2):
        bench.until(lambda strike=strike: bench.job(job).launch_failures == strike)
        clock.advance(10)
    bench.until_ended(job)
    assert bench.client.document(job)["run"]["exit_code"] == 126


def test_a_reset_tries_at_once(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    program = bench.folder / "late"
    job = bench.submit(str(program), check=False)
    bench.until(lambda: bench.job(job).launch_failures == 1)
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    assert bench.client.scheduler.reset() == ((), (job,))
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED


@pytest.mark.req("V77")
def test_a_record_without_a_command_fails_with_exit_1_and_stops_nobody(bench: Bench) -> None:
    broken = bench.submit("true", retries=3)
    healthy = bench.submit("true")
    database = bench.store.database  # type: ignore[attr-defined]
    database.execute("update jobs set params = '{}' where id = 1", {})
    bench.until_ended(broken, healthy)
    document = bench.client.document(broken)
    assert (document["state"], document["run"]["exit_code"]) == ("failed", 1)
    assert document["reason"] == "the record of job-1 cannot be used: it has no command"
    assert bench.status(healthy) is Status.SUCCEEDED


@pytest.mark.req("V77", "V96")
def test_a_row_that_cannot_be_read_fails_and_stops_nobody(bench: Bench) -> None:
    broken = bench.submit("true")
    dependent = bench.submit("true", after=(broken,))
    healthy = bench.submit("true")
    database = bench.store.database  # type: ignore[attr-defined]
    database.execute("update jobs set retry = 'nonsense' where id = 1", {})
    bench.until_ended(dependent, healthy)
    assert bench.status(healthy) is Status.SUCCEEDED
    assert bench.status(dependent) is Status.BLOCKED_BY_DEPENDENCY
    row = database.execute("select status, reason from jobs where id = 1", {})[0]
    assert row[0] == "failed" and row[1].startswith("scheduler data error: ")
    assert database.execute("select status, exit_code from runs where job_id = 1", {}) == [
        ("FAILED", 1)
    ]


@pytest.mark.req("V51")
def test_an_unreadable_predecessor_blocks_only_its_dependents(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    bench.may_miss = True  # nobody is told what is written past the store
    first = bench.submit("true", delay=3_600_000_000)
    second = bench.submit("true", after=(first,))
    healthy = bench.submit("true")
    database = bench.store.database  # type: ignore[attr-defined]
    database.execute("update jobs set params = '{', stage = 'filed' where id = 1", {})
    bench.until_ended(healthy)
    clock.advance(2 * SWEEP_EVERY)
    bench.until_ended(second)
    reason = bench.job(second).reason or ""
    assert reason.startswith(f"scheduler data error for job dependency job-{first}: ")
    assert bench.status(second) is Status.BLOCKED_BY_DEPENDENCY
    assert bench.status(healthy) is Status.SUCCEEDED
    database.execute("delete from jobs where id = 1", {})


@pytest.mark.req("V47")
def test_a_predecessor_whose_row_vanished_blocks(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    bench.may_miss = True  # nobody is told what is written past the store
    first = bench.submit("true", delay=3_600_000_000)
    second = bench.submit("true", after=(first,))
    bench.store.database.execute("delete from jobs where id = 1", {})  # type: ignore[attr-defined]
    bench.step()
    clock.advance(2 * SWEEP_EVERY)
    bench.until_ended(second)
    assert bench.job(second).reason == f"missing job dependency job-{first}"


@pytest.mark.root
def test_a_full_disk_holds_jobs_with_a_reason_and_they_run_when_there_is_room(  # fault A12
    tmp_path: Path,
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    assert os.system(f"mount -t tmpfs -o size=8m,nr_inodes=40 tmpfs {small}") == 0
    try:
        clock = FakeClock(SystemClock().now())
        bench = Bench(small, clock=clock)
        fillers = []
        job = bench.submit("true")
        try:
            while True:
                fillers.append(small / f"filler-{len(fillers)}")
                fillers[-1].touch()
        except OSError:
            pass
        bench.step()
        document = bench.client.document(job)
        assert document["state"] == "queued" and document["wait"]["kind"] == "storage"
        assert document["run"] is None
        assert bench.job(job).launch_failures == 0
        for filler in fillers:
            filler.unlink(missing_ok=True)
        clock.advance(61)
        bench.until_ended(job)
        assert bench.status(job) is Status.SUCCEEDED
        with bench.store.read() as tx:
            assert tx.hosts.trouble(bench.client.context.host.id) is None
        bench.close()
    finally:
        os.system(f"umount -l {small}")


def test_a_supervisor_that_cannot_be_forked_is_the_hosts_fault(  # fault B11
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(SystemClock().now())
    monkeypatch.setenv("HEADWAY_POINTS", "supervisor.locked=kill")
    bench = make_bench(clock=clock)
    job = bench.submit("true")
    other = bench.submit("true")
    bench.until(lambda: "unclaimed" in bench.kinds(job))
    document = bench.client.document(job)
    assert document["state"] == "queued" and document["wait"]["kind"] == "pressure"
    assert bench.job(job).launch_failures == 0
    assert bench.client.document(other)["wait"]["kind"] == "pressure"
    monkeypatch.delenv("HEADWAY_POINTS")
    bench.crash().recover()
    clock.advance(2)
    bench.until_ended(job, other)
    assert bench.status(job) is Status.SUCCEEDED


def test_params_that_are_no_object_fail_their_job_alone(bench: Bench) -> None:
    broken, healthy = bench.submit("true"), bench.submit("true")
    bench.store.database.execute("update jobs set params = '[]' where id = 1", {})  # type: ignore[attr-defined]
    bench.until(lambda: bench.status(healthy) is Status.SUCCEEDED)
    rows = bench.store.database.execute("select status from jobs where id = 1", {})  # type: ignore[attr-defined]
    assert rows == [("failed",)] and broken == 1


def test_without_a_parent_nothing_is_claimed_and_the_host_is_blamed(bench: Bench) -> None:
    launcher = bench.engine.launches._launcher
    start = launcher.start

    def refused() -> None:
        raise OSError(11, "Resource temporarily unavailable")

    launcher.start = refused  # type: ignore[method-assign]
    launcher.stop(kill=True)
    job = bench.submit("true")
    for _ in range(3):
        bench.step()
    document = bench.client.document(job)
    assert document["state"] == "queued" and document["wait"]["kind"] == "pressure"
    assert bench.kinds(job) == ["submitted"]
    launcher.start = start  # type: ignore[method-assign]
    bench.client.scheduler.reset()
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED


def test_an_end_that_two_tell_of_is_settled_once(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent dies between its fork and its answer; the supervisor's own word comes, too."""
    monkeypatch.setenv("HEADWAY_POINTS", "parent.forked=kill")
    bench = make_bench()
    job = bench.submit("true", on_finish=("true",))
    bench.step()
    [claim] = bench.engine.launches.claims
    evidence = Evidence(claim.folder, claim.token)
    wait_for(lambda: evidence.read_outcome(), what="the outcome")
    wait_for(lambda: not bench.engine.launches._launcher.alive(), what="the parent's death")
    bench.engine.launches.receive(f"ended {claim.token}".encode())
    monkeypatch.delenv("HEADWAY_POINTS")
    bench.until_ended(job)
    bench.step()
    assert bench.kinds(job).count("succeeded") == 1
    with bench.store.read() as tx:
        following = [each for each in tx.settings.marks().items() if each[0] == "next_job_id"]
    assert following == [("next_job_id", 3)], "what it asked for at its end was made once"
