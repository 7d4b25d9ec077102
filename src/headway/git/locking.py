"""One at a time in a repository: adding and removing worktrees is not safe side by side in git.

The lock is in the folder that all worktrees of a repository share, so it holds across homes and
processes. It vanishes with its holder.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from headway.git.program import GitError

WAIT_SECONDS = 60.0
_PAUSE_SECONDS = 0.01


def folder_in(common: str) -> str:
    """Headway's own folder inside a repository: the lock, and who owns which worktree."""
    return os.path.join(common, "headway")


@contextmanager
def holding(common: str, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the repository's lock; GitError if others keep it for too long."""
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
        yield
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
