"""Where a PostgreSQL store is, how to connect to it, and how to speak of it without passwords."""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import psycopg
from psycopg import errors, pq
from psycopg.conninfo import conninfo_to_dict

from headway.base.errors import (
    InvalidInputError,
    InvalidOperationError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUndoneError,
)
from headway.store.patience import Patience
from headway.store.postgres.silence import Silence, in_time
from headway.store.postgres.statements import IS_AT_WORK
from headway.store.postgres.wire import Wire


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """With the short way for our own statements, and with an end to every wait."""

    lasting = True  # what is prepared on it stays there
    server_pid = 0  # the process that serves it, by its own word: a pooler gives another number
    patience = Patience()
    at_work: Callable[[], bool | None] | None = None  # whether the server is, by another line
    on_close: Callable[[], None] | None = None  # a waiting thread must know before its number goes

    @cached_property
    def wire(self) -> Wire:
        return Wire(self, self.silence, lasting=self.lasting)

    def silence(self) -> Silence:
        """Of the server, from now on."""
        return Silence(self.patience, self.at_work)

    def wait(self, gen: Any, *arguments: Any, **named: Any) -> Any:
        """For what psycopg itself asks."""
        try:
            return super().wait(_with_an_end(gen, self.silence()), *arguments, **named)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                self.close()  # the answer may still come
            raise

    def close(self) -> None:
        if self.on_close is not None:
            self.on_close()
        super().close()


def _with_an_end(gen: Any, silence: Silence) -> Any:
    """A generator of psycopg's, which is asked again and again while nothing happens."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready:
                silence.received()
                wanted = gen.send(ready)
            else:
                silence.go_on()
    except StopIteration as end:
        return end.value


# Dead peers are noticed within seconds, not after the hours that the system allows.
_KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
# A prepared statement keeps the plan that was best when the tables were small. Every hot query has
# an index, so a plan that reads a whole table is never the one to keep. Where there is no other, as
# for a table of five rows, older servers take that for so dear that they would compile it first.
_BY_INDEX = "set enable_seqscan = off; set jit = off"
# What is a transaction of its own sees what was committed before its turn, whatever the default is.
_BY_STATEMENT = "set default_transaction_isolation = 'read committed'"
Made = TypeVar("Made")
_IN_FRONT = re.compile(r"^(\w+://)([^:/@]*):([^/@]*)@")
_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)([^&]*)")


class Address:
    """`poll_only`: behind a pooler that gives a connection to others between transactions. Then
    nothing may stay on it: no prepared statement, no setting, no subscription."""

    def __init__(self, url: str, *, poll_only: bool = False) -> None:
        _refuse_unclear_password(url)
        self.url = url
        self.poll_only = poll_only
        self.patience = Patience()

    def __str__(self) -> str:
        """The URL without its password."""
        shown = _IN_FRONT.sub(r"\1\2:***@", self.url)
        return _IN_QUERY.sub(r"\1***", shown)

    def connect(self) -> Connection:
        try:
            return self._in_time(self._connected, Connection.close)
        except psycopg.OperationalError as error:
            raise self.unavailable(error) from error
        except psycopg.ProgrammingError as error:
            raise InvalidInputError(f"store.url {self}: {self.said(error)}") from None

    def _in_time(self, make: Callable[[], Made], drop: Callable[[Made], None]) -> Made:
        if not self.patience.is_interruptible:
            return make()
        return in_time(make, drop, self.patience)

    def _connected(self) -> Connection:
        connection = Connection.connect(self.url, **self.options())
        try:
            self.prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def is_at_work(self, server_pid: int) -> bool | None:
        """Whether this process of the server works on our query, as the server says over another
        connection. None: the server lives, but it is not known which process that is."""

        def ask() -> bool | None:
            options = {**self.options(), "connect_timeout": int(self.patience.answer)}
            with Connection.connect(self.url, **options) as connection:
                connection.patience = self.patience
                busy = connection.execute(IS_AT_WORK, {"pid": server_pid}, prepare=False).fetchone()
                return busy is not None if server_pid else None

        try:
            return self._in_time(ask, lambda answer: None)
        except psycopg.Error:
            return False

    def options(self) -> dict[str, Any]:
        """What to connect with beside the URL; what the URL says goes before."""
        given = conninfo_to_dict(self.url)
        named = {**_KEEPALIVES, "connect_timeout": int(self.patience.connect)}
        options: dict[str, Any] = {n: v for n, v in named.items() if n not in given}
        options["autocommit"] = True
        options["prepare_threshold"] = None
        return options

    def prepare(self, connection: Connection) -> None:
        """A new connection."""
        connection.patience = self.patience
        connection.lasting = not self.poll_only
        if not self.poll_only:
            asked = f"{_BY_INDEX}; {_BY_STATEMENT}; select pg_backend_pid()"
            answers = connection.execute(asked, prepare=False)
            while answers.nextset():
                pass  # the last of them is the number
            ((connection.server_pid,),) = answers.fetchall()
        connection.at_work = lambda: self.is_at_work(connection.server_pid)

    def translated(self, error: psycopg.Error) -> Exception:
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
                | errors.QueryCanceled()  # by hand, or it took longer than the server allows
                | errors.FeatureNotSupported()  # what was prepared is of an older schema
            ):
                return StoreUndoneError(f"{self}: {self.said(error)}; try again")
            case errors.DiskFull() | errors.OutOfMemory():
                return StoreFullError(f"{self}: {self.said(error)}")
            case errors.DuplicatePreparedStatement() | errors.InvalidSqlStatementName():
                # Others use the same connection to the server, or ours has become another one.
                return StoreError(
                    f"{self}: {self.said(error)}; a pooler that gives each transaction another "
                    "connection needs store.poll_only: "
                    "run `headway config set store.poll_only true` and try again"
                )
            case errors.ReadOnlySqlTransaction():
                return StoreReadOnlyError(f"{self} cannot be written; is it a replica?")
        return StoreError(f"{self}: {self.said(error)}")

    def unavailable(self, error: BaseException) -> StoreBusyError:
        return StoreBusyError(f"{self} does not answer: {self.said(error)}; try again")

    def undone(self, error: BaseException) -> StoreUndoneError:
        """The line was lost, and it is certain that nothing was committed."""
        return StoreUndoneError(f"{self} went away: {self.said(error)}; try again")

    def said(self, error: BaseException) -> str:
        """The server's or the library's words, which may repeat the URL."""
        words = _first_line(error)
        for secret in _passwords(self.url):
            words = words.replace(secret, "***")
        return words


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


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
