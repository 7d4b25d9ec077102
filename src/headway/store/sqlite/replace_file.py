"""Put another SQLite file in the place of a store, while others may have the old one open.

The path always names a whole store, the old one or the new one, and no log of the old one is ever
beside the new one:

1. The old log is moved into the old file and cut to nothing, and the write lock is taken. From
   here on nobody can write to the old store, and it needs no log.
2. Nobody can begin to use the old file or the new one: a lock on SQLite's "pending" byte of both
   keeps newcomers waiting, as a writer's does.
3. The old file gets a second name, by which it is kept, and the new one is renamed over the path.
4. The empty log and its index are removed. A process that still has them open has the old file
open, too, and its next transaction reports that. When it ends, SQLite sees that the file has moved,
and leaves the new one's log alone.

A file that SQLite cannot open is exchanged without step 1: its log is first linked beside its
second name, then removed.
"""

import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

from headway.base.crashpoints import reach
from headway.base.errors import StoreBusyError, StoreError
from headway.store.sqlite.database import (
    SqliteDatabase,
    look,
    open_as_it_is,
)
from headway.store.sqlite.files import as_store_error, sync_folder

_PENDING_BYTE = 0x40000000
_CUTS = 5  # each waits for readers as long as any transaction waits


def exchange(fresh: str, path: str, judge: Callable[[SqliteDatabase | None], str | None]) -> None:
    """Put `fresh`, a whole and closed store, in the place of `path`.

    `judge` reads the present store when nobody else can write to it, and gets None for one that
    cannot be opened. It refuses by an error, or names a file by which the old one is kept.
    """
    try:
        with open(fresh, "rb") as file:
            os.fsync(file.fileno())
        _forget_second_names(path)
        old = _quiet(path) if os.path.exists(path) else None
        try:
            nothing = not os.path.exists(path) and not os.path.exists(f"{path}-wal")
            kept = None if nothing else judge(old)
            with ExitStack() as locks:
                for each in filter(os.path.exists, (path, fresh)):
                    locks.enter_context(_nobody_comes(each))
                _put(fresh, path, kept)
        finally:
            if old is not None:
                old.rollback()
                old.close()
    except FileExistsError:
        raise StoreBusyError(f"{path} was made by someone else meanwhile; try again") from None
    except OSError as error:
        raise as_store_error(error, path) from error


def _put(fresh: str, path: str, kept: str | None) -> None:
    folder = os.path.dirname(path)
    log = f"{path}-wal"
    there = os.path.exists(path)
    torn = os.path.exists(log) and os.path.getsize(log) > 0
    if kept is not None:
        if there:
            os.link(path, kept)
        if torn:
            os.link(log, f"{kept}-wal")
        sync_folder(folder)
    reach("restore.kept")
    if torn:  # of a file that could not be opened, or that is gone
        os.unlink(log)
        sync_folder(folder)
        reach("restore.cut")
    if there:
        os.rename(fresh, path)
    else:
        os.link(fresh, path)
    reach("restore.exchanged")
    for leftover in (log, f"{path}-shm"):
        with suppress(FileNotFoundError):
            os.unlink(leftover)
    sync_folder(folder)


def _quiet(path: str) -> SqliteDatabase | None:
    """The store in a write transaction and with an empty log; None if it cannot be opened."""
    if not _can_be_read(path):
        return None
    database = open_as_it_is(path)
    try:
        for _ in range(_CUTS):
            busy = database.execute("pragma wal_checkpoint(truncate)", {})[0][0]
            database.begin_write()
            if not busy and database.wal_bytes() == 0:
                return database
            database.rollback()
    except StoreBusyError:
        database.close()
        raise
    except StoreError:
        database.close()
        return None
    database.close()
    raise StoreBusyError(f"{path} is in use by others; end them and try again")


def _can_be_read(path: str) -> bool:
    """Looked at first without writing: SQLite removes the log of a file that it cannot read."""
    try:
        database = look(path)
    except StoreError:
        return False
    try:
        database.objects()
    except StoreBusyError:
        raise
    except StoreError:
        return False
    finally:
        database.close()
    return True


def _forget_second_names(path: str) -> None:
    """A restore that was killed may have left a second name of the file that is still in use."""
    folder, name = os.path.split(path)
    if not os.path.exists(path) or os.stat(path).st_nlink == 1:
        return
    for entry in os.listdir(folder):
        other = os.path.join(folder, entry)
        if entry.startswith(f"{name}.before-restore-") and os.path.samefile(path, other):
            os.unlink(other)


@contextmanager
def _nobody_comes(path: str) -> Iterator[None]:
    """While the block runs, nobody can begin to read this file; those who have begun go on."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _PENDING_BYTE, 1, 0)
        fcntl.fcntl(fd, fcntl.F_OFD_SETLKW, lock)
        yield
    finally:
        os.close(fd)
