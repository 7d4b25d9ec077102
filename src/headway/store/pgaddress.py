"""Where a PostgreSQL store is, how to connect to it, and how to speak of it without passwords."""

import re
from functools import cached_property
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from headway.errors import (
    InvalidInputError,
    InvalidOperationError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUndoneError,
)
from headway.store.pgwire import Wire


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """With the short way for our own statements."""

    lasting = True  # what is prepared on it stays there
    server_pid = 0  # the process that serves it, by its own word: a pooler tells another number

    @cached_property
    def wire(self) -> Wire:
        return Wire(self, lasting=self.lasting)


# Dead peers are noticed within seconds, not after the hours that the system allows.
_KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "connect_timeout": 10,
}
# A prepared statement keeps the plan that was best when the tables were small. Every hot query has
# an index, so a plan that reads a whole table is never the one to keep. Where there is no other, as
# for a table of five rows, older servers take that for so dear that they would compile it first.
_BY_INDEX = "set enable_seqscan = off; set jit = off"
# What is a transaction of its own sees what was committed before its turn, whatever the default is.
_BY_STATEMENT = "set default_transaction_isolation = 'read committed'"
_IN_FRONT = re.compile(r"^(\w+://)([^:/@]*):([^/@]*)@")
_IN_QUERY = re.compile(r"([?&](?:ssl)?password=)([^&]*)")


class Address:
    """`poll_only`: behind a pooler that gives a connection to others between transactions. Then
    nothing may stay on it: no prepared statement, no setting, no subscription."""

    def __init__(self, url: str, *, poll_only: bool = False) -> None:
        _refuse_unclear_password(url)
        self.url = url
        self.poll_only = poll_only

    def __str__(self) -> str:
        """The URL without its password."""
        shown = _IN_FRONT.sub(r"\1\2:***@", self.url)
        return _IN_QUERY.sub(r"\1***", shown)

    def connect(self) -> Connection:
        try:
            connection = Connection.connect(self.url, **self.options())
            self.prepare(connection)
        except psycopg.OperationalError as error:
            raise self.unavailable(error) from error
        except psycopg.ProgrammingError as error:
            raise InvalidInputError(f"store.url {self}: {self.said(error)}") from None
        return connection

    def options(self) -> dict[str, Any]:
        """What to connect with beside the URL; what the URL says goes before."""
        given = conninfo_to_dict(self.url)
        options: dict[str, Any] = {n: v for n, v in _KEEPALIVES.items() if n not in given}
        options["autocommit"] = True
        options["prepare_threshold"] = None
        return options

    def prepare(self, connection: Connection) -> None:
        """A new connection."""
        connection.lasting = not self.poll_only
        if not self.poll_only:
            asked = f"{_BY_INDEX}; {_BY_STATEMENT}; select pg_backend_pid()"
            answers = connection.execute(asked, prepare=False)
            while answers.nextset():
                pass  # the last of them is the number
            ((connection.server_pid,),) = answers.fetchall()

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
