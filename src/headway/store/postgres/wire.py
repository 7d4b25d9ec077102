"""Statements close to the protocol: prepared once on a connection, many of them in one round trip.

psycopg's cursors do this for values of every kind; for the few kinds that our queries have, to hand
them to libpq ourselves takes a fraction of the time. What comes back is read by psycopg's loaders.
"""

import re
import select
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer

from headway.store.postgres.silence import LOOK_SECONDS, Silence

PREPARE_AFTER = 2  # uses; what is asked once is not worth it
MOST_PREPARED = 500  # a server keeps what it knows of each; inserts may have any number of forms
Parameters = Mapping[str, Any]
Row = tuple[Any, ...]

_PARAMETER = re.compile(r"%\((\w+)\)s")
_NEVER_PREPARED = (b"commit", b"rollback")  # there is nothing to be kept
_GOOD = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
_BETWEEN = "\x1f"  # what hardly any text contains
_LOOK = int(1000 * LOOK_SECONDS)
_READ = select.POLLIN
_BOTH = select.POLLIN | select.POLLOUT


# A number must be known as one where nothing around it says so; of all else the server knows best.
_TYPES = {int: 20, bool: 16, float: 701}

Kind = tuple[bytes, tuple[int, ...]]  # a text with `$1` for its parameters, and their types


class Numbered(NamedTuple):
    kind: Kind
    values: list[bytes | None]


class Ready(NamedTuple):
    """A statement of which all values are written down but the first few."""

    kind: Kind
    values: list[bytes | None]

    def with_first(self, *values: Any) -> Numbered:
        return Numbered(self.kind, [*map(_bytes, values), *self.values])


class StatementResult(NamedTuple):
    rows: list[Row]
    changes: int


class Wire:
    """One connection. `lasting`: what is prepared on it stays there."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        silence: Callable[[], Silence],
        *,
        lasting: bool,
    ) -> None:
        self._connection = connection
        self._silence = silence
        self._line = connection.pgconn
        self._lasting = lasting
        self._uses: dict[Kind, int] = {}
        self._names: dict[Kind, bytes] = {}  # of what is prepared
        self._prepared = 0
        self._loaders = Transformer(connection)
        self._started: list[Kind | None] = []  # what is under way; its answers are still to come
        self._parts = 0  # in which it was sent; each ends with the server saying that it is ready
        self._ready = select.poll()
        self._ready.register(self._line.socket, _READ)

    def run(
        self,
        statements: Sequence[tuple[str, Parameters]],
        meanwhile: Callable[[], None] | None = None,
    ) -> list[StatementResult]:
        """The answers to all of these, in one round trip; nothing after one that fails is done,
        and its error is raised. An interrupted caller cannot go on with the connection. `meanwhile`
        is done now and then while the server is at work."""
        return self.run_numbered([_numbered(*each) for each in statements], meanwhile)

    def run_numbered(
        self, batch: Sequence[Numbered], meanwhile: Callable[[], None] | None = None
    ) -> list[StatementResult]:
        try:
            results = self._exchange(batch, meanwhile)
        except BaseException:
            self._connection.close()
            raise
        failed = next((each for each in results if each.status not in _GOOD), None)
        if failed is not None:
            raise self._error(failed)
        return [self._answer(each) for each in results]

    def start(self, statements: Sequence[tuple[str, Parameters]]) -> None:
        """Have the server begin with these. Their answers come before those of the next run. If one
        of them fails, so does that run, if it is in the same transaction. They are sent as a part
        of their own: for the rest of an unfinished part the server would wait however long we are
        silent."""
        try:
            self._hand_over([_numbered(*each) for each in statements])
            self._end_part()
        except BaseException:
            self._connection.close()
            raise

    def value_of(self, statement: Numbered) -> str | None:
        """The one value that a statement answers with. Alone it needs no pipeline, which takes both
        sides longer than to hand over a small statement."""
        known = self._names.get(statement.kind)
        if known is None:
            [answer] = self.run_numbered([statement])
            return None if answer.rows[0][0] is None else str(answer.rows[0][0])
        try:
            self._line.send_query_prepared(known, statement.values)
            self._flush()
            result = self._next_result(None)
            while self._next_result(None) is not None:
                pass  # there is one result; then libpq says that it was the last
            if self._line.status == pq.ConnStatus.BAD:
                raise errors.OperationalError(_said(result) or "the connection was lost")
        except BaseException:
            self._connection.close()
            raise
        if result.status not in _GOOD:
            raise self._error(result)
        value = result.get_value(0, 0)
        return None if value is None else value.decode()

    def notices(self) -> list[str]:
        """The notifications that have arrived on the channels we listen to."""
        try:
            self._line.consume_input()
        except psycopg.OperationalError:
            self._connection.close()
            raise
        found = []
        while (notice := self._line.notifies()) is not None:
            found.append(notice.extra.decode())
        return found

    def _exchange(
        self, batch: Sequence[Numbered], meanwhile: Callable[[], None] | None
    ) -> list[Any]:
        line = self._line
        self._hand_over(batch)
        self._end_part()
        fresh, self._started = self._started, []
        parts, self._parts = self._parts, 0
        if meanwhile is not None:
            meanwhile()
        results: list[Any] = []
        while True:
            result = self._next_result(meanwhile)
            if result is None:  # the end of one statement's results
                continue
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                parts -= 1
                if not parts:
                    break
                continue
            results.append(result)
            if line.status == pq.ConnStatus.BAD:
                raise errors.OperationalError(_said(result) or "the connection was lost")
        line.exit_pipeline_mode()
        return self._of_statements(results, fresh)

    def _hand_over(self, batch: Sequence[Numbered]) -> None:
        if not self._started:
            if len(self._names) >= MOST_PREPARED:
                self._begin_anew()
            self._line.enter_pipeline_mode()
        self._started += [self._send(each) for each in batch]

    def _end_part(self) -> None:
        self._line.pipeline_sync()
        self._parts += 1
        self._flush()

    def _begin_anew(self) -> None:
        """With nothing prepared; what is used will be soon. Between transactions: one that failed
        would refuse it."""
        if self._line.transaction_status == pq.TransactionStatus.IDLE:
            self._connection.execute("deallocate all", prepare=False)
            self._names.clear()
            self._uses.clear()

    def _of_statements(self, results: list[Any], fresh: list[Kind | None]) -> list[Any]:
        """Without the answers about what was prepared on the way; it is, if they are good."""
        answers = iter(results)
        kept = []
        for kind in fresh:
            answer = next(answers)
            if kind is not None:
                prepared = answer.status in _GOOD
                following = next(answers)
                if prepared:
                    answer = following
                else:
                    del self._names[kind]
            kept.append(answer)
        return kept

    def _send(self, statement: Numbered) -> Kind | None:
        """Hand it over; what it is, if it is prepared with that."""
        kind, values = statement
        known = self._names.get(kind)
        if known is not None:
            self._line.send_query_prepared(known, values)
            return None
        text, types = kind
        uses = self._uses[kind] = self._uses.get(kind, 0) + 1
        if uses <= PREPARE_AFTER or not self._lasting or text in _NEVER_PREPARED:
            self._line.send_query_params(text, values, param_types=types)
            return None
        self._prepared += 1
        name = self._names[kind] = b"headway_%d" % self._prepared
        self._line.send_prepare(name, text, param_types=types)
        self._line.send_query_prepared(name, values)
        return kind

    def _flush(self) -> None:
        """Send it all. A server that cannot get rid of its answers takes nothing more in."""
        while self._line.flush():
            self._ready.modify(self._line.socket, _BOTH)
            happened = self._await()
            self._ready.modify(self._line.socket, _READ)
            if happened & ~select.POLLOUT:
                self._line.consume_input()

    def _next_result(self, meanwhile: Callable[[], None] | None) -> Any:
        while self._line.is_busy():
            self._await(meanwhile)
            self._line.consume_input()
        return self._line.get_result()

    def _await(self, meanwhile: Callable[[], None] | None = None) -> int:
        """Wait for the next event on the connection; a server that is gone is not waited for."""
        look = 1 if meanwhile is not None else _LOOK
        happened = self._ready.poll(look)
        if happened:
            return happened[0][1]
        silence = self._silence()
        while not happened:
            if meanwhile is not None:
                meanwhile()
            silence.go_on()
            happened = self._ready.poll(look)
        return happened[0][1]

    def _answer(self, result: Any) -> StatementResult:
        changes = result.command_tuples or 0
        if not result.nfields or not result.ntuples:
            return StatementResult([], changes)
        self._loaders.set_pgresult(result)
        return StatementResult(self._loaders.load_rows(0, result.ntuples, tuple), changes)

    def _error(self, result: Any) -> psycopg.Error:
        error = errors.error_from_result(result)
        if isinstance(error, errors.FeatureNotSupported):  # a migration changed what it answers
            self._names.clear()
        return error


def _said(result: Any) -> str:
    return str(result.get_error_message()).strip()


def _numbered(statement: str, parameters: Parameters) -> Numbered:
    text, names = _text_and_names(statement)
    values = [parameters[name] for name in names]
    types = tuple([_TYPES.get(type(value), 0) for value in values])
    return Numbered((text, types), [_bytes(value) for value in values])


def ready(statement: str, first: Mapping[str, type], parameters: Parameters) -> Ready:
    """With the types of those that differ from one time to the next, and the values of the rest."""
    text, names = _text_and_names(statement)
    rest = [parameters[name] for name in names[len(first) :]]
    kinds = [*first.values(), *map(type, rest)]
    types = tuple([_TYPES.get(kind, 0) for kind in kinds])
    return Ready((text, types), [_bytes(value) for value in rest])


@lru_cache(maxsize=500)
def _text_and_names(statement: str) -> tuple[bytes, tuple[str, ...]]:
    """The text with `$1` for `%(name)s`, and the names in that order."""
    names: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        return f"${names.setdefault(match[1], len(names) + 1)}"

    text = _PARAMETER.sub(number, statement)
    return text.encode(), tuple(names)


def _bytes(value: Any) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            if "\0" in value:
                raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
            return value.encode()
        case bool():
            return b"t" if value else b"f"
        case int():
            return b"%d" % value
        case float():
            return repr(value).encode()
        case list():
            return _list(value)
    raise TypeError(f"{type(value).__name__} cannot be a parameter")


def _list(values: list[Any]) -> bytes:
    """In one go if all are numbers, or texts without the sign that is put between them."""
    kinds = set(map(type, values))
    if kinds == {int}:
        return f"{{{','.join(map(str, values))}}}".encode()
    if kinds == {str}:
        text = _BETWEEN.join(values)
        if text.count(_BETWEEN) == len(values) - 1:
            text = text.replace("\\", "\\\\").replace('"', '\\"').replace(_BETWEEN, '","')
            return _bytes(f'{{"{text}"}}') or b""
    return b"{%s}" % b",".join(map(_element, values))


def _element(value: Any) -> bytes:
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return _bytes(f'"{quoted}"') or b""
    return _bytes(value) or b"null"
