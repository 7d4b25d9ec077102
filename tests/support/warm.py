"""`python -m headway` as a real process, but without the start of an interpreter.

Tests give thousands of commands, and of the tenth of a second that one takes nearly all is spent
on loading Python and the program. So a process that has loaded what most commands need is kept, and
it forks itself for each command: with the folder, environment, umask, streams, session and command
line of a process that was started in the usual way, the crash points of its own environment, and an
exit of its own. A worker that such a command starts in the background is forked in the same way
where the command would have become it, and the parent of supervisors that it starts comes from a
process that has loaded what such a parent loads. What an interpreter reads of its environment when
it starts must be as it was; else, and with HEADWAY_TEST_COLD=1, the program is started anew. So are
the first workers, `exec` and `direct` of each process of tests.
"""

import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import resource
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

HERE = Path(__file__).parent
MOST = 200_000  # bytes of a question
COLD = "HEADWAY_TEST_COLD" in os.environ
EARLY = ("PYTHON", "LANG", "LC_", "LD_", "HEADWAY_DEBUG")
OF_PROCESSES = {"work", "direct", "exec"}  # who are about what they are to other processes
ANEW = 2  # so many of each of these are started in the usual way
APART = 100  # a descriptor that is none of those that a process begins with
ROOM = 30_000  # bytes for the command line and environment that are shown of a process
ISOLATED = (sys.executable, "-I", "-S", "-X", "utf8", "-c")  # as a worker starts such a parent
DOOR = b"\0headway-warm-%d"  # where one that is kept can be asked for a worker
PARENTS = b"\0headway-parents-%d"  # and for a parent of supervisors
LOADED = ("apsw", "json", "psycopg", "subprocess", "tomllib", "tomlkit", "encodings.ascii", "pwd")
APART_ROOMS = ("aliases", "mcp", "testing", "web")  # what few commands need takes long to load
REHEARSED = (
    *("--version", "submit --every 1h -- true", "submit --label a=b -- true", "jobs list --json"),
    *("jobs show 1", "jobs status 1", "why 1", "jobs cancel 1", "schedules list", "config list"),
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
    warm = _server_for(arguments, env)
    if warm is None:
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
    code, out, err = warm.run(argv, cwd, env, timeout)
    return subprocess.CompletedProcess(argv, code, _text(out), _text(err))


def start(
    flags: Sequence[str],
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdout: int | IO[Any] = subprocess.DEVNULL,
    stderr: int | IO[Any] | None = None,
    text: bool = False,
    start_new_session: bool = False,
) -> "subprocess.Popen[Any]":
    """Start `python FLAGS -m headway ARGUMENTS` without input, as `subprocess.Popen` does."""
    argv = [sys.executable, *flags, "-m", "headway", *arguments]
    warm = _server_for(arguments, env)
    if warm is None:
        return subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=text,
            start_new_session=start_new_session,
        )
    return Forked(warm, argv, cwd, env, (stdout, stderr), text, start_new_session)


def _server_for(arguments: Sequence[str], env: Mapping[str, str]) -> "Warm | None":
    """None where the program is to be started anew."""
    early = tuple(sorted((name, value) for name, value in env.items() if name.startswith(EARLY)))
    long = sum(map(len, (*arguments, *env.values()))) > MOST // 10  # each may become six bytes
    verbs = [_is_rare(verb, ANEW + 1) for verb in sorted(OF_PROCESSES & set(arguments))]
    if COLD or long or any(verbs) or _is_rare(early, 5):
        return None
    return _server(early)


def _text(said: bytes) -> str:
    """As `subprocess` reads a text."""
    return said.decode().replace("\r\n", "\n").replace("\r", "\n")


_seen: dict[Any, int] = {}


def _is_rare(what: Any, often: int) -> bool:
    """A process is not kept for an environment that only one test has."""
    _seen[what] = _seen.get(what, 0) + 1
    return _seen[what] < often


@cache
def _server(early: tuple[tuple[str, str], ...]) -> "Warm":
    return Warm(dict(early))


class Warm:
    """The process that is kept. It ends when nobody is left who could ask."""

    def __init__(self, env: dict[str, str]) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        start = f"import sys; sys.path.append({str(HERE)!r}); import warm; warm.serve(%d)"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", start % theirs.fileno(), " " * ROOM],
            env={"PATH": os.environ["PATH"], **env, "ROOM": " " * ROOM},
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
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], timeout: float
    ) -> tuple[int, bytes, bytes]:
        """Its exit code, or the signal as a negative number; its output and its errors."""
        pipes = [os.pipe() for _ in range(3)]  # output, errors, and what becomes of it
        self.ask(argv, cwd, env, False, [pipe[1] for pipe in pipes])
        for pipe in pipes:
            os.close(pipe[1])
        out, err, told = _read_all([pipe[0] for pipe in pipes], time.monotonic() + timeout)
        _, status = map(int, told.split())
        return os.waitstatus_to_exitcode(status), out, err

    def ask(
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        session: bool,
        fds: list[int],
    ) -> None:
        """For one with this output, these errors, and a place to tell what becomes of it."""
        asked = json.dumps([list(argv), str(cwd), dict(env), _umask(), session]).encode()
        given = os.open(os.devnull, os.O_RDONLY)
        socket.send_fds(self._line, [asked], [given, *fds])
        os.close(given)


class Forked(subprocess.Popen[Any]):
    """One that was asked for. It is a child of the process that is kept, which tells of its end."""

    def __init__(  # not that of Popen, which would start it
        self,
        warm: "Warm | _Parents",
        argv: list[str],
        cwd: Path,
        env: Mapping[str, str],
        outputs: tuple[Any, Any] = (subprocess.DEVNULL, subprocess.DEVNULL),
        text: bool = False,
        session: bool = False,
    ) -> None:
        self.args, self.returncode, self.text_mode = argv, None, text
        self.encoding = self.errors = None
        self._waitpid_lock = threading.Lock()
        self._input = None
        self._communication_started = self._closed_child_pipe_fds = False
        self._sigint_wait_secs = 0.25
        self.stdin = None
        given, taken = [], []
        for number, each in enumerate(outputs, 1):
            ours = None
            if each == subprocess.PIPE:
                reader, writer = os.pipe()
                ours = open(reader, "r" if text else "rb")  # noqa: SIM115
            elif each == subprocess.STDOUT:
                writer = os.dup(given[0])
            elif each == subprocess.DEVNULL:
                writer = os.open(os.devnull, os.O_RDWR)
            else:
                writer = os.dup(
                    number if each is None else each if isinstance(each, int) else each.fileno()
                )
            given.append(writer)
            taken.append(ours)
        self.stdout, self.stderr = taken
        self._told, telling = os.pipe()
        warm.ask(argv, cwd, env, session, [*given, telling])
        for fd in (*given, telling):
            os.close(fd)
        self._heard = b""
        while b" " not in self._heard:
            if not self._hear():
                raise ChildProcessError("the process that is kept is gone")
        self.pid = int(self._heard.split()[0])
        self._child_created = True

    def _hear(self) -> bool:
        """False when all was told."""
        some = os.read(self._told, 100)
        self._heard += some
        return bool(some)

    def _internal_poll(self, _deadstate: Any = None, **_: Any) -> int | None:
        if self.returncode is None:
            self._listen(0.0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        give_up_at = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = None if give_up_at is None else max(0.0, give_up_at - time.monotonic())
            if not self._listen(left) and left == 0.0:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self.returncode

    def _listen(self, seconds: float | None) -> bool:
        if not select.select([self._told], [], [], seconds)[0]:
            return False
        while self._hear():
            pass
        os.close(self._told)
        self.returncode = os.waitstatus_to_exitcode(int(self._heard.split()[1]))
        return True


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
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.bind(DOOR % os.getpid())
    door.listen(100)
    parents = _keep_parent()
    for name in (*LOADED, *_rooms()):
        importlib.import_module(name)
    if "coverage" not in sys.modules:  # which would count it as the work of tests
        _rehearse()
    gc.collect()
    gc.freeze()  # else a search for garbage would copy all of this into each fork
    kept = _Kept(line, door)
    fds, asked = kept.fork_for_each()
    _become(fds, (kept.name, parents), *asked)


def _rooms() -> Iterator[str]:
    import headway

    for found in pkgutil.walk_packages(headway.__path__, "headway."):
        if not {"__main__", *APART_ROOMS} & set(found.name.split(".")):
            yield found.name


def _rehearse() -> None:
    """Some commands in a home that is gone afterwards: what each process compiles, spells and looks
    up once is then there. A command that fails here fails in its tests, too, where it counts."""
    from headway.base import crashpoints
    from headway.base.home import Home
    from headway.base.new_home import make_home
    from headway.cli.main import run
    from headway.jobs import policies

    crashpoints.arm("")
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        os.environ["XDG_STATE_HOME"] = folder
        home = Home(f"{folder}/.headway")
        with suppress(Exception), redirect_stdout(nowhere), redirect_stderr(nowhere):
            make_home(home)
            Path(home.config).write_text("[worker]\nautostart = false\n")
            for line in REHEARSED:
                run(["--home", home.path, *line.split()])
    policies._mentioned.cache_clear()  # of what is installed where a command looks


class _Kept:
    def __init__(self, line: socket.socket, door: socket.socket) -> None:
        self._line, self._door = line, door
        self.name: bytes = door.getsockname()
        self._children: dict[int, tuple[int, int]] = {}
        self._selector = selectors.DefaultSelector()
        for each in (line, door):
            self._selector.register(each, selectors.EVENT_READ)

    def fork_for_each(self) -> tuple[list[int], Any]:
        """Comes back in one who was forked: its descriptors, and what it is to become."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._line:
                    found = self._fork(self._line)
                elif key.fileobj is self._door:
                    found = self._fork_elsewhere()
                else:
                    self._selector.unregister(key.fd)
                    _tell_end(key.fd, *self._children.pop(key.fd))
                    continue
                if found is not None:
                    self._forget()
                    return found

    def _fork(self, line: socket.socket) -> tuple[list[int], Any] | None:
        asked, fds, _, _ = socket.recv_fds(line, MOST, 4)
        if not asked and line is self._line:
            os._exit(0)
        if not asked:  # who would have asked was killed
            return None
        pid = os.fork()
        if pid == 0:
            os.close(fds.pop())
            return fds, (*json.loads(asked), None)
        told = fds.pop()
        for fd in fds:
            os.close(fd)
        with suppress(BrokenPipeError):
            os.write(told, b"%d " % pid)
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = (pid, told)
        self._selector.register(pidfd, selectors.EVENT_READ)
        return None

    def _fork_elsewhere(self) -> tuple[list[int], Any] | None:
        """A worker, one that nobody waits for, as who asks has left its own session and parents."""
        asking, _ = self._door.accept()
        with asking:
            asked, fds, _, _ = socket.recv_fds(asking, MOST, 4)
            first = os.fork()
            if first == 0:
                os.setsid()
                if os.fork() != 0:
                    os._exit(0)
                return fds, (*json.loads(asked)[:-1], False, json.loads(asked)[-1])
            os.waitpid(first, 0)
            for fd in fds:
                os.close(fd)
            asking.send(b".")
        return None

    def _forget(self) -> None:
        for pidfd, (_, told) in self._children.items():
            os.close(pidfd)
            os.close(told)
        self._selector.close()
        self._line.close()
        self._door.close()


class _KeptParent(_Kept):
    def _fork_elsewhere(self) -> tuple[list[int], Any] | None:
        asking, _ = self._door.accept()
        with asking:
            return self._fork(asking)


def _tell_end(pidfd: int, pid: int, told: int) -> None:
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):  # nobody waits for it any more
        os.write(told, b"%d" % status)
    os.close(told)
    os.close(pidfd)


def _take(fds: list[int], fourth: int | None) -> None:
    apart = [fcntl.fcntl(fd, fcntl.F_DUPFD, APART) for fd in fds]
    for fd in fds:
        os.close(fd)
    for number, fd in enumerate(apart):
        os.dup2(fd, number if number < 3 else fourth or 0)
        os.close(fd)


def _become(
    fds: list[int],
    doors: tuple[bytes, bytes],
    argv: list[str],
    cwd: str,
    env: dict[str, str],
    umask: int,
    session: bool,
    lock: int | None,
) -> None:
    """Be the program; a worker in the background has a fourth descriptor, under this number."""
    import runpy

    from headway.base import crashpoints

    _take(fds, lock)
    if session:
        os.setsid()
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    os.chdir(cwd)
    os.umask(umask)
    added = [] if "PYTHONPATH" in env else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    early = {name: value for name, value in os.environ.items() if name.startswith(EARLY)}
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    crashpoints.arm(env.get("HEADWAY_POINTS", ""))
    del sys.path[-1]
    for each in added:
        if each in sys.path:
            sys.path.remove(each)
    if argv[1] != "-P":
        sys.path.insert(0, cwd)
    sys.argv[:] = ["headway", *argv[argv.index("-m") + 2 :]]
    sys.orig_argv[:] = argv
    _show(argv, env)
    _fork_workers(doors[0], early)
    _fork_parents(doors[1])
    code: Any = 0
    try:
        runpy.run_module("headway", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    _leave(code if isinstance(code, int) else int(code is not None))


def _show(argv: list[str], env: Mapping[str, str]) -> None:
    """Let /proc tell of the command line and the environment, in the room that was left."""
    places = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:49]
    args, args_end, envs, envs_end = map(int, places)
    variables = [f"{name}={value}" for name, value in env.items()]
    for begin, end, words in ((args, args_end, argv), (envs, envs_end, variables)):
        text = b"".join(os.fsencode(word) + b"\0" for word in words)[: end - begin - 1]
        ctypes.memmove(begin, text.ljust(end - begin, b"\0"), end - begin)


def _fork_workers(door: bytes, early: Mapping[str, str]) -> None:
    """A worker in the background comes from the process that is kept, too: who would become it by
    an exec hands over its descriptors and leaves."""
    exec_anew = os.execvpe

    def become(file: str, argv: list[str], env: dict[str, str]) -> None:
        lock = env.get("HEADWAY_COMING_FD")
        theirs = {name: value for name, value in env.items() if name.startswith(EARLY)}
        alike = all(early.get(name) == value for name, value in theirs.items())
        if lock is None or argv[1:4] != ["-P", "-m", "headway"] or not alike:
            exec_anew(file, argv, env)
        asked = json.dumps([argv, os.getcwd(), env, _umask(), int(lock or 0)]).encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.connect(door)
            socket.send_fds(asking, [asked], [0, 1, 2, int(lock or 0)])
            asking.recv(1)
        os._exit(0)

    os.execvpe = become  # type: ignore[assignment]


# -- parents of supervisors ---------------------------------------------------------------------


def _keep_parent() -> bytes:
    """Another process, which has loaded what a parent of supervisors loads, and where to ask it for
    one. It ends when nobody is left who could ask."""
    from headway.supervise.launcher import SOURCE

    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.bind(PARENTS % os.getpid())
    door.listen(100)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    start = f"import sys; sys.path[:0] = [{SOURCE!r}, {str(HERE)!r}]; import warm; del sys.path[1]"
    fds = (theirs.fileno(), door.fileno())
    ours.detach()  # open for as long as one of us lives
    with theirs, door:
        subprocess.Popen(
            [*ISOLATED, f"{start}; warm.serve_parents%s" % (fds,), " " * ROOM],
            env={**os.environ, "ROOM": " " * ROOM},
            cwd="/",
            stdin=subprocess.DEVNULL,
            pass_fds=fds,
        )
        return bytes(door.getsockname())


def serve_parents(line_fd: int, door_fd: int) -> None:
    """Fork for each question; comes back only in one who was forked, when it ends."""
    from headway.base import crashpoints
    from headway.supervise import parent

    line, door = socket.socket(fileno=line_fd), socket.socket(fileno=door_fd)
    gc.collect()
    gc.freeze()
    fds, (argv, cwd, env, umask, files, _) = _KeptParent(line, door).fork_for_each()
    _take(fds, None)
    os.setsid()
    os.chdir(cwd)
    os.umask(umask)
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    os.environ.clear()
    os.environ.update(env)
    crashpoints.arm(env.get("HEADWAY_POINTS", ""))
    _show(argv, env)
    parent.main()


def _fork_parents(door: bytes) -> None:
    """Whoever becomes a worker asks for its parent of supervisors instead of starting it."""
    from headway.supervise import launcher

    def popen(argv: list[str], *, stdin: int, cwd: str, env: dict[str, str], **_: Any) -> Forked:
        return Forked(_Parents(door, stdin), argv, Path(cwd), env)

    launcher.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": popen})  # type: ignore


class _Parents:
    def __init__(self, door: bytes, line: int) -> None:
        self._door, self._line = door, line

    def ask(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], _: bool, fds: list[int]
    ) -> None:
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        asked = json.dumps([list(argv), str(cwd), dict(env), _umask(), files]).encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
            asking.connect(self._door)
            socket.send_fds(asking, [asked], [self._line, *fds])


def _leave(code: int) -> None:
    """End as an interpreter does, but for freeing what is shared with the others: to touch it all
    would be to copy it all."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            stream.flush()
    os._exit(code)
