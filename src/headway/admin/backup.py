"""Write a backup, also in the place of an earlier one.

The new one is whole and on disk before it is renamed over the old one, so at every moment one of
them is there. What is no backup is never replaced.
"""

import os
from contextlib import suppress

from headway.base.errors import ConflictError, InvalidInputError
from headway.jobs.context import Context
from headway.store.copy import refuse_other_files
from headway.store.sqlite.database import look
from headway.store.sqlite.files import as_store_error, remove_half_made, sync_folder

_OF_A_STORE = frozenset({"jobs", "events", "marks"})


def replace_backup(context: Context, path: str) -> None:
    """A new backup at this path, in the place of the one that is there, if any is."""
    path = os.path.realpath(path)  # a link stays one
    if not os.path.lexists(path):
        context.store.backup(path)
        return
    _refuse_all_but_backups(context, path)
    remove_half_made(path)  # by backups that were killed
    fresh = f"{path}.{os.getpid()}.new-backup"
    try:
        context.store.backup(fresh)
        os.rename(fresh, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        raise as_store_error(error, path) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(fresh)


def _refuse_all_but_backups(context: Context, path: str) -> None:
    refuse_other_files(path)
    if _is_in_use(context, path):
        raise ConflictError(f"{path} is in use as a store, so it is no backup; name another file")
    found = look(path)
    try:
        known = found.objects()
    finally:
        found.close()
    if not known >= _OF_A_STORE:
        raise InvalidInputError(f"{path} is no backup of a store; name another file")


def _is_in_use(context: Context, path: str) -> bool:
    """Whether commands work with it: it is our store, a log is beside it, or it lies in a home. A
    log that is left beside another file would tear that."""
    own = context.home.database
    is_own = os.path.exists(own) and os.path.samefile(own, path)
    host_id = os.path.join(os.path.dirname(path), "host-id")
    return is_own or os.path.exists(f"{path}-wal") or os.path.exists(host_id)
