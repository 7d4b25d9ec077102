"""Who may start processes, who stays, and who is coming up: three locked bytes of one file.

They are open-file-description locks, so they end with their holder and with nothing else; whoever
inherits the descriptor holds them too. Others ask (F_OFD_GETLK) and never probe by taking, because
a probe that holds the byte for an instant would turn a worker away.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
import time

from headway.base import proc
from headway.base.crashpoints import reach
from headway.base.errors import WorkerPresentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

START = 0  # may start processes
STAYS = 1  # a worker that stays
COMING = 2  # a worker is coming up; next to STAYS, so that one question is about both

COMING_FD = "HEADWAY_COMING_FD"
WAKE = b"wake"
CALLS_CAME = b"calls"  # the same, when nothing but plain calls was committed
_FLOCK = "hhqqi4x"
_PID_AT = 16
_POLL_SECONDS = 0.02
_LONGEST_ADDRESS = 107  # bytes that the address of a socket has room for


class WorkerLock:
    """The lock file at `path`, opened when a byte is first taken."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1

    @classmethod
    def adopt(cls, fd: int) -> WorkerLock:
        """Go on with a descriptor, and the bytes locked through it, that was inherited."""
        lock = cls(os.readlink(f"/proc/self/fd/{fd}"))
        os.set_inheritable(fd, False)
        lock._fd = fd
        return lock

    def occupied(self) -> WorkerPresentError:
        """The error for one who needs a byte that a worker has. `headway stop` also says what ends
        a worker that it leaves alone; without a store that can be read, a signal does."""
        pid = self.read_pid()
        if not pid:
            return WorkerPresentError("a worker is already there; `headway stop` ends it")
        return WorkerPresentError(
            f"a worker is already there (pid {pid}); `headway stop` ends it, or kill {pid}"
        )

    def is_held(self, byte: int, count: int = 1) -> bool:
        """True if anyone, this object included, holds the byte, or one of so many from it on."""
        # Through a description of its own: a lock is never in conflict with itself.
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _flock(fcntl.F_WRLCK, byte, count))
        finally:
            os.close(fd)
        return bool(struct.unpack(_FLOCK, answer)[0] != fcntl.F_UNLCK)

    def take(self, byte: int) -> bool:
        """Take the byte if it is free."""
        try:
            fcntl.fcntl(self.fileno(), fcntl.F_OFD_SETLK, _flock(fcntl.F_WRLCK, byte))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def take_within(self, byte: int, seconds: float) -> bool:
        """Take the byte as soon as it is free, or say after that time that it is not."""
        give_up_at = time.monotonic() + seconds
        while not self.take(byte):
            if time.monotonic() >= give_up_at:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def take_from_the_dead(self, byte: int, seconds: float) -> bool:
        """Take the byte if it is free, or held by nobody but what its dead holder was about to
        start: a process that was forked and lets go of it at its exec."""
        give_up_at = time.monotonic() + seconds
        while not self.take(byte):
            pid = self.read_pid()
            if pid is None or proc.start_time(pid) is not None or time.monotonic() >= give_up_at:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def wait_until_free(self, byte: int) -> None:
        """Sleep until nobody holds the byte, for however long that is."""
        fcntl.fcntl(self.fileno(), fcntl.F_OFD_SETLKW, _flock(fcntl.F_WRLCK, byte))
        self.give_up(byte)

    def give_up(self, byte: int) -> None:
        if self._fd >= 0:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, byte))

    def write_pid(self) -> None:
        """Note who holds the lock, for people, and so that it is known when it has died."""
        os.pwrite(self.fileno(), b"%-10d\n" % os.getpid(), _PID_AT)

    def read_pid(self) -> int | None:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            text = os.pread(fd, 16, _PID_AT).strip()
        finally:
            os.close(fd)
        return int(text) if text.isdigit() else None

    def fileno(self) -> int:
        if self._fd < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(self.path, flags, 0o600)
        return self._fd

    def is_gone(self) -> bool:
        """Whether the file that was opened is not at its path any more: the home was removed, moved
        or put in the place of another."""
        opened = os.fstat(self.fileno())
        try:
            found = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            return True
        return (found.st_dev, found.st_ino) != (opened.st_dev, opened.st_ino)

    def close(self) -> None:
        """Let go of every byte, unless someone inherited the descriptor."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def worker_is_there(lock_path: str) -> bool:
    """True if a worker stays or is coming up."""
    return WorkerLock(lock_path).is_held(STAYS, 2)


def autostart(lock_path: str, argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Start a worker unless there is one; True if this call started it.

    The new process inherits byte 2, taken here before the fork, and keeps it until it has byte 1:
    of many who come at once one starts a worker.
    """
    if worker_is_there(lock_path):
        return False
    lock = WorkerLock(lock_path)
    try:
        if not lock.take(COMING) or lock.is_held(STAYS):
            return False
        reach("autostart.coming")
        return _start(lock, argv, environ)
    finally:
        lock.close()


def wake(socket_path: str, message: bytes) -> bool:
    """Send one datagram without waiting; False if nobody took it. The path may be of any length."""
    waker = Waker(socket_path)
    try:
        return waker.wake(message)
    finally:
        waker.close()


class Waker:
    """What it takes to send to a worker's socket, kept open for the next time."""

    def __init__(self, socket_path: str) -> None:
        folder, self._name = os.path.split(socket_path)
        self._folder = folder or "."
        fits = len(os.fsencode(socket_path)) <= _LONGEST_ADDRESS
        self._address = socket_path if fits and os.path.isabs(socket_path) else None
        self._at = -1
        self._sender: socket.socket | None = None

    def wake(self, message: bytes) -> bool:
        """Send one datagram without waiting; False if nobody took it."""
        if self._address is not None and not os.access(self._address, os.F_OK):
            return False
        try:
            if self._sender is None or not self._still_leads_there():
                self._open()
            assert self._sender is not None  # noqa: S101
            # Through the descriptor of a folder its path costs few bytes.
            address = self._address or f"/proc/self/fd/{self._at}/{self._name}"
            self._sender.sendto(message, address)
        except OSError:
            return False
        reach("wake.sent")
        return True

    def _still_leads_there(self) -> bool:
        """Whether the folder at the path is the one that was opened; a whole path always leads."""
        return self._address is not None or os.path.samestat(
            os.stat(self._folder), os.fstat(self._at)
        )

    def _open(self) -> None:
        self.close()
        if self._address is None:
            self._at = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)

    def close(self) -> None:
        if self._at >= 0:
            os.close(self._at)
            self._at = -1
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def __del__(self) -> None:
        """Many a program drops its client without a word."""
        self.close()


def _flock(kind: int, byte: int, count: int = 1) -> bytes:
    return struct.pack(_FLOCK, kind, os.SEEK_SET, byte, count, 0)


def _start(lock: WorkerLock, argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    log = f"{os.path.dirname(lock.path) or '.'}/worker.log"
    env = {**environ, COMING_FD: str(lock.fileno())}
    report_read, report_write = os.pipe2(os.O_CLOEXEC)
    first = os.fork()
    if first == 0:
        _become_worker(lock.fileno(), argv, env=env, log=log, report=report_write)
    os.close(report_write)
    reach("autostart.forked")
    try:
        _, status = os.waitpid(first, 0)
        return status == 0 and os.read(report_read, 1) == b""
    finally:
        os.close(report_read)


def _become_worker(
    lock_fd: int,
    argv: Sequence[str],
    *,
    env: dict[str, str],
    log: str,
    report: int,
) -> NoReturn:
    """In the first child: leave a grandchild that execs the worker, owned by pid 1."""
    try:
        os.setsid()
        if os.fork() != 0:
            reach("autostart.detached")
            os._exit(0)
        os.umask(0o077)
        null = os.open("/dev/null", os.O_RDWR)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        errors = os.open(log, flags, 0o600)
        for target, fd in enumerate((null, null, errors)):
            os.dup2(fd, target)
        proc.close_all_but((0, 1, 2, lock_fd, report))
        os.set_inheritable(lock_fd, True)
        os.chdir("/")
        proc.heed_ignored_signals()
        proc.reset_signals()
        reach("autostart.cleaned")
        os.execvpe(argv[0], list(argv), env)
    except BaseException:
        os.close(lock_fd)  # given up before the report, so that the caller can rely on it
        os.write(report, b"!")
    finally:
        os._exit(127)
