"""Watch over the command of a direct call: one small process between the caller and the command.

It holds one end of a line to the caller. The caller says on it that the slot is still its own, and
passes on signals; end of file, or silence for as long as a reservation stands without renewal, ends
the whole tree. So a caller that is killed, stopped or hung leaves no process behind that runs
without a slot. The command shares the caller's terminal, session and process group.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

from headway.base import proc
from headway.base.crashpoints import reach
from headway.base.source import SOURCE
from headway.supervise import cgroup
from headway.supervise.tree import Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

_MAIN = (
    f"import sys; sys.path.insert(0, {SOURCE!r}); "
    "from headway.supervise.direct import main; main(int(sys.argv[1]))"
)
# In our own process only KILL ends us, and nothing stops us but STOP.
BLOCKED = (
    *(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU),
)
RENEWED = b"\0"  # any other byte is the number of a signal to pass on
GRACE_SECONDS = 10.0
KILL_AGAIN_SECONDS = 0.05
END_SECONDS = 10.0
TIMED_OUT = 124
NOT_FOUND = 127
NOT_RUNNABLE = 126
VARIABLE = "HEADWAY_RESERVATION"  # the token, in whatever the command starts
_NEVER = float("inf")


class Overseen:
    """The caller's side: the command under its small supervisor."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """`spec`: token, argv, cwd, env, timeout, silence (both seconds), cgroup (auto or off)."""
        self._token: str = spec["token"]
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", _MAIN, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                cwd="/",
            )
        reach("direct.overseen")
        self._line = ours
        self._message = b""
        document = json.dumps(spec).encode()
        self._send(len(document).to_bytes(4, "big") + document)

    def fileno(self) -> int:
        """Readable when `ended` has something to say."""
        return self._line.fileno()

    def renewed(self) -> None:
        self._send(RENEWED)

    def signal(self, number: int) -> None:
        """Pass on to the command a signal that only we received."""
        self._send(bytes([number]))

    def end(self) -> None:
        """Have the whole tree killed now; `ended` says when it is gone."""
        with suppress(OSError):
            self._line.shutdown(socket.SHUT_WR)

    def ended(self) -> dict[str, Any] | None:
        """After the line became readable: how it ended, or None if it has not."""
        try:
            received = self._line.recv(65536)
        except OSError:
            received = b""
        self._message += received
        if received:
            return None
        self._process.wait()
        if self._message:
            message: dict[str, Any] = json.loads(self._message)
            return message
        end_direct(self._token)  # it was killed, so nobody else ends the rest
        return {"code": 1, "error": "the process that watches over the command was killed"}

    def close(self) -> None:
        self._line.close()

    def _send(self, data: bytes) -> None:
        with suppress(OSError):  # it has ended, which the same socket shows
            self._line.sendall(data)


def end_direct(token: str, *, seconds: float = END_SECONDS) -> bool:
    """Kill whatever a direct call has left on this host; False if something is still there after
    that time."""
    base = cgroup.find_base()
    path = _cgroup_path(base, token) if base is not None else None
    give_up_at = time.monotonic() + seconds
    while True:
        left = proc.processes_with(VARIABLE, token)
        for pid, start in left:
            proc.signal_process(pid, start, sig=signal.SIGKILL)
        if path is not None:
            cgroup.kill(path)
        if not left and (path is None or cgroup.remove(path)):
            reach("direct.left_ended")
            return True
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(KILL_AGAIN_SECONDS)


def _cgroup_path(base: str, token: str) -> str:
    """Another name than a claim's: what runs in it is no job."""
    return f"{base}/headway-direct-{token}"


def main(line: int) -> NoReturn:
    signal.pthread_sigmask(signal.SIG_SETMASK, BLOCKED)
    wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _note_signal)
    proc.set_child_subreaper()
    os.set_inheritable(line, False)
    caller = socket.socket(fileno=line)
    size = int.from_bytes(_receive(caller, 4), "big")
    message = _Watch(caller, wake_read, json.loads(_receive(caller, size))).run()
    with suppress(OSError):
        caller.sendall(json.dumps(message).encode())
        reach("direct.told")
    os._exit(0)


def _receive(caller: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = caller.recv(size - len(got))
        if not more:
            os._exit(1)  # the caller died before it had said what to run
        got += more
    return got


def _note_signal(_signum: int, _frame: FrameType | None) -> None:
    """Nothing to do: the wakeup descriptor has already reported it."""


class _Watch:
    """One command from its fork to the end of its tree."""

    def __init__(self, caller: socket.socket, wake_fd: int, spec: dict[str, Any]) -> None:
        self._caller = caller
        self._wake_fd = wake_fd
        self._spec = spec
        base = cgroup.find_base() if spec["cgroup"] == "auto" else None
        self._tree = Tree(None if base is None else _cgroup_path(base, spec["token"]))
        self._status: int | None = None
        self._timed_out = False
        now = time.monotonic()
        self._silent_at = now + spec["silence"]
        self._deadline = _NEVER if spec["timeout"] is None else now + spec["timeout"]
        self._kill_at = _NEVER

    def run(self) -> dict[str, Any]:
        report_read, report_write = os.pipe2(os.O_CLOEXEC)
        own = os.getpid()
        self._main = self._tree.fork()
        if self._main == 0:
            _become(self._spec, own, report_write)
        reach("direct.forked")
        self._main_start = proc.start_time(self._main) or 0
        os.close(report_write)
        poll = select.poll()
        for fd in (self._caller.fileno(), self._wake_fd):
            poll.register(fd, select.POLLIN)
        while self._status is None:
            self._step(poll)
        self._kill_all()
        reach("direct.tree_gone")
        report = os.read(report_read, 4096)
        if report:
            code, _, error = report.decode(errors="replace").partition("\n")
            return {"code": int(code), "error": error}
        if self._timed_out:
            return {"code": TIMED_OUT, "error": "it took longer than --timeout allows"}
        return {"code": _exit_code(self._status), "error": None}

    def _step(self, poll: select.poll) -> None:
        now = time.monotonic()
        if now >= self._deadline:
            self._deadline, self._timed_out = _NEVER, True
            self._tree.terminate()
            self._kill_at = now + GRACE_SECONDS
        if now >= min(self._silent_at, self._kill_at):
            self._tree.kill()
            self._silent_at, self._kill_at = _NEVER, now + KILL_AGAIN_SECONDS
        until = min(self._deadline, self._silent_at, self._kill_at)
        wait = None if until == _NEVER else max(0, int((until - now) * 1000) + 1)
        for fd, _ in poll.poll(wait):
            if fd == self._wake_fd:
                os.read(self._wake_fd, 4096)
                self._reap()
            else:
                self._receive(poll)

    def _receive(self, poll: select.poll) -> None:
        try:
            received = self._caller.recv(4096)
        except OSError:
            received = b""
        if not received:
            poll.unregister(self._caller.fileno())
            self._kill_at = 0.0
            return
        for byte in received:
            if byte != RENEWED[0]:
                proc.signal_process(self._main, self._main_start, sig=byte)
        if RENEWED in received and self._silent_at != _NEVER:
            self._silent_at = time.monotonic() + self._spec["silence"]

    def _kill_all(self) -> None:
        """The main process has ended: the rest of its tree is ended, too."""
        give_up_at = time.monotonic() + END_SECONDS
        while True:
            self._reap()
            if self._tree.is_gone() or time.monotonic() >= give_up_at:
                return
            self._tree.kill()
            select.select([self._wake_fd], [], [], KILL_AGAIN_SECONDS)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._main:
                self._status = status


def _become(spec: dict[str, Any], supervisor: int, report: int) -> NoReturn:
    """Be the command. It dies with its supervisor, and does not stand still while it has a slot."""
    code, message = NOT_RUNNABLE, ""
    try:
        proc.set_pdeathsig(signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(NOT_FOUND)
        proc.reset_signals()
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        os.chdir(spec["cwd"])
        reach("direct.begins")
        os.execvpe(spec["argv"][0], spec["argv"], spec["env"])
    except FileNotFoundError as error:
        code, message = NOT_FOUND, f"{spec['argv'][0]} in {spec['cwd']}: {error.strerror}"
    except (OSError, ValueError) as error:
        message = f"{spec['argv'][0]}: {getattr(error, 'strerror', None) or error}"
    finally:
        os.write(report, f"{code}\n{message}"[:4000].encode(errors="replace"))
        os._exit(code)


def _exit_code(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
