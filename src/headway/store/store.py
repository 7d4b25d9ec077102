"""The store: transactions over whichever database is underneath, and what belongs to no noun."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from headway.base.clock import Clock, SystemClock
from headway.base.errors import OthersWroteError, SchemaTooNewError, StoreUndoneError
from headway.store import bulk, queries
from headway.store.rows import COLUMNS
from headway.store.transaction import ReadTx, WriteTx

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from headway.core.model import JobId
    from headway.store.database import Database, HasFileno
    from headway.store.new_jobs import Alike

TRIES = 3
Result = TypeVar("Result")


@cache
def _queries_of(dialect: queries.Dialect) -> queries.Queries:
    """The queries of one kind of database, read once for all stores of this process."""
    return queries.Queries(dialect, COLUMNS)


class _Soon:
    """A write transaction from its turn to its end. Not as a generator: a submit would feel it."""

    __slots__ = ("_how", "_store")

    def __init__(self, store: Store, how: Mapping[str, Any]) -> None:
        self._store = store
        self._how = how

    def __enter__(self) -> WriteTx:
        return self._store.begin_soon(**self._how)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._store.end(well=kind is None)


class Store:
    """One database, and this process's transactions with it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self.database = database
        self.queries = _queries_of(database.dialect)
        self._clock = clock
        self._turn = threading.RLock() if database.one_at_a_time else nullcontext()
        self.shared = database.shared  # by several hosts
        self.patience = database.patience  # how long it waits for a server, or for others
        self.name = database.name  # its own, whatever it is reached by; a file has none
        self.writes = 0  # transactions of this process, those that were undone included

    @contextmanager
    def read(self) -> Iterator[ReadTx]:
        with self._turn:
            now = self.database.begin_read()
            try:
                yield ReadTx(self.database, self.queries, self._instant(now))
            finally:
                self.database.rollback()

    @contextmanager
    def write(self) -> Iterator[WriteTx]:
        with self._turn:
            now = self._instant(self.database.begin_write())
            with self._ending():
                yield WriteTx(self.database, self.queries, now)

    def write_soon(
        self,
        *,
        optimistic: bool = False,
        meanwhile: Callable[[], None] | None = None,
    ) -> AbstractContextManager[WriteTx]:
        """Like `write`, but the turn may be waited for only with the first question. `optimistic`:
        send the whole transaction without reading first; if anyone else has committed since our
        last read, the commit raises `OthersWroteError` and nothing is written. `meanwhile` may be
        called, more than once, while the commit is waited for."""
        return _Soon(self, {"optimistic": optimistic, "meanwhile": meanwhile})

    def begin_soon(self, **how: Any) -> WriteTx:
        """Take the turn and begin; `end` must follow."""
        self._turn.__enter__()
        try:
            instant = self.database.begin_write_soon(**how)
        except BaseException:
            self._turn.__exit__(None, None, None)
            raise
        self.writes += 1
        now = self._instant(None) if instant is None else lambda: self._instant(instant())
        return WriteTx(self.database, self.queries, now)

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
                self._turn.__exit__(None, None, None)

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

    def transact(self, act: Callable[[WriteTx], Result]) -> Result:
        """Write in one transaction, and begin anew if it is certain that all of it was undone.

        Others may have been in the way (a deadlock, a lost line before the commit). A commit whose
        outcome is unknown is never repeated, and `act` must do nothing beside the transaction.
        """

        def once() -> Result:
            with _Soon(self, {}) as tx:
                return act(tx)

        return self._surely(once)

    def _surely(self, act: Callable[[], Result]) -> Result:
        for _ in range(TRIES - 1):
            try:
                return act()
            except OthersWroteError:  # a statement found other rows than it was written for
                continue
            except StoreUndoneError:
                pass
            from random import uniform

            self._clock.sleep(uniform(0.01, 0.2))  # noqa: S311  so that not both come again
        return act()

    def add_alike(self, kinds: Sequence[Alike]) -> JobId | None:
        """`tx.bulk.add` as a transaction of its own; None: take the general way."""
        return self.transact(lambda tx: tx.bulk.add(kinds)) if bulk.ENABLED else None

    @contextmanager
    def join(self, connection: Any) -> Iterator[WriteTx]:
        """Write within a transaction of the caller's. The writers' lock is held until its end."""
        joined, now = self.database.join(connection)
        yield WriteTx(joined, self.queries, self._instant(now))
        joined.commit()

    def _instant(self, of_database: int | None) -> int:
        """A database that several hosts share gives the time for all of them."""
        if of_database is None or not isinstance(self._clock, SystemClock):
            return self._clock.now()
        return of_database

    def present(self) -> int:
        """The time by the clock of the store, as it is known without asking."""
        return self._instant(self.database.present())

    def clock_error(self) -> int:
        """So much later than `present` it may be: as long as the answer took that told it."""
        return self.database.clock_error()

    def check(self) -> None:
        """Raise if the store is no longer the one that was opened, or cannot be used."""
        self.database.check()

    def check_schema(self) -> None:
        """Raise unless the schema is the one that this program knows. It was when the store was
        opened, but another Headway may have changed it since."""
        with self._turn:
            found = self.database.schema()
        if found != (known := queries.schema_version()):
            raise SchemaTooNewError(
                f"the store has schema {found} now; this Headway knows {known}. Start it again"
            )

    def size(self) -> int:
        """In bytes, with what the database keeps aside."""
        with self._turn:
            return self.database.size()

    def backup(self, path: str) -> None:
        """Write a consistent copy of the whole store to a new file, also while others write."""
        with self._turn:
            self.database.backup(path)

    def tidy(self) -> None:
        """Cut what the database keeps aside, if nobody is in the way."""
        with self._turn:
            self.database.checkpoint()

    def hints(self) -> HasFileno | None:
        """Becomes readable when someone else has committed; another object after a lost line."""
        return self.database.hints()

    def watch_hints(self, watch: Callable[[HasFileno], Callable[[], None]]) -> None:
        """Whenever there is such a line, have it waited for by this; what it gives back ends that,
        and is called before the line is closed, whoever closes it."""
        self.database.watch_hints(watch)

    def changed(self) -> bool:
        """Whether someone else committed since this was last asked: the poll behind the hints."""
        with self._turn:
            return self.database.changed()

    def undisturbed(self) -> bool:
        """Whether the only known change then is that new jobs stand ready, each of which concerns
        no other."""
        return self.database.undisturbed

    def close(self) -> None:
        self.database.close()
