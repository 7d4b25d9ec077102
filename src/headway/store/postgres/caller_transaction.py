"""Statements within a transaction that is the caller's own: it commits, or does not.

The writers' lock is taken as in every other, and held until the caller's transaction ends. A trace
is left, by which others see that something was committed.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from headway.base.errors import InvalidInputError
from headway.store.postgres.address import Address
from headway.store.postgres.statements import (
    JOIN_TURN,
    LEAVE_TRACE,
    LOCK_SPACE,
    NOW,
)


class Joined:
    """The part of a database that a write transaction needs, on somebody else's connection."""

    undone = 0

    def __init__(self, connection: Any, address: Address, key: int | None) -> None:
        if not isinstance(connection, psycopg.Connection):
            raise InvalidInputError(
                f"submit_on needs a psycopg.Connection, not {type(connection).__name__}"
            )
        if connection.closed:
            raise InvalidInputError("submit_on needs a connection, and this one is closed")
        status = connection.info.transaction_status
        if status is TransactionStatus.INERROR:
            raise InvalidInputError(
                "submit_on needs a transaction, and the one on this connection has failed; "
                "roll it back and begin anew"
            )
        if connection.autocommit and status is not TransactionStatus.INTRANS:
            raise InvalidInputError(
                "submit_on needs a transaction, and this connection commits by itself; "
                "use `with connection.transaction():`"
            )
        self._connection = connection
        self._address = address
        self._key = key
        self._changes = 0

    def begin(self) -> int:
        ((key, _),) = self.execute(JOIN_TURN, {"space": LOCK_SPACE})
        if key != self._key:
            raise InvalidInputError(
                f"submit_on needs a connection that finds the tables of {self._address}; "
                "give it the same search_path"
            )
        return int(self.execute(NOW, {})[0][0])

    def commit(self) -> None:
        """Leave the trace. Whether it is ever seen is the caller's to decide."""
        self.execute(LEAVE_TRACE, {"token": os.urandom(16).hex(), "key": str(self._key)})

    def execute(self, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        try:
            cursor = self._connection.cursor(row_factory=psycopg.rows.tuple_row)
            cursor.execute(statement.encode(), parameters or None)
            self._changes = cursor.rowcount
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise self._address.translated(error) from error

    def ask(self, questions: Sequence[tuple[str, Mapping[str, Any]]]) -> list[list[Any]]:
        return [self.execute(*each) for each in questions]

    def others_wrote(self) -> bool:
        return True  # whatever we have seen was in another transaction

    def send(self, statement: str, parameters: Mapping[str, Any]) -> None:
        self.execute(statement, parameters)

    def push(self) -> None:
        """Nothing to do: changes are made at once."""

    def execute_many(self, statement: str, parameters: Iterable[Mapping[str, Any]]) -> None:
        rows = list(parameters)
        if not rows:
            return
        try:
            self._connection.cursor().executemany(statement.encode(), rows)
        except psycopg.Error as error:
            raise self._address.translated(error) from error

    def changes(self) -> int:
        return self._changes

    def json(self, values: Sequence[Any]) -> Any:
        return list(values)
