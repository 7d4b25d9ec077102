"""What runs and cannot come to its end says why, and so does what waits on a full disk."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_recovery import claim_of, evidence_of, started
from test_unsafe_folders import writable

from harness import Bench, wait_for
from headway.admin.doctor import examine
from headway.base import proc
from headway.base.clock import SystemClock
from headway.base.errors import StoreFullError
from headway.core.states import Status
from headway.jobs.views.status import scheduler_status
from headway.jobs.views.storage import lack_of_room
from headway.jobs.views.why import why
from headway.testing.clock import FakeClock


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of a few megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    assert os.system(f"mount -t tmpfs -o size=8m tmpfs {folder}") == 0
    yield folder
    os.system(f"umount -l {folder}")


def fill(folder: Path) -> Path:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return filler


def cannot_step(bench: Bench) -> bool:
    try:
        bench.turn()
    except StoreFullError:
        return True
    return False


def objections(bench: Bench, job: int) -> list[str]:
    return [
        f"{each['kind']}: {each['detail']}" for each in why(bench.client.context, job)["objections"]
    ]


@pytest.mark.root
def test_on_a_full_disk_what_waits_and_what_has_ended_say_so(  # fault A10
    small: Path, tmp_path: Path
) -> None:
    bench = Bench(small, max_active=1)
    gate = tmp_path / "gate"
    job = bench.submit("sh", "-c", f"while ! test -e {gate}; do sleep 0.01; done; exit 3")
    waiting = bench.submit("true")
    bench.step()
    started(bench, job)
    assert objections(bench, waiting) == ["capacity: the one slot is in use"]
    assert lack_of_room(bench.home) is None and objections(bench, job) == []
    filler = fill(small)
    gate.touch()
    wait_for(lambda: evidence_of(bench, job).read_outcome())
    wait_for(lambda: cannot_step(bench), what="a step that finds no room")
    told = objections(bench, waiting)
    assert told[0] == f"storage: the disk of {bench.home.path} is full"
    assert bench.client.document(waiting)["wait"]["kind"] == "storage"
    assert bench.status(job) is Status.RUNNING
    (about,) = objections(bench, job)
    assert about.startswith("storage: its command has ended (exit code 3), and the store does not")
    assert bench.client.document(job)["wait"]["kind"] == "storage"
    assert (
        scheduler_status(bench.client.context)["reason"] == f"the disk of {bench.home.path} is full"
    )
    filler.unlink()
    bench.until_ended(job, waiting)
    assert bench.client.document(job)["run"]["exit_code"] == 3
    assert bench.client.document(job)["wait"] is None
    bench.close()


@pytest.mark.root
def test_a_disk_without_room_for_another_file_is_told(tmp_path: Path) -> None:  # fault A12
    folder = tmp_path / "small"
    folder.mkdir()
    assert os.system(f"mount -t tmpfs -o size=8m,nr_inodes=40 tmpfs {folder}") == 0
    try:
        bench = Bench(folder)
        job = bench.submit("true")
        made = 0
        try:
            while True:
                (folder / f"file-{made}").touch()
                made += 1
        except OSError:
            pass
        assert objections(bench, job) == [
            f"storage: the disk of {bench.home.path} has no room for another file"
        ]
        bench.close()
    finally:
        os.system(f"umount -l {folder}")


def test_a_disk_with_room_lacks_nothing(bench: Bench) -> None:
    assert lack_of_room(bench.home) is None


def stopped_by_its_job(bench: Bench, **options: object) -> tuple[int, int]:
    """A job that stops its own supervisor; whose pid is the second number."""
    job = bench.submit("sh", "-c", "kill -STOP $PPID; exec sleep 600", **options)
    bench.step()
    record = started(bench, job).read_started()
    assert record is not None
    pid, start = record.supervisor_pid, record.supervisor_start
    wait_for(lambda: proc.is_stopped(pid, start), what="the supervisor to be stopped")
    return job, pid


def test_a_job_that_stopped_its_own_supervisor_says_so(bench: Bench) -> None:  # fault B8
    job, pid = stopped_by_its_job(bench)
    (told,) = why(bench.client.context, job)["objections"]
    assert f"its supervisor (pid {pid}) is stopped" in told["detail"]
    assert f"kill -CONT {pid}" in told["remedy"]
    assert "is stopped" in bench.client.document(job)["wait"]["detail"]
    findings = examine(bench.home.path, bench.home.store_url, {}, "/")
    (about,) = [each for each in findings if each.check == "supervisors"]
    assert about.level == "yellow" and f"job-{job}" in about.detail
    os.kill(pid, signal.SIGCONT)
    wait_for(lambda: why(bench.client.context, job)["objections"] == [], what="it to go on")
    bench.client.cancel([job])
    bench.until_ended(job)
    assert bench.status(job) is Status.CANCELLED


def test_a_deadline_ends_a_job_that_stopped_its_own_supervisor(  # fault B8
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    job, pid = stopped_by_its_job(bench, timeout=60_000_000, grace=0)
    bench.step()
    clock.advance(65)
    bench.step()
    assert bench.status(job) is Status.RUNNING, "it has 10 s to answer"
    clock.advance(6)
    bench.until_ended(job)
    assert "outcome_unknown" in (bench.job(job).reason or "")
    wait_for(lambda: proc.start_time(pid) is None)


def test_an_end_that_nobody_takes_in_is_told(bench: Bench) -> None:
    job = bench.submit("true")
    bench.step()
    wait_for(lambda: evidence_of(bench, job).read_outcome())
    outcome = evidence_of(bench, job).read_outcome()
    assert outcome is not None
    assert objections(bench, job) == [], "it is taken in within moments"
    outcome.finished_at -= 60_000_000
    evidence_of(bench, job).write_outcome(outcome)
    (told,) = objections(bench, job)
    assert "its command has ended (exit code 0)" in told


def test_a_supervisor_that_is_gone_is_told(bench: Bench) -> None:
    job = bench.submit("sleep", "600")
    bench.step()
    record = started(bench, job).read_started()
    assert record is not None
    os.kill(record.supervisor_pid, signal.SIGKILL)
    wait_for(lambda: proc.start_time(record.supervisor_pid) is None)
    (told,) = objections(bench, job)
    assert f"its supervisor (pid {record.supervisor_pid}) is gone" in told


def test_a_folder_that_cannot_be_believed_is_told_while_its_job_runs(bench: Bench) -> None:
    job = bench.submit("sleep", "600")
    bench.step()
    started(bench, job)
    claim = claim_of(bench, job)
    writable(claim)
    (told,) = objections(bench, job)
    assert claim.folder in told and "cannot be believed" in told
    findings = examine(bench.home.path, bench.home.store_url, {}, "/")
    (about,) = [each for each in findings if each.check == "folders"]
    assert about.level == "red" and claim.folder in about.detail
    os.chmod(claim.folder, 0o700)
    assert objections(bench, job) == []
