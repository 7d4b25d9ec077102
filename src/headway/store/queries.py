"""The named queries: read from the .sql files, with the few spellings that databases differ in.

A query begins with `-- name: the_name`, followed by `(hot)` when it runs in a planning step or at
the end of a job; a test asks the database for the plan of each hot one and refuses a scan. A query
that writes has a line `-- changes: jobs, claims`, which names the tables. A word in brackets after
them says what that means for the step cache; `Effect` has those words. A test holds the line to the
statement.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

_FOLDER = os.path.join(os.path.dirname(__file__), "sql")
_NAME = re.compile(r"^-- name: (\w+)( \(hot\))?$", re.M)
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_WORD = re.compile(r"\$([A-Z_]+)")  # a column list, or what a database spells its own way
_OF_A_SUBMIT = ("jobs.sql", "events.sql")
_OTHERS = (
    "settings.sql",
    "hosts.sql",
    "claims.sql",
    "waits.sql",
    "calls.sql",
    "graph.sql",
    "groups.sql",
    "limits.sql",
    "queue_order.sql",
    "reservations.sql",
    "schedules.sql",
    "templates.sql",
    "jobsfile.sql",
    "workitems.sql",
    "workflows.sql",
    "runners.sql",
    "webhooks.sql",
    "steps.sql",
    "search.sql",
    "statistics.sql",
    "retention.sql",
    "checks.sql",
)
_OF_ONE_DATABASE = (
    "jobs.postgres.sql",
    "jobs.sqlite.sql",
    "calls.postgres.sql",
    "calls.sqlite.sql",
    "claims.postgres.sql",
    "waits.postgres.sql",
)
_CHANGES = re.compile(r"^-- changes: ([\w, ]+?)(?: \(([\w ]+)\))?$", re.M)
# The last job of a chain: of those that came after its first, which alone stand in an index.
_LAST = (
    r"coalesce((select max(later.id) from jobs later "
    r"where later.chain = \1 and later.chain <> later.id), \1)"
)
_OBJECT = (  # compiled when it is used
    r"(?m)^\s*(create(?: unique)?|drop|alter) (?:table|index|trigger|view) "
    r"(?:if (?:not )?exists )?(\w+)"
    r"(?: rename to (\w+))?"
)
_OF_TABLE = r"(?m)^\s*create(?: unique)? (?:index|trigger) (\w+)[^;]*?\bon (\w+)"


class Effect(Enum):
    """The effect of a change on a transaction's step cache."""

    ANY = ""  # whatever depends on the tables must be read again
    FOLLOWED = "followed"  # the caller changes the step cache along with it
    WAKES = "wakes"  # jobs become woken, whatever their stage was
    TAKES_AWAY = "takes away"  # jobs leave where they lie, or stay there; none comes anywhere
    ENDS = "ends"  # the same, of running jobs only
    HOLDS = "holds"  # locks are held from now on


NO_TABLES: frozenset[str] = frozenset()


class Query(NamedTuple):
    name: str
    sql: str
    hot: bool
    changes: frozenset[str] = NO_TABLES
    effect: Effect = Effect.ANY


class Dialect(NamedTuple):
    """How one database spells what the common text leaves open."""

    name: str
    identifier: str
    serial: str
    ids: str  # "is one of" a set of numbers given as one parameter
    texts: str  # the same for words
    rows: str  # a table given as one parameter of JSON; {fields} stands for its columns
    field: str  # one of those columns
    lists: str  # the same with a list for each row, or for each column
    item: str  # one of its columns
    each: str  # a hint that such a table has few rows, to be read one by one
    chain: str  # of which chains jobs are
    parameter: str = r":\1"
    # Whether `lists` are of columns, and of plain calls one statement says what elsewhere many do.
    at_once: bool = False
    one: "Dialect | None" = None  # how a set of one is spelt, if another way is quicker


class Queries(dict[str, Query]):
    """The named queries by their names, each spelt when it is first asked for.

    A submit reads two files. A process that asks for more reads all others at once: whatever is
    installed meanwhile, the queries of a worker belong together.
    """

    def __init__(self, dialect: Dialect, columns: Mapping[str, str]) -> None:
        """`columns` gives the column lists for `$JOB` and the like."""
        super().__init__()
        self._dialect = dialect
        self._columns = columns
        self._written = self._read(_OF_A_SUBMIT)
        self._ones: dict[str, Query] = {}

    def __missing__(self, name: str) -> Query:
        if name not in self._written:
            self._written |= self._read(_OTHERS)
        query = self[name] = self._spelt(name, *self._written[name])
        return query

    def _read(self, file_names: Sequence[str]) -> dict[str, tuple[str, bool]]:
        """The queries of these files, with those for this database alone."""
        own = [each.replace(".sql", f".{self._dialect.name}.sql") for each in file_names]
        return _written_in((*file_names, *(each for each in own if each in _OF_ONE_DATABASE)))

    @property
    def at_once(self) -> bool:
        return self._dialect.at_once

    @property
    def has_ones(self) -> bool:
        return self._dialect.one is not None

    def of_one(self, name: str) -> Query:
        """The same for sets of one and tables of one row, whose values are parameters of their own,
        if the database has another spelling for it."""
        if self._dialect.one is None:
            return self[name]
        found = self._ones.get(name)
        if found is None:
            usual = self[name]
            sql = spell(self._written[name][0], self._dialect.one, self._columns)
            found = self._ones[name] = usual._replace(sql=sql)
        return found

    def all(self) -> dict[str, Query]:
        """Every one that there is."""
        self._written |= self._read(_OTHERS)
        return {name: self[name] for name in self._written}

    def _spelt(self, name: str, text: str, hot: bool) -> Query:
        sql = spell(text, self._dialect, self._columns)
        said = _CHANGES.search(text)
        if said is None:
            return Query(name, sql, hot)
        return Query(name, sql, hot, frozenset(said[1].split(", ")), Effect(said[2] or ""))


def _written_in(file_names: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """By name each query as it stands in these files, and whether it is hot."""
    text = "\n".join(map(_read, file_names))
    marks = list(_NAME.finditer(text))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return {
        mark[1]: (text[mark.end() : end], bool(mark[2]))
        for mark, end in zip(marks, ends, strict=True)
    }


def statements_in(file_name: str, parameter: str) -> dict[str, str]:
    """The statements of a file of one database, with parameters as that one spells them."""
    return {
        name: _PARAMETER.sub(parameter, _without_comments(text))
        for name, (text, _) in _written_in((file_name,)).items()
    }


def spell(text: str, dialect: Dialect, columns: Mapping[str, str]) -> str:
    sql = _without_comments(text)
    if "$" in sql:
        sql = _filled_in(sql, dialect, columns)
    return _PARAMETER.sub(dialect.parameter, sql)


def _without_comments(text: str) -> str:
    lines = (line for line in text.splitlines() if not line.startswith("--"))
    return "\n".join(lines).strip()


def _filled_in(sql: str, dialect: Dialect, columns: Mapping[str, str]) -> str:
    sql = re.sub(r"\$CHAIN\((\w+\.), ([^()]+|in \$IDS\(:\w+\))\)", dialect.chain, sql)
    sql = re.sub(r"\$LAST\(([:.\w]+)\)", _LAST, sql)
    sql = re.sub(r"in \$IDS\(:(\w+)\)", dialect.ids, sql)
    sql = re.sub(r"in \$TEXTS\(:(\w+)\)", dialect.texts, sql)
    sql = re.sub(r"\$EACH\((\S+), :(\w+)\)", dialect.each, sql)
    sql = re.sub(r"\$(ROWS|LISTS)\(:(\w+), ([^()]+)\)", lambda match: _rows(match, dialect), sql)
    words = {**columns, "ID": dialect.identifier, "SERIAL": dialect.serial}
    return _WORD.sub(lambda match: words[match[1]], sql)


@lru_cache(maxsize=200)
def parameters_of(sql: str) -> tuple[str, ...]:
    """The names of a text's parameters, in the order in which a database numbers them."""
    return tuple(dict.fromkeys(_PARAMETER.findall(sql)))


@lru_cache(maxsize=200)
def by_place(sql: str) -> Callable[[Mapping[str, Any]], Any]:
    """A getter that puts the values of a statement's parameters in order; a single one keeps its
    name."""
    names = parameters_of(sql)
    return itemgetter(*names) if len(names) > 1 else dict


def _rows(match: re.Match[str], dialect: Dialect) -> str:
    """`$ROWS(:rows, id bigint, status text)`: a table `given` with these columns, each row an
    object with their names; of `$LISTS` each row, or each column, is a list."""
    macro, parameter, listing = match.groups()
    table, field = (
        (dialect.rows, dialect.field) if macro == "ROWS" else (dialect.lists, dialect.item)
    )
    pairs = [column.split() for column in listing.split(",")]
    fields = ", ".join(
        field.format(name=name, type=kind, place=place) for place, (name, kind) in enumerate(pairs)
    )
    names = ", ".join(name for name, _ in pairs)
    return table.format(parameter=parameter, fields=fields, names=names)


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
    found: dict[str, str] = {}  # with the table that it goes with
    for step in migrations(dialect):
        tables = dict(re.findall(_OF_TABLE, step.script))
        for verb, name, renamed in re.findall(_OBJECT, step.script):
            if verb.startswith("create"):
                found[name] = tables.get(name, "")
            elif renamed:
                del found[name]
                found = {each: renamed if of == name else of for each, of in found.items()}
                found[renamed] = ""
            elif verb.startswith("drop"):
                found = {each: of for each, of in found.items() if name not in (each, of)}
    return set(found)


def schema_version() -> int:
    """The version this program was written for."""
    folder = os.path.join(_FOLDER, "migrations")
    return max(int(name[:4]) for name in os.listdir(folder))


def _read(file_name: str) -> str:
    with open(os.path.join(_FOLDER, file_name), encoding="utf-8") as file:
        return file.read()
