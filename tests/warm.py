"""`python -m headway` as a real process, but without the start of an interpreter.

Tests give thousands of commands, and of the tenth of a second that one takes nearly all is spent
on loading Python and the program. So a process that has loaded what most commands need is kept, and
it forks itself for each command: with the folder, environment, umask and streams of a process that
was started in the usual way, and an exit of its own. What an interpreter reads of its environment
when it starts must be as it was; else, and with HEADWAY_TEST_COLD=1, the program is started anew.
"""

import atexit
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MOST = 200_000  # bytes of a question
COLD = "HEADWAY_TEST_COLD" in os.environ
EARLY = ("PYTHON", "LANG", "LC_", "LD_", "HEADWAY_POINTS", "HEADWAY_TEST_MARK", "HEADWAY_DEBUG")
OF_PROCESSES = {"work", "direct", "exec"}  # who are about what they are to other processes
LOADED = (
    *("apsw", "click", "json", "psycopg", "subprocess", "tomllib"),
    *("headway.cli.main", "headway.client", "headway.views", "headway.waiting"),
    *("headway.store.sqlite", "headway.store.sqlstore", "headway.store.postgres"),
)


def headway(
    flags: Sequence[str],
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float,
) -> "subprocess.CompletedProcess[str]":
    """Run `python FLAGS -m headway ARGUMENTS` without input, and give what it said."""
    argv = [sys.executable, *flags, "-m", "headway", *arguments]
    early = tuple(sorted((name, value) for name, value in env.items() if name.startswith(EARLY)))
    long = sum(map(len, (*arguments, *env.values()))) > MOST // 10  # each may become six bytes
    if COLD or long or OF_PROCESSES & set(arguments) or _is_rare(early):
        return subprocess.run(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    code, out, err = _server(tuple(flags), early).run(arguments, cwd, env, timeout)
    return subprocess.CompletedProcess(argv, code, _text(out), _text(err))


def _text(said: bytes) -> str:
    """As `subprocess` reads a text."""
    return said.decode().replace("\r\n", "\n").replace("\r", "\n")


_seen: dict[Any, int] = {}


def _is_rare(early: Any) -> bool:
    """A process is not kept for an environment that only one test has."""
    _seen[early] = _seen.get(early, 0) + 1
    return _seen[early] < 5 or "HEADWAY_POINTS" in dict(early)


@cache
def _server(flags: tuple[str, ...], early: tuple[tuple[str, str], ...]) -> "Warm":
    return Warm(flags, dict(early))


class Warm:
    """The process that is kept. It ends when nobody is left who could ask."""

    def __init__(self, flags: Sequence[str], env: dict[str, str]) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        start = f"import sys; sys.path.append({str(HERE)!r}); import warm; warm.serve(%d)"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", start % theirs.fileno(), *flags],
            env={"PATH": os.environ["PATH"], **env},
            cwd="/",
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        atexit.register(self._close)

    def _close(self) -> None:
        self._line.close()
        self._process.wait()

    def run(
        self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Its exit code, or the signal as a negative number; its output and its errors."""
        asked = json.dumps([list(arguments), str(cwd), dict(env), _umask()]).encode()
        pipes = [os.pipe() for _ in range(3)]  # output, errors, and what becomes of it
        given = os.open(os.devnull, os.O_RDONLY)
        socket.send_fds(self._line, [asked], [given, *(pipe[1] for pipe in pipes)])
        os.close(given)
        for pipe in pipes:
            os.close(pipe[1])
        out, err, told = _read_all([pipe[0] for pipe in pipes], time.monotonic() + timeout)
        _, status = map(int, told.split())
        return os.waitstatus_to_exitcode(status), out, err


def _umask() -> int:
    """That of this process; to ask for it with `os.umask` is to change it for an instant."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("Umask:")[2].split()[0], 8)


def _read_all(sources: list[int], give_up_at: float) -> list[bytes]:
    """Read all of them to the end, whoever holds their other ends."""
    found: dict[int, list[bytes]] = {source: [] for source in sources}
    with selectors.DefaultSelector() as selector:
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, give_up_at - time.monotonic()))
            if not ready:
                _end(b"".join(found[sources[-1]]))
                raise AssertionError(f"a command did not end in time: {found}")
            for key, _ in ready:
                some = os.read(key.fd, 1 << 16)
                found[key.fd].append(some)
                if not some:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return [b"".join(found[source]) for source in sources]


def _end(told: bytes) -> None:
    if told:
        os.kill(int(told.split()[0]), signal.SIGKILL)


# -- within the process that is kept ------------------------------------------------------------


def serve(line_fd: int) -> None:
    """Fork for each question; comes back only in one who was forked, as the program itself."""
    line = socket.socket(fileno=line_fd)
    line.set_inheritable(False)
    for name in LOADED:
        importlib.import_module(name)
    gc.freeze()  # else a search for garbage would copy all of this into each fork
    children: dict[int, tuple[int, int]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(line, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd != line_fd:
                    selector.unregister(key.fd)
                    _tell_end(key.fd, *children.pop(key.fd))
                    continue
                asked, fds, _, _ = socket.recv_fds(line, MOST, 4)
                if not asked:
                    os._exit(0)
                pid = os.fork()
                if pid == 0:
                    break
                for fd in fds[:3]:
                    os.close(fd)
                os.write(fds[3], b"%d " % pid)
                pidfd = os.pidfd_open(pid)
                children[pidfd] = (pid, fds[3])
                selector.register(pidfd, selectors.EVENT_READ)
            else:
                continue
            break
    for pidfd, (_, told) in children.items():
        os.close(pidfd)
        os.close(told)
    line.close()
    os.close(fds[3])
    _become(fds[:3], *json.loads(asked))


def _tell_end(pidfd: int, pid: int, told: int) -> None:
    _, status = os.waitpid(pid, 0)
    os.write(told, b"%d" % status)
    os.close(told)
    os.close(pidfd)


def _become(
    streams: list[int], arguments: list[str], cwd: str, env: dict[str, str], umask: int
) -> None:
    import runpy

    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    for fd in streams:
        os.close(fd)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    os.chdir(cwd)
    os.umask(umask)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    del sys.path[-1]
    if "-P" not in sys.argv:
        sys.path.insert(0, cwd)
    importlib.invalidate_caches()
    sys.argv[:] = ["headway", *arguments]
    code: Any = 0
    try:
        runpy.run_module("headway", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    _leave(code if isinstance(code, int) else int(code is not None))


def _leave(code: int) -> None:
    """End as an interpreter does, but for freeing what is shared with the others: to touch it all
    would be to copy it all."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            stream.flush()
    os._exit(code)
