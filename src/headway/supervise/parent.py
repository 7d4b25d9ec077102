"""The preloaded parent: forks a supervisor per request and reaps it (docs/protocols.md, section 8).

Exec'd by the worker with a socket as its standard input and nothing else. Single-threaded, no
database, no lock. A request is acknowledged after the fork, with a pidfd, or with the errno. At end
of file it has started all that it had read, and exits; the supervisors go on.
"""

from __future__ import annotations

import array
import gc
import json
import os
import resource
import select
import signal
import socket

from headway.base import kernel  # noqa: F401  loaded once, for all of them
from headway.base.crashpoints import reach
from headway.supervise import supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

REQUEST_BYTES = 65536


def main() -> NoReturn:
    requests = _take_socket()
    supervisor.prepare_signals()
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # for all that come from here
    host = supervisor.ParentFacts()
    wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    # What is never collected is never written to, and stays shared with every supervisor.
    gc.collect()
    gc.disable()
    gc.freeze()
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    poll.register(wake_read, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == wake_read:
                os.read(wake_read, 4096)
                _reap()
            elif not _serve_one(requests, host):
                os._exit(0)


def _take_socket() -> socket.socket:
    requests = socket.socket(fileno=os.dup(0))
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)
    return requests


def _serve_one(requests: socket.socket, host: supervisor.ParentFacts) -> bool:
    """Start one supervisor; False at end of file."""
    try:
        request = requests.recv(REQUEST_BYTES)
    except ConnectionResetError:  # the worker left acks unread; requests may still be queued
        return True
    if not request:
        return False
    reach("parent.read")
    folder, token = json.loads(request)
    try:
        pid = os.fork()
    except OSError as error:
        _send(requests, {"token": token, "errno": error.errno}, [])
        return True
    if pid == 0:
        _be_supervisor(folder, token, host=host)
    reach("parent.forked")
    pidfd = os.pidfd_open(pid)  # ours to reap, so the number is still that supervisor's
    _send(requests, {"token": token, "pid": pid}, [pidfd])
    os.close(pidfd)
    return True


def _be_supervisor(folder: str, token: str, *, host: supervisor.ParentFacts) -> NoReturn:
    try:
        supervisor.supervise(folder, token, host=host)
    except BaseException as error:
        _leave_trace(folder, token, error)
    finally:
        os._exit(0)


def _leave_trace(folder: str, token: str, error: BaseException) -> None:
    """A defect of ours ends the supervisor, and the command with it; say where."""
    import traceback

    from headway.supervise.folder import Folder

    with Folder(folder) as opened:
        opened.create(f"crash.{token}", "".join(traceback.format_exception(error)).encode())
    reach("supervisor.crash_traced")


def _send(requests: socket.socket, ack: dict[str, object], fds: list[int]) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    try:
        requests.sendmsg([json.dumps(ack).encode()], rights)
    except OSError:  # the worker is gone; the next one finds the claim by its evidence
        return
    reach("parent.acked")


def _reap() -> None:
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
