"""PostgreSQL through psycopg: the same queries, one writer at a time, one clock for all hosts.

Every write transaction first takes a transaction-level advisory lock, so that, as on SQLite, facts
do not move within it; nothing outlives the transaction, so a pooler in transaction mode is fine. A
lost connection is made anew.

Every commit leaves a trace: the next number, and a token that only this transaction has. By its
trace, never by guessing, it is known whether a commit whose answer was lost has happened; the id of
the transaction would not do, because a server that crashed may give the same one out again. By the
number it is known whether others have committed; notifications only say when to look.
"""

import os
import random
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import psycopg
from psycopg import errors, sql
from psycopg.pq import TransactionStatus

from headway.crashpoints import reach
from headway.errors import (
    InvalidInputError,
    InvalidOperationError,
    SchemaTooNewError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
)
from headway.store.queries import Dialect, migrations, schema_version

BUSY_SECONDS = 10.0
SILENT_SECONDS = 30.0
RECONNECT_SECONDS = 30.0
TRACES = 1024
LOCK_SPACE = 0x48656164  # so that no one else's advisory locks are meant

DIALECT = Dialect(
    name="postgres",
    identifier="bigint primary key",
    serial="bigint generated always as identity primary key",
    ids=r"(select unnest(:\1::bigint[]))",
    texts=r"(select unnest(:\1::text[]))",
    parameter=r"%(\1)s",
)

# Dead peers are noticed within seconds, not after the hours that the system allows.
_KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "connect_timeout": 10,
}
_WITHIN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
_IN_FRONT = re.compile(r"^(\w+://)([^:/@]*):([^/@]*)@")
_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)([^&]*)")

_NOW = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
# Where the tables are, or will be: what is found first need not be the same for all users.
_SCHEMA = (
    "coalesce((select nspname from pg_namespace where oid = "
    "(select relnamespace from pg_class where oid = to_regclass('jobs'))), current_schema())::text"
)
# The lock is a statement of its own, so that the instant and all that is read come after the wait.
# A writer that vanished without a word must not keep its turn.
_BEGIN_WRITE = (
    "begin isolation level read committed; set local lock_timeout = {busy}; "
    "set local idle_in_transaction_session_timeout = {silent}; "
    f"select pg_advisory_xact_lock({LOCK_SPACE}, hashtext({_SCHEMA}))"
)
_BEGIN_READ = "begin isolation level repeatable read read only"
_LEAVE_TRACE = (
    "insert into commits (place, number, token) "  # noqa: S608
    f"select mod(next, {TRACES}), next, %(token)s "
    "from (select coalesce(max(number), 0) + 1 as next from commits) as turn "
    "on conflict (place) do update set number = excluded.number, token = excluded.token "
    "returning number, pg_notify('headway', '')"
)


class PostgresDatabase:
    """One connection, for one process and one thread at a time."""

    dialect = DIALECT
    shared = True

    def __init__(self, url: str) -> None:
        self.url = url
        self._pid = os.getpid()
        self._changes = 0
        self._transaction_id = ""
        self._token = ""
        self._number = 0
        self._seen: int | None = None
        self._listener: psycopg.Connection[tuple[Any, ...]] | None = None
        _refuse_unclear_password(url)
        self._connection = self._connect()

    def begin_read(self) -> int:
        return int(self._begin(_BEGIN_READ, f"select {_NOW}")[0])

    def begin_write(self) -> int:
        begin = _BEGIN_WRITE.format(
            busy=round(BUSY_SECONDS * 1000), silent=round(SILENT_SECONDS * 1000)
        )
        row = self._begin(begin, f"select {_NOW}, pg_current_xact_id()::text")
        self._transaction_id = row[1]
        return int(row[0])

    def _begin(self, begin: str, look: str) -> tuple[Any, ...]:
        """Begin, on a new connection if the old one was lost: nothing has been done yet."""
        self._check_process()
        if self._connection.info.transaction_status in _WITHIN:
            raise StoreError(f"{self._where()}: cannot begin a transaction within a transaction")
        give_up_at = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                if self._connection.closed:
                    self._connection = self._connect()
                self._connection.execute(_trusted(begin))
                row = self._connection.execute(_trusted(look)).fetchone()
                return cast(tuple[Any, ...], row)
            except errors.LockNotAvailable as error:
                self.rollback()
                raise StoreBusyError(
                    f"{self._where()}: another process is writing since {BUSY_SECONDS:g} s; "
                    "try again"
                ) from error
            except (psycopg.OperationalError, StoreBusyError) as error:
                self._drop()
                if time.monotonic() > give_up_at:
                    raise self._unavailable(error) from error
                time.sleep(random.uniform(0.05, 0.5))  # noqa: S311  so that not all come at once
            except psycopg.Error as error:
                self.rollback()
                raise self._translated(error) from error
            except BaseException:
                self.rollback()
                raise

    def commit(self) -> None:
        self._token = uuid.uuid4().hex
        self._number = self.execute(_LEAVE_TRACE, {"token": self._token})[0][0]
        try:
            self._connection.execute("commit")
        except psycopg.Error as error:
            if not self._connection.closed:  # the server's own word: it is undone
                raise self._translated(error) from error
            if not self._was_committed():
                raise self._unavailable(error) from error
        if self._seen is not None and self._number == self._seen + 1:
            self._seen = self._number  # nobody else committed in between
        reach("store.committed")

    def _was_committed(self) -> bool:
        """Ask the server about the transaction whose answer was lost, once it is over."""
        give_up_at = time.monotonic() + RECONNECT_SECONDS
        while time.monotonic() < give_up_at:
            with suppress(psycopg.OperationalError, StoreBusyError):
                if self._connection.closed:
                    self._connection = self._connect()
                if self._is_over():
                    number, token = self._trace()
                    if token != self._token and number > self._number:
                        break
                    return token == self._token
            time.sleep(random.uniform(0.05, 0.5))  # noqa: S311
        raise StoreBusyError(
            f"{self._where()}: whether the last change was made is unknown; "
            "look before you repeat it"
        )

    def _is_over(self) -> bool:
        try:
            row = self._connection.execute(
                "select pg_xact_status(%s::xid8)", [self._transaction_id]
            ).fetchone()
        except errors.InvalidParameterValue:
            return True  # after a crash the server has not come to this number again
        return row is None or row[0] != "in progress"

    def _trace(self) -> tuple[int, str]:
        """What the place of our trace holds."""
        row = self._connection.execute(
            "select number, token from commits where place = %s", [self._number % TRACES]
        ).fetchone()
        return (int(row[0]), str(row[1])) if row else (0, "")

    def rollback(self) -> None:
        if self._connection.closed:
            return
        try:
            self._connection.execute("rollback")
        except psycopg.Error:
            self._drop()

    def execute(self, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        def run() -> list[tuple[Any, ...]]:
            cursor = self._connection.execute(_trusted(statement), dict(parameters))
            self._changes = cursor.rowcount
            return cursor.fetchall() if cursor.description else []

        return self._plainly(run)

    def execute_many(self, statement: str, parameters: Iterable[Mapping[str, Any]]) -> None:
        rows = [dict(each) for each in parameters]
        if not rows:
            return

        def run() -> list[tuple[Any, ...]]:
            with self._connection.cursor() as cursor:
                cursor.executemany(_trusted(statement), rows)
            return []

        self._plainly(run)

    def changes(self) -> int:
        return self._changes

    def json(self, values: Sequence[Any]) -> Any:
        return list(values)

    def explain(self, statement: str, parameters: Mapping[str, Any]) -> list[str]:
        rows = self.execute(f"explain {statement}", parameters)
        return [str(row[0]) for row in rows]

    def check(self) -> None:
        self._check_process()

    def changed(self) -> bool:
        """Whether someone else committed since this was last asked."""
        self._take_notices()
        self.begin_read()
        try:
            newest = int(self.execute("select coalesce(max(number), 0) from commits", {})[0][0])
        finally:
            self.rollback()
        changed = newest != self._seen
        self._seen = newest
        return changed

    def hints(self) -> psycopg.Connection[tuple[Any, ...]] | None:
        """The connection on which notifications of others' commits arrive."""
        self._check_process()
        with suppress(psycopg.OperationalError, StoreBusyError):
            return self._listening()
        return None

    def _take_notices(self) -> None:
        """Before looking: what is committed after the look is told anew."""
        self._check_process()
        try:
            for _ in self._listening().notifies(timeout=0):
                pass
        except (psycopg.OperationalError, StoreBusyError):
            self._listener = None

    def _listening(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._listener is None or self._listener.closed:
            self._listener = self._connect()
            self._listener.execute("listen headway")
        return self._listener

    def quick_check(self) -> list[str]:
        return []  # the server looks after its own files

    def wal_bytes(self) -> int:
        return 0

    def checkpoint(self) -> bool:
        return True

    def backup(self, path: str) -> None:
        from headway.store.transfer import copy_to_file

        self._check_process()
        copy_to_file(self, path)

    def table(self, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """All columns and rows of one of our tables."""
        columns: list[str] = []

        def run() -> list[tuple[Any, ...]]:
            cursor = self._connection.execute(_trusted(f"select * from {name}"))  # noqa: S608
            columns.extend(column.name for column in cursor.description or ())
            return cursor.fetchall()

        return columns, self._plainly(run)

    def close(self) -> None:
        if os.getpid() == self._pid:
            self._connection.close()
            if self._listener is not None:
                self._listener.close()

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        try:
            return psycopg.connect(
                self.url,
                autocommit=True,
                prepare_threshold=None,  # a pooler may give the connection to others in between
                **_KEEPALIVES,  # type: ignore[arg-type]
            )
        except psycopg.OperationalError as error:
            raise self._unavailable(error) from error
        except psycopg.ProgrammingError as error:
            raise InvalidInputError(f"store.url {self._where()}: {self._said(error)}") from None

    def _drop(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self._where()} was opened by process {self._pid}; a forked process opens its own"
            )

    def _plainly(self, run: Callable[[], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        try:
            return run()
        except psycopg.OperationalError as error:
            if self._connection.broken or self._connection.closed:
                raise self._unavailable(error) from error
            raise self._translated(error) from error
        except psycopg.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: psycopg.Error) -> Exception:
        """The error in our words."""
        match error:
            case errors.RaiseException() if "headway: " in str(error):
                return InvalidOperationError(_first_line(error).partition("headway: ")[2])
            case errors.IntegrityError():
                return error
            case (
                errors.SerializationFailure()
                | errors.DeadlockDetected()
                | errors.LockNotAvailable()
            ):
                return StoreBusyError(f"{self._where()}: {self._said(error)}; try again")
            case errors.DiskFull() | errors.OutOfMemory():
                return StoreFullError(f"{self._where()}: {self._said(error)}")
            case errors.ReadOnlySqlTransaction():
                return StoreReadOnlyError(f"{self._where()} cannot be written; is it a replica?")
        return StoreError(f"{self._where()}: {self._said(error)}")

    def _unavailable(self, error: BaseException) -> StoreBusyError:
        return StoreBusyError(f"{self._where()} does not answer: {self._said(error)}; try again")

    def _said(self, error: BaseException) -> str:
        """The server's or the library's words, which may repeat the URL."""
        words = _first_line(error)
        for secret in _passwords(self.url):
            words = words.replace(secret, "***")
        return words

    def _where(self) -> str:
        return shown_url(self.url)


def shown_url(url: str) -> str:
    """The URL without its password."""
    return _IN_QUERY.sub(r"\1***", _IN_FRONT.sub(r"\1\2:***@", url))


def driver_version() -> str:
    return psycopg.__version__


def _passwords(url: str) -> list[str]:
    found = [match[3] for match in _IN_FRONT.finditer(url)]
    found += [match[2] for match in _IN_QUERY.finditer(url)]
    return [each for each in found if each]


def _refuse_unclear_password(url: str) -> None:
    """A password with a bare @ or / would be read as a host, and be named in messages."""
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    if authority.count("@") > 1 or "@" in path.partition("?")[0]:
        user = authority.partition(":")[0]
        raise InvalidInputError(
            f"store.url {scheme}://{user}:*** is unclear; write @ as %40 and / as %2F in a password"
        )


def open_database(url: str) -> PostgresDatabase:
    """Connect, and bring the schema up to date."""
    database = PostgresDatabase(url)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def migrate(database: PostgresDatabase) -> None:
    """Apply the missing steps, each in one transaction under the writers' lock."""
    if _version(database) == schema_version():
        return
    for step in migrations(DIALECT):
        database.begin_write()
        try:
            database.execute("create table if not exists schema_version (version bigint)", {})
            rows = database.execute("select version from schema_version", {})
            version = rows[0][0] if rows else 0
            if version > schema_version():
                raise SchemaTooNewError(
                    f"{database._where()} has schema {version}; "
                    f"this Headway knows {schema_version()}. Upgrade Headway"
                )
            if version < step.number:
                database._connection.execute(_trusted(step.script))
                database.execute("delete from schema_version", {})
                database.execute(
                    "insert into schema_version values (%(number)s)", {"number": step.number}
                )
            reach("store.migrated")
            database.commit()
        except psycopg.Error as error:
            database.rollback()
            raise database._translated(error) from error
        except BaseException:
            database.rollback()
            raise


def _version(database: PostgresDatabase) -> int:
    database.begin_read()
    try:
        known = database.execute("select to_regclass('schema_version') is not null", {})
        if not known[0][0]:
            return 0
        rows = database.execute("select version from schema_version", {})
        return int(rows[0][0]) if rows else 0
    finally:
        database.rollback()


def _trusted(statement: str) -> sql.SQL:
    """All statements come from our own files; values always travel beside them."""
    return sql.SQL(statement)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
