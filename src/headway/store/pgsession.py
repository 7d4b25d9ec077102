"""One transaction on one connection: begin, queue, ask, commit, and never guess how it ended.

What changes something and tells nothing is queued, and sent together with the next question or with
the commit, in one round trip. Every commit leaves a trace: the next number, and a token that only
this transaction has. By its trace it is known whether a commit whose answer was lost has happened;
the id of the transaction would not do, because a server that crashed may give the same one out
again.
"""

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import psycopg
from psycopg import errors

from headway.errors import OthersWroteError, StoreBusyError
from headway.store.pgaddress import Address, Connection
from headway.store.pgpool import Connections
from headway.store.pgspread import ENOUGH, insert_of
from headway.store.pgtexts import (
    AS_THOUGHT,
    BEGIN_READ,
    BEGIN_WRITE,
    BUT_WAITS,
    CALLS,
    FIND_TRACE,
    IN_TIME,
    INSTANT,
    IS_GONE,
    IS_OVER,
    LEAVE_ANSWER,
    LEAVE_CALLS,
    LEAVE_IN_TURN,
    LEAVE_TRACE,
    LEAVE_WAITS,
    LOCK_SPACE,
    NO_NUMBERS,
    NOW,
    NUMBERS,
    SCHEMA_HASH,
    TRACES,
    TURN,
)
from headway.store.pgwire import Answer, Numbered, Parameters

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

    def heard(self, number: int) -> None:
        self._number, self._at = number, time.monotonic()

    def number(self) -> int | None:
        return self._number if time.monotonic() - self._at < MOMENT_SECONDS else None


class Heard(NamedTuple):
    """The server's time, and when it was heard by a clock that only goes forward."""

    instant: int
    at: float

    def now(self) -> int:
        """At most what it is by now at the server's."""
        return self.instant + int((time.monotonic() - self.at) * 1_000_000)


def heard_now(instant: int) -> Heard:
    return Heard(instant, time.monotonic())


class Known(NamedTuple):
    """A thread was told of all others' commits up to this one, over this connection. Over another
    one the same number may be another commit: of a server that took over without the last ones."""

    number: int
    over: Connection


class Place(NamedTuple):
    """Where the next job stands if no commit came after this one, over this connection."""

    over: Connection
    last: int
    job_id: int
    ahead: int


class Answered(NamedTuple):
    said: int | None
    number: int | None
    next: Place | None = None


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
        self._unheard = 0  # so many are sent to begin with, and the last of them tells the instant
        self._now = 0
        self._transaction_id = ""
        self.heard: Heard | None = None
        self.meanwhile: Callable[[], None] | None = None  # something to do while it is committed
        self._blindly = False  # whether it may be committed before anything was heard
        self._pushed = False  # whether the server has begun with a part of it
        self._before = 0  # the newest number when this began
        self._disturbed = 0  # and that of the last one which did more than to add calls
        self._server = 0  # the pid of the process that serves it
        self._writing = False
        self._wrote = False
        self.wakes_nobody = False  # by what it does
        self.may_suppose = True
        self.place_after: tuple[int, int] | None = None  # of the next job, if this is committed
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
        self._opening = [(BEGIN_READ, {}), (f"select {NOW}, '', 0, 0", {})]

    def begin_write(self, key: int | None) -> None:
        """Wait for the turn; without a key, before there are tables."""
        busy, silent = f"{self._turn_seconds:g}s", f"{SILENT_SECONDS:g}s"
        self._key = key
        turn = TURN.format(space=LOCK_SPACE, key=SCHEMA_HASH if key is None else key)
        self._opening = [
            (BEGIN_WRITE, {}),
            (turn, {"busy": busy, "silent": silent}),
            (INSTANT.format(now=NOW, **(NUMBERS if key is not None else NO_NUMBERS)), {}),
        ]
        self._writing = True

    def expect(self, number: int, now: int, *, but_waits: bool) -> None:
        """That the newest commit is still this one, or but for those that add what waits. If
        nothing is asked until our own, all travels in one round trip with it; the server refuses
        it if it is not so."""
        thought = BUT_WAITS if but_waits else AS_THOUGHT
        self._opening[-1] = (thought, {"number": number, "now": now})
        self._before = self._disturbed = number
        self._now = now
        self._blindly = True

    def suppose(self, before: int, now: int) -> bool:
        """Go on without an answer, if nothing was asked yet: what is supposed is told like all else
        that is to be done, and fails with it. The newest commit was at least that one."""
        if not self._opening or self._queue or self._blindly or not self.may_suppose:
            return False
        self._opening[-1] = (IN_TIME, {"now": now})
        self._before = self._disturbed = before
        self._now = now
        self._blindly = True
        return True

    def instant(self) -> int:
        """When it began, by the server's clock."""
        if self._opening and not self._blindly:
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

    def _begin(self) -> list[Answer]:
        """Begin, and send along what is queued: all of that is undone if the line is lost, so it
        can be sent again on another. The answers to what was queued."""
        queue, self._queue = self._queue, []
        answers = self.surely(lambda: self._run([*self._opening, *queue]))
        count, self._opening = len(self._opening), []
        self._hear(answers[count - 1])
        return answers[count:]

    def _hear(self, answer: Answer) -> None:
        self._now, self._transaction_id, self._before, self._disturbed, *_ = answer.rows[0]
        self.heard = heard_now(self._now)

    def _run(
        self, statements: Sequence[Statement], meanwhile: Callable[[], None] | None = None
    ) -> list[Answer]:
        wire = self.connection.wire
        self._sent = True
        answers = wire.run(statements, meanwhile)
        if self._unheard:
            self._hear(answers[self._unheard - 1])
            self._unheard = 0
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
        if self._opening and not self._blindly:
            self._begin()  # what holds a commit is never sent twice
        alone = LEAVE_WAITS if self.wakes_nobody else LEAVE_TRACE
        leave = LEAVE_IN_TURN if self._pushed else alone
        trace = (leave, {"token": token, "key": str(self._key)})
        self._unheard = self._unheard or len(self._opening)
        answers = self._finish(self._opening, [*self._queue, trace], token)
        return None if isinstance(answers, str) else int(answers[-2].rows[0][0])

    def _finish(
        self, opening: Sequence[Statement], statements: Sequence[Statement], token: str
    ) -> list[Answer] | str:
        """Send what is left to be said, with the commit, once. If the answers were lost but it has
        happened, its trace."""
        self._server = self.connection.server_pid
        self._opening = []
        try:
            return self._run([*opening, *statements, ("commit", {})], self.meanwhile)
        except psycopg.Error as error:
            in_turn = not opening and not self._unheard
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
        if isinstance(error, errors.DivisionByZero) and self._blindly:
            found = "others have written; look again"
        if found is not None:
            return OthersWroteError(f"{self._address}: {found}")
        return self._address.translated(error) if isinstance(error, psycopg.Error) else error

    def at_once(
        self, statement: str, parameters: Parameters, token: str, *, before: int, calls: bool
    ) -> Answered:
        """The one statement of a transaction, which is begun and committed with it: what it
        answers, a number or nothing, and the number of the commit, None if its answer was lost.
        `before` is at most the number of the last one; `calls`: it only adds plain ones."""
        self._before = before
        opening = self._opening[:-1]  # without the question for the instant
        leave = LEAVE_CALLS if calls else LEAVE_ANSWER
        trace = (leave, {"token": token, "key": str(self._key)})
        answers = self._finish(opening, [(statement, parameters), trace], token)
        if isinstance(answers, str):
            return _answered_in(answers)
        *_, said, trace_left, _ = answers
        return Answered(said.rows[0][0] if said.rows else None, int(trace_left.rows[0][0]))

    def known(self, place: Place | None) -> tuple[int | None, int | None, int | None]:
        """What may be told of it over this connection."""
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
        return Answered(job_id, number, Place(connection, number, job_id + 1, ahead))

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
        if not self._transaction_id:  # it was lost before we heard of it; its process ends with it
            gone = self.connection.execute(IS_GONE, [self._server]).fetchone()
            return gone is not None
        try:
            row = self.connection.execute(IS_OVER, [self._transaction_id]).fetchone()
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
        self._unheard = 0
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

    def tell(self, statement: str, rows: Sequence[Parameters]) -> None:
        """Changes of one kind of which nobody needs to hear; sent when something else is."""
        self._wrote = True
        insert = insert_of(statement) if len(rows) >= ENOUGH else None
        spread = insert.spread(rows) if insert is not None else None
        if spread is not None:
            self._queue.append(spread)
        else:
            self._queue.extend((statement, row) for row in rows)

    def push(self) -> None:
        """Have the server begin with what was told, while we find out what else is to be."""
        if self._queue and (self._blindly or not self._opening):
            statements = [*self._opening, *self._queue]
            self._unheard = self._unheard or len(self._opening)
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

    def _send(self) -> list[Answer]:
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
    """What a statement says that found other rows than it was written for, whatever quotes the
    server's language puts around it."""
    if not isinstance(error, errors.InvalidTextRepresentation):
        return None
    said = str(error).partition("headway: ")[2].partition("\n")[0]
    return said.rstrip(" .\"'»«“”‹›") or None


# The kinds of what one plain job has of its own.
OWN = {"token": str, "params": str, "at": int, "last": int, "id": int, "ahead": int}


def terms(key: int | None, *, calls: bool) -> dict[str, Any]:
    """What a statement that is a whole transaction must know of the turn and of its trace."""
    return {
        "space": LOCK_SPACE,
        "key": key,
        "busy": f"{BUSY_SECONDS:g}s",
        "traces": TRACES,
        "last_word": f" {CALLS}" if calls else "",
    }


def _answered_in(trace: str) -> Answered:
    """What the one who left it would have answered."""
    answer = trace.partition(" ")[2]
    return Answered(int(answer) if answer else None, None)


def _trusted(statement: str) -> Any:
    """All statements come from our own files; values always travel beside them."""
    return statement
