"""Programs that end with the process that asked for them, however that ends.

Between the two stands this file, as a program of its own that leads their session. It holds one end
of a line. When the other end is closed, by hand or because its holder was killed, it ends the
session; so it does when the time is up. It needs nothing of the package, and starts in
milliseconds.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

    Program = subprocess.Popen[bytes]

_NONE = "-"


def start(
    argv: Sequence[str],
    *,
    seconds: float | None = None,
    given: int | None = None,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdout: int,
    stderr: int,
) -> Program:
    """Like Popen. `given` is what will be its standard input, else it has none; its `stdin` here is
    the line, which `bounded.end` closes with the rest."""
    import socket
    import subprocess

    ours, its = socket.socketpair()
    limits = [_NONE if each is None else str(each) for each in (seconds, given)]
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", os.path.abspath(__file__), *limits, *argv],
            stdin=its.fileno(),
            pass_fds=() if given is None else (given,),
            start_new_session=True,
            cwd=cwd,
            env=env,
            stdout=stdout,
            stderr=stderr,
        )
    except BaseException:
        ours.close()
        raise
    finally:
        its.close()
    ours.setblocking(False)
    process.stdin = open(ours.detach(), "r+b", buffering=0)  # noqa: SIM115
    return process


def why_not_started(process: Program) -> str | None:
    """Once it has ended, and before its line is closed: why the program never began, if so."""
    said = process.stdin.read() if process.stdin is not None else None
    return os.strerror(int(said)) if said else None


def main(seconds: str, given: str, *argv: str) -> None:
    line = os.dup(0)
    source: tuple[Any, ...] = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    if given != _NONE:
        os.set_inheritable(int(given), False)
        source = (os.POSIX_SPAWN_DUP2, int(given), 0)
    try:
        child = os.posix_spawnp(
            argv[0],
            argv,
            os.environ,
            file_actions=[source],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # which Python ignores
        )
    except OSError as error:
        os.write(line, str(error.errno).encode())
        os._exit(127)
    its_end = os.pidfd_open(child)
    poll = select.poll()
    poll.register(line, 0)  # that the other end was closed is always told
    poll.register(its_end, select.POLLIN)
    ready = {fd for fd, _ in poll.poll(None if seconds == _NONE else float(seconds) * 1000)}
    if its_end not in ready:
        os.killpg(os.getpgrp(), signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code < 0:  # end as it did
        with suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
