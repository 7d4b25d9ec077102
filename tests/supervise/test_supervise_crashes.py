"""What supervisors and their parent do when something dies, stops or fails around them.

Each of their crash points is visited in tests/crash/test_points.py.
"""

import json
import os
import select
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from supervised import Claim, Home, is_alive, kill, wait_for, wait_for_end

from headway.base import proc
from headway.supervise import rescue


def ledger(home: Home) -> str:
    path = home.path / "ledger"
    return path.read_text() if path.exists() else ""


def free_lock(claim: Claim) -> None:
    # A child that was just forked holds a copy until it sees that its supervisor is dead.
    os.close(wait_for(claim.evidence.try_lock))


@pytest.mark.parametrize("mark", ["make_void", "request_cancel"])
def test_void_or_cancelled_claim_never_runs(home: Home, mark: str) -> None:
    claim = home.claim("sh", "-c", "echo ran >>ledger")
    getattr(claim.evidence, mark)()
    claim.launch().ended()
    assert claim.evidence.read_started() is None
    assert claim.evidence.read_outcome() is None
    assert ledger(home) == ""
    free_lock(claim)


def test_claim_whose_lock_is_held_never_runs(home: Home) -> None:
    claim = home.claim("sh", "-c", "echo ran >>ledger")
    lock = claim.evidence.try_lock()
    assert lock is not None
    claim.launch().ended()
    assert ledger(home) == ""
    assert claim.evidence.read_started() is None
    os.close(lock)


def test_claim_launched_twice_runs_once(home: Home) -> None:
    claim = home.run_shell("echo ran >>ledger")
    claim.ended()
    claim.launcher.launch(claim.evidence.folder, claim.evidence.token)
    again = wait_for(claim.launcher.acks)[0]
    wait_for_end(again.pidfd)
    os.close(again.pidfd)
    assert ledger(home) == "ran\n"


def test_claim_that_could_not_start_is_not_tried_again(home: Home) -> None:
    claim = home.claim("true", env_file=str(home.path / "later"))
    assert claim.launch().outcome().reason == "spawn_error"
    (home.path / "later").write_text('{"env": {}}')
    claim.launcher.launch(claim.evidence.folder, claim.evidence.token)
    again = wait_for(claim.launcher.acks)[0]
    wait_for_end(again.pidfd)
    os.close(again.pidfd)
    assert claim.outcome().reason == "spawn_error"


def test_lock_is_busy_while_the_supervisor_lives(home: Home) -> None:
    claim = home.run_shell("echo up; sleep 1000")
    claim.says(b"up")
    assert claim.evidence.try_lock() is None
    claim.cancel()
    claim.ended()
    free_lock(claim)


def test_leftover_process_does_not_hold_the_lock(home: Home, cgroup: str) -> None:
    claim = home.run_shell("sleep 1000 >/dev/null 2>&1 &", leftovers="leave", cgroup=cgroup)
    assert claim.outcome().tree == "left"
    free_lock(claim)


def test_stopped_supervisor_is_ended(home: Home, cgroup: str) -> None:  # fault B8
    claim = home.run_shell("echo up; exec sleep 1000", cgroup=cgroup)
    claim.says(b"up")
    assert claim.pidfd is not None
    proc.signal_pidfd(claim.pidfd, signal.SIGSTOP)
    assert claim.evidence.try_lock() is None  # alive, however long it is stopped
    claim.evidence.request_cancel()
    assert rescue.end_supervisor(claim.evidence)
    claim.ended()
    wait_for(lambda: not is_alive(claim.started().child_pid))
    free_lock(claim)
    assert not rescue.end_supervisor(claim.evidence)


def test_supervisor_of_another_boot_is_never_signalled(home: Home, tmp_path: Path) -> None:
    claim = home.run_shell("echo up; sleep 1000")  # fault A7 B9
    claim.says(b"up")
    record = json.loads(Path(claim.evidence.started).read_text())
    Path(claim.evidence.started).write_text(json.dumps({**record, "boot_id": "other"}))
    assert rescue.watch_supervisor(claim.evidence) is None
    assert not rescue.poke_supervisor(claim.evidence)
    Path(claim.evidence.started).write_text(
        json.dumps({**record, "supervisor_start": record["supervisor_start"] + 1})
    )
    assert rescue.watch_supervisor(claim.evidence) is None
    Path(claim.evidence.started).write_text(json.dumps(record))
    fd = rescue.watch_supervisor(claim.evidence)
    assert fd is not None
    os.close(fd)


def test_what_a_dead_supervisor_left_is_found_and_ended(home: Home, cgroup: str) -> None:
    claim = home.run_shell("setsid sleep 1000 & echo up; sleep 1000", cgroup=cgroup)
    claim.says(b"up")
    with_cgroup = claim.started().cgroup is not None
    assert claim.pid is not None
    kill(claim.pid)
    claim.ended()
    assert not rescue.tree_is_empty(claim.evidence)
    assert rescue.end_claim(claim.evidence) == ("gone" if with_cgroup else "unproven")
    assert rescue.tree_is_empty(claim.evidence)
    assert rescue.end_claim(claim.evidence) == "unproven"  # nothing is left to prove it by


def test_supervisors_outlive_their_parent(home: Home) -> None:  # fault A1
    launcher = home.launcher()
    claim = home.run_shell(
        "echo up; while [ ! -e go ]; do sleep 0.05; done; exit 9", launcher=launcher
    )
    claim.says(b"up")
    launcher.stop(kill=True)
    (home.path / "go").touch()
    assert claim.outcome().exit_code == 9


def test_parent_starts_what_it_has_read_at_end_of_file(home: Home) -> None:
    launcher = home.launcher()
    claims = [home.claim("sh", "-c", "echo ran >>ledger", launcher=launcher) for _ in range(30)]
    for claim in claims:
        launcher.launch(claim.evidence.folder, claim.evidence.token)
    assert not launcher.wants_write()
    launcher.stop()
    for claim in claims:
        wait_for(claim.evidence.read_outcome)
    assert ledger(home) == "ran\n" * 30


@pytest.mark.parametrize("point", ["parent.read", "parent.forked", "parent.acked"])
def test_parent_killed_at_any_point_is_noticed_and_replaced(home: Home, point: str) -> None:
    launcher = home.launcher(HEADWAY_POINTS=f"{point}=kill")
    claim = home.claim("sh", "-c", "echo ran >>ledger", launcher=launcher)
    launcher.launch(claim.evidence.folder, claim.evidence.token)
    wait_for_end(launcher.pidfd)
    assert not launcher.alive()
    lost = launcher.restart()
    assert launcher.alive()
    assert lost == (set() if point == "parent.acked" else {claim.evidence.token})
    if point == "parent.read":
        assert claim.evidence.read_started() is None
        free_lock(claim)
    else:
        assert wait_for(claim.evidence.read_outcome).exit_code == 0
    acks = launcher.acks()
    assert [ack.token for ack in acks] == ([claim.evidence.token] if not lost else [])
    for ack in acks:
        os.close(ack.pidfd or -1)


def test_stopped_parent_is_overdue_and_blocks_nobody(home: Home) -> None:
    launcher = home.launcher()
    signal.pidfd_send_signal(launcher.pidfd, signal.SIGSTOP)
    for number in range(600):  # more than the socket takes
        launcher.launch("/nowhere", f"token-{number}")
    assert launcher.wants_write()
    assert len(launcher.unacknowledged) == 600
    assert wait_for(lambda: launcher.overdue(0.05))
    assert not launcher.overdue(60)
    signal.pidfd_send_signal(launcher.pidfd, signal.SIGCONT)
    answered: set[str] = set()

    def all_answered() -> bool:
        for ack in launcher.acks():
            answered.add(ack.token)
            os.close(ack.pidfd or -1)
        return len(answered) == 600

    wait_for(all_answered, seconds=30)
    assert not launcher.wants_write()
    assert not launcher.unacknowledged


@pytest.mark.root
def test_fork_that_fails_is_acknowledged_with_its_errno(home: Home) -> None:  # fault B11
    pids = Path("/sys/fs/cgroup/pids")
    if not (pids / "cgroup.procs").exists():
        pytest.skip("no pids controller")
    launcher = home.launcher()
    group = pids / f"headway-test-{os.getpid()}"
    group.mkdir()
    try:
        info = Path(f"/proc/self/fdinfo/{launcher.pidfd}").read_text()
        pid = next(line.split()[1] for line in info.splitlines() if line.startswith("Pid:"))
        (group / "cgroup.procs").write_text(pid)
        (group / "pids.max").write_text("1")
        claim = home.claim("true", launcher=launcher)
        launcher.launch(claim.evidence.folder, claim.evidence.token)
        ack = wait_for(launcher.acks)[0]
        assert (ack.errno, ack.pid, ack.pidfd) == (11, None, None)
        (group / "pids.max").write_text("2")  # the supervisor, but not its child
        outcome = claim.launch().outcome()
        assert (outcome.reason, outcome.errno) == ("spawn_error", 11)
    finally:
        launcher.stop(kill=True)
        wait_for(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


@pytest.mark.root
def test_outcome_is_written_though_the_job_filled_the_disk(home: Home) -> None:  # fault A10
    disk = home.path / "jobs"
    disk.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k,mode=700", "tmpfs", disk], check=True)
    try:
        script = f"cat /dev/zero >{disk}/filler; echo full; yes | head -c 100000; exit 7"
        claim = home.run_shell(script)
        outcome = claim.outcome()
        assert (outcome.reason, outcome.exit_code) == ("exited", 7)
        assert outcome.logs["stdout"] == {"bytes": 100_005, "dropped": 100_005}
    finally:
        home.close()
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.root
def test_full_disk_before_the_start_is_a_spawn_error(home: Home) -> None:  # fault A10
    disk = home.path / "jobs"
    disk.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k,mode=700", "tmpfs", disk], check=True)
    try:
        claim = home.claim("sh", "-c", "echo ran >>ledger")
        subprocess.run(
            f"cat /dev/zero >{disk}/filler", shell=True, check=False, capture_output=True
        )
        outcome = claim.launch().outcome()
        assert (outcome.reason, outcome.errno) == ("spawn_error", 28)
        assert claim.evidence.read_started() is None
        assert ledger(home) == ""
    finally:
        home.close()
        subprocess.run(["umount", "-l", disk], check=True)


def test_outcome_that_cannot_be_written_is_tried_again_under_the_lock(home: Home) -> None:
    claim = home.run_shell("echo up; while [ ! -e go ]; do sleep 0.05; done; exit 4")
    claim.says(b"up")
    os.unlink(claim.evidence.outcome_tmp)
    os.mkdir(claim.evidence.outcome_tmp)  # no file can be opened for writing here
    (home.path / "go").touch()
    wait_for(lambda: not is_alive(claim.started().child_pid))
    assert claim.pid is not None
    assert not select.select([claim.pidfd], [], [], 0.3)[0]
    assert claim.evidence.try_lock() is None
    os.rmdir(claim.evidence.outcome_tmp)
    assert claim.outcome().exit_code == 4


def test_supervisor_of_a_deleted_folder_ends(home: Home) -> None:
    claim = home.run_shell("echo up; while [ ! -e go ]; do sleep 0.05; done")
    claim.says(b"up")
    shutil.rmtree(claim.folder)
    (home.path / "go").touch()
    claim.ended()
    assert not claim.folder.exists()
