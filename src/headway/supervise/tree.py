"""All processes of one claim: who they are, ending them, and proof that they are gone.

A cgroup holds them where there is one. Without it the supervisor, as child subreaper, is the
ancestor of every one of them, so "no child left to wait for" (ECHILD) is the same proof; and those
that left the cgroup, as root may, are found that way too.
"""

from __future__ import annotations

import os
import signal

from headway.base import proc
from headway.supervise import cgroup


class Tree:
    """The processes under this supervisor. `cgroup` is the claim's, or None."""

    __slots__ = ("cgroup",)

    def __init__(self, path: str | None) -> None:
        self.cgroup = path if path is not None and cgroup.make(path) else None

    def fork(self) -> int:
        """Fork a child that is in the cgroup before it does anything, or do without one."""
        if self.cgroup is None:
            return os.fork()
        from headway.base.kernel import fork_into

        try:
            return fork_into(self.cgroup)
        except (
            OSError
        ):  # an older kernel: moved by us, so that we know before the start is recorded
            pid = os.fork()
        if pid != 0 and not cgroup.admit(self.cgroup, pid):
            cgroup.remove(self.cgroup)
            self.cgroup = None
        return pid

    def terminate(self) -> None:
        """Ask every process to end; SIGCONT, so that stopped ones receive it."""
        if self.cgroup is not None:
            cgroup.signal_all(self.cgroup, signal.SIGTERM, signal.SIGCONT)
            return
        below = proc.descendants(os.getpid())
        for sig in (signal.SIGTERM, signal.SIGCONT):
            _signal_each(below, sig)

    def kill(self) -> None:
        """Kill every process there is now. Repeat until `is_gone`: some may have just forked."""
        if self.cgroup is not None:
            cgroup.kill(self.cgroup)
        kill_below(os.getpid())

    def is_gone(self) -> bool:
        """True once nothing is left to wait for and the cgroup, now removed, was empty."""
        if has_children():
            return False
        return self.cgroup is None or cgroup.remove(self.cgroup)


def kill_below(ancestor: int) -> None:
    """Kill every descendant that the process has now."""
    # All of them are stopped first, so that none forks during the search for the next.
    stopped: set[tuple[int, int]] = set()
    while fresh := set(proc.descendants(ancestor)) - stopped:
        _signal_each(fresh, signal.SIGSTOP)
        stopped |= fresh
    _signal_each(stopped, signal.SIGKILL)


def has_children() -> bool:
    """True while this process has a child, dead or alive, that it has not waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _signal_each(processes: set[tuple[int, int]] | list[tuple[int, int]], sig: int) -> None:
    for pid, start in processes:
        proc.signal_process(pid, start, sig=sig)
