"""Three locked bytes: who may start processes, who stays, who is coming up."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from supervised import Home, is_alive, wait_for

from headway.base.worker_lock import COMING, START, STAYS, WorkerLock, autostart, wake

SOURCE = str(Path(__file__).parents[2] / "src")
# A worker that takes over the byte it inherited, notes that it lives, and waits to be killed.
WORKER = f"""
import os, sys, signal
sys.path.insert(0, {SOURCE!r})
from headway.base.worker_lock import *
lock = WorkerLock.adopt(int(os.environ["HEADWAY_COMING_FD"]))
fds = sorted(int(n) for n in os.listdir("/proc/self/fd"))
assert lock.take(STAYS)
lock.give_up(COMING)
lock.write_pid()
with open(sys.argv[1], "a") as ledger:
    ledger.write(f"{{os.getpid()}} {{os.getcwd()}} {{len(fds) - 1}} {{os.getsid(0)}}\\n")
print("to stderr", file=sys.stderr, flush=True)
signal.pause()
"""

# The test runner has threads of its own, about which Python 3.12 warns at a fork.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "worker.lock")


def worker_argv(ledger: Path) -> list[str]:
    return [sys.executable, "-c", WORKER, str(ledger)]


def workers(ledger: Path) -> list[list[str]]:
    return [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []


def end_workers(ledger: Path) -> None:
    for pid, *_ in workers(ledger):
        os.kill(int(pid), signal.SIGKILL)
        wait_for(lambda pid=pid: not is_alive(int(pid)))


def test_asking_never_takes_and_makes_no_file(path: str) -> None:
    assert not WorkerLock(path).is_held(STAYS)
    assert not os.path.exists(path)
    lock = WorkerLock(path)
    assert lock.take(START)
    assert not WorkerLock(path).is_held(STAYS)
    assert lock.take(STAYS)
    lock.close()


def test_bytes_are_held_one_by_one(path: str) -> None:
    first, second = WorkerLock(path), WorkerLock(path)
    assert first.take(START)
    assert first.take(STAYS)
    assert first.is_held(START)  # also when asked by its holder
    assert not second.take(START)
    assert second.take(COMING)
    first.give_up(START)
    assert second.take(START)
    assert second.is_held(STAYS)
    first.close()
    assert not second.is_held(STAYS)
    second.close()


def test_what_a_dead_worker_was_about_to_start_is_no_worker(path: str) -> None:
    """A process between fork and exec holds what its parent held; under load that takes a while."""
    told, tell = os.pipe()
    program = f"""
import os, sys
sys.path.insert(0, {SOURCE!r})
from headway.base.worker_lock import *
lock = WorkerLock({path!r})
assert lock.take(STAYS)
lock.write_pid()
if os.fork():
    print("held", flush=True)
    sys.stdin.read()
else:
    os.read({told}, 1)  # as if it came to its exec only then
"""
    argv = [sys.executable, "-c", program]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "pass_fds": [told]}
    with subprocess.Popen(argv, **pipes) as worker:  # type: ignore[call-overload]
        assert worker.stdout.readline() == b"held\n"
        lock = WorkerLock(path)
        assert not lock.take_from_the_dead(STAYS, 60), "it lives"
        worker.kill()
    os.close(told)
    assert not lock.take_from_the_dead(STAYS, 0)
    os.close(tell)
    assert lock.take_from_the_dead(STAYS, 60)
    lock.close()


def test_taking_waits_no_longer_than_asked(path: str) -> None:
    first, second = WorkerLock(path), WorkerLock(path)
    assert first.take(START)
    begin = time.monotonic()
    assert not second.take_within(START, 0.1)
    assert 0.1 <= time.monotonic() - begin < 5
    first.close()
    assert second.take_within(START, 5)
    second.close()


def test_lock_ends_with_its_holder(path: str) -> None:
    script = f"import sys; sys.path.insert(0, {SOURCE!r})\nfrom headway.base.worker_lock import *\n"
    script += f"lock = WorkerLock({path!r}); lock.take(STAYS); print('held', flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert WorkerLock(path).is_held(STAYS)
        holder.kill()
    assert not WorkerLock(path).is_held(STAYS)


def test_pid_is_for_display(path: str) -> None:
    lock = WorkerLock(path)
    assert lock.read_pid() is None
    lock.write_pid()
    assert WorkerLock(path).read_pid() == os.getpid()
    assert not WorkerLock(path).is_held(STAYS)
    lock.close()


@pytest.mark.processes
def test_autostarted_worker_stands_alone(path: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    assert autostart(path, worker_argv(ledger), {"LANG": "C"})
    assert not autostart(path, worker_argv(ledger), {})  # one is coming, or there
    wait_for(lambda: workers(ledger))
    [[pid, cwd, fds, sid]] = workers(ledger)
    try:
        assert (cwd, int(fds)) == ("/", 4)  # three standard ones and the lock
        assert int(sid) not in (os.getsid(0), int(pid))  # no terminal can ever be its own
        assert WorkerLock(path).is_held(STAYS)
        assert WorkerLock(path).read_pid() == int(pid)
        assert not autostart(path, worker_argv(ledger), {})
        wait_for(lambda: "to stderr" in (tmp_path / "worker.log").read_text())
    finally:
        end_workers(ledger)
    assert not WorkerLock(path).is_held(STAYS)
    assert not WorkerLock(path).is_held(COMING)


def test_twenty_who_race_start_one_worker(path: str, tmp_path: Path) -> None:
    ledger, gate = tmp_path / "ledger", os.pipe()
    racers = []
    for _ in range(20):
        pid = os.fork()
        if pid == 0:
            os.close(gate[1])
            os.read(gate[0], 1)  # end of file for all at once
            os._exit(10 + autostart(path, worker_argv(ledger), {}))
        racers.append(pid)
    os.close(gate[1])
    os.close(gate[0])
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in racers]
    wait_for(lambda: workers(ledger))
    try:
        assert sorted(codes) == [10] * 19 + [11]
        assert len(workers(ledger)) == 1
    finally:
        end_workers(ledger)


@pytest.mark.processes
def test_worker_that_cannot_be_executed_holds_nothing(path: str) -> None:
    assert not autostart(path, ["/nonexistent/headway"], {})
    assert not WorkerLock(path).is_held(COMING)


def test_supervisor_that_ends_starts_a_worker_if_none_is_there(home: Home) -> None:
    ledger = home.path / "ledger"
    worker = {
        "lock": str(home.run / "worker.lock"),
        "socket": str(home.run / "worker.sock"),
        "stopped": str(home.run / "worker.stopped"),
        "argv": worker_argv(ledger),
        "environ": {},
    }
    home.run_shell("exit 0", worker={**worker, "argv": None}).outcome()
    (home.run / "worker.stopped").touch()
    home.run_shell("exit 0", worker=worker).outcome()
    assert not WorkerLock(worker["lock"]).is_held(COMING)
    assert workers(ledger) == []
    (home.run / "worker.stopped").unlink()
    first = home.run_shell("exit 0", worker=worker)
    first.outcome()
    wait_for(lambda: workers(ledger))
    try:
        lock = first.evidence.try_lock()
        assert lock is not None  # the worker did not inherit it
        os.close(lock)
        home.run_shell("exit 0", worker=worker).outcome()
        assert len(workers(ledger)) == 1
        masks = Path(f"/proc/{workers(ledger)[0][0]}/status").read_text()
        assert "SigBlk:\t0000000000000000" in masks
    finally:
        end_workers(ledger)


def test_wake_reaches_a_socket_behind_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 100) / ("e" * 100)
    folder.mkdir(parents=True)
    assert not wake(str(folder / "worker.sock"), b"x")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        here = os.open(folder, os.O_PATH)
        listener.bind(f"/proc/self/fd/{here}/worker.sock")
        os.close(here)
        assert wake(str(folder / "worker.sock"), b"submitted")
        assert select.select([listener], [], [], 5)[0]
        assert listener.recv(100) == b"submitted"
        sent = 0
        while sent < 100_000 and wake(str(folder / "worker.sock"), b"x" * 1000):
            sent += 1
        assert 0 < sent < 100_000  # a worker that does not read blocks nobody
    assert not wake(str(folder / "worker.sock"), b"x")
    assert not wake(str(tmp_path / "none" / "worker.sock"), b"x")
