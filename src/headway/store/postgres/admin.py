"""Questions of the doctor to a PostgreSQL server, and a restore to it."""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from headway.base.crashpoints import reach
from headway.store.copy import TABLES, copy_to_file
from headway.store.postgres.database import PostgresDatabase
from headway.store.sqlite.database import SqliteDatabase

BATCH = 2000  # rows that travel in one statement

_VERSION_KNOWN = "select to_regclass('schema_version') is not null"
_VERSION = "select max(version) from schema_version"
# Tables, valid indexes and enabled triggers, in the schema that holds the tables.
_OBJECTS = (
    "with own as (select oid, relname, relkind from pg_class where relnamespace = "
    "(select relnamespace from pg_class where oid = to_regclass('jobs'))) "
    "select relname from own where relkind <> 'i' "
    "or (select indisvalid from pg_index where indexrelid = own.oid) "
    "union all select tgname from pg_trigger join own on own.oid = tgrelid "
    "where not tgisinternal and tgenabled <> 'D'"
)
_NUMBERED = (
    "select attname from pg_attribute where attrelid = to_regclass(%(name)s) and attidentity <> ''"
)
_PATIENCE = "set local idle_in_transaction_session_timeout = '10min'"


def server_version(database: PostgresDatabase) -> int:
    """As 160004 for 16.4."""
    return int(database.execute("show server_version_num", {})[0][0])


def schema(database: PostgresDatabase) -> int:
    """The number of its schema; 0 where there is none."""
    if not database.execute(_VERSION_KNOWN, {})[0][0]:
        return 0
    return int(database.execute(_VERSION, {})[0][0] or 0)


def objects(database: PostgresDatabase) -> set[str]:
    """The names of all tables, indexes and triggers that are in force."""
    return {str(row[0]) for row in database.execute(_OBJECTS, {})}


def begin_restore(database: PostgresDatabase) -> int:
    """A write transaction that may take its time between two statements."""
    now = database.begin_write()
    database.execute(_PATIENCE, {})
    return now


def replace(
    database: PostgresDatabase,
    name: str,
    columns: Sequence[str],
    rows: Iterable[tuple[Any, ...]],
) -> None:
    """Put these rows in the place of all that a table holds.

    Readers see the old ones until the commit, which TRUNCATE would not grant them. The guards,
    which refuse the removal of records, are off meanwhile, for nobody but this transaction.
    """
    database.execute(f"alter table {name} disable trigger user", {})
    database.execute(f"delete from {name}", {})  # noqa: S608
    database.execute(f"alter table {name} enable trigger user", {})
    listing = ", ".join(columns)
    insert = (
        f"insert into {name} ({listing}) overriding system value "  # noqa: S608
        f"select {listing} from json_populate_recordset(null::{name}, %(rows)s::json)"
    )
    documents = iter([dict(zip(columns, row, strict=True)) for row in rows])
    while batch := list(islice(documents, BATCH)):
        database.execute(insert, {"rows": json.dumps(batch, ensure_ascii=False)})
    _resume_numbering(database, name)


def _resume_numbering(database: PostgresDatabase, name: str) -> None:
    """Numbers that the server gives out go on above all that it ever gave out."""
    for (column,) in database.execute(_NUMBERED, {"name": name}):
        database.execute(
            f"select setval(s.number, greatest(coalesce(max({column}), 1), "  # noqa: S608
            "coalesce(pg_sequence_last_value(s.number), 1))) "
            f"from (select pg_get_serial_sequence('{name}', '{column}')::regclass as number) as s "
            f"left join {name} on true group by s.number",
            {},
        )


def pour(
    source: SqliteDatabase, target: PostgresDatabase, judge: Callable[[], str | None]
) -> str | None:
    """Put all that the file holds in the place of all that the server holds, in one transaction.

    `judge` reads what is there, now that nobody else can write. It refuses by an error, or names a
    file for a copy of it, which this returns.
    """

    begin_restore(target)
    try:
        kept = judge()
        if kept is not None:
            copy_to_file(_AsItIs(target), kept)
        reach("restore.kept")
        for name in TABLES:
            columns, rows = source.table(name)
            replace(target, name, columns, rows)
        reach("restore.poured")
        target.commit()
    except BaseException:
        target.rollback()
        raise
    return kept


class _AsItIs:
    """A source within a transaction of its own, in which nobody else can write."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def begin_read(self) -> None:
        return None

    def rollback(self) -> None:
        return None

    def table(self, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        return self._database.table(name)
