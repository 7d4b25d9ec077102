"""Processes as the kernel describes them, and the only ways in which Headway signals one.

A pid is a number that the kernel hands out again. A process is named by its pid *and* its start
time, and is signalled through a pidfd opened before the start time was compared.
"""

from __future__ import annotations

import os
import signal

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def boot_id() -> str:
    """The id of this boot; HEADWAY_BOOT_ID_FILE names another file to read (tests)."""
    fd = os.open(os.environ.get("HEADWAY_BOOT_ID_FILE", _BOOT_ID_FILE), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 128).decode().strip()
    finally:
        os.close(fd)


def start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of the process; None if there is none, or a zombie."""
    stat = read_stat(pid)
    return None if stat is None else stat[1]


def read_stat(pid: int) -> tuple[int, int] | None:
    """Parent pid and start time of a living process that is not a zombie."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        content = os.read(fd, 1024)
    except OSError:  # it ended between open and read (ESRCH)
        return None
    finally:
        os.close(fd)
    # The name in field 2 may hold blanks and parentheses, so count from the last parenthesis.
    fields = content[content.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0] in b"ZX":
        return None
    return int(fields[1]), int(fields[19])


def is_stopped(pid: int, start_ticks: int) -> bool:
    """Whether exactly that process was stopped by a signal."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] in (b"T", b"t") and int(fields[19]) == start_ticks


def open_pidfd(pid: int, start_ticks: int) -> int | None:
    """A pidfd of exactly that process, or None; the caller closes it.

    The start time is compared after opening: a process that took over the number earlier differs,
    and one that takes it over later is not the one the descriptor stands for.
    """
    if pid <= 0:
        return None
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    if start_time(pid) == start_ticks:
        return fd
    os.close(fd)
    return None


def signal_pidfd(fd: int, sig: int) -> bool:
    """Send the signal; False if the process is gone or out of our reach."""
    try:
        signal.pidfd_send_signal(fd, sig)
    except OSError:
        return False
    return True


def signal_process(pid: int, start_ticks: int, *, sig: int) -> bool:
    """Send the signal to exactly that process; False if it is gone or out of our reach."""
    fd = open_pidfd(pid, start_ticks)
    if fd is None:
        return False
    try:
        return signal_pidfd(fd, sig)
    finally:
        os.close(fd)


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(ancestor: int) -> list[tuple[int, int]]:
    """Pid and start time of every living descendant, by the parent links of one scan of /proc."""
    children: dict[int, list[tuple[int, int]]] = {}
    for pid in all_pids():
        stat = read_stat(pid)
        if stat is not None:
            children.setdefault(stat[0], []).append((pid, stat[1]))
    found: list[tuple[int, int]] = []
    frontier = [ancestor]
    while frontier:
        below = children.get(frontier.pop(), [])
        found.extend(below)
        frontier.extend(pid for pid, _ in below)
    return found


def processes_with_claim(token: str) -> list[tuple[int, int]]:
    """Pid and start time of living processes whose environment has HEADWAY_CLAIM=token."""
    return processes_with("HEADWAY_CLAIM", token)


def processes_with(name: str, value: str) -> list[tuple[int, int]]:
    """Pid and start time of living processes that were started with this variable."""
    wanted = f"\0{name}={value}\0".encode()
    found = []
    for pid in all_pids():
        stat = read_stat(pid)
        if stat is not None and wanted in b"\0" + read_environ(pid):
            found.append((pid, stat[1]))
    return found


def read_environ(pid: int) -> bytes:
    """The environment that a process was started with; empty if it cannot be seen."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return file.read() + b"\0"
    except OSError:  # ended, or another user's
        return b""


def set_child_subreaper() -> None:
    """Make orphaned descendants children of this process instead of pid 1."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def unset_child_subreaper() -> None:
    """Let the next orphaned descendants go to pid 1."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 0)


def set_pdeathsig(sig: int) -> None:
    """Have this process signalled when its parent dies."""
    _prctl(_PR_SET_PDEATHSIG, sig)


def _prctl(option: int, value: int) -> None:
    from headway.base import kernel  # a command that asks nothing of it goes without

    kernel.prctl(option, value)


def heed_ignored_signals() -> None:
    """Give the signals that we were told to ignore (nohup) their default action.

    Except the two that Python itself ignores, which `reset_signals` undoes before an exec.
    """
    for sig in signal.valid_signals():
        if sig not in _IGNORED_BY_PYTHON and signal.getsignal(sig) == signal.SIG_IGN:
            signal.signal(sig, signal.SIG_DFL)


def reset_signals() -> None:
    """Before an exec, which hands on what is ignored and blocked: nothing shall be."""
    for sig in _IGNORED_BY_PYTHON:
        signal.signal(sig, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def close_all_but(kept: tuple[int, ...]) -> None:
    """Close every descriptor of this process except those."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the one that listed the folder
                continue
