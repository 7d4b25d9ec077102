"""What someone does to one job's folder concerns that job alone."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from test_recovery import claim_of, started

from harness import Bench
from headway.core.model import Claim, WaitKind
from headway.core.states import Status
from headway.jobs.retention import Collector
from headway.jobs.specification import parse_lock
from headway.supervise.evidence import Evidence

Damage = Callable[[Claim], None]


@pytest.fixture(params=["sqlite"])
def store_url(request: pytest.FixtureRequest) -> str | None:
    """What is told apart here is on the disk; one of them shows that another store is no matter."""
    return request.getfixturevalue("postgres_url") if request.param == "postgres" else None


def writable(claim: Claim) -> None:
    os.chmod(claim.folder, 0o777)


def writable_by_group(claim: Claim) -> None:
    os.chmod(claim.folder, 0o720)


def link(claim: Claim) -> None:
    os.rename(claim.folder, f"{claim.folder}.aside")
    os.symlink(f"{claim.folder}.aside", claim.folder)


def dead_link(claim: Claim) -> None:
    os.rename(claim.folder, f"{claim.folder}.aside")
    os.symlink("nowhere", claim.folder)


def file(claim: Claim) -> None:
    os.rename(claim.folder, f"{claim.folder}.aside")
    Path(claim.folder).write_text("not a folder")


def missing(claim: Claim) -> None:
    shutil.rmtree(claim.folder)


def foreign(claim: Claim) -> None:
    os.chown(claim.folder, 65534, 65534)


def evidence(claim: Claim) -> Evidence:
    return Evidence(claim.folder, claim.token)


def outcome_is_a_link(claim: Claim) -> None:
    os.symlink("/etc/hostname", evidence(claim).outcome)


def outcome_is_a_folder(claim: Claim) -> None:
    os.mkdir(evidence(claim).outcome)


def lock_is_a_folder(claim: Claim) -> None:
    os.unlink(evidence(claim).lock)
    os.mkdir(evidence(claim).lock)


def lock_is_a_link(claim: Claim) -> None:
    os.unlink(evidence(claim).lock)
    os.symlink("/etc/hostname", evidence(claim).lock)


FOLDERS = [writable, writable_by_group, link, dead_link, file]
FOLDERS.append(pytest.param(foreign, marks=pytest.mark.root))  # type: ignore[arg-type]
FILES = [outcome_is_a_link, lock_is_a_folder, lock_is_a_link]


def running(bench: Bench, **options: object) -> tuple[int, Claim]:
    """A job that runs until its gate is there."""
    script = f"while ! test -e {bench.folder}/gate; do sleep 0.01; done"
    job = bench.submit("sh", "-c", script, **options)
    bench.step()
    started(bench, job)
    return job, claim_of(bench, job)


def open_gate(bench: Bench) -> None:
    (bench.folder / "gate").touch()


@pytest.mark.parametrize("damage", FOLDERS)
def test_a_folder_that_is_not_as_it_was_made_fails_its_job_alone(  # fault H7
    make_bench: Callable[..., Bench], damage: Damage
) -> None:
    bench = make_bench(max_active=2)
    job, claim = running(bench)
    before = bench.submit("true")
    damage(claim)
    bench.until_ended(before)
    assert bench.status(job) is Status.RUNNING, "nobody has to look at it before its end"
    open_gate(bench)
    after = bench.submit("true")
    bench.until_ended(job, after)
    assert bench.status(after) is Status.SUCCEEDED
    document = bench.client.document(job)
    assert document["state"] == "failed"
    assert document["reason"].startswith("Scheduler crash recovery: evidence_missing")
    assert claim.folder in document["reason"], "it says which folder"
    kinds = bench.kinds(job)
    bench.crash().recover()
    assert bench.kinds(job) == kinds, "twice gives the same"


@pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
def test_its_locks_are_kept_until_its_processes_are_known_to_be_gone(bench: Bench) -> None:
    bench.client.set_setting("scheduler.max_active", 2)
    job, claim = running(bench, locks=(parse_lock("repo"),))
    waiter = bench.submit("true", locks=(parse_lock("repo"),))
    writable(claim)
    open_gate(bench)
    bench.until_ended(job)
    assert bench.status(waiter) is Status.WAITING_ON_LOCKS
    bench.until_ended(waiter)
    assert "tree_unproven" in bench.kinds(job)


@pytest.mark.parametrize("damage", FILES)
def test_a_planted_file_fails_its_job_alone(bench: Bench, damage: Damage) -> None:  # fault H7
    job, claim = running(bench)
    damage(claim)
    bench.client.set_setting("scheduler.max_active", 2)
    open_gate(bench)
    after = bench.submit("true")
    bench.until_ended(job, after)
    assert bench.status(after) is Status.SUCCEEDED
    assert bench.status(job) in (Status.FAILED, Status.SUCCEEDED), "the truth, or that it is lost"


def test_what_nobody_can_write_over_is_no_outcome(bench: Bench) -> None:
    """A folder where the outcome is to be: its supervisor cannot say how the job ended, and goes on
    trying; all others go on."""
    job, claim = running(bench)
    outcome_is_a_folder(claim)
    bench.client.set_setting("scheduler.max_active", 2)
    open_gate(bench)
    after = bench.submit("true")
    bench.until_ended(after)
    assert bench.status(after) is Status.SUCCEEDED
    os.rmdir(evidence(claim).outcome)
    bench.until_ended(job)


@pytest.mark.parametrize("damage", [*FOLDERS, missing, *FILES])
def test_a_worker_that_comes_up_is_not_stopped_by_a_folder(  # fault H7
    bench: Bench, damage: Damage
) -> None:
    job, claim = running(bench)
    damage(claim)
    bench.crash().recover()
    after = bench.submit("true")
    bench.until_ended(job, after)
    assert bench.status(job) is Status.FAILED
    assert bench.status(after) is Status.SUCCEEDED
    open_gate(bench)


@pytest.mark.parametrize("damage", [writable, link, file, missing])
def test_a_cancel_reaches_a_job_whose_folder_cannot_be_written_to(
    make_bench: Callable[..., Bench], damage: Damage
) -> None:
    from headway.base.clock import SystemClock
    from headway.testing.clock import FakeClock

    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock, max_active=2)
    job, claim = running(bench, grace=100_000)
    bench.step()
    damage(claim)
    bench.client.cancel([job])
    after = bench.submit("true")
    bench.until_ended(after)
    for _ in range(3):  # it cannot be told; who is not answered for 10 s ends it
        clock.advance(6)
        bench.step()
    bench.until_ended(job)
    assert bench.status(job) is Status.CANCELLED


@pytest.mark.parametrize("name", ["started", "claim"])
@pytest.mark.parametrize("content", [b"", b"nonsense", b'{"boot_id": 1}', b"[" * 100_000])
def test_a_damaged_record_stops_nobody(bench: Bench, name: str, content: bytes) -> None:
    job, claim = running(bench)
    Path(claim.folder, f"{name}.{claim.token}").write_bytes(content)
    with bench.store.write() as tx:
        bench.engine.tools.settler.host_failed(tx, WaitKind.PRESSURE, "a test")
        bench.engine.tools.settler.look_at_probes(tx, [claim._replace(probe=True)])
    bench.client.scheduler.reset()
    bench.crash().recover()
    open_gate(bench)
    bench.until_ended(job, bench.submit("true"))


def test_nothing_is_written_where_a_planted_link_leads(bench: Bench) -> None:  # fault H7
    job, claim = running(bench)
    outside = bench.folder / "outside"
    outside.mkdir()
    os.rename(claim.folder, f"{claim.folder}.aside")
    os.symlink(outside, claim.folder)
    open_gate(bench)
    bench.client.set_setting("scheduler.max_active", 2)
    bench.until_ended(job, bench.submit("true"))
    assert os.listdir(outside) == []


@pytest.mark.parametrize("damage", [link, file])
def test_what_was_planted_for_a_folder_is_removed_with_its_job(
    bench: Bench, damage: Damage
) -> None:
    job = bench.submit("true")
    bench.step()
    claim = claim_of(bench, job)
    bench.until_ended(job)
    damage(claim)
    Collector(bench.store, bench.home, bench.client.context.host.id, actor="tester").clean(job)
    assert not os.path.lexists(claim.folder)
    if damage is link:
        assert os.path.isdir(f"{claim.folder}.aside"), "where it led to is left alone"


def test_no_patch_is_saved_where_a_planted_link_leads(bench: Bench) -> None:  # fault H7
    repo = bench.folder / "repo"
    for command in ("init -q", "commit -q --allow-empty -m one"):
        name = ["-c", "user.name=a", "-c", "user.email=a@b"]
        repo.mkdir(exist_ok=True)
        subprocess.run(["git", *name, *command.split()], cwd=repo, check=True)
    gate = bench.folder / "gate"
    script = f"echo new > file; while ! test -e {gate}; do sleep 0.01; done"
    job = bench.submit("sh", "-c", script, cwd=str(repo), save_patch=True)
    bench.step()
    started(bench, job)
    bench.until(lambda: (repo / "file").exists())
    claim, outside = claim_of(bench, job), bench.folder / "outside"
    outside.mkdir()
    os.rename(claim.folder, f"{claim.folder}.aside")
    os.symlink(outside, claim.folder)
    gate.touch()
    bench.until_ended(job)
    assert os.listdir(outside) == []
