"""Parents of supervisors that outlive a test: to start one takes longer than most tests do.

A parent knows nothing of the requests that it has answered. So one that answered all of them may
serve the next bench, if a new one would get the same environment and the same rights. Those of
`tests/supervise`, of workers and of whatever is crashed are started anew.
"""

import atexit
import os
import resource
import signal
import socket
import subprocess
from dataclasses import dataclass
from typing import Any

from headway.base import proc
from headway.supervise.launcher import Launcher

MOST = 3
LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE)


@dataclass
class Parent:
    surroundings: Any
    process: subprocess.Popen[bytes]
    socket: socket.socket
    pidfd: int

    def is_idle(self) -> bool:
        pid = self.process.pid
        if self.process.poll() is not None or proc.is_stopped(pid, proc.start_time(pid) or 0):
            return False
        try:
            self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        return False

    def end(self) -> None:
        self.socket.close()
        os.close(self.pidfd)
        self.process.kill()
        self.process.wait()


_idle: list[Parent] = []


@atexit.register
def end_all() -> None:
    while _idle:
        _idle.pop().end()


class KeptLauncher(Launcher):
    """Takes a parent that is idle, and leaves it to the next."""

    def _start(self) -> None:
        self._surroundings = self._all_that_is_inherited()
        for parent in [each for each in _idle if each.surroundings == self._surroundings]:
            _idle.remove(parent)
            if parent.is_idle():
                self._process, self._socket = parent.process, parent.socket
                self.pidfd = parent.pidfd
                self._unwatch = [self.watch(each) for each in (self._socket.fileno(), self.pidfd)]
                return
            parent.end()
        super()._start()

    def _end(self, sig: signal.Signals | None) -> None:
        if sig is None and not self._sent_at and not self._queue and self._process is not None:
            assert self._socket is not None
            parent = Parent(self._surroundings, self._process, self._socket, self.pidfd)
            if self.pidfd != -1 and parent.is_idle():
                self._keep(parent)
                return
        super()._end(sig)

    def _keep(self, parent: Parent) -> None:
        while self._unwatch:
            self._unwatch.pop()()
        self._process = self._socket = None
        self.pidfd = -1
        _idle.append(parent)
        if len(_idle) > MOST:
            _idle.pop(0).end()

    def _all_that_is_inherited(self) -> Any:
        umask = os.umask(0o777)
        os.umask(umask)
        limits = [resource.getrlimit(each) for each in LIMITS]
        environ = {**self._environment(), "PYTEST_CURRENT_TEST": ""}
        return environ, umask, os.getresuid(), os.getresgid(), os.getgroups(), limits
