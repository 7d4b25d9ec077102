"""One transaction on one connection: begin, queue, ask, commit, and never guess how it ended.

Changes without an answer are queued, and sent together with the next question or with the commit,
in one round trip. Every commit leaves a trace: the next number, and a token that only this
transaction has. If the answer to a commit is lost, the trace shows whether it happened. The id of
the transaction would not do, because a server that crashed may give it out again.
"""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import psycopg
from psycopg import errors

from headway.base.errors import OthersWroteError, StoreBusyError
from headway.store.postgres.address import Address, Connection
from headway.store.postgres.multi_insert import ENOUGH, insert_of
from headway.store.postgres.pool import Connections
from headway.store.postgres.statements import (
    BEGIN_READ,
    BEGIN_WRITE,
    CALLS,
    FIND_TRACE,
    FIRST_INSTANT,
    INSTANT,
    INSTANT_OF_READ,
    IS_GONE,
    IS_OVER,
    LEAVE_IN_TURN,
    LEAVE_TRACE,
    LOCK_SPACE,
    OPTIMISTIC_INSTANT,
    TAKE_FIRST_TURN,
    TAKE_TURN,
    TRACES,
)
from headway.store.postgres.wire import (
    Numbered,
    Parameters,
    StatementResult,
)

BUSY_SECONDS = 10.0
SILENT_SECONDS = 30.0
MOMENT_SECONDS = 10.0
_READS = ("select ", "with recursive ", "explain ", "show ")  # what begins so changes nothing

Found = TypeVar("Found")
Row = tuple[Any, ...]
Statement = tuple[str, Parameters]


class Latest:
    """The number of a commit that was the newest one a moment ago, while it is of use: by it is
    known whether the trace of one that came later may have been overwritten."""

    def __init__(self) -> None:
        self._number: int | None = None
        self._at = 0.0

    def received(self, number: int) -> None:
        self._number, self._at = number, time.monotonic()

    def number(self) -> int | None:
        return self._number if time.monotonic() - self._at < MOMENT_SECONDS else None


class ServerTime(NamedTuple):
    """The server's time, and when it was asked for and received, by a clock that only goes
    forward."""

    instant: int
    asked: float
    received: float

    def now(self) -> int:
        """At most what it is by now at the server's."""
        return self.instant + int((time.monotonic() - self.received) * 1_000_000)

    def error(self) -> int:
        """So much later it may be by now at the server's."""
        return int((self.received - self.asked) * 1_000_000)


def server_time_now(instant: int, asked: float) -> ServerTime:
    return ServerTime(instant, asked, time.monotonic())


class KnownCommit(NamedTuple):
    """A thread has read all others' commits up to this one, over this connection. Over another
    connection the same number may be another commit: of a server that took over without the last
    ones."""

    number: int
    over: Connection


class NextPlace(NamedTuple):
    """Where the next job stands if no commit came after this one, over this connection."""

    over: Connection
    last: int
    job_id: int
    ahead: int


class Answered(NamedTuple):
    said: int | None
    number: int | None
    next: NextPlace | None = None


class Session:
    """One transaction of one thread. It begins with the first statement that is sent."""

    def __init__(self, address: Address, connections: Connections) -> None:
        self.changes = 0
        self._address = address
        self._connections = connections
        self._connection: Connection | None = None
        self._opening: list[Statement] = []  # what it begins with, until that has been answered
        self._sent = False  # whether the server may know of it
        self._queue: list[Statement] = []
        self._unread = 0  # so many are sent to begin with, and the last of them gives the instant
        self._now = 0
        self._asked = 0.0  # when the last statements were sent
        self._transaction_id = ""
        self.server_time: ServerTime | None = None
        self.meanwhile: Callable[[], None] | None = None  # something to do while it is committed
        self._optimistic = False  # whether it may be committed before any answer
        self._pushed = False  # whether the server has begun with a part of it
        self._before = 0  # the newest number when this began
        self._disturbed = 0  # and that of the last one which did more than to add calls
        self._server = 0  # the pid of the process that serves it
        self._writing = False
        self._wrote = False
        self._key: int | None = None  # of the writers' lock, and so of the store

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

    def begin_read(self) -> None:
        self._opening = [(BEGIN_READ, {}), (INSTANT_OF_READ, {})]

    def begin_write(self, key: int | None) -> None:
        """Wait for the turn; without a key, before there are tables."""
        busy, silent = f"{self._turn_seconds:g}s", f"{SILENT_SECONDS:g}s"
        terms = {"busy": busy, "silent": silent, "space": LOCK_SPACE}
        self._key = key
        if key is None:
            turn, instant = (TAKE_FIRST_TURN, terms), FIRST_INSTANT
        else:
            turn, instant = (TAKE_TURN, {**terms, "key": key}), INSTANT
        self._opening = [(BEGIN_WRITE, {}), turn, (instant, {})]
        self._writing = True

    def expect(self, number: int, now: int) -> None:
        """That the newest commit is still this one. If nothing is asked until our own, all travels
        in one round trip with it; the server refuses it if it is not so."""
        self._opening[-1] = (OPTIMISTIC_INSTANT, {"number": number, "now": now})
        self._before = self._disturbed = number
        self._now = now
        self._optimistic = True

    def instant(self) -> int:
        """When it began, by the server's clock."""
        if self._opening and not self._optimistic:
            self._begin()
        return self._now

    def newest(self) -> int:
        """The number of the last commit before it."""
        self.instant()
        return self._before

    def disturbed(self) -> int:
        """The number of the last one before it that did more than to add plain calls."""
        self.instant()
        return self._disturbed

    def _begin(self) -> list[StatementResult]:
        """Begin, and send along what is queued: all of that is undone if the line is lost, so it
        can be sent again on another. The answers to what was queued."""
        queue, self._queue = self._queue, []
        answers = self.surely(lambda: self._run([*self._opening, *queue]))
        count, self._opening = len(self._opening), []
        self._read_time(answers[count - 1])
        return answers[count:]

    def _read_time(self, answer: StatementResult) -> None:
        self._now, self._transaction_id, self._before, self._disturbed, *_ = answer.rows[0]
        self.server_time = server_time_now(self._now, self._asked)

    def _run(
        self, statements: Sequence[Statement], meanwhile: Callable[[], None] | None = None
    ) -> list[StatementResult]:
        wire = self.connection.wire
        self._sent = True
        self._asked = time.monotonic()
        answers = wire.run(statements, meanwhile)
        if self._unread:
            self._read_time(answers[self._unread - 1])
            self._unread = 0
        return answers

    def surely(self, ask: Callable[[], Found]) -> Found:
        """Ask what may be asked again, on a new connection if the old one was lost."""
        patience = self._address.patience
        give_up_at = patience.until(patience.again)
        while True:
            try:
                return ask()
            except (psycopg.OperationalError, StoreBusyError) as error:
                if self._connection is not None and not self._connection.closed:
                    self.rollback()
                    raise self._refused(error) from error
                self._drop()
                if time.monotonic() > give_up_at or patience.is_over:
                    raise self._address.unavailable(error) from error
                time.sleep(random.uniform(0.05, 0.5))  # noqa: S311  so that not all come at once
            except psycopg.Error as error:
                self.rollback()
                raise self._refused(error) from error
            except BaseException:
                self.rollback()
                raise

    def _busy(self) -> StoreBusyError:
        return StoreBusyError(
            f"{self._address}: another process is writing since {self._turn_seconds:g} s; try again"
        )

    @property
    def _turn_seconds(self) -> float:
        wanted = self._address.patience.turn
        return BUSY_SECONDS if wanted is None else wanted

    @property
    def wrote(self) -> bool:
        """Whether there is anything that others could see."""
        return self._wrote

    def commit(self, token: str) -> int | None:
        """The number of this commit; None if its answer was lost, but it has happened."""
        if self._opening and not self._optimistic:
            self._begin()  # what holds a commit is never sent twice
        leave = LEAVE_IN_TURN if self._pushed else LEAVE_TRACE
        trace = (leave, {"token": token, "key": str(self._key)})
        self._unread = self._unread or len(self._opening)
        answers = self._finish(self._opening, [*self._queue, trace], token)
        return None if isinstance(answers, str) else int(answers[-2].rows[0][0])

    def _finish(
        self, opening: Sequence[Statement], statements: Sequence[Statement], token: str
    ) -> list[StatementResult] | str:
        """Send what is left to be said, with the commit, once. If the answers were lost but it has
        happened, its trace."""
        self._server = self.connection.server_pid
        self._opening = []
        try:
            return self._run([*opening, *statements, ("commit", {})], self.meanwhile)
        except psycopg.Error as error:
            in_turn = not opening and not self._unread
            return self._trace_after(error, token, in_turn=in_turn)

    def _trace_after(self, error: psycopg.Error, token: str, *, in_turn: bool = False) -> str:
        """The trace of what was sent with its commit, if only the answer was lost; else it is
        undone, and this raises."""
        if not self.connection.closed:  # the server's own word
            self.rollback()
            raise self._refused(error, in_turn=in_turn) from error
        found = self._found_trace(token)
        if found is None:
            raise self._address.undone(error) from error
        return found

    def _refused(self, error: Exception, *, in_turn: bool = False) -> Exception:
        """In our words. `in_turn`: the turn had come, so it is not what was waited for."""
        if isinstance(error, errors.LockNotAvailable) and not in_turn:
            return self._busy()
        found = _found_otherwise(error)
        if found is not None:
            return OthersWroteError(f"{self._address}: {found}")
        return self._address.translated(error) if isinstance(error, psycopg.Error) else error

    def known(self, place: NextPlace | None) -> tuple[int | None, int | None, int | None]:
        """The last commit and the place of the next job, as known over this connection."""
        if place is None or place.over is not self.connection:
            return None, None, None
        return place.last, place.job_id, place.ahead

    def alone(self, statement: Numbered, token: str, *, before: int) -> Answered:
        """A statement that is a whole transaction, and leaves its trace itself. It answers with the
        job's id, the number of the commit and how far ahead new jobs stand, or with nothing."""
        connection = self.connection
        self._before, self._server = before, connection.server_pid
        try:
            said = connection.wire.value_of(statement)
        except psycopg.Error as error:
            return _answered_in(self._trace_after(error, token))
        if said is None:
            return Answered(None, None)
        job_id, number, ahead = map(int, said.split())
        return Answered(job_id, number, NextPlace(connection, number, job_id + 1, ahead))

    def _found_trace(self, token: str) -> str | None:
        """Ask the server about the transaction whose answer was lost, once it is over."""
        patience = self._address.patience
        give_up_at = patience.until(patience.again)
        while time.monotonic() < give_up_at and not patience.is_over:
            try:
                if self._is_over():
                    newest, found = self._last_trace(token)
                    if found is None and newest - self._before >= TRACES:
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
        if not self._transaction_id:  # it was lost before an answer came; its process ends with it
            gone = self.connection.execute(IS_GONE, {"pid": self._server}).fetchone()
            return gone is not None
        try:
            row = self.connection.execute(IS_OVER, {"transaction": self._transaction_id}).fetchone()
        except errors.InvalidParameterValue:
            return True  # after a crash the server has not come to this number again
        return row is None or row[0] != "in progress"

    def _last_trace(self, token: str) -> tuple[int, str | None]:
        row = self.connection.execute(_trusted(FIND_TRACE), {"token": token}).fetchone()
        newest, found = cast(Row, row)
        return int(newest), found

    def rollback(self) -> None:
        """Undo it; one that only read has nothing to undo."""
        self._queue.clear()
        self._opening = []
        self._unread = 0
        if not self._sent or self._connection is None or self._connection.closed:
            return
        self._sent = False
        try:
            self._connection.wire.run([("rollback" if self._writing else "commit", {})])
        except psycopg.Error:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self.release()

    # -- statements ----------------------------------------------------------------------------

    def send(self, statement: str, rows: Sequence[Parameters]) -> None:
        """Queue changes of one kind that need no answer; they are sent with the next message."""
        self._wrote = True
        insert = insert_of(statement) if len(rows) >= ENOUGH else None
        spread = insert.spread(rows) if insert is not None else None
        if spread is not None:
            self._queue.append(spread)
        else:
            self._queue.extend((statement, row) for row in rows)

    def push(self) -> None:
        """Have the server begin with the queued changes, while we prepare the rest."""
        if self._queue and (self._optimistic or not self._opening):
            statements = [*self._opening, *self._queue]
            self._unread = self._unread or len(self._opening)
            self._opening, self._queue = [], []
            self._sent = self._pushed = True
            self._plainly(lambda: self.connection.wire.start(statements))

    def ask(self, questions: Sequence[Statement]) -> list[list[Any]]:
        """Several that change nothing, in one round trip."""

        def run() -> list[list[Any]]:
            self._queue.extend(questions)
            return [answer.rows for answer in self._send()[-len(questions) :]]

        return self._plainly(run)

    def execute(self, statement: str, parameters: Parameters) -> list[Row]:
        if not statement.startswith(_READS):
            self._wrote = True

        def run() -> list[Row]:
            self._queue.append((statement, parameters))
            answer = self._send()[-1]
            self.changes = answer.changes
            return answer.rows

        return self._plainly(run)

    def script(self, text: str) -> None:
        """Many statements without parameters."""
        self._wrote = True
        self._plainly(self._send)
        self._plainly(lambda: self.connection.execute(_trusted(text), prepare=False))

    def table(self, name: str) -> tuple[list[str], list[Row]]:
        """All columns and rows of one of our tables."""

        def run() -> tuple[list[str], list[Row]]:
            self._send()
            cursor = self.connection.execute(_trusted(f"select * from {name}"))  # noqa: S608
            return [column.name for column in cursor.description or ()], cursor.fetchall()

        return self._plainly(run)

    def _send(self) -> list[StatementResult]:
        """All that is queued, in one round trip; nothing after one that fails is executed."""
        if self._opening:
            return self._begin()
        queue, self._queue = self._queue, []
        return self._run(queue) if queue else []

    def _plainly(self, run: Callable[[], Found]) -> Found:
        try:
            return run()
        except psycopg.Error as error:
            lost = self._connection is None or self._connection.closed
            if lost and isinstance(error, psycopg.OperationalError):
                raise self._address.undone(error) from error
            raise self._refused(error, in_turn=True) from error


def _found_otherwise(error: Exception) -> str | None:
    """The words of a statement that found other rows than expected, whatever quotes the server's
    language puts around them."""
    if not isinstance(error, errors.InvalidTextRepresentation):
        return None
    said = str(error).partition("headway: ")[2].partition("\n")[0]
    return said.rstrip(" .\"'»«“”‹›") or None


# The kinds of what one plain job has of its own.
OWN = {"token": str, "params": str, "at": int, "last": int, "id": int, "ahead": int}


def terms(key: int | None, *, calls: bool) -> dict[str, Any]:
    """The parameters of a statement that is a whole transaction: its turn and its trace."""
    return {
        "space": LOCK_SPACE,
        "key": key,
        "busy": f"{BUSY_SECONDS:g}s",
        "traces": TRACES,
        "last_word": f" {CALLS}" if calls else "",
    }


def _answered_in(trace: str) -> Answered:
    """The answer that the lost commit would have given, from its trace."""
    answer = trace.partition(" ")[2]
    return Answered(int(answer) if answer else None, None)


def _trusted(statement: str) -> Any:
    """All statements come from our own files; values always travel beside them."""
    return statement
