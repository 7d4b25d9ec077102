"""Recovery, row by row of its table, and each of them twice with the same result."""

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import DEADLINE, Bench, wait_for
from headway.base.errors import StoreBusyError
from headway.core.model import Claim
from headway.core.states import Status
from headway.jobs.specification import parse_lock
from headway.supervise.evidence import Evidence


def claim_of(bench: Bench, job: int) -> Claim:
    with bench.store.read() as tx:
        claim = tx.claims.of_job(job)
    assert claim is not None
    return claim


def evidence_of(bench: Bench, job: int) -> Evidence:
    claim = claim_of(bench, job)
    return Evidence(claim.folder, claim.token)


def started(bench: Bench, job: int) -> Evidence:
    evidence = evidence_of(bench, job)
    wait_for(lambda: evidence.read_started() is not None, what="the start record")
    return evidence


def not_launched(bench: Bench) -> None:
    """The worker dies after the claim's commit and before the parent hears of it."""
    bench.engine.launches.launch = lambda claims: None  # type: ignore[method-assign]


@pytest.mark.req("E21", "E24")
def test_a_claim_without_a_start_is_undone_and_runs_once(bench: Bench) -> None:  # fault A2
    ledger = bench.folder / "ledger"
    job = bench.submit("sh", "-c", f"echo ran >> {ledger}")
    others = [bench.submit("true") for _ in range(3)]
    not_launched(bench)
    bench.step()
    before = bench.job(job)
    assert before.status is Status.RUNNING
    for _ in range(2):  # twice gives the same
        bench.crash().recover()
        undone = bench.job(job)
        assert (undone.status, undone.position, undone.attempt) == (
            Status.QUEUED,
            before.position,
            1,
        )
        assert bench.client.document(job)["run"] is None
    assert bench.kinds(job).count("unclaimed") == 1
    bench.until_ended(job, *others)
    assert ledger.read_text() == "ran\n"
    assert [bench.status(each) for each in (job, *others)] == [Status.SUCCEEDED] * 4


@pytest.mark.req("D25")
def test_a_running_job_is_readopted_and_its_true_outcome_taken_in(bench: Bench) -> None:  # fault A1
    gate = bench.folder / "gate"
    job = bench.submit("sh", "-c", f"while ! test -e {gate}; do sleep 0.01; done; exit 5")
    bench.step()
    started(bench, job)
    for _ in range(2):
        bench.crash().recover()
        assert bench.status(job) is Status.RUNNING
    assert bench.kinds(job).count("readopted") == 2
    gate.touch()
    bench.until_ended(job)
    assert bench.client.document(job)["run"]["exit_code"] == 5


def left_by_a_crash(bench: Bench) -> dict[str, int]:
    """One claim of each sort, and jobs that wait in an order that is not that of their ids. The
    worker died with 4 slots in use, and has not come back."""
    bench.client.set_setting("scheduler.max_active", 4)
    ledger = bench.folder / "ledger"
    jobs = {
        "orphan": bench.submit("sleep", "600", priority=9),
        "ended": bench.submit("sh", "-c", "exit 3", priority=9),
        "living": bench.submit("sleep", "600", priority=9),
        "unstarted": bench.submit("sh", "-c", f"echo unstarted >> {ledger}", priority=9),
    }
    launch = bench.engine.launches.launch
    bench.engine.launches.launch = (  # type: ignore[method-assign]
        lambda claims: launch([each for each in claims if each.job_id != jobs["unstarted"]])
    )
    bench.step()
    bench.client.set_setting("scheduler.max_active", 1)
    for name, priority in (("low", 0), ("third", 5), ("second", 5), ("first", 7), ("last", 0)):
        jobs[name] = bench.submit("sh", "-c", f"echo {name} >> {ledger}", priority=priority)
    bench.client.jobs.reorder([jobs["second"], jobs["third"]])
    record = started(bench, jobs["orphan"]).read_started()
    assert record is not None
    wait_for(evidence_of(bench, jobs["ended"]).read_outcome)
    started(bench, jobs["living"])
    pidfd = os.pidfd_open(record.supervisor_pid)
    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    assert select.select([pidfd], [], [], DEADLINE)[0]
    os.close(pidfd)
    return jobs


QUEUE = ("unstarted", "first", "second", "third", "low", "last")


@pytest.mark.req("E23", "D14")
def test_a_restart_fails_orphans_and_resumes_the_queue_in_its_order(bench: Bench) -> None:
    jobs = left_by_a_crash(bench)

    def places() -> list[tuple[int, int, int, int]]:
        rows = [bench.job(jobs[name]) for name in QUEUE]
        return [(each.id, each.priority, each.position, each.created_at) for each in rows]

    before = places()
    assert before == sorted(before, key=lambda each: (-each[1], each[2])), "as it is dispatched"
    for _ in range(2):
        bench.crash().recover()
        assert places() == before
        assert {bench.status(jobs[name]) for name in QUEUE} == {Status.QUEUED}
    orphan = bench.client.document(jobs["orphan"])
    assert (orphan["state"], orphan["run"]["status"]) == ("failed", "FAILED")
    assert orphan["run"]["error"] == "Scheduler crash recovery: outcome_unknown"
    assert bench.status(jobs["ended"]) is Status.FAILED
    assert bench.status(jobs["living"]) is Status.RUNNING
    bench.client.cancel([jobs["living"]])
    bench.until_ended(*jobs.values())
    assert (bench.folder / "ledger").read_text().split() == list(QUEUE)


@pytest.mark.req("E25")
def test_to_recover_twice_leaves_the_same_rows_as_once(bench: Bench) -> None:
    left_by_a_crash(bench)
    database = bench.store.database  # type: ignore[attr-defined]
    tables = ("jobs", "runs", "claims", "evidence", "held_locks", "waits")

    def rows() -> dict[str, list[object]]:
        asked = {name: database.execute(f"select * from {name}", {}) for name in tables}
        return {name: sorted(found, key=str) for name, found in asked.items()}

    def events() -> list[object]:
        return list(database.execute("select count(*) from events where kind <> 'readopted'", {}))

    bench.crash().recover()
    once, told = rows(), events()
    bench.crash().recover()
    assert (rows(), events()) == (once, told)


@pytest.mark.req("E25", "G5")
def test_a_worker_dispatches_nothing_before_it_has_recovered(bench: Bench) -> None:
    jobs = left_by_a_crash(bench)
    bench.client.set_setting("scheduler.max_active", 9)
    bench.client.cancel([jobs["living"]])
    with bench.store.read() as tx:
        seen = tx.events.last()
    bench.engine.close()
    worker = bench.new_worker()
    engine = bench.engine = worker._engine
    engine.launches.open()
    recover = engine.recover

    def busy() -> None:
        raise StoreBusyError("another process writes")

    engine.recover = busy  # type: ignore[method-assign]
    assert not worker._stepping.make(worker._step)
    with bench.store.read() as tx:
        assert tx.events.last() == seen, "where it cannot recover it starts nothing"
    engine.recover = recover  # type: ignore[method-assign]
    assert worker._stepping.make(worker._step)
    with bench.store.read() as tx:
        told = [(each.kind, each.job_id) for each in tx.events.since(seen, 100)]
    first_start = next(at for at, (kind, _) in enumerate(told) if kind == "running")
    for recovered in (("failed", jobs["orphan"]), ("unclaimed", jobs["unstarted"])):
        assert told.index(recovered) < first_start
    assert {job for kind, job in told if kind == "running"} == {jobs[name] for name in QUEUE}
    bench.until_ended(*jobs.values())


def test_an_outcome_that_nobody_took_in_is_the_truth(bench: Bench) -> None:  # fault A3
    job = bench.submit("sh", "-c", "exit 3")
    bench.step()
    evidence = evidence_of(bench, job)
    wait_for(lambda: evidence.read_outcome() is not None)
    bench.crash().recover()
    assert bench.status(job) is Status.FAILED
    assert bench.client.document(job)["run"]["exit_code"] == 3
    kinds = bench.kinds(job)
    bench.crash().recover()
    assert bench.kinds(job) == kinds


@pytest.mark.req("E22")
def test_a_killed_supervisor_leaves_an_unknown_outcome_and_no_process(  # fault B7
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(settings={"processes.cgroup": "off"})
    pids = bench.folder / "pids"
    script = f"echo $$ >> {pids}; setsid sh -c 'echo $$ >> {pids}; sleep 600' & sleep 600"
    job = bench.submit("sh", "-c", script, retries=1, retry_base=3_600_000_000)
    bench.step()
    record = started(bench, job).read_started()
    assert record is not None
    wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    os.kill(record.supervisor_pid, signal.SIGKILL)
    bench.until(lambda: bench.status(job) is Status.FAILED)
    document = bench.client.document(job)
    assert document["run"]["error"] == "Scheduler crash recovery: outcome_unknown"
    assert document["run"]["status"] == "FAILED"
    assert bench.last(job).id != job, "an unknown outcome follows the retry policy"
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids.read_text().split()))


def test_locks_are_held_until_the_tree_is_proven_gone(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(settings={"processes.cgroup": "off"}, max_active=5)
    job = bench.submit("sleep", "600", locks=(parse_lock("repo"),))
    waiter = bench.submit("true", locks=(parse_lock("repo"),))
    bench.step()
    record = started(bench, job).read_started()
    assert record is not None
    os.kill(record.supervisor_pid, signal.SIGKILL)
    bench.until(lambda: bench.status(job) is Status.FAILED)
    assert bench.status(waiter) is Status.WAITING_ON_LOCKS
    bench.until_ended(waiter)
    assert "tree_unproven" in bench.kinds(job)


def test_after_a_reboot_nothing_is_trusted(  # fault A7
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = bench.folder / "gate"
    done = bench.submit("sh", "-c", "exit 3")
    bench.step()
    wait_for(lambda: evidence_of(bench, done).read_outcome())
    bench.crash().recover()
    unstarted = bench.submit("true")
    not_launched(bench)
    bench.step()
    boot = bench.folder / "boot_id"
    boot.write_text("another-boot\n")
    monkeypatch.setenv("HEADWAY_BOOT_ID_FILE", str(boot))
    bench.crash().recover()
    assert bench.client.document(unstarted)["run"]["error"] == (
        "Scheduler crash recovery: host_rebooted"
    )
    assert bench.client.document(done)["run"]["exit_code"] == 3
    assert not gate.exists()


def test_missing_evidence_is_named(bench: Bench) -> None:
    job = bench.submit("true")
    not_launched(bench)
    bench.step()
    claim = claim_of(bench, job)
    os.unlink(Evidence(claim.folder, claim.token).claim)
    bench.crash().recover()
    error = bench.client.document(job)["run"]["error"]
    assert error.startswith("Scheduler crash recovery: evidence_missing")


def test_a_missing_folder_is_named(bench: Bench) -> None:
    import shutil

    job = bench.submit("true")
    not_launched(bench)
    bench.step()
    shutil.rmtree(bench.home.job(job))
    bench.crash().recover()
    error = bench.client.document(job)["run"]["error"]
    assert error.startswith("Scheduler crash recovery: evidence_missing")


def test_a_cancelled_claim_is_never_started_again(bench: Bench) -> None:
    job = bench.submit("sleep", "600", retries=3, retry_base=0)
    bench.step()
    record = started(bench, job).read_started()
    assert record is not None
    os.kill(record.supervisor_pid, signal.SIGSTOP)
    bench.client.cancel([job])
    os.kill(record.supervisor_pid, signal.SIGKILL)
    bench.crash().recover()
    bench.until_ended(job)
    document = bench.client.document(job)
    assert document["state"] == "cancelled"
    assert document["run"]["error"] == "cancelled (outcome_unknown)"
    assert len(bench.client.jobs.chain(job)) == 1


def test_a_stopped_supervisor_is_ended_when_a_cancel_goes_unanswered(  # fault B8
    make_bench: Callable[..., Bench],
) -> None:
    from headway.base.clock import SystemClock
    from headway.testing.clock import FakeClock

    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    job = bench.submit("sleep", "600", grace=100_000)
    bench.step()
    record = started(bench, job).read_started()
    assert record is not None
    os.kill(record.supervisor_pid, signal.SIGSTOP)
    for _ in range(3):  # however long it is stopped, on one host its lock says that it lives
        clock.advance(600)
        bench.step()
    assert bench.status(job) is Status.RUNNING
    bench.client.cancel([job])
    clock.advance(1)
    bench.step()
    clock.advance(9)
    bench.step()
    assert bench.status(job) is Status.RUNNING
    clock.advance(2)
    bench.until_ended(job)
    assert bench.status(job) is Status.CANCELLED
    wait_for(lambda: not os.path.exists(f"/proc/{record.child_pid}"))


def test_a_late_outcome_is_kept_as_evidence_and_changes_nothing(bench: Bench) -> None:
    job = bench.submit("sh", "-c", "exit 3")
    bench.step()
    claim = claim_of(bench, job)
    evidence = Evidence(claim.folder, claim.token)
    wait_for(lambda: evidence.read_outcome())
    document = evidence.read_outcome()
    assert document is not None
    bench.until_ended(job)
    before = bench.client.document(job)
    from headway.worker.recovery import taken_in
    from headway.worker.settler import Settler

    document.exit_code = 0
    with bench.store.write() as tx:
        # The same claim again, as by a worker that was stopped for a long time.
        settler = Settler(bench.client.context.host, "old-worker")
        assert settler.apply(tx, [(claim, taken_in(document))]) == []
    after = bench.client.document(job)
    assert after["run"].pop("late_outcome")["exit_code"] == 0
    before["run"].pop("late_outcome")
    assert after == before


def test_foreign_claims_are_never_judged(bench: Bench) -> None:
    job = bench.submit("true")
    not_launched(bench)
    bench.step()
    database = bench.store.database  # type: ignore[attr-defined]
    database.execute("update claims set host_id = 'elsewhere'", {})
    bench.crash().recover()
    assert bench.status(job) is Status.RUNNING
    database.execute(f"update claims set host_id = '{bench.client.context.host.id}'", {})
    bench.crash().recover()
    assert bench.status(job) is Status.QUEUED


def test_the_claims_of_a_home_that_was_moved_are_still_its_own(bench: Bench) -> None:
    job = bench.submit("sh", "-c", "exit 3")
    bench.step()
    wait_for(lambda: evidence_of(bench, job).read_outcome())
    database = bench.store.database  # type: ignore[attr-defined]
    folder = bench.home.job(job).replace(bench.home.path, "/before")
    database.execute(f"update claims set home = '/before', folder = '{folder}'", {})
    bench.crash().recover()
    assert bench.client.document(job)["run"]["exit_code"] == 3


def test_the_parents_death_stops_no_job_and_loses_no_claim(bench: Bench) -> None:
    bench.client.set_setting("scheduler.max_active", 3)
    gate = bench.folder / "gate"
    job = bench.submit("sh", "-c", f"while ! test -e {gate}; do sleep 0.01; done; exit 4")
    bench.step()
    started(bench, job)
    launcher = bench.engine.launches._launcher
    signal.pidfd_send_signal(launcher.pidfd, signal.SIGKILL)
    late = bench.submit("true")
    bench.until_ended(late)
    assert bench.status(job) is Status.RUNNING
    gate.touch()
    bench.until_ended(job)
    assert bench.client.document(job)["run"]["exit_code"] == 4


def test_the_folder_holds_nothing_but_the_evidence_of_its_tokens(bench: Bench) -> None:
    job = bench.submit("true")
    bench.until_ended(job)
    names = {name.split(".")[0] for name in os.listdir(bench.home.job(job))}
    assert names == {"claim", "lock", "started", "outcome", "job", "stdout", "stderr"}
    assert Path(bench.home.job(job)).stat().st_mode & 0o777 == 0o700


def test_a_machine_that_slept_is_not_a_supervisor_that_hangs(
    make_bench: Callable[..., Bench],
) -> None:
    """The supervisor's deadline does not run while the machine sleeps; neither does ours."""
    from headway.base.clock import SystemClock
    from headway.testing.clock import FakeClock

    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    job = bench.submit("sleep", "600", timeout=60_000_000, grace=0)
    bench.step()
    started(bench, job)
    clock._now += 7200 * 1_000_000  # the wall clock went on, the monotonic one did not
    clock.advance(2)
    bench.step()
    assert bench.status(job) is Status.RUNNING
    assert "failed" not in bench.kinds(job)


def test_a_running_job_whose_row_cannot_be_read_is_settled_and_stops_nobody(bench: Bench) -> None:
    gate = bench.folder / "gate"
    job = bench.submit("sh", "-c", f"while ! test -e {gate}; do sleep 0.01; done; exit 3")
    dependent = bench.submit("true", after=(job,))
    healthy = bench.submit("true")
    bench.step()
    database = bench.store.database  # type: ignore[attr-defined]
    database.execute("update jobs set retry = 'nonsense' where id = 1", {})
    gate.touch()
    bench.until_ended(dependent, healthy)
    assert bench.status(healthy) is Status.SUCCEEDED
    assert bench.status(dependent) is Status.BLOCKED_BY_DEPENDENCY
    assert database.execute("select exit_code from runs where job_id = 1", {}) == [(3,)]


def test_claims_of_another_host_and_another_boot_are_over(  # a restored home, a new container
    bench: Bench, store_url: str | None
) -> None:
    job = bench.submit("true")
    not_launched(bench)
    bench.step()
    database = bench.store.database  # type: ignore[attr-defined]
    database.execute("update claims set host_id = 'elsewhere', boot_id = 'before'", {})
    bench.crash().recover()
    if store_url is not None:  # hosts share it: that one may live
        assert bench.status(job) is Status.RUNNING
        database.execute(f"update claims set host_id = '{bench.client.context.host.id}'", {})
        bench.crash().recover()
    assert bench.client.document(job)["run"]["error"] == "Scheduler crash recovery: host_rebooted"


def test_too_many_open_files_is_no_verdict(bench: Bench) -> None:
    import resource

    job = bench.submit("sleep", "600")
    bench.step()
    evidence = started(bench, job)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        assert bench.engine.tools.recovery.judge(claim_of_folder(evidence, job, bench)) is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert bench.status(job) is Status.RUNNING
    record = evidence.read_started()
    assert record is not None and os.path.exists(f"/proc/{record.child_pid}")


def claim_of_folder(evidence: Evidence, job: int, bench: Bench) -> Claim:
    """Without asking the store, which needs descriptors of its own."""
    return next(claim for claim in bench.engine.launches.claims if claim.job_id == job)


def test_an_answer_without_its_descriptor_is_not_a_failed_fork(bench: Bench) -> None:
    """A full descriptor table drops it on the way; the supervisor lives all the same."""
    ledger = bench.folder / "ledger"
    job = bench.submit("sh", "-c", f"echo ran >> {ledger}; sleep 0.3")
    launcher = bench.engine.launches._launcher
    acks = launcher.acks

    def without_descriptor() -> list[object]:
        found = acks()
        for ack in found:
            if ack.pidfd is not None:
                os.close(ack.pidfd)
                ack.pidfd = None
        return found  # type: ignore[return-value]

    launcher.acks = without_descriptor  # type: ignore[method-assign,assignment]
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED
    assert "unclaimed" not in bench.kinds(job) and ledger.read_text() == "ran\n"
