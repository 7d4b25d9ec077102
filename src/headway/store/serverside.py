"""What the doctor and a restore ask of a PostgreSQL server, beyond what every command asks."""

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from headway.store.postgres import PostgresDatabase

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
