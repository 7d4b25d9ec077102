"""Copy a whole store, row by row, between databases: a backup is always one SQLite file."""

from __future__ import annotations

import os
from typing import Protocol

from headway.base.errors import (
    InvalidInputError,
    NotFoundError,
    SchemaTooNewError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from headway.store.queries import objects, schema_version
from headway.store.sqlite.database import (
    DIALECT,
    SqliteDatabase,
    look,
    open_as_it_is,
    open_database,
)
from headway.store.sqlite.files import as_new_file

TABLES = (
    *("jobs", "runs", "claims", "evidence", "edges", "waits", "held_locks", "lendings"),
    *("events", "settings", "pauses", "breakers", "workers", "hosts", "marks"),
    *("tasks_known", "results", "progress", "steps"),
    *("needs", "produces", "artifacts", "withdrawals", "worktrees", "removals"),
    *("job_groups", "reservations", "rate_starts", "templates", "targets"),
    *("schedules", "firings", "jobs_files", "entries"),
    *("workflow_runs", "workflow_nodes", "workflow_loops", "parked"),
    *("endpoints", "job_webhooks", "deliveries"),
)
_MAGIC = b"SQLite format 3\0"


class CopySource(Protocol):
    def begin_read(self) -> int | None: ...
    def rollback(self) -> None: ...
    def table(self, name: str) -> tuple[list[str], list[tuple[object, ...]]]: ...


def copy_to_file(source: CopySource, path: str) -> None:
    """Write one consistent snapshot of the source to a new SQLite file."""
    with as_new_file(path) as fresh:
        target = open_database(fresh, create=True)
        source.begin_read()
        try:
            _copy(source, target)
        finally:
            source.rollback()
        target.checkpoint()
        target.close()


def _copy(source: CopySource, target: SqliteDatabase) -> None:
    target.begin_write()
    try:
        for name in TABLES:
            columns, rows = source.table(name)
            target.fill(name, columns, rows)
        target.commit()
    except BaseException:
        target.rollback()
        raise


# -- restoring ------------------------------------------------------------------------------------


def copy_of_backup(file: str, scratch: str) -> None:
    """Copy a backup to a new file and bring that one's schema up to date.

    What cannot be restored is refused here, before anything of the present store is touched. The
    file itself is only read, and a log beside it is taken into account.
    """
    refuse_other_files(file)
    try:
        _copy_pages(file, scratch)
        copy = open_database(scratch, create=False)
    except SchemaTooNewError:
        raise SchemaTooNewError(
            f"{file} was written by a newer Headway, with another schema than "
            f"{schema_version()}; upgrade Headway"
        ) from None
    except (StoreFullError, StoreReadOnlyError):
        raise
    except StoreError as error:
        raise type(error)(str(error).replace(scratch, file)) from None
    whole = objects(DIALECT) <= copy.objects()
    copy.close()
    if not whole:
        _rebuild(scratch)


def _rebuild(scratch: str) -> None:
    """An index or a guard is missing: copy the rows to a file that has them all."""
    source = open_as_it_is(scratch)
    target = open_database(f"{scratch}.rows", create=True)
    try:
        present = source.objects()
        target.begin_write()
        for name in TABLES:
            if name in present:
                target.fill(name, *source.table(name))
        target.commit()
        target.checkpoint()
    finally:
        target.close()
        source.close()
    os.rename(f"{scratch}.rows", scratch)


def refuse_other_files(file: str) -> None:
    if not os.path.exists(file):
        raise NotFoundError(f"there is no {file}")
    if not os.path.isfile(file):
        raise InvalidInputError(f"{file} is not a file; name one that `headway backup` wrote")
    try:
        with open(file, "rb") as opened:
            magic = opened.read(len(_MAGIC))
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from error
    if magic != _MAGIC:
        raise InvalidInputError(f"{file} is no SQLite file, so it is no backup of a store")


def _copy_pages(file: str, scratch: str) -> None:
    os.close(os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    source = look(file)
    try:
        _refuse_other_stores(file, source)
        copy = open_as_it_is(scratch)
        try:
            source.copy_into(copy)
            problems = copy.integrity_check()
        finally:
            copy.close()
    finally:
        source.close()
    if problems:
        raise StoreError(f"{file} is damaged: {'; '.join(problems[:3])}. Use another backup")


def _refuse_other_stores(file: str, source: SqliteDatabase) -> None:
    tables = source.objects()
    if source.schema() == 0 or not {"jobs", "runs", "claims", "events", "marks"} <= tables:
        raise InvalidInputError(f"{file} is a database, but not of a Headway store")
