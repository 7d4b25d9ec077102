"""Starts the `git` program: no prompt, no hook, no inherited repository, no time without end.

What a repository or an environment could smuggle in is shut out here, once: the variables that
point git elsewhere, hooks, the file system monitor, the transports that run commands. Arguments
are a list. A name that a user chose stands behind `--end-of-options` or was checked by
`safe_branch`.
"""

import errno
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from headway.base.errors import HeadwayError

if TYPE_CHECKING:
    import subprocess

READ_SECONDS = 10.0
_KEPT = {
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
}
_ALWAYS = (
    "--no-pager",
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "protocol.ext.allow=never"),
    # Nothing that goes on in the background, with our lock in its hands.
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
)
# git speaks of errors in words; these are about the host, whatever the job is.
_HOST_WORDS = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
    "Too many open files in system": errno.ENFILE,
    "Too many open files": errno.EMFILE,
    "Cannot allocate memory": errno.ENOMEM,
    "Out of memory": errno.ENOMEM,
    "Resource temporarily unavailable": errno.EAGAIN,
}
HOST_ERRNOS = frozenset(_HOST_WORDS.values())


class GitError(HeadwayError):
    """git could not do or answer something; `errno` is set when the system said why."""

    def __init__(self, message: str, *, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno

    @property
    def of_host(self) -> bool:
        """Is it the host's trouble, which no job can be blamed for?"""
        return self.errno in HOST_ERRNOS


class GitResult(NamedTuple):
    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        return os.fsdecode(self.out).splitlines()


def run(
    repo: str,
    *args: str,
    timeout: float = READ_SECONDS,
    input: bytes = b"",  # noqa: A002  the word of subprocess
    environ: Mapping[str, str] | None = None,
    writes: bool = False,
    keeps: int | None = None,
) -> GitResult:
    """Run git in this very repository or worktree, not in one around it."""
    from headway.base.programs import run_program

    def begin(given: int, out: int, err: int) -> "subprocess.Popen[bytes]":
        return start(
            repo,
            args,
            environ=environ,
            writes=writes,
            stdin=given,
            stdout=out,
            stderr=err,
            keeps=keeps,
        )

    # Politely, since only then git removes its lock files.
    result = run_program(begin, timeout, question=input, politely=True)
    if result is None:
        raise too_slow(repo, args, timeout)
    return GitResult(result.code, result.out, result.err.decode(errors="replace").strip())


def ask(
    repo: str,
    *args: str,
    timeout: float = READ_SECONDS,
    input: bytes = b"",  # noqa: A002
    environ: Mapping[str, str] | None = None,
    writes: bool = False,
) -> GitResult:
    """As `run`, but anything except success is a GitError."""
    answer = run(repo, *args, timeout=timeout, input=input, environ=environ, writes=writes)
    if answer.code != 0:
        raise failed(repo, args, answer.code, answer.err)
    return answer


def start(
    repo: str,
    args: tuple[str, ...],
    *,
    environ: Mapping[str, str] | None = None,
    writes: bool = False,
    stdin: int,
    stdout: int,
    stderr: int,
    keeps: int | None = None,
) -> "subprocess.Popen[bytes]":
    """The process itself, in a session of its own: so it can be ended with all that it started.

    `keeps` is a descriptor that stays open in it.
    """
    import subprocess

    if not os.path.isdir(repo):
        raise GitError(f"{repo} does not exist or is not a directory: nothing to ask git about")
    if any("\0" in each for each in args):
        raise GitError(f"{repo}: an argument for git holds a null byte")
    try:
        return subprocess.Popen(
            ["git", "-C", repo, *_ALWAYS, *args],  # noqa: S607  the user's own git
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=environment(repo, os.environ, writes=writes) | dict(environ or {}),
            cwd="/",
            pass_fds=() if keeps is None else (keeps,),
            start_new_session=True,
        )
    except FileNotFoundError:
        raise GitError(
            "the git program was not found; install git, or correct PATH", errno=errno.ENOENT
        ) from None
    except OSError as error:
        raise GitError(
            f"git cannot be started: {error.strerror}; see what the host lacks", errno=error.errno
        ) from None


def environment(repo: str, inherited: Mapping[str, str], *, writes: bool) -> dict[str, str]:
    """The environment of git: nothing in it points to another repository or runs a program."""
    kept = {k: v for k, v in inherited.items() if not k.startswith("GIT_") or k in _KEPT}
    kept |= {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        # A repository that has vanished must not be answered for by the one around it.
        "GIT_CEILING_DIRECTORIES": os.path.dirname(os.path.realpath(repo)),
    }
    kept.pop("LANGUAGE", None)
    if not writes:
        # Neither refreshes the index under a user's hands nor fetches what a partial clone lacks.
        kept |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
    return kept


def failed(repo: str, args: tuple[str, ...], code: int, err: str) -> GitError:
    """The error for a git command that said no, with the reason in git's own words."""
    number = next((n for words, n in _HOST_WORDS.items() if words in err), None)
    reason = next((line for line in reversed(err.splitlines()) if line.strip()), f"exit {code}")
    reason = reason.removeprefix("fatal: ").removeprefix("error: ").strip()
    lock, exists, _ = err.partition("Unable to create '")[2].partition("': File exists")
    if exists:
        reason = f"{lock} is there; if no git is at work, remove it and retry"
    return GitError(f"git {verb_of(args)} failed in {repo}: {reason}", errno=number)


def too_slow(repo: str, args: tuple[str, ...], timeout: float) -> GitError:
    return GitError(
        f"git {verb_of(args)} in {repo} did not answer within {timeout:g} s and was ended;"
        " see whether the file system hangs",
        errno=errno.ETIMEDOUT,
    )


def verb_of(args: tuple[str, ...]) -> str:
    """`worktree add`, `status`: the command without its options, for messages."""
    while args[:1] == ("-c",):
        args = args[2:]
    return " ".join(args[: 2 if args[:1] == ("worktree",) else 1])


_FORBIDDEN = frozenset(" ~^:?*[\\\x7f") | frozenset(map(chr, range(32)))


def safe_branch(name: str) -> bool:
    """May a branch have this name? git's own rules, and nothing like an option."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    if not name or name[0] == "-" or name in ("HEAD", "@") or name[-1] in "/.":
        return False
    if ".." in name or "@{" in name or not _FORBIDDEN.isdisjoint(name):
        return False
    parts = name.split("/")
    return all(part and part[0] != "." and not part.endswith(".lock") for part in parts)


def is_oid(text: str) -> bool:
    """A full object name, of either hash."""
    return len(text) in (40, 64) and set(text) <= set("0123456789abcdef")
