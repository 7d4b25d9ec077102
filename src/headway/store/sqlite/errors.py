"""SQLite's errors in our words: which file, what went wrong, and what to do next."""

import errno
import os

import apsw

from headway.base.errors import (
    InvalidOperationError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFailedError,
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
        case apsw.IOError() if _number(error) == apsw.SQLITE_IOERR_SHORT_READ:
            return _cut(path)
        case apsw.IOError():
            return StoreFailedError(
                f"cannot read or write {path}: {_said(error, system_errno)}; "
                "look at the disk, then run `headway doctor`"
            )
    return StoreError(f"{path}: {_said(error)}")


def _said(error: apsw.Error, system_errno: int = 0) -> str:
    """The words of the system, or of SQLite, and the name of its error. The name says most if no
    call failed but the content was wrong."""
    words = os.strerror(system_errno) if system_errno else str(error).strip()
    number = _number(error)
    codes = apsw.mapping_extended_result_codes
    code = codes.get(number, apsw.mapping_result_codes.get(number & 0xFF))
    if words.lower() in ("", "not an error", "success", "unknown error"):
        return str(code or type(error).__name__)
    return f"{words} ({code})" if code is not None and isinstance(error, apsw.IOError) else words


def _number(error: apsw.Error) -> int:
    return int(getattr(error, "extendedresult", 0))


def _cut(path: str) -> StoreCorruptError:
    """The file is shorter than it must be. The disk did not fail, so the system has no error to
    report."""
    log = f"{path}-wal"
    try:
        size = f"{os.stat(log).st_size} bytes"
    except OSError:
        size = "gone"
    return StoreCorruptError(
        f"{path} or its log {log} ({size}) ends too early: something other than Headway has cut it "
        "while it was in use. It was left as it is. "
        "End all who use it, run `headway doctor`, then restore a backup"
    )


def damaged(path: str, how: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"{path} is damaged or not a database ({how}); it was left as it is. "
        "Run `headway doctor`, then restore a backup"
    )
