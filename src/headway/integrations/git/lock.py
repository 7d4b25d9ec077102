"""One at a time in a repository: adding and removing worktrees is not safe side by side in git.

The lock is in the folder that all worktrees of a repository share, so it holds across homes and
processes. It vanishes with its holder and with the git that the holder started: when the one is
killed, the other may still be writing.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from headway.integrations.git import layout
from headway.integrations.git.program import READ_SECONDS, GitError, GitResult, failed, run

WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.01


def folder_in(common: str) -> str:
    """Headway's own folder inside a repository: the lock, and who owns which worktree."""
    return os.path.join(common, "headway")


class LockedRepository(NamedTuple):
    """A repository whose lock we hold; what changes it is done with this in hand."""

    repo: str
    common: str
    fd: int

    def run(
        self,
        *args: str,
        at: str | None = None,
        timeout: float = READ_SECONDS,
        input: bytes = b"",  # noqa: A002  the word of subprocess
    ) -> GitResult:
        return run(at or self.repo, *args, timeout=timeout, input=input, writes=True, keeps=self.fd)

    def ask(
        self,
        *args: str,
        at: str | None = None,
        timeout: float = READ_SECONDS,
        input: bytes = b"",  # noqa: A002
    ) -> GitResult:
        """As `run`, but anything except success is a GitError."""
        answer = self.run(*args, at=at, timeout=timeout, input=input)
        if answer.code != 0:
            raise failed(at or self.repo, args, answer.code, answer.err)
        return answer


@contextmanager
def holding(repo: str, wait_seconds: float = WAIT_SECONDS) -> Iterator[LockedRepository]:
    """Hold the repository's lock; GitError if there is none, or others keep it for too long."""
    common = layout.common_dir_of(repo)
    fd = _open(common)
    try:
        give_up_at = time.monotonic() + wait_seconds
        while not _try(fd):
            if time.monotonic() > give_up_at:
                raise GitError(
                    f"others kept the lock of {common} for {wait_seconds:g} s; see who holds"
                    f" {folder_in(common)}/lock",
                    errno=errno.ETIMEDOUT,
                )
            time.sleep(_PAUSE_SECONDS)
        yield LockedRepository(repo, common, fd)
    finally:
        os.close(fd)


def _open(common: str) -> int:
    folder = folder_in(common)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(os.path.join(folder, "lock"), flags, 0o600)
    except OSError as error:
        raise GitError(
            f"{folder} cannot be used: {error.strerror}; see its rights and its disk",
            errno=error.errno,
        ) from None


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
