"""The processes of a claim, for recovery: find them, and end them.

Each is found by something that carries the claim's token (its cgroup, HEADWAY_CLAIM) or by a pid
together with its start time and boot id. No bare number is ever signalled.
"""

from __future__ import annotations

import os
import select
import signal
import time

from headway.base import proc
from headway.supervise import cgroup
from headway.supervise.evidence import Evidence, UnsafeFolder
from headway.supervise.records import Started

EMPTY_WITHIN_SECONDS = 5.0
_LOOK_AGAIN_MS = 10


def end_claim(evidence: Evidence, patience: float = EMPTY_WITHIN_SECONDS) -> str:
    """Kill whatever is left of the claim; "gone" if its cgroup proves it, else "unproven"."""
    started = _read_started(evidence)
    paths = _cgroups(evidence.token, started)
    had_cgroup = any(os.path.isdir(path) for path in paths)
    give_up_at = time.monotonic() + patience
    while True:
        for path in paths:
            cgroup.kill(path)
        if started is not None:
            _kill_recorded(started)
        for pid, start in proc.processes_with_claim(evidence.token):
            proc.signal_process(pid, start, sig=signal.SIGKILL)
        full = [path for path in paths if not cgroup.remove(path)]
        if not full and not proc.processes_with_claim(evidence.token):
            return "gone" if had_cgroup else "unproven"
        if time.monotonic() >= give_up_at:
            return "unproven"
        select.select([], [], [], _LOOK_AGAIN_MS / 1000)


def tree_is_empty(evidence: Evidence) -> bool:
    """Whether, right now, no process is in the claim's cgroup and none has its token in the
    environment."""
    if any(cgroup.is_populated(path) for path in _cgroups(evidence.token, _read_started(evidence))):
        return False
    return not proc.processes_with_claim(evidence.token)


def forget_cgroup(token: str, patience: float = EMPTY_WITHIN_SECONDS) -> bool:
    """Remove the cgroup of a claim that started nothing; True if there is none any more. A child
    that was never let go is killed, and may be in it for a moment longer than it lives."""
    give_up_at = time.monotonic() + patience
    while left := [path for path in _cgroups(token, None) if not cgroup.remove(path)]:
        for path in left:
            cgroup.kill(path)
        if time.monotonic() >= give_up_at:
            return False
        select.select([], [], [], _LOOK_AGAIN_MS / 1000)
    return True


def groups_left(evidence: Evidence) -> list[str]:
    """The cgroups of a claim that has ended which cannot be removed yet; the others are."""
    paths = _cgroups(evidence.token, _read_started(evidence))
    return [path for path in paths if cgroup.is_populated(path) or not cgroup.remove(path)]


def end_supervisor(evidence: Evidence) -> bool:
    """End the command, then its supervisor, even a stopped one; True if it was killed."""
    started = _read_started(evidence)
    for path in _cgroups(evidence.token, started):
        cgroup.kill(path)
    fd = watch_supervisor(evidence)
    if fd is None:
        return False
    try:
        return proc.signal_pidfd(fd, signal.SIGKILL)
    finally:
        os.close(fd)


def kill_supervisor(pidfd: int) -> bool:
    """End the supervisor behind a pidfd that the parent handed over."""
    return proc.signal_pidfd(pidfd, signal.SIGKILL)


def is_stuck(evidence: Evidence) -> bool:
    """Whether a supervisor that is late does nothing any more: it never recorded a start, its
    command still lives, or it is stopped itself. One that is only busy writing its outcome, on a
    full disk perhaps, has the truth and is left alone."""
    started = _read_started(evidence)
    if started is None or proc.start_time(started.child_pid) == started.child_start:
        return True
    return proc.is_stopped(started.supervisor_pid, started.supervisor_start)


def ask_to_cancel(evidence: Evidence) -> None:
    """Have the supervisor end its command; to ask twice changes nothing. OSError: the request could
    not be written, so the caller must repeat it."""
    try:
        evidence.request_cancel()
    except (FileNotFoundError, UnsafeFolder):
        return  # the folder is gone, or not to be written to: recovery judges the claim
    poke_supervisor(evidence)


def poke_supervisor(evidence: Evidence) -> bool:
    """Have the supervisor check for cancel.T now."""
    fd = watch_supervisor(evidence)
    if fd is None:
        return False
    try:
        return proc.signal_pidfd(fd, signal.SIGUSR1)
    finally:
        os.close(fd)


def watch_supervisor(evidence: Evidence) -> int | None:
    """A pidfd of the living supervisor, or None; the caller closes it."""
    started = _read_started(evidence)
    if started is None or started.boot_id != proc.boot_id():
        return None
    return proc.open_pidfd(started.supervisor_pid, started.supervisor_start)


def _kill_recorded(started: Started) -> None:
    if started.boot_id != proc.boot_id():
        return
    for pid, start in (
        (started.supervisor_pid, started.supervisor_start),
        (started.child_pid, started.child_start),
    ):
        proc.signal_process(pid, start, sig=signal.SIGKILL)


def _cgroups(token: str, started: Started | None) -> list[str]:
    """Where the claim's cgroup may be: as recorded, and below our own."""
    recorded = "" if started is None else started.cgroup or ""
    # Only a folder of this token, whatever the record says.
    paths = [recorded] if os.path.basename(recorded) == f"headway-{token}" else []
    base = cgroup.find_base()
    if base is not None and cgroup.path_for(base, token) not in paths:
        paths.append(cgroup.path_for(base, token))
    return paths


def _read_started(evidence: Evidence) -> Started | None:
    try:
        return evidence.read_started()
    except OSError:
        return None
