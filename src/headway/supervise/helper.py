"""A small process of Headway's own, beside a command: what prepares it, and what is kept of it.

The child runs the first ones after the go byte and before the exec: what makes a worktree, and what
checks once more what the job's gates have seen. The supervisor runs the last one after the command
has ended (docs/protocols.md, sections 2 and 3). Each is bounded in time and in words, and is ended
with all that it started.
"""

from __future__ import annotations

import os
import select
import signal
import time

from headway.base import proc
from headway.supervise.tree import kill_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

SAID_BYTES = 4096
TO_END_SECONDS = 5.0  # it ends a git at work first, which removes its own lock files
OF_HOST = 75  # exit code: the host is to blame, and no job
CHANGED = 76  # exit code: what the job is to start on is not as its gates have seen it
NOT_STARTED = 127


class HelperEnd:
    """How it ended: the exit code, negative for a signal, None if it was too slow; its words."""

    __slots__ = ("_said", "_timeout_seconds", "code")

    def __init__(self, code: int | None, said: bytes, timeout_seconds: float) -> None:
        self.code = code
        self._said = said
        self._timeout_seconds = timeout_seconds

    def words(self) -> str:
        """One line: the last that it said, else what is known of its end."""
        if self.code is None:
            return f"not done within {self._timeout_seconds:g} s"
        lines = self._said.decode(errors="replace").split("\n")
        said = next((line for line in reversed(lines) if line.strip()), None)
        if said is not None:
            return said.strip()
        how = f"signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"ended with {how} and without a word"


class Helper:
    """One such process, started when this is made; `wait` for it."""

    __slots__ = ("_pid", "_pidfd", "_said", "_said_fd", "_timeout_seconds")

    def __init__(
        self, wanted: dict[str, Any], env: dict[bytes, bytes], *, close: Iterable[int] = ()
    ) -> None:
        self._timeout_seconds: float = wanted["timeout_seconds"]
        argv = [os.fsencode(each) for each in wanted["argv"]]
        self._said = b""
        self._said_fd, said_write = os.pipe2(os.O_CLOEXEC)
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._said_fd)
            os.close(said_write)
            raise
        if self._pid == 0:
            _become(argv, env, said=said_write, close=close)
        os.close(said_write)
        os.set_blocking(self._said_fd, False)
        self._pidfd = os.pidfd_open(self._pid)  # ours to wait for, so the number is still its own

    def wait(self) -> HelperEnd:
        """Read its output until it has ended, or end it when its time is over."""
        in_time = self._receive_until(time.monotonic() + self._timeout_seconds)
        if not in_time:
            self._end()
        code = self._reap()
        os.close(self._said_fd)
        os.close(self._pidfd)
        return HelperEnd(code if in_time else None, self._said, self._timeout_seconds)

    def _receive_until(self, give_up_at: float) -> bool:
        """Take in its words until it has ended; False if that takes too long."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        poll.register(self._said_fd, select.POLLIN)
        while True:
            left = give_up_at - time.monotonic()
            if left <= 0:
                return False
            ready = {fd for fd, _ in poll.poll(int(left * 1000) + 1)}
            if self._said_fd in ready and not self._receive():
                poll.unregister(self._said_fd)
            if self._pidfd in ready:
                self._receive()
                return True

    def _receive(self) -> bool:
        """The end of what it says is what counts; False when there will be no more."""
        try:
            words = os.read(self._said_fd, 65536)
        except BlockingIOError:
            return True
        self._said = (self._said + words)[-SAID_BYTES:]
        return bool(words)

    def _end(self) -> None:
        """Ask it to end, then end it with all that it started, sessions of their own or not."""
        proc.signal_pidfd(self._pidfd, signal.SIGTERM)
        if self._receive_until(time.monotonic() + TO_END_SECONDS):
            return
        proc.signal_pidfd(self._pidfd, signal.SIGSTOP)
        kill_below(self._pid)
        proc.signal_pidfd(self._pidfd, signal.SIGKILL)

    def _reap(self) -> int | None:
        """Its exit code; not even SIGKILL ends what waits for a disk that does not answer."""
        select.select([self._pidfd], [], [], TO_END_SECONDS)
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None


def _become(
    argv: list[bytes], env: dict[bytes, bytes], *, said: int, close: Iterable[int]
) -> NoReturn:
    try:
        for fd in close:
            os.close(fd)
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        for target, fd in enumerate((null, null, said)):
            os.dup2(fd, target)
        os.chdir("/")
        proc.reset_signals()
        os.execve(argv[0], argv, env)
    except OSError as error:
        os.write(2, os.fsencode(f"{os.fsdecode(argv[0])}: {error.strerror}"))
    finally:
        os._exit(NOT_STARTED)
