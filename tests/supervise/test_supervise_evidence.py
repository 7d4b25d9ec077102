"""What the files of a claim say, whoever tampers with them and whatever was cut short."""

import os
import resource
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from supervised import Home, kill, wait_for

from headway.base import proc
from headway.supervise import rescue
from headway.supervise.evidence import Evidence, OutcomeRecord, Started, UnsafeFolder

TOKEN = "a" * 32


def outcome_of(token: str) -> OutcomeRecord:
    return OutcomeRecord(
        token=token,
        job=24,
        reason="exited",
        exit_code=0,
        wait_status=0,
        started_at=1,
        finished_at=2,
        usage={"user_seconds": 0.1, "system_seconds": 0.2, "max_rss_kb": 3},
        logs={"stdout": {"bytes": 1, "dropped": 0}, "stderr": {"bytes": 0, "dropped": 0}},
        tree="gone",
    )


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    made = Evidence(str(tmp_path / "jobs" / "24"), TOKEN)
    made.prepare({"token": TOKEN, "argv": ["caf\udce9"]})
    return made


def test_prepare_makes_a_private_folder_and_reserves_the_outcome(evidence: Evidence) -> None:
    assert evidence.exists()
    assert evidence.read_spec() == {"token": TOKEN, "argv": ["caf\udce9"]}
    assert stat.S_IMODE(os.stat(evidence.folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(evidence.claim).st_mode) == 0o600
    assert os.stat(evidence.outcome_tmp).st_blocks * 512 >= 16384


def test_discard_leaves_nothing_of_the_token(evidence: Evidence) -> None:
    other = Evidence(evidence.folder, "b" * 32)
    other.prepare({})
    evidence.make_void()
    evidence.request_cancel()
    os.close(evidence.try_lock() or -1)
    evidence.discard()
    assert not [name for name in os.listdir(evidence.folder) if TOKEN in name]
    other.discard()
    assert not os.path.exists(evidence.folder)


def test_failed_prepare_leaves_nothing(tmp_path: Path) -> None:
    evidence = Evidence(str(tmp_path / "24"), TOKEN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))  # room for the claim only
    try:
        with pytest.raises(OSError, match="File too large"):
            evidence.prepare({})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not os.path.exists(evidence.folder)


def test_outcome_comes_back_as_written(evidence: Evidence) -> None:
    assert evidence.read_outcome() is None
    evidence.write_outcome(outcome_of(TOKEN))
    read = evidence.read_outcome()
    assert read is not None
    assert read.to_json() == outcome_of(TOKEN).to_json()
    assert not os.path.exists(evidence.outcome_tmp)


def test_torn_outcome_is_none_at_every_offset(evidence: Evidence) -> None:  # fault A5
    whole = outcome_of(TOKEN).to_json()
    path = Path(evidence.outcome)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert evidence.read_outcome() is None, length
        path.write_bytes(whole[:length] + bytes(len(whole) - length))  # zeros of a lost write
        assert evidence.read_outcome() is None, length


def test_damaged_outcome_is_none_at_every_byte(evidence: Evidence) -> None:  # fault A5
    whole = outcome_of(TOKEN).to_json()
    for at in range(len(whole)):
        damaged = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        Path(evidence.outcome).write_bytes(damaged)
        assert evidence.read_outcome() is None, at


def test_outcome_of_another_token_is_none(evidence: Evidence) -> None:
    Path(evidence.outcome).write_bytes(outcome_of("b" * 32).to_json())
    assert evidence.read_outcome() is None


def test_outcome_for_an_unknown_reason_is_none(evidence: Evidence) -> None:
    strange = outcome_of(TOKEN)
    strange.reason = "exploded"
    Path(evidence.outcome).write_bytes(strange.to_json())
    assert evidence.read_outcome() is None


def test_damaged_start_record_still_says_started(evidence: Evidence) -> None:
    assert evidence.read_started() is None
    Path(evidence.started).write_bytes(b'{"boot')
    started = evidence.read_started()
    assert started is not None
    assert started.supervisor_pid == 0
    assert rescue.watch_supervisor(evidence) is None


def test_first_settled_outcome_stays_linked(evidence: Evidence) -> None:
    second = Evidence(evidence.folder, "b" * 32)
    evidence.write_outcome(outcome_of(TOKEN))
    second.write_outcome(outcome_of("b" * 32))
    linked = Path(evidence.folder, "outcome.json")
    for each in (evidence, second, evidence):
        each.link_outcome()
        assert linked.read_bytes() == outcome_of(TOKEN).to_json()


@pytest.mark.parametrize("damaged", [b"{", b"7", b"[" * 100_000])
def test_of_a_damaged_claim_only_the_mark_says_that_all_was_done_before(
    evidence: Evidence, damaged: bytes
) -> None:
    Path(evidence.started).write_bytes(b"{}")
    assert evidence.has_begun() and not evidence.is_checking(), "nothing is to be done before"
    Path(evidence.claim).write_bytes(damaged)
    assert not evidence.has_begun() and evidence.is_checking()
    evidence.mark_prepared()
    assert evidence.has_begun() and not evidence.is_checking()


def test_lock_is_busy_for_others_and_free_once_closed(evidence: Evidence) -> None:
    lock = evidence.try_lock()
    assert lock is not None
    assert not os.get_inheritable(lock)
    assert evidence.try_lock() is None
    os.close(lock)
    again = evidence.try_lock()
    assert again is not None
    os.close(again)


def test_lock_of_a_folder_that_is_gone_raises(tmp_path: Path) -> None:
    evidence = Evidence(str(tmp_path / "none"), TOKEN)
    with pytest.raises(FileNotFoundError):
        evidence.try_lock()
    assert not evidence.exists()
    assert evidence.read_outcome() is None
    assert not evidence.is_void()


@pytest.mark.parametrize("name", ["claim", "lock", "void", "started", "cancel", "outcome"])
def test_planted_link_is_not_followed(tmp_path: Path, name: str) -> None:  # fault H7
    target = tmp_path / "precious"
    target.write_text("precious")
    evidence = Evidence(str(tmp_path / "job"), TOKEN)
    os.mkdir(evidence.folder, 0o700)
    for path in (getattr(evidence, name), f"{evidence.folder}/started.{TOKEN}.tmp"):
        os.symlink(target, path)
    os.symlink(target, evidence.outcome_tmp)
    actions = {
        "claim": lambda: evidence.prepare({}),
        "lock": evidence.try_lock,
        "void": evidence.make_void,
        "started": evidence.read_started,
        "cancel": evidence.request_cancel,
        "outcome": lambda: evidence.write_outcome(outcome_of(TOKEN)),
    }
    with pytest.raises(OSError):
        actions[name]()
    assert target.read_text() == "precious"


def test_unsafe_folders_are_refused(tmp_path: Path) -> None:  # fault H7
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(real)
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    for folder in ("link", "open"):
        evidence = Evidence(str(tmp_path / folder), TOKEN)
        for action in (evidence.try_lock, evidence.make_void, evidence.read_outcome):
            with pytest.raises(UnsafeFolder):
                action()
        with pytest.raises(UnsafeFolder):
            evidence.prepare({})
    assert not list(real.iterdir())


@pytest.mark.root
def test_folder_of_another_user_is_refused(tmp_path: Path) -> None:  # fault H7
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(UnsafeFolder):
        Evidence(str(tmp_path / "theirs"), TOKEN).prepare({})


def test_job_cannot_lead_its_log_elsewhere(home: Home) -> None:  # fault H7
    precious = home.path / "precious"
    precious.write_text("precious")
    claim = home.claim("sh", "-c", "echo overwrite")
    os.symlink(precious, claim.folder / "stdout.log")
    outcome = claim.launch().outcome()
    assert precious.read_text() == "precious"
    assert outcome.logs["stdout"] == {"bytes": 10, "dropped": 10}


def test_start_time_tells_processes_apart() -> None:  # fault B9
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        start = proc.start_time(child.pid)
        assert start is not None
        assert proc.open_pidfd(child.pid, start + 1) is None
        assert proc.open_pidfd(child.pid, 0) is None
        assert not proc.signal_process(child.pid, start + 1, sig=9)
        fd = proc.open_pidfd(child.pid, start)
        assert fd is not None
        kill(child.pid)
        wait_for(lambda: proc.start_time(child.pid) is None)  # a zombie is nobody
        os.close(fd)
    assert proc.open_pidfd(0, 0) is None


@pytest.mark.root
def test_reused_pid_is_refused(tmp_path: Path) -> None:  # fault B9
    with subprocess.Popen(["sleep", "1000"]) as first:
        start = proc.start_time(first.pid)
        assert start is not None
        first.kill()
        first.wait()
        # Start times count in hundredths of a second.
        wait_for(lambda: time.clock_gettime(time.CLOCK_BOOTTIME) * 100 > start + 2)
        for _ in range(1000):  # the number is handed out again only if nobody else was faster
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(first.pid - 1))
            with subprocess.Popen(["sleep", "1000"]) as second:
                reused = second.pid == first.pid
                opened = proc.open_pidfd(first.pid, start)
                second.kill()
            assert opened is None
            if reused:
                return
    pytest.fail("the pid was never handed out again")


def test_recorded_process_of_another_boot_is_not_ended(evidence: Evidence) -> None:
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        start = proc.start_time(stranger.pid) or 0
        evidence.write_started(
            Started(
                boot_id="another",
                supervisor_pid=stranger.pid,
                supervisor_start=start,
                child_pid=stranger.pid,
                child_start=start,
                cgroup=None,
                started_at=1,
            )
        )
        rescue.end_claim(evidence, patience=0.0)
        assert stranger.poll() is None and proc.start_time(stranger.pid) == start
        stranger.kill()
        assert stranger.wait() == -signal.SIGKILL


def test_boot_id_can_be_read_from_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fault A7
    real = proc.boot_id()
    assert len(real) == 36
    (tmp_path / "boot").write_text("another\n")
    monkeypatch.setenv("HEADWAY_BOOT_ID_FILE", str(tmp_path / "boot"))
    assert proc.boot_id() == "another"
