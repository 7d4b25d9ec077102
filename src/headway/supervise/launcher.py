"""The worker's side of the preloaded parent: requests out, acknowledgements in.

Nothing here blocks the worker. A request that the socket cannot take yet waits in a bounded queue;
one that was never acknowledged is named by `restart`, for its claim to be judged by its evidence.
"""

from __future__ import annotations

import array
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from headway.base.crashpoints import reach
from headway.base.source import SOURCE

_MAIN = (
    f"import sys; sys.path.insert(0, {SOURCE!r}); from headway.supervise.parent import main; main()"
)
# Of the job that this process may itself be part of: not to be found in our children.
_OF_A_JOB = ("HEADWAY_CLAIM", "HEADWAY_JOB_ID", "HEADWAY_RUN_ID", "HEADWAY_ATTEMPT")
_ACK_BYTES = 4096
_STOP_SECONDS = 5.0
MOST_QUEUED = 10_000


class LauncherFullError(Exception):
    """More requests wait than a living parent would ever leave waiting."""


class Ack:
    """The parent's answer: a supervisor's pid and pidfd (the receiver closes it), or the errno."""

    __slots__ = ("errno", "pid", "pidfd", "token")

    def __init__(
        self,
        token: str,
        *,
        pid: int | None = None,
        pidfd: int | None = None,
        errno: int | None = None,
    ) -> None:
        self.token = token
        self.pid = pid
        self.pidfd = pidfd
        self.errno = errno


class Launcher:
    """One preloaded parent. `start` it, `launch` claims, and read `acks` when `fileno` is ready."""

    def __init__(self, extra_env: Mapping[str, str] = MappingProxyType({})) -> None:
        self._extra_env = dict(extra_env)
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._queue: deque[tuple[str, bytes]] = deque()
        self._sent_at: dict[str, float] = {}
        self._late: list[Ack] = []
        self._lost: set[str] = set()  # launches without an answer, until they were reported
        self._unwatch: list[Callable[[], None]] = []
        self.pidfd = -1
        # The owner of the selector sets this: it is called with each descriptor that can be waited
        # for, and gives back how to have it forgotten, which is done before it is closed.
        self.watch: Callable[[int], Callable[[], None]] = lambda descriptor: lambda: None

    def start(self) -> None:
        try:
            self._start()
        except BaseException:
            self._end(signal.SIGKILL)
            raise

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _MAIN],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=self._environment(),
                close_fds=True,
                start_new_session=True,
            )
        self.pidfd = os.pidfd_open(self._process.pid)
        self._unwatch = [self.watch(each) for each in (self._socket.fileno(), self.pidfd)]
        reach("launcher.started")

    def launch(self, folder: str, token: str) -> None:
        """Ask for a supervisor; it reads the rest from the claim's evidence."""
        if len(self._queue) >= MOST_QUEUED:
            raise LauncherFullError(f"{len(self._queue)} requests wait for the parent")
        self._queue.append((token, json.dumps([folder, token]).encode()))
        self._sent_at[token] = float("inf")  # the parent cannot answer what it has not got
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes now."""
        while self._queue and self._socket is not None:
            token, request = self._queue[0]
            try:
                self._socket.send(request)
            except BlockingIOError:
                return
            except OSError:  # the parent is dead, which its pidfd shows
                return
            self._queue.popleft()
            self._sent_at[token] = time.monotonic()
            reach("launcher.sent")

    def wants_write(self) -> bool:
        return bool(self._queue)

    def acks(self) -> list[Ack]:
        """The acknowledgements that have come, without waiting."""
        self.flush()
        acks, self._late = self._late, []
        while (ack := self._receive()) is not None:
            self._sent_at.pop(ack.token, None)
            acks.append(ack)
        return acks

    @property
    def unacknowledged(self) -> set[str]:
        """The tokens asked for and not yet answered."""
        return set(self._sent_at)

    def overdue(self, seconds: float) -> bool:
        """True if a request has been unanswered for longer than that."""
        oldest = min(self._sent_at.values(), default=None)
        return oldest is not None and time.monotonic() - oldest > seconds

    def fileno(self) -> int:
        return -1 if self._socket is None else self._socket.fileno()

    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self, kill: bool = False) -> None:
        """Close the socket: the parent starts what it has read, then exits."""
        self._end(signal.SIGKILL if kill else None)
        self._queue.clear()

    def restart(self) -> set[str]:
        """Kill the parent and make another; the tokens that the old one never answered."""
        if self._process is not None:
            self._process.poll()
            self._signal(signal.SIGKILL)
            self._wait()
        while (ack := self._receive()) is not None:  # sent before it died
            self._sent_at.pop(ack.token, None)
            self._late.append(ack)
        self._end(None)
        self._lost |= set(self._sent_at)
        self._sent_at.clear()
        self._queue.clear()
        self.start()
        lost, self._lost = self._lost, set()
        return lost

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in _OF_A_JOB}
        return {**kept, **self._extra_env}

    def _receive(self) -> Ack | None:
        if self._socket is None:
            return None
        room = socket.CMSG_SPACE(array.array("i").itemsize)
        try:
            data, ancillary, _, _ = self._socket.recvmsg(
                _ACK_BYTES, room, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
            )
        except OSError:
            return None
        if not data:
            return None
        fields: dict[str, Any] = json.loads(data)
        fds = array.array("i")
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content)
        return Ack(
            fields["token"],
            pid=fields.get("pid"),
            pidfd=fds[0] if fds else None,
            errno=fields.get("errno"),
        )

    def _end(self, sig: signal.Signals | None) -> None:
        while self._unwatch:
            self._unwatch.pop()()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is None:
            return
        if self.pidfd == -1:  # there were no more descriptors for it; without a socket it ends
            self._process.wait()
        else:
            if sig is not None:
                self._signal(sig)
            self._wait()
            os.close(self.pidfd)
        self.pidfd = -1
        self._process = None

    def _signal(self, sig: signal.Signals) -> None:
        try:
            signal.pidfd_send_signal(self.pidfd, sig)
        except ProcessLookupError:
            return

    def _wait(self) -> None:
        """Reap the parent; one that is stopped or hung is left to pid 1."""
        assert self._process is not None  # noqa: S101
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        if poll.poll(_STOP_SECONDS * 1000):
            self._process.wait()
        else:
            self._process.returncode = 0
