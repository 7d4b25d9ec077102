"""The named queries: read from the .sql files, with the few spellings that databases differ in.

A query begins with `-- name: the_name`, followed by `(hot)` when it runs in a planning step or at
the end of a job; a test asks the database for the plan of each hot one and refuses a scan.
"""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

_FOLDER = os.path.join(os.path.dirname(__file__), "sql")
_NAME = re.compile(r"^-- name: (\w+)( \(hot\))?$", re.M)
_ROWS = re.compile(r"\$ROWS\(:(\w+), ([^()]+)\)")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_FILES = (
    "jobs.sql",
    "planning.sql",
    "claims.sql",
    "functions.sql",
    "graph.sql",
    "groups.sql",
    "governor.sql",
    "order.sql",
    "removing.sql",
    "reservations.sql",
    "scheduler.sql",
    "limits.sql",
    "templates.sql",
    "schedules.sql",
    "entries.sql",
    "checks.sql",
)
_CHANGED = re.compile(r"\A(?:update|insert into|delete from) (\w+)")
_OBJECT = re.compile(
    r"^\s*(create(?: unique)?|drop|alter) (?:table|index|trigger) (?:if (?:not )?exists )?(\w+)"
    r"(?: rename to (\w+))?",
    re.M,
)


class Query(NamedTuple):
    name: str
    sql: str
    hot: bool
    table: str | None = None  # what it changes


class Dialect(NamedTuple):
    """How one database spells what the common text leaves open."""

    name: str
    identifier: str
    serial: str
    ids: str  # "is one of" a set of numbers given as one parameter
    texts: str  # the same for words
    rows: str  # a table given as one parameter of JSON; {fields} stands for its columns
    field: str  # one of those columns
    each: str  # a hint that such a table has few rows, to be looked up one by one
    parameter: str = r":\1"


def load(dialect: Dialect, columns: Mapping[str, str]) -> dict[str, Query]:
    """All named queries; `columns` gives the column lists for `$JOB` and the like."""
    queries = {}
    for file_name in _FILES:
        text = _read(file_name)
        marks = list(_NAME.finditer(text))
        for mark, following in zip(marks, [*marks[1:], None], strict=True):
            body = text[mark.end() : following.start() if following else len(text)]
            sql = spell(body, dialect, columns)
            changed = _CHANGED.match(sql)
            table = changed[1] if changed else None
            queries[mark[1]] = Query(mark[1], sql, bool(mark[2]), table)
    return queries


def spell(text: str, dialect: Dialect, columns: Mapping[str, str]) -> str:
    lines = (line for line in text.splitlines() if not line.startswith("--"))
    sql = "\n".join(lines).strip()
    sql = re.sub(r"in \$IDS\(:(\w+)\)", dialect.ids, sql)
    sql = re.sub(r"in \$TEXTS\(:(\w+)\)", dialect.texts, sql)
    sql = re.sub(r"\$EACH\((\S+), :(\w+)\)", dialect.each, sql)
    sql = _ROWS.sub(lambda match: _rows(match[1], match[2], dialect), sql)
    for name, listing in columns.items():
        sql = sql.replace(f"${name}", listing)
    sql = sql.replace("$ID", dialect.identifier).replace("$SERIAL", dialect.serial)
    return _PARAMETER.sub(dialect.parameter, sql)


@lru_cache(maxsize=200)
def parameters_of(sql: str) -> tuple[str, ...]:
    """The names of a text's parameters, in the order in which a database numbers them."""
    return tuple(dict.fromkeys(_PARAMETER.findall(sql)))


def _rows(parameter: str, listing: str, dialect: Dialect) -> str:
    """`$ROWS(:rows, id bigint, status text)`: a table `given` with these columns."""
    pairs = (column.split() for column in listing.split(","))
    fields = ", ".join(dialect.field.format(name=name, type=kind) for name, kind in pairs)
    return dialect.rows.format(parameter=parameter, fields=fields)


class Migration(NamedTuple):
    number: int
    name: str
    script: str


def migrations(dialect: Dialect) -> list[Migration]:
    """The numbered steps, each the common text and then what only this database needs."""
    folder = os.path.join(_FOLDER, "migrations")
    found = []
    for file_name in sorted(os.listdir(folder)):
        stem, _, rest = file_name.partition(".")
        if rest != "sql":
            continue
        script = _read(os.path.join("migrations", file_name))
        own = os.path.join("migrations", f"{stem}.{dialect.name}.sql")
        if os.path.exists(os.path.join(_FOLDER, own)):
            script += "\n" + _read(own)
        found.append(Migration(int(stem[:4]), stem, spell(script, dialect, {})))
    return found


def objects(dialect: Dialect) -> set[str]:
    """The names of the tables, indexes and triggers that the migrations make."""
    found: set[str] = set()
    for step in migrations(dialect):
        for verb, name, renamed in _OBJECT.findall(step.script):
            if verb.startswith("create"):
                found.add(name)
            elif verb.startswith("drop") or renamed:
                found.discard(name)
                found |= {renamed} - {""}
    return found


def schema_version() -> int:
    """The version this program was written for."""
    folder = os.path.join(_FOLDER, "migrations")
    return max(int(name[:4]) for name in os.listdir(folder))


def _read(file_name: str) -> str:
    with open(os.path.join(_FOLDER, file_name), encoding="utf-8") as file:
        return file.read()
