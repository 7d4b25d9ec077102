"""What SQLite says went wrong, in our words: with which file, and what to do next."""

import errno
import os

import apsw

from headway.errors import (
    InvalidOperationError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from headway.store.patience import SECONDS


def translate(error: apsw.Error, path: str, system_errno: int = 0) -> Exception:
    """The error in our words: what is wrong with which file, and what to do next."""
    match error:
        case apsw.ConstraintError() if "headway: " in str(error):
            return InvalidOperationError(str(error).partition("headway: ")[2])
        case apsw.ConstraintError():
            return error
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusyError(
                f"{path} stayed locked by another process for {SECONDS:g} s; try again"
            )
        case apsw.FullError():
            return StoreFullError(f"no space for {path}; free some and try again")
        case apsw.IOError() if system_errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return StoreFullError(
                f"cannot write {path}: {os.strerror(system_errno)}; free some space and try again"
            )
        case apsw.ReadOnlyError():
            return StoreReadOnlyError(f"{path} cannot be written; check its permissions and mount")
        case apsw.CorruptError() | apsw.NotADBError():
            return damaged(path, str(error))
        case apsw.CantOpenError():
            return StoreError(f"cannot open {path}; check that it exists and its permissions")
        case apsw.IOError():
            return StoreError(f"cannot read or write {path}: {os.strerror(system_errno)}")
    return StoreError(f"{path}: {error}")


def damaged(path: str, how: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"{path} is damaged or not a database ({how}); it was left as it is. "
        "Run `headway doctor`, then restore a backup"
    )
