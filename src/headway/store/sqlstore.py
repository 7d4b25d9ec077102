"""The one implementation of the seam, over named queries and whichever database is underneath."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from headway.clock import Clock, SystemClock
from headway.core.model import FUNCTIONS
from headway.errors import OthersWroteError, StoreUndoneError
from headway.store import queries
from headway.store.adding import AddingTx, all_of
from headway.store.rows import COLUMNS

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from headway.core.model import JobId
    from headway.store.base import Alike, HasFileno, ReadTx, WriteTx
    from headway.store.patience import Patience
    from headway.store.seam_calls import Claimant, Relay

TRIES = 3
Told = TypeVar("Told")


class Statements(Protocol):
    """What a transaction needs: queries, with the database's own errors translated."""

    def execute(self, sql: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]: ...
    def ask(self, questions: Sequence[tuple[str, Mapping[str, Any]]]) -> list[list[Any]]: ...
    def tell(self, sql: str, parameters: Mapping[str, Any]) -> None: ...
    def push(self) -> None: ...
    def supposed_place(self) -> tuple[int, int] | None: ...
    def wake_nobody(self, place: tuple[int, int] | None) -> None: ...
    def execute_many(self, sql: str, parameters: Iterable[Mapping[str, Any]]) -> None: ...
    def changes(self) -> int: ...
    def json(self, values: Sequence[Any]) -> Any: ...
    def others_wrote(self) -> bool: ...
    def commit(self) -> None: ...

    undone: int  # write transactions of this process that were


class Database(Statements, Protocol):
    """What a database must offer beside that."""

    dialect: queries.Dialect

    def begin_read(self) -> int | None: ...
    def begin_write(self) -> int | None: ...
    def begin_write_soon(
        self,
        *,
        blindly: bool = False,
        but_waits: bool = False,
        asking: bool = False,
        meanwhile: Callable[[], None] | None = None,
    ) -> Callable[[], int] | None: ...
    def rollback(self) -> None: ...
    def present(self) -> int | None: ...
    def explain(self, sql: str, parameters: Mapping[str, Any]) -> list[str]: ...

    can_at_once: bool  # whether a transaction of one statement is best told as a whole

    only_calls_came: bool
    only_waits_came: bool

    def at_once(
        self, statement: str, parameters: Mapping[str, Any], *, calls: bool
    ) -> int | None: ...

    shared: bool
    name: str | None
    one_at_a_time: bool  # it has one connection, so that its threads must take turns

    patience: Patience

    def hints(self) -> HasFileno | None: ...
    def watch_hints(self, watch: Callable[[HasFileno], Callable[[], None]]) -> None: ...
    def check(self) -> None: ...
    def changed(self) -> bool: ...
    def quick_check(self) -> list[str]: ...
    def wal_bytes(self) -> int: ...
    def checkpoint(self) -> bool: ...
    def backup(self, path: str) -> None: ...
    def join(self, connection: Any) -> tuple[Statements, int | None]: ...
    def close(self) -> None: ...


class _Soon:
    """A write transaction from its turn to its end. Not as a generator: a submit would feel it."""

    __slots__ = ("_how", "_store")

    def __init__(self, store: SqlStore, how: Mapping[str, Any]) -> None:
        self._store = store
        self._how = how

    def __enter__(self) -> WriteTx:
        return self._store.begin_soon(**self._how)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._store.end(well=kind is None)


class SqlStore:
    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.queries = queries.Queries(database.dialect, COLUMNS)
        self._clock = clock
        self._turn = threading.RLock() if database.one_at_a_time else nullcontext()
        self.shared = database.shared
        self.patience = database.patience
        self.name = database.name
        self.writes = 0  # transactions of this process, those that were undone included

    @contextmanager
    def read(self) -> Iterator[ReadTx]:
        from headway.store.reader import SqlReader

        with self._turn:
            now = self.database.begin_read()
            try:
                yield SqlReader(self.database, self.queries, self._instant(now))
            finally:
                self.database.rollback()

    @contextmanager
    def write(self) -> Iterator[WriteTx]:
        from headway.store.writing import SqlWriteTx

        with self._turn:
            now = self._instant(self.database.begin_write())
            with self._ending():
                yield SqlWriteTx(self.database, self.queries, now)

    def write_soon(
        self,
        *,
        blindly: bool = False,
        but_waits: bool = False,
        meanwhile: Callable[[], None] | None = None,
    ) -> AbstractContextManager[WriteTx]:
        how = {"blindly": blindly, "but_waits": but_waits, "meanwhile": meanwhile}
        return _Soon(self, how)

    def take_turn(self) -> None:
        self._turn.__enter__()

    def end_turn(self) -> None:
        self._turn.__exit__(None, None, None)

    def begin_soon(self, **how: Any) -> WriteTx:
        """Take the turn and begin; `end` must follow."""
        self.take_turn()
        try:
            instant = self.database.begin_write_soon(**how)
        except BaseException:
            self.end_turn()
            raise
        self.writes += 1
        now = self._instant(None) if instant is None else lambda: self._instant(instant())
        return cast("WriteTx", AddingTx(self.database, self.queries, now))

    def end(self, *, well: bool) -> None:
        try:
            if well:
                self.database.commit()
        except BaseException:
            well = False
            raise
        finally:
            try:
                if not well:
                    self._undo()
            finally:
                self.end_turn()

    @contextmanager
    def _ending(self) -> Iterator[None]:
        self.writes += 1
        try:
            yield
            self.database.commit()
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        self.database.undone += 1
        self.database.rollback()

    def story(self, tell: Callable[[WriteTx], Told]) -> Told:
        """Write in one transaction, and begin anew if it is certain that all of it was undone.

        Others may have been in the way (a deadlock, a lost line before the commit). A commit whose
        outcome is unknown is never repeated, and `tell` must do nothing beside the transaction.
        """
        how = {"asking": False}

        def act() -> Told:
            try:
                with _Soon(self, how) as tx:
                    return tell(tx)
            except OthersWroteError:
                how["asking"] = True
                raise

        return self._surely(act)

    def _surely(self, act: Callable[[], Told]) -> Told:
        for _ in range(TRIES - 1):
            try:
                return act()
            except OthersWroteError:  # than it was supposed
                continue
            except StoreUndoneError:
                pass
            from random import uniform

            self._clock.sleep(uniform(0.01, 0.2))  # noqa: S311  so that not both come again
        return act()

    def add_alike(self, kinds: Sequence[Alike]) -> JobId | None:
        if len(kinds) > 1 or not self.database.can_at_once:
            return self.story(lambda tx: tx.add_alike(kinds))
        at = None if isinstance(self._clock, SystemClock) else self._clock.now()
        given = all_of(kinds[0], at)
        query = self.queries["add_alike_at_once"].sql
        self.writes += 1
        calls = kinds[0].model.job.queue == FUNCTIONS
        return self._surely(lambda: self.database.at_once(query, given, calls=calls))

    def relay(self, claimant: Claimant) -> Relay | None:
        return None

    @contextmanager
    def join(self, connection: Any) -> Iterator[WriteTx]:
        """Write within a transaction of the caller's. The writers' lock is held until its end."""
        from headway.store.writing import SqlWriteTx

        joined, now = self.database.join(connection)
        yield SqlWriteTx(joined, self.queries, self._instant(now))
        joined.commit()

    def _instant(self, of_database: int | None) -> int:
        """A database that several hosts share tells the time for all of them."""
        if of_database is None or not isinstance(self._clock, SystemClock):
            return self._clock.now()
        return of_database

    def present(self) -> int:
        return self._instant(self.database.present())

    def check(self) -> None:
        self.database.check()

    def backup(self, path: str) -> None:
        with self._turn:
            self.database.backup(path)

    def tidy(self) -> None:
        with self._turn:
            self.database.checkpoint()

    def hints(self) -> HasFileno | None:
        return self.database.hints()

    def watch_hints(self, watch: Callable[[HasFileno], Callable[[], None]]) -> None:
        self.database.watch_hints(watch)

    def changed(self) -> bool:
        with self._turn:
            return self.database.changed()

    def only_calls_came(self) -> bool:
        return self.database.only_calls_came

    def only_waits_came(self) -> bool:
        return self.database.only_waits_came

    def close(self) -> None:
        self.database.close()
