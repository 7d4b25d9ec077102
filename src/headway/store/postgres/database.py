"""PostgreSQL through psycopg: the same queries, one writer at a time, one clock for all hosts.

Every write transaction first takes a transaction-level advisory lock, so that, as on SQLite, facts
do not move within it; nothing outlives the transaction, so a pooler in transaction mode is fine
(with `poll_only`). Each thread has a connection of its own for as long as its transaction lasts, so
that a reader does not wait for a writer. A lost connection is made anew.

The number of the newest commit shows whether others have committed. Notifications only say when to
check, and whether it was ourselves.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import errors

from headway.base.clock import SystemClock
from headway.base.crashpoints import reach
from headway.base.errors import OthersWroteError, SchemaTooNewError, StoreBusyError, StoreError
from headway.core.model import FUNCTIONS
from headway.store.postgres.address import Address, Connection
from headway.store.postgres.caller_transaction import Joined
from headway.store.postgres.notices import (
    Notice,
    news_among,
    notice_in,
)
from headway.store.postgres.pool import Connections
from headway.store.postgres.session import (
    OWN,
    KnownCommit,
    Latest,
    NextPlace,
    ServerTime,
    Session,
    server_time_now,
    terms,
)
from headway.store.postgres.statements import (
    IN_ITS_PLACE,
    NAME_STORE,
    NEWEST_COMMIT,
    SIZE,
    VERSION,
)
from headway.store.postgres.wire import Ready, ready
from headway.store.queries import Dialect, migrations, schema_version

Watch = Callable[[Connection], Callable[[], None]]  # gives back how to end it

DIALECT = Dialect(
    name="postgres",
    identifier="bigint primary key",
    serial="bigint generated always as identity primary key",
    ids=r"= any(:\1::bigint[])",
    texts=r"= any(:\1::text[])",
    rows="json_to_recordset(:{parameter}::json) as given({fields})",
    field="{name} {type}",
    lists="unnest({fields}) as given ({names})",
    item=":given_{name}::{type}[]",
    each=r"and \1 = any(:\2::bigint[])",
    # The first job of a chain is found by its id, which is the chain's: no other index has it. Of
    # alternatives a server would rather go through the whole table.
    chain=(
        r"\1id in (select head.id from jobs head where head.id \2 union all "
        r"select tail.id from jobs tail where tail.chain \2 and tail.chain <> tail.id)"
    ),
    parameter=r"%(\1)s",
    at_once=True,
)


class PostgresDatabase:
    """For one process. Each thread has at most one transaction, and speaks within its own."""

    dialect = DIALECT
    shared = True
    one_at_a_time = False

    def __init__(self, url: str, *, poll_only: bool = False) -> None:
        self.address = Address(url, poll_only=poll_only)
        self.patience = self.address.patience
        self._same_process = not poll_only  # of the server, for as long as a connection lasts
        self.connections = Connections(self.address)
        self.listener: Connection | None = None
        self._watch: Watch = lambda line: lambda: None
        self._pid = os.getpid()
        self._of_thread = threading.local()
        self._looking = threading.RLock()
        self._seen: int | None = None
        self.undisturbed = False  # by the notices when it was last asked for changes
        self._latest = Latest()
        self._server_time: ServerTime | None = None
        self._next: NextPlace | None = None
        self._own: deque[str] = deque(maxlen=1000)  # commits whose notices are still to come
        self._key: int | None = None
        self.name: str | None = None
        self.undone = 0

    # -- transactions --------------------------------------------------------------------------

    def begin_read(self) -> int:
        with self._beginning() as session:
            session.begin_read()
            return session.instant()

    def begin_write(self) -> int:
        with self._beginning() as session:
            session.begin_write(self._key)
            return session.instant()

    def begin_write_soon(
        self,
        *,
        optimistic: bool = False,
        meanwhile: Callable[[], None] | None = None,
    ) -> Callable[[], int]:
        """The turn is waited for in one round trip with the first question; `optimistic`, with the
        commit, if there is none."""
        with self._beginning() as session:
            session.begin_write(self._key)
            session.meanwhile = meanwhile
            if optimistic:
                known, server_time = self._known, self._server_time
                if known is None or server_time is None or not self._same_process:
                    raise OthersWroteError(f"{self.address}: nothing is known of what others wrote")
                if known.over is not session.connection:
                    raise OthersWroteError(f"{self.address}: the line was lost; look again")
                session.expect(known.number, server_time.now())
        return session.instant

    @contextmanager
    def _beginning(self) -> Iterator[Session]:
        self._check_process()
        if self._present() is not None:
            raise StoreError(f"{self.address}: cannot begin a transaction within a transaction")
        session = Session(self.address, self.connections)
        try:
            yield session
        except BaseException:
            session.release()
            raise
        self._of_thread.session = session

    def _present(self) -> Session | None:
        """The transaction of this thread."""
        session: Session | None = getattr(self._of_thread, "session", None)
        return session

    @property
    def _known(self) -> KnownCommit | None:
        """To this thread: what another one writes is news to it, as if it were another process."""
        known: KnownCommit | None = getattr(self._of_thread, "known", None)
        return known

    def commit(self) -> None:
        session = self._present()
        if session is None:
            raise StoreError(f"{self.address}: there is no transaction to commit")
        if session.wrote:
            self._leave_trace(session)
        else:  # there is nothing to notify anyone of
            session.rollback()
        self._end(session)
        reach("store.committed")

    def _leave_trace(self, session: Session) -> None:
        self._committed(session.commit(self._new_token()))

    def _new_token(self) -> str:
        token = os.urandom(16).hex()
        if self.listener is not None:
            self._own.append(token)
        return token

    def _committed(self, number: int | None) -> None:
        known = self._known
        if known is not None and number == known.number + 1:
            self._of_thread.known = known._replace(number=number)
        if number is not None:
            self._latest.received(number)
        with self._looking:
            if self._seen is not None and number == self._seen + 1:
                self._seen = number  # nobody else committed in between

    def can_add_one(self) -> bool:
        """Whether `add_one` could find out afterwards whether it was committed."""
        return self._same_process and self._latest.number() is not None

    def ready_to_add(self, statement: str, parameters: Mapping[str, Any]) -> Ready:
        """The statement that `add_one` sends for jobs that have these in common."""
        known = {**parameters, **terms(self._key, calls=parameters["queue"] == FUNCTIONS)}
        try:
            return ready(statement, OWN, known)
        except psycopg.Error as error:
            raise self.address.translated(error) from error

    def add_one(self, ready: Ready, params: str, at: int | None) -> int | None:
        """One plain job in a transaction of its own: its id."""
        self._check_process()
        if self._present() is not None:
            raise StoreError(f"{self.address}: cannot begin a transaction within a transaction")
        before = self._latest.number() or 0
        token = self._new_token()
        session = Session(self.address, self.connections)
        try:
            known, self._next = session.known(self._next), None
            statement = ready.with_first(token, params, at, *known)
            said, number, self._next = session.alone(statement, token, before=before)
        finally:
            session.release()
        if said is not None:
            self._committed(number)
        reach("store.committed")
        return said

    def rollback(self) -> None:
        session = self._present()
        if session is not None:
            session.rollback()
            self._end(session)

    def present(self) -> int | None:
        """By the server's clock, as last received; None: it was not received yet."""
        server_time = self._last_received()
        return None if server_time is None else server_time.now()

    def clock_error(self) -> int:
        server_time = self._last_received()
        return 0 if server_time is None else server_time.error()

    def _last_received(self) -> ServerTime | None:
        session = self._present()
        return (session.server_time if session is not None else None) or self._server_time

    def _end(self, session: Session) -> None:
        self._server_time = session.server_time or self._server_time
        self._of_thread.session = None
        session.release()

    @contextmanager
    def _session(self) -> Iterator[Session]:
        """The transaction of this thread, or a connection for a statement on its own."""
        session = self._present()
        if session is not None:
            yield session
            return
        self._check_process()
        session = Session(self.address, self.connections)
        try:
            yield session
        finally:
            session.release()

    def join(self, connection: Any) -> tuple[Joined, int | None]:
        """Somebody else's transaction, with the lock and the instant of ours."""
        joined = Joined(connection, self.address, self._key)
        return joined, joined.begin()

    # -- statements ----------------------------------------------------------------------------

    def execute(self, statement: str, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._session() as session:
            rows = session.execute(statement, parameters)
            self._of_thread.changes = session.changes
            return rows

    def ask(self, questions: Sequence[tuple[str, Mapping[str, Any]]]) -> list[list[Any]]:
        """The rows of several queries, in one round trip."""
        with self._session() as session:
            answers: list[list[Any]] = session.ask(questions)
            return answers

    def send(self, statement: str, parameters: Mapping[str, Any]) -> None:
        self.execute_many(statement, [parameters])

    def push(self) -> None:
        session = self._present()
        if session is not None:
            session.push()

    def execute_many(self, statement: str, parameters: Iterable[Mapping[str, Any]]) -> None:
        session = self._present()
        if session is None:
            raise StoreError(f"{self.address}: many changes need a transaction")
        session.send(statement, list(parameters))

    def changes(self) -> int:
        return int(self._of_thread.changes)

    def others_wrote(self) -> bool:
        """Within a write transaction: whether others committed since this was asked in the last
        one."""
        session = self._present()
        if session is None:
            return True
        before = self._known
        now = self._of_thread.known = KnownCommit(session.newest(), session.connection)
        return before is None or before.over is not now.over or session.disturbed() > before.number

    def json(self, values: Sequence[Any]) -> Any:
        return list(values)

    def explain(self, statement: str, parameters: Mapping[str, Any]) -> list[str]:
        rows = self.execute(f"explain {statement}", parameters)
        return [str(row[0]) for row in rows]

    def script(self, text: str) -> None:
        """Many statements without parameters, within a transaction."""
        with self._session() as session:
            session.script(text)

    # -- what others commit --------------------------------------------------------------------

    def changed(self) -> bool:
        """Whether someone else committed since this was last asked."""
        self._check_process()
        with self._looking:
            news, self._seen = news_among(self._notices(), self._key, self._seen)
            self.undisturbed = news is not None and all(each.calls for each in news)
            if news is not None:
                return bool(news)
            newest = int(self._ask(NEWEST_COMMIT)[0][0])
            changed = newest != self._seen
            self._seen = newest
            return changed

    def _ask(self, statement: str) -> list[tuple[Any, ...]]:
        """On a connection for this alone, outside of any transaction."""
        session = Session(self.address, self.connections)
        try:
            return session.surely(lambda: session.execute(statement, {}))
        finally:
            session.release()

    def watch_hints(self, watch: Watch) -> None:
        """Have each line on which hints come waited for by this, and forgotten before it goes."""
        with self._looking:
            self._watch = watch
            if self.listener is not None and not self.listener.closed:
                self.listener.on_close = watch(self.listener)

    def hints(self) -> Connection | None:
        """The connection on which notifications of others' commits arrive."""
        self._check_process()
        if self.address.poll_only:
            return None
        with self._looking, suppress(psycopg.OperationalError, StoreBusyError):
            return self._listening()
        return None

    def _notices(self) -> list[Notice]:
        """All notices so far, taken before the check: a later commit sends a new one."""
        if self.listener is None:
            return []
        try:
            received = [notice_in(each, self._own) for each in self._listening().wire.notices()]
        except (psycopg.OperationalError, StoreBusyError):
            self._drop_listener()
            return []
        return received

    def _listening(self) -> Connection:
        if self.listener is None or self.listener.closed:
            self._drop_listener()
            listener = self.address.connect()
            listener.wire.run([("listen headway", {})])
            listener.on_close = self._watch(listener)
            self.listener = listener
        return self.listener

    def _drop_listener(self) -> None:
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.close()

    # -- the store as a whole ------------------------------------------------------------------

    def check(self) -> None:
        self._check_process()

    def quick_check(self) -> list[str]:
        return []  # the server checks its own files

    def size(self) -> int:
        return int(self._ask(SIZE)[0][0])

    def wal_bytes(self) -> int:
        return 0

    def checkpoint(self) -> bool:
        return True

    def backup(self, path: str) -> None:
        from headway.store.copy import copy_to_file

        self._check_process()
        copy_to_file(self, path)

    def table(self, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """All columns and rows of one of our tables."""
        with self._session() as session:
            return session.table(name)

    def close(self) -> None:
        if os.getpid() == self._pid:
            self.connections.close()
            self._drop_listener()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self.address} was opened by process {self._pid}; a forked process opens its own"
            )

    def schema(self) -> int:
        return self.version()

    def version(self) -> int:
        """That of the schema; 0 without one. Learns the key of the writers' lock on the way."""
        asked = SystemClock().monotonic()
        try:
            rows = self._ask(VERSION)
        except StoreError as error:
            if not isinstance(error.__cause__, errors.UndefinedTable):
                raise
            return 0
        if not rows:
            return 0
        version, self._key, newest, now, self.name = rows[0]
        self._latest.received(newest)
        self._server_time = server_time_now(now, asked)
        return int(version)


def driver_version() -> str:
    return psycopg.__version__


def has_schema(url: str, *, poll_only: bool = False) -> bool:
    """Whether anything of ours was ever made there."""
    database = PostgresDatabase(url, poll_only=poll_only)
    try:
        return database.version() != 0
    finally:
        database.close()


def open_database(url: str, *, poll_only: bool = False) -> PostgresDatabase:
    """Connect, and bring the schema up to date."""
    database = PostgresDatabase(url, poll_only=poll_only)
    try:
        migrate(database)
        if database.name is None:
            name_store(database)
    except BaseException:
        database.close()
        raise
    return database


def name_store(database: PostgresDatabase) -> None:
    """Give it a name of its own, by which it is known whatever it is reached by. Older ones are
    named when they are first opened."""
    database.begin_write()
    try:
        database.execute(NAME_STORE, {"name": os.urandom(8).hex()})
        database.commit()
    except BaseException:
        database.rollback()
        raise
    database.version()


def migrate(database: PostgresDatabase) -> None:
    """Apply the missing steps, each in one transaction under the writers' lock."""
    if database.version() == schema_version():
        return
    for step in migrations(DIALECT):
        database.begin_write()
        try:
            database.execute(IN_ITS_PLACE, {})
            database.execute("create table if not exists schema_version (version bigint)", {})
            rows = database.execute("select version from schema_version", {})
            version = rows[0][0] if rows else 0
            if version > schema_version():
                raise SchemaTooNewError(
                    f"{database.address} has schema {version}; "
                    f"this Headway knows {schema_version()}. Upgrade Headway"
                )
            if version < step.number:
                database.script(step.script)
                database.execute("delete from schema_version", {})
                database.execute(
                    "insert into schema_version values (%(number)s)", {"number": step.number}
                )
            reach("store.migrated")
            database.commit()
        except BaseException:
            database.rollback()
            raise
    database.version()
