"""The processes of one torture as /proc shows them: which there are, what each is, ending them.

Everything that descends from it carries the mark in its environment. What a process is follows from
its command line, its parent and the files that it has open; nobody is asked.
"""

import os
import re
import select
import signal
import time
from contextlib import suppress
from typing import NamedTuple

MARK = "HEADWAY_TEST_TORTURE"
_TOKEN = re.compile(r"/lock\.([0-9a-f]{32})$")
_CLAIM = re.compile(rb"\0HEADWAY_CLAIM=([0-9a-f]{32})\0")
_LAUNCHER = b"headway.supervise.parent"


class Process(NamedTuple):
    """`child` is the main process of a job: `job.sh`, in the session that it leads. `descendant` is
    any other process of it, which may have come to the supervisor as an orphan. `fork` is what a
    supervisor has forked and has not exec'd yet: its command, or a worker that it starts."""

    pid: int
    start: int
    ppid: int
    kind: str
    token: str | None


class _Seen(NamedTuple):
    pid: int
    start: int
    ppid: int
    argv: list[bytes]
    claim: str | None
    held: str | None
    has_socket: bool
    leads: bool

    @property
    def launcher(self) -> bool:
        return self.claim is None and any(_LAUNCHER in word for word in self.argv)

    @property
    def main(self) -> bool:
        return self.leads and b"stray" not in self.argv


def scan(mark: str) -> list[Process]:
    """Every living process that carries the mark."""
    wanted = f"\0{MARK}={mark}\0".encode()
    seen = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            one = _look(int(name), wanted)
            if one is not None:
                seen[one.pid] = one
    return [_classified(one, seen) for one in seen.values()]


def _look(pid: int, wanted: bytes) -> _Seen | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = b"\0" + file.read() + b"\0"
        if wanted not in environ:
            return None
        stat = _stat(pid)
        if stat is None or stat[0] in "ZX":
            return None
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            argv = file.read().split(b"\0")
    except OSError:  # it has ended, or is another user's
        return None
    claim = _CLAIM.search(environ)
    held, has_socket = _files(pid) if claim is None else (None, False)
    token = claim[1].decode() if claim else None
    return _Seen(pid, stat[2], stat[1], argv, token, held, has_socket, stat[3] == pid)


def _files(pid: int) -> tuple[str | None, bool]:
    """The claim whose lock it has open, and whether it has a socket."""
    held, has_socket = None, False
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{fd}")
            except OSError:
                continue
            found = _TOKEN.search(target)
            held = found[1] if found else held
            has_socket = has_socket or target.startswith("socket:")
    except OSError:
        return held, has_socket
    return held, has_socket


def _classified(one: _Seen, seen: dict[int, _Seen]) -> Process:
    above = seen.get(one.ppid)
    kind, token = "descendant", one.claim
    if one.claim is not None:
        if above is not None and above.launcher and one.main:
            kind = "child"
    elif one.launcher:
        token = one.held
        if above is not None and above.launcher:
            kind = "supervisor" if above.held is None else "fork"
            token = above.held or token
        else:
            kind = "parent" if one.held is None and one.has_socket else "supervisor"
    elif b"work" in one.argv:
        kind = "worker"
    return Process(one.pid, one.start, one.ppid, kind, token)


def _stat(pid: int) -> tuple[str, int, int, int] | None:
    """State, parent, start time and session."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20:
        return None
    return fields[0].decode(), int(fields[1]), int(fields[19]), int(fields[3])


def alive(pid: int, start: int) -> bool:
    stat = _stat(pid)
    return stat is not None and stat[2] == start and stat[0] not in "ZX"


def exists(pid: int) -> bool:
    stat = _stat(pid)
    return stat is not None and stat[0] not in "ZX"


def stopped(pid: int) -> bool:
    stat = _stat(pid)
    return stat is not None and stat[0] in "Tt"


def end_all(mark: str) -> None:
    """Kill every process that carries the mark, until there is none."""
    while left := scan(mark):
        for each in left:
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)


class Held:
    """A process that cannot go away under its number, because a pidfd stands for it."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.fd = os.pidfd_open(process.pid)
        stat = _stat(process.pid)
        if stat is None or stat[2] != process.start:
            self.close()
            raise ProcessLookupError(process.pid)

    def freeze(self, within: float = 2.0) -> bool:
        """Stop it; False if it has ended meanwhile."""
        give_up_at = time.monotonic() + within
        self._signal(signal.SIGSTOP)
        while time.monotonic() < give_up_at:
            stat = _stat(self.process.pid)
            if stat is None or stat[0] in "ZX":
                return False
            if stat[0] in "Tt":
                return True
            time.sleep(0.0002)
        return False

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def wait(self, seconds: float) -> bool:
        """Whether it has ended by then."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        os.close(self.fd)

    def _signal(self, number: int) -> None:
        try:
            signal.pidfd_send_signal(self.fd, number)
        except ProcessLookupError:
            return
