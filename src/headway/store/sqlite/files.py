"""The file of a store as a file: made whole or not at all, put in place, and never beside a log
that is not its own."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from headway.base.errors import (
    ConflictError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)


@contextmanager
def as_new_file(path: str) -> Iterator[str]:
    """A path to make a file at; when the block ends well it is put in place, whole and durable."""
    fresh = f"{path}.{os.getpid()}.new"
    try:
        if os.path.lexists(path):
            raise FileExistsError
        yield fresh
        with open(fresh, "rb") as file:
            os.fsync(file.fileno())
        os.link(fresh, path)
        sync_folder(os.path.dirname(path))
    except FileExistsError:
        raise ConflictError(
            f"{path} exists already; name another file, or put this in the place of an earlier "
            "backup with --replace"
        ) from None
    except OSError as error:
        raise as_store_error(error, path) from error
    finally:
        for leftover in (fresh, f"{fresh}-wal", f"{fresh}-shm"):
            with suppress(FileNotFoundError):
                os.unlink(leftover)


def sync_folder(path: str) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.fsync(folder)
    os.close(folder)


def refuse_orphaned_log(path: str) -> None:
    """The log of a deleted file would be taken for the new one's and tear it."""
    log = f"{path}-wal"
    if os.path.exists(path) or not os.path.exists(log) or os.path.getsize(log) == 0:
        return
    raise StoreCorruptError(
        f"{path} is gone, but its log {log} is there: the store was deleted or moved. "
        "Put it back, restore a backup, or move the log away to begin anew"
    )


def remove_half_made(path: str) -> None:
    """Remove what creations left behind that were killed."""
    folder, name = os.path.split(path)
    for entry in os.listdir(folder):
        pid = entry.removeprefix(f"{name}.").partition(".")[0]
        if not (entry.startswith(f"{name}.") and ".new" in entry and pid.isdigit()):
            continue
        if int(pid) == os.getpid() or not os.path.exists(f"/proc/{pid}"):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, entry))


def as_store_error(error: OSError, path: str) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFullError(f"no space for {path}; free some and try again")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return StoreReadOnlyError(f"cannot create {path}: {error.strerror}; check its permissions")
    return StoreError(f"cannot create {path}: {error.strerror}")
