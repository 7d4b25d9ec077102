"""Many rows of a named insert as one statement, which travels along with all others.

What is the same for all rows is given once; the other columns are arrays that the server puts side
by side. So a row costs what is special about it. The text of the query stays the only one: which
columns there are, and which of them have a value of their own, is read from it.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

ENOUGH = 2  # rows from which it pays
_INSERT = re.compile(
    r"insert into (\w+) \(([^()]+)\)\s+values \((.+?)\)\s*(on conflict [^;]*do nothing)?", re.S
)
_PARAMETER = re.compile(r"%\((\w+)\)s")
_TYPES = {int: "bigint", str: "text", float: "double precision"}

Spread = tuple[str, dict[str, Any]]


class Insert(NamedTuple):
    table: str
    columns: str  # first those that have parameters
    parameters: tuple[str, ...]
    constants: tuple[str, ...]
    tail: str

    def spread(self, rows: Sequence[Mapping[str, Any]]) -> Spread | None:
        """One statement that inserts all of these in their order; None: they cannot be put so."""
        given: dict[str, Any] = {}
        said, arrays, names = [], [], []
        columns = zip(*map(itemgetter(*self.parameters), rows), strict=True)
        for name, column in zip(self.parameters, columns, strict=True):
            kind = _type_of(column)
            if kind is None:
                return None
            if column.count(column[0]) == len(column):
                given[name] = column[0]
                said.append("null" if column[0] is None else f"%({name})s::{kind}")
            else:
                given[name] = list(column)
                said.append(f"given.{name}")
                arrays.append(f"%({name})s::{kind}[]")
                names.append(name)
        if not arrays:
            return None
        return (
            f"insert into {self.table} ({self.columns}) "  # noqa: S608  our own text
            f"select {', '.join((*said, *self.constants))} "
            f"from unnest({', '.join(arrays)}) as given ({', '.join(names)}) {self.tail}",
            {name: value for name, value in given.items() if value is not None},
        )


@lru_cache(maxsize=100)
def insert_of(statement: str) -> Insert | None:
    """The insert that this makes for each row, if it can be made for all at once."""
    match = _INSERT.fullmatch(statement)
    if match is None:
        return None
    table, listing, values, tail = match.groups()
    parameters, constants = {}, {}
    for column, value in zip(_split(listing), _split(values), strict=True):
        if parameter := _PARAMETER.fullmatch(value):
            parameters[column] = parameter[1]
        else:
            constants[column] = value
    if len(parameters) < 2 or len(set(parameters.values())) < len(parameters):
        return None
    return Insert(
        table,
        ", ".join((*parameters, *constants)),
        tuple(parameters.values()),
        tuple(constants.values()),
        tail or "",
    )


def _type_of(column: Sequence[Any]) -> str | None:
    """The type of all values that are not null; None if they have several, or one that is not
    known here."""
    kinds = set(map(type, column))
    kinds.discard(type(None))
    if not kinds:
        return "text"
    return _TYPES.get(kinds.pop()) if len(kinds) == 1 else None


def _split(listing: str) -> list[str]:
    return [each.strip() for each in listing.split(",")]
