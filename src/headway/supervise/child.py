"""The forked child between fork and exec (docs/protocols.md, section 2).

It never returns and never runs a line of the command before the go byte: end of file on the go
pipe, or another parent than the supervisor, is exit. What the job needs before it (a worktree) is
prepared between the go byte and the exec; last of all, what its gates have seen of its repository
is checked once more. An error that keeps it from exec'ing goes through the report pipe, which
closes by itself when exec succeeds.
"""

from __future__ import annotations

import errno
import json
import os
import signal
from contextlib import suppress

from headway.base import proc
from headway.base.crashpoints import reach
from headway.supervise import helper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from headway.supervise.evidence import Evidence

# What a parent's death does to it; and what the supervisor sees of a child that could not exec.
NOT_STARTED = 127
DEFAULT_UMASK = 0o022
OOM_SCORE_ADJ = b"500"
# What a helper may say about the host, in the system's words; the longer of two that begin alike
# comes first. Without any of them the host is out of something that we cannot name.
OF_HOST = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS),
    *(errno.ENFILE, errno.EMFILE, errno.ENOMEM, errno.EAGAIN),
)


class Pipes:
    """Both ends of the four pipes between a supervisor and its child."""

    __slots__ = ("go_read", "go_write", "report_read", "report_write", "streams")

    def __init__(self) -> None:
        opened: list[int] = []
        try:
            for _ in range(4):
                opened.extend(os.pipe2(os.O_CLOEXEC))
        except OSError:
            for fd in opened:
                os.close(fd)
            raise
        self.go_read, self.go_write, self.report_read, self.report_write = opened[:4]
        self.streams = ((opened[4], opened[5]), (opened[6], opened[7]))

    def close_child_ends(self) -> None:
        for fd in (self.go_read, self.report_write, self.streams[0][1], self.streams[1][1]):
            os.close(fd)


class SpawnError(Exception):
    """The command could not be started: an errno, and the thing it is about."""

    def __init__(self, code: int, what: str, text: str | None = None) -> None:
        super().__init__(code, what)
        self.code = code
        self.text = text or f"{what}: {os.strerror(code)}"

    def to_bytes(self) -> bytes:
        # Less than PIPE_BUF, so that it is written whole and at once.
        return f"{self.code}\n{self.text[:2000]}".encode(errors="replace")[:4000]


class ChangedError(SpawnError):
    """Nothing failed: what the command was to start on is no longer so."""

    def __init__(self, text: str) -> None:
        super().__init__(0, "check", text)


def parse_report(report: bytes) -> tuple[int, str]:
    """Errno and text of what the child reported; no errno: nothing failed, but it has changed."""
    code, _, text = report.partition(b"\n")
    return int(code), text.decode(errors="replace")


class Command:
    """What to exec, worked out by the supervisor so that the child has little left to do."""

    __slots__ = ("argv", "candidates", "check", "cwd", "env", "prepare", "stdin", "umask")

    def __init__(self, spec: dict[str, Any]) -> None:
        submitted = _read_env_file(spec["env_file"])
        try:
            self.argv = [os.fsencode(arg) for arg in spec["argv"]]
            self.env = _environment(spec, submitted)
            self.cwd = os.fsencode(spec["cwd"] or submitted.get("cwd") or "/")
            self.stdin = os.fsencode(spec["stdin"] or "/dev/null")
        except UnicodeEncodeError:
            raise SpawnError(errno.EINVAL, "a text that no program can be handed") from None
        self.candidates = _candidates(self.argv, self.env)
        self.umask: int = submitted.get("umask", DEFAULT_UMASK)
        self.prepare: dict[str, Any] | None = spec.get("prepare")
        self.check: dict[str, Any] | None = spec.get("check")


def become_command(
    command: Command, pipes: Pipes, evidence: Evidence, *, supervisor: int, lock: int
) -> NoReturn:
    """Be the child: wait for go, then exec the command."""
    try:
        _stand_alone(supervisor, lock=lock, pipes=pipes)
        _take_surroundings(command, pipes)
        if command.prepare is None:
            _enter(command.cwd)
        if os.read(pipes.go_read, 1):
            reach("child.let_go")
            if command.prepare is not None:
                _prepare(command.prepare, command.env)
                _enter(command.cwd)
            if command.check is not None:
                _check(command.check, evidence.token)
            if command.prepare is not None or command.check is not None:
                with suppress(OSError):  # only a hint: another job may prove that the host can
                    evidence.mark_prepared()
            _exec(command)
    except SpawnError as error:
        os.write(pipes.report_write, error.to_bytes())
    except OSError as error:
        os.write(pipes.report_write, SpawnError(error.errno or errno.EIO, "child").to_bytes())
    except BaseException as error:  # never to be mistaken for an exit of the command
        os.write(pipes.report_write, SpawnError(errno.EINVAL, f"child: {error!r}").to_bytes())
    finally:
        reach("child.reported")
        os._exit(NOT_STARTED)


def _stand_alone(supervisor: int, *, lock: int, pipes: Pipes) -> None:
    """Die with the supervisor, and hold nothing that is its own."""
    proc.set_pdeathsig(signal.SIGKILL)
    # Only now: a supervisor that died before the line above sends no signal any more.
    if os.getppid() != supervisor:
        os._exit(NOT_STARTED)
    os.close(lock)
    os.close(pipes.go_write)
    os.setsid()
    _prefer_for_oom_kill()


def _prefer_for_oom_kill() -> None:
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(fd, OOM_SCORE_ADJ)
    except OSError:  # already higher, and lowering needs a right that we lack
        return
    finally:
        os.close(fd)


def _take_surroundings(command: Command, pipes: Pipes) -> None:
    """Take the submitter's signals and umask, and the standard streams."""
    # From here on a signal that came too early, and was kept by the mask, ends the child.
    proc.reset_signals()
    try:
        source = os.open(command.stdin, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise SpawnError(error.errno or errno.EIO, f"stdin {os.fsdecode(command.stdin)}") from error
    for target, fd in enumerate((source, pipes.streams[0][1], pipes.streams[1][1])):
        os.dup2(fd, target)
    os.umask(command.umask)


def _enter(folder: bytes) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise SpawnError(error.errno or errno.EIO, f"directory {os.fsdecode(folder)}") from error


def _prepare(wanted: dict[str, Any], env: dict[bytes, bytes]) -> None:
    """Have made what the command needs."""
    _keep_stops()
    running = helper.Helper(wanted, env)
    reach("child.preparing")
    ended = _await(running)
    if ended.code != 0:
        raise SpawnError(_cause(ended), "prepare", ended.words())


def _check(wanted: dict[str, Any], token: str) -> None:
    """Have the answers of the job's gates probed once more. It runs in the environment of the
    worker, which made the first probe, and not in the job's. It comes last, so that little can
    change after it."""
    env = {name: value for name, value in os.environb.items() if name != b"HEADWAY_POINTS"}
    _keep_stops()
    running = helper.Helper(wanted, {**env, b"HEADWAY_CLAIM": token.encode()})
    reach("child.checking")
    ended = _await(running)
    if ended.code == helper.CHANGED:
        raise ChangedError(ended.words())
    if ended.code != 0:
        raise SpawnError(_cause(ended), "check", ended.words())


def _keep_stops() -> None:
    """A stop meanwhile is for the helper, which then ends its git in peace; it is kept for this
    process until then, so that the command is never reached."""
    signal.set_wakeup_fd(-1)  # the supervisor's, which must not be woken by the helper
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))


def _await(running: helper.Helper) -> helper.HelperEnd:
    ended = running.wait()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # here a stop that came ends us
    return ended


def _cause(ended: helper.HelperEnd) -> int:
    """The errno that says whose fault it is: the job's, unless the helper knows better."""
    if ended.code is None:
        return errno.ETIMEDOUT
    if ended.code != helper.OF_HOST:
        return errno.ENOENT
    words = ended.words()
    return next((each for each in OF_HOST if os.strerror(each) in words), errno.EAGAIN)


def _read_env_file(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        with open(os.fsencode(path), "rb", buffering=0) as file:
            content: dict[str, Any] = json.loads(file.read())
        content["env"].items()
    except OSError as error:
        raise SpawnError(error.errno or errno.EIO, f"environment file {path}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpawnError(errno.EINVAL, f"environment file {path}") from error
    return content


def _environment(spec: dict[str, Any], submitted: dict[str, Any]) -> dict[bytes, bytes]:
    own = {"HEADWAY_CLAIM": spec["token"], "HEADWAY_HOME": spec["home"]}
    if spec["job"]:  # a function host is of no single job
        own["HEADWAY_JOB_ID"] = f"job-{spec['job']}"
        own["HEADWAY_RUN_ID"] = f"run-{spec['job']}"
        own["HEADWAY_ATTEMPT"] = str(spec["attempt"])
    kept = {k: v for k, v in submitted.get("env", {}).items() if k not in spec.get("unset", ())}
    merged = {**kept, **spec["env"], **own}
    return {os.fsencode(name): os.fsencode(value) for name, value in merged.items()}


def _candidates(argv: list[bytes], env: dict[bytes, bytes]) -> list[bytes]:
    """Where to look for the program, as execvp does; relative ones count from its directory."""
    if not argv or not argv[0]:
        raise SpawnError(errno.ENOENT, "exec an empty name")
    if b"/" in argv[0]:
        return [argv[0]]
    folders = env.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    return [folder + b"/" + argv[0] if folder else b"./" + argv[0] for folder in folders]


def _exec(command: Command) -> NoReturn:
    """Exec the first candidate that is there; of several errors the first real one counts."""
    code = errno.ENOENT
    for path in command.candidates:
        try:
            os.execve(path, command.argv, command.env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            if code == errno.ENOENT:
                code = error.errno or errno.EIO
        except ValueError:  # a NUL inside, or "=" in the name of a variable
            code = errno.EINVAL
            break
    raise SpawnError(code, f"exec {os.fsdecode(command.argv[0])}")
