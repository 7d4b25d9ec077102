"""One transaction on one connection: begin, queue, ask, commit, and never guess how it ended.

What changes something and tells nothing is queued, and sent together with the next question or with
the commit, in one round trip. Every commit leaves a trace: the next number, and a token that only
this transaction has. By its trace it is known whether a commit whose answer was lost has happened;
the id of the transaction would not do, because a server that crashed may give the same one out
again.
"""

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import psycopg
from psycopg import errors

from headway.errors import StoreBusyError
from headway.store.pgaddress import Address, Connection
from headway.store.pgcopy import ENOUGH, copy_of
from headway.store.pgpool import Connections

BUSY_SECONDS = 10.0
SILENT_SECONDS = 30.0
RECONNECT_SECONDS = 30.0
TRACES = 1024
LOCK_SPACE = 0x48656164  # so that no one else's advisory locks are meant

NOW = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
# Where the tables are, or will be: what is found first need not be the same for all users.
SCHEMA_HASH = (
    "hashtext(coalesce((select nspname from pg_namespace where oid = (select relnamespace "
    "from pg_class where oid = to_regclass('jobs'))), current_schema())::text)"
)
NEWEST = "coalesce((select number from commits where place = -1), 0)"
# One round trip. The lock is a statement of its own, so that the instant and all that is read come
# after the wait. A writer that vanished without a word must not keep its turn.
_BEGIN_WRITE = (
    "begin isolation level read committed; set local lock_timeout = {busy}; "
    "set local idle_in_transaction_session_timeout = {silent}; "
    "select pg_advisory_xact_lock({space}, {key}); "
    "select {now}, pg_current_xact_id()::text, {newest}"
)
_BEGIN_READ = f"begin isolation level repeatable read read only; select {NOW}"
# The traces are a ring, and the newest number stands before it, at -1.
LEAVE_TRACE = (
    "with head as (insert into commits (place, number, token) values (-1, 1, '') "  # noqa: S608
    "on conflict (place) do update set number = commits.number + 1 returning number) "
    "insert into commits (place, number, token) "
    f"select mod(number, {TRACES}), number, %(token)s from head "
    "on conflict (place) do update set number = excluded.number, token = excluded.token "
    "returning number, pg_notify('headway', '')"
)
_FIND_TRACE = f"select {NEWEST}, exists (select 1 from commits where token = %(token)s)"  # noqa: S608

Answer = TypeVar("Answer")
Row = tuple[Any, ...]
Parameters = Mapping[str, Any]


class Session:
    def __init__(self, address: Address, connections: Connections) -> None:
        self.changes = 0
        self._address = address
        self._connections = connections
        self._connection: Connection | None = None
        self._queue: list[tuple[str, Parameters]] = []
        self._transaction_id = ""
        self._before = 0  # the newest number when this began
        self._writing = False
        self._unclear = False  # which statements are prepared on the connection

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self._connections.take()
        return self._connection

    def release(self) -> None:
        """Give the connection to the next one, whatever its state."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._connections.give_back(connection)

    # -- begin and end -------------------------------------------------------------------------

    def begin_read(self) -> int:
        return int(self.surely(lambda: self._last_row(_BEGIN_READ))[0])

    def begin_write(self, key: int | None) -> int:
        """Wait for the turn; without a key, before there are tables."""
        begin = _BEGIN_WRITE.format(
            busy=round(BUSY_SECONDS * 1000),
            silent=round(SILENT_SECONDS * 1000),
            space=LOCK_SPACE,
            key=SCHEMA_HASH if key is None else key,
            now=NOW,
            newest="0" if key is None else NEWEST,
        )
        now, self._transaction_id, self._before = self.surely(lambda: self._last_row(begin))
        self._writing = True
        return int(now)

    def surely(self, ask: Callable[[], Answer]) -> Answer:
        """Ask what may be asked again, on a new connection if the old one was lost."""
        give_up_at = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                return ask()
            except errors.LockNotAvailable as error:
                self.rollback()
                raise StoreBusyError(
                    f"{self._address}: another process is writing since {BUSY_SECONDS:g} s; "
                    "try again"
                ) from error
            except (psycopg.OperationalError, StoreBusyError) as error:
                self._drop()
                if time.monotonic() > give_up_at:
                    raise self._address.unavailable(error) from error
                time.sleep(random.uniform(0.05, 0.5))  # noqa: S311  so that not all come at once
            except psycopg.Error as error:
                self.rollback()
                raise self._address.translated(error) from error
            except BaseException:
                self.rollback()
                raise

    def _last_row(self, statements: str) -> Row:
        cursor = self.connection.execute(_trusted(statements), prepare=False)
        while cursor.nextset():
            pass
        return cast(Row, cursor.fetchone())

    def commit(self) -> int | None:
        """The number of this commit; None if its answer was lost, but it has happened."""
        token = os.urandom(16).hex()
        self._queue.append((LEAVE_TRACE, {"token": token}))
        self._queue.append(("commit", {}))
        try:
            *_, trace, _ = self._send()
            return int(cast(Row, trace.fetchone())[0])
        except psycopg.Error as error:
            if not self.connection.closed:  # the server's own word: it is undone
                raise self._address.translated(error) from error
            if not self._was_committed(token):
                raise self._address.undone(error) from error
            return None

    def _was_committed(self, token: str) -> bool:
        """Ask the server about the transaction whose answer was lost, once it is over."""
        give_up_at = time.monotonic() + RECONNECT_SECONDS
        while time.monotonic() < give_up_at:
            try:
                if self._is_over():
                    newest, found = self._last_trace(token)
                    if not found and newest - self._before >= TRACES:
                        break  # it may have been overwritten
                    return found
            except (psycopg.OperationalError, StoreBusyError):
                self._drop()
            time.sleep(random.uniform(0.05, 0.5))  # noqa: S311
        raise StoreBusyError(
            f"{self._address}: whether the last change was made is unknown; "
            "look before you repeat it"
        )

    def _is_over(self) -> bool:
        if self.connection.closed:
            self._drop()
        try:
            row = self.connection.execute(
                "select pg_xact_status(%s::xid8)", [self._transaction_id]
            ).fetchone()
        except errors.InvalidParameterValue:
            return True  # after a crash the server has not come to this number again
        return row is None or row[0] != "in progress"

    def _last_trace(self, token: str) -> tuple[int, bool]:
        row = self.connection.execute(_trusted(_FIND_TRACE), {"token": token}).fetchone()
        newest, found = cast(Row, row)
        return int(newest), bool(found)

    def rollback(self) -> None:
        """Undo it. One that only read has nothing to undo, and after a rollback psycopg would have
        all statements prepared anew."""
        self._queue.clear()
        if self._connection is None or self._connection.closed:
            return
        try:
            self._connection.execute("rollback" if self._writing else "commit", prepare=False)
        except psycopg.Error:
            self._drop()
        if self._unclear:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self.release()

    # -- statements ----------------------------------------------------------------------------

    def tell(self, statement: str, rows: Sequence[Parameters]) -> None:
        """Changes of one kind of which nobody needs to hear; sent when something else is."""
        if len(rows) < ENOUGH:
            self._queue.extend((statement, row) for row in rows)
            return
        copy = copy_of(statement)
        self._plainly(self._send)
        if copy is not None:
            self._plainly(lambda: copy.run(self.connection, rows))
        else:
            self._plainly(lambda: self.connection.cursor().executemany(_trusted(statement), rows))

    def execute(self, statement: str, parameters: Parameters) -> list[Row]:
        def run() -> list[Row]:
            self._queue.append((statement, parameters))
            cursor = self._send()[-1]
            self.changes = cursor.rowcount
            return cursor.fetchall() if cursor.description else []

        return self._plainly(run)

    def table(self, name: str) -> tuple[list[str], list[Row]]:
        """All columns and rows of one of our tables."""

        def run() -> tuple[list[str], list[Row]]:
            cursor = self.connection.execute(_trusted(f"select * from {name}"))  # noqa: S608
            return [column.name for column in cursor.description or ()], cursor.fetchall()

        return self._plainly(run)

    def _send(self) -> list[psycopg.Cursor[Row]]:
        """All that is queued, in one round trip; nothing after one that fails is executed."""
        queue, self._queue = self._queue, []
        if len(queue) == 1:
            return [self._put(*queue[0])]
        if not queue:
            return []
        self._unclear = True  # one that was to be prepared after a failure is not
        with self.connection.pipeline():
            cursors = [self._put(*each) for each in queue]
        self._unclear = False
        return cursors

    def _put(self, statement: str, parameters: Parameters) -> psycopg.Cursor[Row]:
        prepare = False if statement == "commit" else None
        return self.connection.execute(_trusted(statement), parameters or None, prepare=prepare)

    def _plainly(self, run: Callable[[], Answer]) -> Answer:
        try:
            return run()
        except psycopg.OperationalError as error:
            if self._connection is None or self._connection.closed:
                raise self._address.undone(error) from error
            raise self._address.translated(error) from error
        except psycopg.Error as error:
            raise self._address.translated(error) from error


def _trusted(statement: str) -> Any:
    """All statements come from our own files; values always travel beside them."""
    return statement
