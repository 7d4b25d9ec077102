"""SQLite through apsw: open, migrate, begin, commit, and say plainly what went wrong.

WAL with `synchronous=FULL`, so that what was acknowledged survives a power cut; every write
transaction is `BEGIN IMMEDIATE`, so that it waits for its turn at the start and never fails in the
middle. A connection belongs to the process that opened it. The file is watched: a database that was
deleted or exchanged underneath is never written to.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import apsw

from headway.base.crashpoints import reach
from headway.base.errors import (
    InvalidInputError,
    SchemaTooNewError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreReplacedError,
)
from headway.store.patience import Patience, wait
from headway.store.queries import Dialect, by_place, migrations, schema_version
from headway.store.sqlite.errors import damaged, translate
from headway.store.sqlite.filesystems import file_system, refuse_network_file_system

# What a commit writes and syncs is whole pages, and most are of small jobs: those of half the usual
# size make a commit a tenth cheaper.
_PAGE_BYTES = 2048
_LOG = "pragma wal_autocheckpoint = 2000"  # as many bytes as usual
COMMIT = "commit"
OLDEST_SAFE = (3, 51, 3)  # older ones can corrupt a WAL database when a checkpoint resets the log

_SETS = Dialect(
    name="sqlite",
    identifier="integer primary key",
    serial="integer primary key",
    ids=r"in (select value from json_each(:\1))",
    texts=r"in (select value from json_each(:\1))",
    rows="(select {fields} from json_each(:{parameter})) as given",
    field="value ->> '{name}' as {name}",
    lists="(select {fields} from json_each(:{parameter})) as given",
    item="value ->> {place} as {name}",
    each="",
    # The first job of a chain is found by its id, which is the chain's: no other index has it.
    chain=r"(\1id \2 or (\1chain \2 and \1chain <> \1id))",
)
DIALECT = _SETS._replace(
    one=_SETS._replace(
        ids=r"= :\1",
        texts=r"= :\1",
        rows="(select {fields}) as given",
        field=":given_{name} as {name}",
        lists="(select {fields}) as given",
        item=":given_{name} as {name}",
    )
)


class SqliteDatabase:
    """One connection, for one process and one thread at a time."""

    dialect = DIALECT
    shared = False
    name: str | None = None
    undisturbed = False  # nobody tells
    one_at_a_time = True

    def __init__(
        self,
        path: str,
        connection: apsw.Connection,
        identity: tuple[int, int] | None = None,
    ) -> None:
        """`identity` was taken before the file was opened, if it may be exchanged at any time."""
        self.path = path
        self._connection = connection
        connection.set_busy_handler(self._wait)
        self.patience = Patience()
        self._pid = os.getpid()
        self._identity = identity or _identity(path)
        self._seen_version: int | None = None
        self._version_written: int | None = None
        self.undone = 0

    def begin_read(self) -> None:
        self.check()
        self._plainly(self._connection.execute, "begin")

    def begin_write(self) -> None:
        """The file is checked when nobody else can write to it: a restore may have come before. So
        nothing is written to a file that is not ours, and nobody waits for its lock."""
        self._check_process()
        try:
            self._connection.execute("begin immediate")
            self._check_file()
        except apsw.Error as error:
            raise self.translated(error) from error
        except StoreError:
            self.rollback()
            raise

    def _wait(self, tries: int) -> bool:
        """For others, who are writing."""
        if not tries:
            self.check()
        return not self.patience.is_over and wait(tries)

    def begin_write_soon(
        self,
        *,
        optimistic: bool = False,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        """There is no other way here: nothing has to travel, and nothing is waited for."""
        self.begin_write()

    def commit(self) -> None:
        self.finish(COMMIT, ())

    def finish(self, sql: str, parameters: tuple[Any, ...]) -> None:
        """The last statements, of which the commit is the last; all at once costs less."""
        try:
            self._connection.execute(sql, parameters)
        except apsw.Error as error:
            raise self.translated(error) from error
        reach("store.committed")

    def present(self) -> None:
        """A file has no clock."""

    def clock_error(self) -> int:
        return 0

    def rollback(self) -> None:
        if self._connection.in_transaction:
            # A full disk may have rolled it back already, which is what is wanted.
            with suppress(apsw.SQLError):
                self._connection.execute("rollback")

    def execute(
        self, sql: str, parameters: Mapping[str, Any] | tuple[Any, ...]
    ) -> list[tuple[Any, ...]]:
        """By name or, which is quicker, in the order in which the names come."""
        try:
            rows: list[tuple[Any, ...]] = self._connection.execute(sql, parameters).fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self.translated(error) from error
        return rows

    def join(self, connection: Any) -> tuple[Any, int | None]:
        raise InvalidInputError("submit_on needs a store on PostgreSQL, and a connection to it")

    def send(self, sql: str, parameters: Mapping[str, Any]) -> None:
        self.execute(sql, parameters)

    def push(self) -> None:
        """Nothing to do: changes are made at once."""

    def execute_many(self, sql: str, parameters: Iterable[Mapping[str, Any]]) -> None:
        """By place, which takes half the time of looking up each value by its name."""
        self._plainly(self._connection.executemany, sql, map(by_place(sql), parameters))

    def changes(self) -> int:
        return self._connection.changes()

    def json(self, values: Sequence[Any]) -> Any:
        """A set of values as one parameter."""
        import json

        return json.dumps(list(values))

    def explain(self, sql: str, parameters: Mapping[str, Any]) -> list[str]:
        rows = self.execute(f"explain query plan {sql}", parameters)
        return [str(row[3]) for row in rows]

    def check(self) -> None:
        self._check_process()
        self._check_file()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self.path} was opened by process {self._pid}; a forked process opens its own"
            )

    def _check_file(self) -> None:
        if _identity(self.path) != self._identity:
            raise StoreReplacedError(
                f"{self.path} was deleted or replaced while it was open; "
                "nothing more is written to the old file. Put it back, or start again"
            )

    def hints(self) -> None:
        return None  # commands wake the worker through its socket

    def watch_hints(self, watch: Any) -> None:
        """There are none."""

    def ask(self, questions: Sequence[tuple[str, Mapping[str, Any]]]) -> list[list[Any]]:
        return [self.execute(*each) for each in questions]

    def version(self) -> int:
        """Within a transaction: another one whenever anybody has committed, this one included."""
        return self._connection.data_version()

    def others_wrote(self) -> bool:
        """Within a write transaction: whether another connection committed since this was asked in
        the last one."""
        version: Any = self._connection.execute("pragma data_version").fetchall()[0][0]
        before, self._version_written = self._version_written, version
        return bool(version != before)

    def changed(self) -> bool:
        """Whether another connection committed since this was last asked."""
        version = self.execute("pragma data_version", {})[0][0]
        changed: bool = version != self._seen_version
        self._seen_version = version
        return changed

    def quick_check(self) -> list[str]:
        """The damage that SQLite finds in the file; empty when it is sound."""
        return self._problems("pragma quick_check(20)")

    def integrity_check(self) -> list[str]:
        """The same with every index compared to its table."""
        return self._problems("pragma integrity_check(20)")

    def _problems(self, pragma: str) -> list[str]:
        said = [str(row[0]) for row in self.execute(pragma, {}) if row[0] != "ok"]
        return [line for each in said for line in each.splitlines() if not line.startswith("***")]

    def schema(self) -> int:
        return int(self.execute("pragma user_version", {})[0][0])

    def objects(self) -> set[str]:
        """The names of all tables, indexes and triggers."""
        return {str(row[0]) for row in self.execute("select name from sqlite_schema", {})}

    def size(self) -> int:
        return os.stat(self.path).st_size + self.wal_bytes()

    def wal_bytes(self) -> int:
        try:
            return os.stat(f"{self.path}-wal").st_size
        except FileNotFoundError:
            return 0

    def checkpoint(self) -> bool:
        """Move the log into the file and cut it; False if a reader or a full disk forbids it."""
        self._connection.set_busy_handler(None)  # it is housekeeping: nobody shall wait for it
        try:
            self._plainly(
                lambda: self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            )
        except (StoreBusyError, StoreFullError):
            return False
        finally:
            self._connection.set_busy_handler(self._wait)
        return True

    def backup(self, path: str) -> None:
        """Write a consistent copy, also while others write; it appears whole or not at all."""
        from headway.store.sqlite.files import as_new_file

        with as_new_file(path) as fresh:
            os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            copy = _connect(fresh, apsw.SQLITE_OPEN_READWRITE)
            self._plainly(self._copy_to, copy)
            copy.execute("pragma journal_mode = delete")
            copy.close()

    def table(self, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """All columns and rows of one of our tables."""
        columns = [str(row[1]) for row in self.execute(f"pragma table_info({name})", {})]
        listing = ", ".join(columns)
        return columns, self.execute(f"select {listing} from {name}", {})  # noqa: S608

    def fill(self, name: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Replace what a table of a new store holds."""
        self.execute(f"delete from {name}", {})  # noqa: S608
        marks = ", ".join("?" for _ in columns)
        insert = f"insert into {name} ({', '.join(columns)}) values ({marks})"  # noqa: S608
        self._plainly(self._connection.executemany, insert, rows)

    def copy_into(self, other: "SqliteDatabase") -> None:
        """Put a consistent copy of this in the place of all that the other file holds."""
        self._plainly(self._copy_to, other._connection)

    def _copy_to(self, copy: apsw.Connection) -> None:
        with copy.backup("main", self._connection, "main") as backup:
            while not backup.done:
                backup.step(1000)

    def close(self) -> None:
        if os.getpid() == self._pid:
            self._connection.close()

    def _plainly(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self.translated(error) from error

    def translated(self, error: apsw.Error | UnicodeDecodeError) -> Exception:
        if isinstance(error, UnicodeDecodeError):
            return damaged(self.path, f"a text is not UTF-8: {error}")
        return translate(error, self.path, self._connection.system_errno)


def open_database(path: str, *, create: bool, unsafe_fs: bool = False) -> SqliteDatabase:
    """Open the file, bring its schema up to date; with `create`, make a missing one."""
    if library_version() < OLDEST_SAFE:
        raise StoreError(
            f"SQLite {shown_version()} can corrupt a WAL database; install apsw 3.51.3 or newer"
        )
    try:
        kind = file_system(os.path.dirname(path))
        if not unsafe_fs:
            refuse_network_file_system(os.path.dirname(path), kind)
    except FileNotFoundError:
        raise StoreError(f"there is no {os.path.dirname(path)}; run `headway init`") from None
    except PermissionError as error:
        raise StoreReadOnlyError(f"cannot read {path}: {error.strerror}") from error
    if not os.path.exists(path):
        if not create:
            raise StoreError(f"there is no store at {path}; run `headway init`")
        _create(path)
    if os.path.getsize(path) == 0:
        raise StoreCorruptError(
            f"{path} is empty, which no Headway store ever is; it was left as it is. "
            "Restore a backup, or move it away and run `headway init`"
        )
    if not os.access(path, os.W_OK) or not os.access(os.path.dirname(path), os.W_OK):
        return SqliteDatabase(path, _connect_read_only(path, schema=schema_version()))
    identity = _identity(path)
    connection = _connect(path, apsw.SQLITE_OPEN_READWRITE)
    database = SqliteDatabase(path, connection, identity)
    try:
        _use_log(connection, path)
        version = _version(connection)
    except apsw.Error as error:
        translated = database.translated(error)
        connection.close()
        raise translated from error
    if version != schema_version():
        migrate(database, connection)
    return database


def _connect(path: str, flags: int) -> apsw.Connection:
    try:
        connection = apsw.Connection(path, flags=flags, statementcachesize=256)
        connection.set_busy_handler(wait)
        connection.execute(f"pragma synchronous = full; pragma mmap_size = 0; {_LOG}")
        # Else SQLite, to plan by the values, would parse a statement anew whenever they are bound.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    except apsw.Error as error:
        raise translate(error, path) from error
    return connection


def _use_log(connection: apsw.Connection, path: str) -> None:
    """Have a file written through a log. The journal with which it is made so must not come back
    after a power cut: it would undo a page that others have changed since."""
    if connection.execute("pragma journal_mode").fetchall() != [("wal",)]:
        from headway.store.sqlite.files import sync_folder

        connection.execute("pragma journal_mode = wal")
        sync_folder(os.path.dirname(path))


def open_nothing() -> SqliteDatabase:
    """An empty database in memory, which can only be read."""
    connection = _connect(":memory:", apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
    database = SqliteDatabase(":memory:", connection)
    migrate(database, connection)
    connection.execute("pragma query_only = on")
    return database


def look(path: str) -> SqliteDatabase:
    """Open a file to read it, whatever it is: nothing is made, changed or migrated."""
    identity = _identity(path)
    return SqliteDatabase(path, _connect_read_only(path), identity)


def open_as_it_is(path: str) -> SqliteDatabase:
    """Open a file for writing without bringing its schema up to date."""
    identity = _identity(path)
    return SqliteDatabase(path, _connect(path, apsw.SQLITE_OPEN_READWRITE), identity)


def _connect_read_only(path: str, *, schema: int | None = None) -> apsw.Connection:
    """For reading where nothing can be written.

    A reader of a WAL database must write, too, unless the log's index is there already; if there
    is no log at all, nobody is writing, and the file can be read as one that never changes.
    """
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    modes = ["mode=ro"] if os.path.exists(f"{path}-wal") else ["mode=ro", "immutable=1"]
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        connection = apsw.Connection(f"file:{quoted}?{'&'.join(modes)}", flags=flags)
        connection.set_busy_handler(wait)
        if schema is not None and _version(connection) != schema:
            raise StoreReadOnlyError(f"{path} needs another schema and cannot be written")
    except apsw.Error as error:
        raise translate(error, path) from error
    return connection


def _create(path: str) -> None:
    """Make the whole file under another name and link it into place, so that no one ever meets
    a half-made store; if another process was faster, its file stands."""
    from headway.store.sqlite.files import (
        as_store_error,
        refuse_orphaned_log,
        remove_half_made,
        sync_folder,
    )

    refuse_orphaned_log(path)
    remove_half_made(path)
    fresh = f"{path}.{os.getpid()}.new"
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.close(os.open(fresh, flags, 0o600))
        connection = _connect(fresh, apsw.SQLITE_OPEN_READWRITE)
        connection.execute(f"pragma page_size = {_PAGE_BYTES}")
        migrate(SqliteDatabase(fresh, connection), connection)
        _use_log(connection, fresh)
        connection.close()
        with suppress(FileExistsError):
            os.link(fresh, path)
    except OSError as error:
        raise as_store_error(error, path) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(fresh)
    sync_folder(os.path.dirname(path))


def migrate(database: SqliteDatabase, connection: apsw.Connection) -> None:
    """Apply the missing steps, each in one transaction under the write lock."""
    for step in migrations(DIALECT):
        database.begin_write()
        try:
            version = _version(connection)
            if version > schema_version():
                raise SchemaTooNewError(
                    f"{database.path} has schema {version}; this Headway knows {schema_version()}. "
                    "Upgrade Headway"
                )
            if version < step.number:
                connection.execute(step.script)
                connection.execute(f"pragma user_version = {step.number}")
            reach("store.migrated")
            database.commit()
        except apsw.Error as error:
            database.rollback()
            raise database.translated(error) from error
        except BaseException:
            database.rollback()
            raise


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _version(connection: apsw.Connection) -> int:
    value: Any = connection.execute("pragma user_version").fetchall()[0][0]
    return int(value)


def library_version() -> tuple[int, ...]:
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))


def shown_version() -> str:
    return apsw.sqlite_lib_version()
