"""Copy a whole store, row by row, between databases: a backup is always one SQLite file."""

from typing import Protocol

from headway.store.sqlite import SqliteDatabase, as_new_file, open_database

TABLES = (
    *("jobs", "runs", "claims", "evidence", "edges", "waits", "held_locks", "lendings"),
    *("events", "settings", "pauses", "breakers", "workers", "hosts", "marks"),
)


class Source(Protocol):
    def begin_read(self) -> int | None: ...
    def rollback(self) -> None: ...
    def table(self, name: str) -> tuple[list[str], list[tuple[object, ...]]]: ...


def copy_to_file(source: Source, path: str) -> None:
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


def _copy(source: Source, target: SqliteDatabase) -> None:
    target.begin_write()
    try:
        for name in TABLES:
            columns, rows = source.table(name)
            target.fill(name, columns, rows)
        target.commit()
    except BaseException:
        target.rollback()
        raise
