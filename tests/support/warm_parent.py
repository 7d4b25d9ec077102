"""Parents of supervisors that have loaded what Headway's own small processes need.

Function hosts, nodes of workflows, wrappers of agents and what makes a worktree are started anew
for each job, and most of their time is spent on loading Python and the program. Below a parent from
here such a process is not exec'd: it goes on as it was forked, with what an exec would leave it
(its descriptors, signals, command line, environment, crash points), and becomes the program. The
programs of users are exec'd as ever. So is all that is below real workers, below the first parents
of each process of tests, and with HEADWAY_TEST_COLD=1 everything.

The parents themselves are forked from a process that is kept, the nursery.
"""

import gc
import importlib
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import warm

START = (
    f"import sys; sys.path.append({str(warm.HERE)!r}); import warm_parent; warm_parent.serve(%d)"
)
LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE)
EARLY = ("PYTHON", "LANG", "LC_", "LD_", "HEADWAY_DEBUG")
ISOLATED = ["-I", "-S", "-X", "utf8", "-c"]
MAIN = re.compile(r"import sys; sys\.path\.insert\(0, '.*'\); from ([\w.]+) import main; main\(\)")
HOST = "headway.functions.host.process"
NOT_WRITTEN = "PYTHONDONTWRITEBYTECODE"
LOADED = (
    *("headway.functions.app", "headway.functions.current", "headway.functions.host.call"),
    *("headway.functions.host.descriptors", "headway.integrations.agents.streams"),
    *("headway.integrations.agents.wrapper", "headway.integrations.git.__main__"),
    *("headway.integrations.git.patches", "headway.integrations.git.worktrees"),
    *("headway.integrations.probes.__main__", "headway.supervise.parent"),
    *("headway.workflows.node_process", "headway.workflows.operations.integration"),
)


def rights() -> Any:
    limits = [resource.getrlimit(each) for each in LIMITS]
    return os.getresuid(), os.getresgid(), os.getgroups(), limits


def nursery_for(env: Mapping[str, str]) -> "Nursery | None":
    """The one of this process; None if a parent from there would be another than is wanted."""
    made = _nursery()
    return made if made.kind == (os.getpid(), rights(), _early(env)) else None


def close_nursery() -> None:
    """After its parents have ended."""
    if _nursery.cache_info().currsize:
        _nursery()._close()


@cache
def _nursery() -> "Nursery":
    return Nursery()


class Nursery(warm.Warm):
    def __init__(self) -> None:
        self.kind = (os.getpid(), rights(), _early(os.environ))
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-X",
                    "utf8",
                    "-c",
                    START % theirs.fileno(),
                    " " * warm.ROOM,
                ],
                env={**os.environ, "ROOM": " " * warm.ROOM},
                cwd="/",
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def parent(self, requests: int, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """One that reads its requests from there, as `Launcher` starts it."""
        self._requests = requests
        return warm.Forked(self, [sys.executable], Path("/"), env, session=True)

    def ask(self, *asked: Any) -> None:
        _, _, env, _, fds = asked
        told = json.dumps([dict(env), warm._umask()]).encode()
        socket.send_fds(self._line, [told], [self._requests, *fds])


# -- within the nursery, and below it -----------------------------------------------------------


def serve(line_fd: int) -> None:
    """Fork for each question; who was forked is a parent."""
    line = socket.socket(fileno=line_fd)
    line.set_inheritable(False)
    unused = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    unused.bind("")
    unused.listen()
    for name in LOADED:
        importlib.import_module(name)
    del sys.path[-1], os.environ["ROOM"]
    gc.freeze()
    fds, asked = warm._Kept(line, unused).fork_for_each()
    _be_parent(fds, *asked[:-1])


def _be_parent(fds: list[int], env: dict[str, str], umask: int) -> NoReturn:
    from headway.base import crashpoints
    from headway.supervise import parent

    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.setsid()
    os.umask(umask)
    os.environ.clear()
    os.environ.update(env)
    crashpoints.arm(env.get("HEADWAY_POINTS", ""))
    warm._show([sys.executable, "-c", "headway.supervise.parent"], env)
    exec_anew = os.execve

    def become(path: bytes, argv: list[bytes], env: Mapping[bytes, bytes]) -> None:
        words = [os.fsdecode(each) for each in argv]
        variables = {os.fsdecode(name): os.fsdecode(value) for name, value in env.items()}
        program = _program_of(words, variables)
        if program is None or sum(map(len, (*argv, *env, *env.values()))) > warm.ROOM // 2:
            exec_anew(path, argv, env)
        else:
            _become(*program, words, variables)

    os.execve = become  # type: ignore[assignment]
    parent.main()


def _early(env: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter reads when it starts, but for what can be set later."""
    return {k: v for k, v in env.items() if k.startswith(EARLY) and k != NOT_WRITTEN}


def _program_of(argv: list[str], env: Mapping[str, str]) -> tuple[str, list[str]] | None:
    """One of ours: its module, and what it is called with. None: it is to be exec'd."""
    if argv[0] != sys.executable:
        return None
    if argv[1:3] == ["-m", HOST]:
        return (HOST, argv[3:]) if _early(env) == _early(os.environ) else None
    if argv[1:6] == ISOLATED and (found := MAIN.fullmatch(argv[6])):
        return found[1], argv[7:]
    return None


def _become(module: str, arguments: list[str], argv: list[str], env: Mapping[str, str]) -> NoReturn:
    from headway.base import crashpoints

    isolated = argv[1] != "-m"
    _close_what_an_exec_closes()
    _take_signals_of_a_new_process()
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    crashpoints.arm(os.environ.get("HEADWAY_POINTS", ""))
    for number, mode in enumerate("rww"):
        name = ("stdin", "stdout", "stderr")[number]
        errors = "backslashreplace" if number == 2 else "surrogateescape"
        stream = open(number, mode, errors=errors, buffering=1 if number == 2 else -1)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.argv[:] = ["-c" if isolated else module, *arguments]
    sys.orig_argv[:] = argv
    sys.dont_write_bytecode = not isolated and bool(env.get(NOT_WRITTEN))
    if not isolated:
        sys.path.insert(0, os.getcwd())
    warm._show(argv, env)
    threading.main_thread()._set_native_id()  # type: ignore[attr-defined]  # a fork keeps the old
    gc.enable()
    code: Any = 0
    try:
        _run(module, isolated=isolated)
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    warm._leave(code or 0)
    raise AssertionError


def _run(module: str, *, isolated: bool) -> None:
    if isolated:
        importlib.import_module(module).main()
        return
    import runpy

    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _close_what_an_exec_closes() -> None:
    signal.set_wakeup_fd(-1)
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the one that listed the folder
            if not os.get_inheritable(int(name)):
                os.close(int(name))


def _take_signals_of_a_new_process() -> None:
    """Handlers go with an exec; those that Python has from the start come again."""
    for sig in signal.valid_signals():
        if callable(signal.getsignal(sig)):
            signal.signal(sig, signal.SIG_DFL)
    for sig in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(sig, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
