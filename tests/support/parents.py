"""Parents of supervisors that outlive a test: to start one takes longer than most tests do.

A parent knows nothing of the requests that it has answered. So one that answered all of them may
serve the next bench, if a new one would get the same environment and the same rights. Those of
`tests/supervise` and of workers are started anew, as are the first ones of each process of tests.
All others are forked with what they need (`warm_parent.py`).
"""

import atexit
import os
import signal
import socket
import subprocess
from dataclasses import dataclass
from typing import Any

import linecoverage
import warm
import warm_parent
from headway.base import proc
from headway.supervise.launcher import Launcher

COLD = warm.COLD or linecoverage.STARTERS[0].exists()
MOST = 3
ANEW = 3  # so many are the program's own, and none of them is kept


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
_made = 0


@atexit.register
def end_all() -> None:
    while _idle:
        _idle.pop().end()
    warm_parent.close_nursery()


class KeptLauncher(Launcher):
    """Takes a parent that is idle, and leaves it to the next."""

    def _start(self) -> None:
        self._surroundings = self._all_that_is_inherited()
        for parent in [each for each in _idle if each.surroundings == self._surroundings]:
            _idle.remove(parent)
            if parent.is_idle():
                self._process, self._socket = parent.process, parent.socket
                self.pidfd, self._is_new = parent.pidfd, False
                self._unwatch = [self.watch(each) for each in (self._socket.fileno(), self.pidfd)]
                return
            parent.end()
        super()._start()

    def _spawn(self, requests: int) -> subprocess.Popen[bytes]:
        global _made
        _made += 1
        self._is_new = _made <= ANEW
        env = self._environment()
        nursery = None if self._is_new or COLD else warm_parent.nursery_for(env)
        return super()._spawn(requests) if nursery is None else nursery.parent(requests, env)

    def _end(self, sig: signal.Signals | None) -> None:
        if sig is None and not self._sent_at and not self._queue and self._process is not None:
            assert self._socket is not None
            parent = Parent(self._surroundings, self._process, self._socket, self.pidfd)
            if not self._is_new and self.pidfd != -1 and parent.is_idle():
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
        environ = {**self._environment(), "PYTEST_CURRENT_TEST": ""}
        return environ, umask, warm_parent.rights()
