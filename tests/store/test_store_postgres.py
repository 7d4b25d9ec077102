"""What only a server can do to a store: go away, answer late, lose word of a commit or a notice."""

import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import CrashableServer, Line, line_to
from stocked import START, add, finish_of, job, parking, start

from headway.base.clock import Clock, SystemClock
from headway.base.errors import (
    HeadwayError,
    InvalidInputError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUndoneError,
)
from headway.core.model import FUNCTIONS, Lock, Pause, Stage
from headway.store import open_store
from headway.store.copy import copy_to_file
from headway.store.new_jobs import Alike, Event, Model
from headway.store.postgres import session as pgsession
from headway.store.postgres.database import PostgresDatabase
from headway.store.store import Store
from headway.testing.clock import FakeClock
from postgres import fresh_schema

Open = Callable[..., Store]


@pytest.fixture
def opened() -> Iterator[Open]:
    with ExitStack() as stack:

        def open_it(url: str, clock: Clock | None = None) -> Store:
            store = open_store(url, clock or FakeClock(START), create=True)
            stack.callback(store.close)
            return store

        yield open_it


@pytest.fixture
def store(opened: Open, postgres_url: str) -> Store:
    return opened(postgres_url)


@pytest.fixture
def other(opened: Open, postgres_url: str) -> Store:
    return opened(postgres_url)


@pytest.fixture
def operator(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Someone with psql."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def database_of(store: Store) -> PostgresDatabase:
    found = store.database  # type: ignore[attr-defined]
    assert isinstance(found, PostgresDatabase)
    return found


def names(store: Store) -> list[str]:
    with store.read() as tx:
        return sorted(job.name for job in tx.jobs.active())


def write(store: Store, name: str) -> None:
    with store.write() as tx:
        add(tx, name=name)


def with_option(url: str, setting: str) -> str:
    return url.replace("options=", f"options=-c{setting.replace('=', '%3D')}%20")


# -- the server goes away -------------------------------------------------------------------------


def test_after_a_crash_of_the_server_the_next_transaction_works(
    crashable: CrashableServer, crashable_url: str, opened: Open
) -> None:
    """# fault D1"""
    store = opened(crashable_url)
    write(store, "before")
    crashable.crash()
    write(store, "after")
    crashable.crash()
    assert names(store) == ["after", "before"]


def test_a_crash_of_the_server_in_the_middle_of_a_change_undoes_it(
    crashable: CrashableServer, crashable_url: str, opened: Open
) -> None:
    """# fault D1"""
    store = opened(crashable_url)
    with pytest.raises(StoreBusyError, match="try again") as error, store.write() as tx:
        add(tx, name="lost")
        crashable.crash()
        add(tx, name="lost, too")
    assert error.value.exit_code == 6
    assert names(store) == []
    write(store, "next")
    assert names(store) == ["next"]


def test_a_transaction_number_given_out_again_after_a_crash_is_not_taken_for_ours(
    crashable: CrashableServer, crashable_url: str, opened: Open
) -> None:
    """# fault D2: the crash forgot ours, and the next one to write gets its number."""
    with line_to(crashable_url) as line:
        store, other = opened(line.url), opened(crashable_url)

        def crash_and_let_another_write() -> None:
            crashable.crash()
            write(other, "another's")

        line.cut, line.meanwhile = "before", crash_and_let_another_write
        with pytest.raises(StoreBusyError, match="try again"):
            write(store, "ours")
        assert names(store) == names(other) == ["another's"]


@pytest.mark.parametrize("what", ["read", "write", "changed"])
def test_a_connection_that_was_ended_between_transactions_is_made_anew(
    store: Store, other: Store, operator: psycopg.Connection[Any], what: str
) -> None:
    write(other, "first")
    end_connections(operator, store)
    if what == "write":
        write(store, "second")
    if what == "changed":
        assert store.changed()
    assert "first" in names(store)


def end_connections(operator: psycopg.Connection[Any], store: Store) -> None:
    pid = database_of(store).connections.first.info.backend_pid
    operator.execute("select pg_terminate_backend(%s, 5000)", [pid])


class Watched:
    """A store being copied, to which something happens before each table is read."""

    def __init__(self, store: Store, happens: Callable[[str], None]) -> None:
        self._database = database_of(store)
        self._happens = happens
        self.begin_read = self._database.begin_read
        self.rollback = self._database.rollback

    def table(self, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        self._happens(name)
        return self._database.table(name)


def test_a_backup_that_is_interrupted_leaves_no_file(
    store: Store, operator: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """# fault D1"""
    path = str(tmp_path / "copy.db")
    with pytest.raises(StoreBusyError, match="try again"):
        copy_to_file(Watched(store, lambda name: end_connections(operator, store)), path)
    assert os.listdir(tmp_path) == []
    store.backup(path)
    assert os.listdir(tmp_path) == ["copy.db"]


# -- a commit whose answer is lost ----------------------------------------------------------------


def test_a_commit_that_happened_although_its_answer_was_lost_is_no_error(
    line: Line, opened: Open, other: Store
) -> None:
    """# fault D2"""
    store = opened(line.url)
    line.cut = "after"
    write(store, "once")
    assert line.cut is None
    assert names(other) == names(store) == ["once"]
    write(store, "next")
    assert names(other) == ["next", "once"]


def test_a_commit_that_never_reached_the_server_is_an_error(
    line: Line, opened: Open, other: Store
) -> None:
    """# fault D2"""
    store = opened(line.url)
    line.cut = "before"
    with pytest.raises(StoreBusyError, match="try again"):
        write(store, "never")
    assert line.cut is None
    assert names(other) == names(store) == []
    write(store, "again")
    assert names(other) == ["again"]


def test_a_lost_answer_is_resolved_although_others_wrote_since(
    line: Line, opened: Open, other: Store
) -> None:
    """# fault D2"""
    store = opened(line.url)

    def let_others_write() -> None:
        for number in range(5):
            write(other, f"other-{number}")

    line.cut, line.meanwhile = "after", let_others_write
    write(store, "made")
    assert names(other).count("made") == 1 and len(names(other)) == 6


def test_what_cannot_be_known_any_more_is_said_to_be_unknown(
    line: Line, opened: Open, operator: psycopg.Connection[Any]
) -> None:
    """# fault D2: so many have written since that the trace of our commit is overwritten."""
    store = opened(line.url)

    def overwrite_all_traces() -> None:
        while not operator.execute("select 1 from jobs where name = 'made'").fetchone():
            pass  # the server has the commit, but may not have made it yet
        operator.execute("update commits set number = number + 1000000, token = 'another'")

    line.cut, line.meanwhile = "after", overwrite_all_traces
    with pytest.raises(StoreBusyError, match="look before you repeat it"):
        write(store, "made")
    assert names(store) == ["made"]


# -- dead peers and those who wait for them -------------------------------------------------------


def test_a_dead_server_is_noticed_within_seconds(store: Store) -> None:
    """# fault D5: by inspection; a dead line cannot be had without rights over the network."""
    database = database_of(store)
    store.hints()
    assert database.listener is not None
    for connection in (database.connections.first, database.listener):
        given = connection.info.get_parameters()
        wanted = {
            "keepalives_idle": "5",
            "keepalives_interval": "2",
            "keepalives_count": "3",
            "tcp_user_timeout": "10000",
            "connect_timeout": "10",
        }
        assert {name: given.get(name) for name in wanted} == wanted


def test_a_writer_that_vanished_does_not_keep_its_turn(store: Store) -> None:
    """# fault D5: the server ends a writing transaction that says nothing for half a minute."""
    with store.write():
        rows = database_of(store).execute("show idle_in_transaction_session_timeout", {})
    assert rows == [("30s",)]
    with store.read():
        rows = database_of(store).execute("show idle_in_transaction_session_timeout", {})
    assert rows == [("0",)]  # a backup may take its time, and holds up nobody


def test_a_turn_that_does_not_come_is_a_busy_store(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgsession, "BUSY_SECONDS", 0.05)
    with (
        other.write() as tx,
        pytest.raises(StoreBusyError, match="another process is writing"),
        store.write(),
    ):
        raise AssertionError("two write at once")
    del tx
    write(store, "afterwards")


@pytest.mark.bulk
@pytest.mark.parametrize("way", ["write", "submit"])
def test_a_turn_for_which_the_server_lets_nobody_wait_so_long_is_a_busy_store(
    other: Store, opened: Open, postgres_url: str, way: str
) -> None:
    """Nothing was done, so a worker steps again later, and a submit is made again."""
    store = opened(with_option(postgres_url, "statement_timeout=50ms"))
    command = Alike(Model(job(0, stage=Stage.READY)), {0: {}})
    store.add_alike([command])
    with other.write(), pytest.raises(StoreUndoneError, match="timeout; try again"):
        if way == "write":
            write(store, "never")
        else:
            store.add_alike([command])
    write(store, "afterwards")
    assert len(names(store)) == 2


# -- one writer at a time -------------------------------------------------------------------------


class Writer:
    """Writes in a thread of its own, and tells what it saw when its turn came."""

    def __init__(self, store: Store, operator: psycopg.Connection[Any]) -> None:
        self.saw: list[str] = []
        self.now = 0
        self._store = store
        self._operator = operator
        self._entered = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        with self._store.write() as tx:
            self._entered.set()
            self.now = tx.now()
            self.saw = [job.name for job in tx.jobs.active()]

    def start_and_wait_in_line(self) -> None:
        """Return when the server knows that it waits, for a lock that someone else holds."""
        self._thread.start()
        pid = database_of(self._store).connections.first.info.backend_pid
        waits = "select 1 from pg_locks where not granted and locktype = 'advisory' and pid = %s"
        while not self._operator.execute(waits, [pid]).fetchone():
            assert not self._entered.is_set(), "it did not wait"

    def finish(self) -> None:
        self._thread.join(30)
        assert self._entered.is_set()


def test_a_second_writer_waits_for_the_first_and_then_sees_what_it_wrote(
    store: Store, other: Store, operator: psycopg.Connection[Any], opened: Open, postgres_url: str
) -> None:
    second = Writer(other, operator)
    with store.write() as tx:
        add(tx, name="first")
        second.start_and_wait_in_line()
        assert names(opened(postgres_url)) == []  # a reader does not wait
    second.finish()
    assert second.saw == ["first"]


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_the_turn_counts_whatever_isolation_the_server_prefers(
    operator: psycopg.Connection[Any], opened: Open, postgres_url: str, level: str
) -> None:
    url = with_option(postgres_url, f"default_transaction_isolation={level}".replace(" ", "%5C%20"))
    store, other = opened(url), opened(url)
    second = Writer(other, operator)
    with store.write() as tx:
        add(tx, name="first")
        second.start_and_wait_in_line()
    second.finish()
    assert second.saw == ["first"]


def test_the_turn_belongs_to_the_tables_and_not_to_the_way_they_are_found(
    store: Store, operator: psycopg.Connection[Any], opened: Open, postgres_url: str
) -> None:
    """Another user may have an empty schema of the user's own before the one with the tables."""
    (schema,) = operator.execute("select current_schema()").fetchone() or ("",)
    operator.execute(f"create schema {schema}_empty")
    try:
        found_behind = opened(postgres_url.replace(schema, f"{schema}_empty,{schema}"))
        second = Writer(found_behind, operator)
        found_behind.changed()
        with store.write() as tx:
            add(tx, name="first")
            second.start_and_wait_in_line()
        second.finish()
        assert second.saw == ["first"] and found_behind.changed()
    finally:
        operator.execute(f"drop schema {schema}_empty")


def test_a_read_transaction_sees_one_instant(store: Store, other: Store) -> None:
    with store.read() as tx:
        assert (
            tx.settings.marks()["next_job_id"] == 1
        )  # this, not the beginning, is when it looks first
        write(other, "meanwhile")
        assert tx.jobs.active() == [] and tx.settings.marks()["next_job_id"] == 1
    assert names(store) == ["meanwhile"]


# -- the clock ------------------------------------------------------------------------------------


class WrongClock(SystemClock):
    """The clock of a host that is ten minutes ahead."""

    def now(self) -> int:
        return super().now() + 600_000_000


def test_the_server_tells_the_time_for_all_hosts(
    opened: Open, postgres_url: str, operator: psycopg.Connection[Any]
) -> None:
    """# fault D9"""
    stores = [opened(postgres_url, SystemClock()), opened(postgres_url, WrongClock())]
    instants = [server_time(operator)]
    for store in stores:
        with store.write() as tx:
            instants.append(tx.now())
        with store.read() as tx:
            instants.append(tx.now())
    instants.append(server_time(operator))
    assert instants == sorted(instants)


def server_time(operator: psycopg.Connection[Any]) -> int:
    statement = "select (extract(epoch from clock_timestamp()) * 1000000)::bigint"
    return int((operator.execute(statement).fetchone() or [0])[0])


def test_a_writer_that_waited_has_the_instant_of_its_turn(
    opened: Open, postgres_url: str, operator: psycopg.Connection[Any]
) -> None:
    """Or else what it writes would seem to be older than what it read."""
    store, other = (opened(postgres_url, SystemClock()) for _ in range(2))
    second = Writer(other, operator)
    with store.write():
        second.start_and_wait_in_line()
        still_first = server_time(operator)
    second.finish()
    assert second.now > still_first


# -- what others commit ---------------------------------------------------------------------------


def quiet(store: Store) -> None:
    store.hints()
    store.changed()
    assert not store.changed()


def note(store: Store) -> None:
    """A change that leaves an event, as most do."""
    with store.write() as tx:
        tx.events.add([Event("noted")], actor="ann")


def test_a_notice_makes_the_hints_readable(store: Store, other: Store) -> None:
    quiet(store)
    hints = store.hints()
    assert hints is not None
    write(other, "news")
    assert select.select([hints], [], [], 30)[0]
    assert store.changed() and not store.changed()
    assert not select.select([hints], [], [], 0)[0]


def test_own_commits_are_no_news(store: Store) -> None:
    quiet(store)
    note(store)
    assert not store.changed()
    store.close()


@pytest.mark.parametrize("act", [note, lambda store: write(store, "silent")], ids=["event", "none"])
def test_a_lost_notice_is_made_up_for_by_looking(
    store: Store, other: Store, operator: psycopg.Connection[Any], act: Callable[[Store], None]
) -> None:
    """# fault D8"""
    quiet(store)
    listener = database_of(store).listener
    assert listener is not None
    listener.execute("unlisten *")  # as behind a pooler, where no notice ever arrives
    act(other)
    assert store.changed() and not store.changed()
    note(store)
    act(other)
    note(store)
    assert store.changed() and not store.changed()


@pytest.mark.bulk
@pytest.mark.parametrize("next_one", ["a call of another's", "our own"])
def test_a_notice_tells_of_those_that_are_missing_before_it(
    store: Store, other: Store, next_one: str
) -> None:
    """# fault D8: it was lost with the line, and the next came over the new one."""
    call = Alike(Model(job(0, type="function", queue=FUNCTIONS, stage=Stage.READY)), {0: {}})
    other.add_alike([call])
    quiet(store)
    listener = database_of(store).listener
    assert listener is not None
    listener.execute("unlisten *")
    note(other)
    listener.execute("listen headway")
    if next_one == "our own":
        note(store)
    else:
        other.add_alike([call])
    assert select.select([listener], [], [], 30)[0]
    assert store.changed() and not store.undisturbed()
    assert not store.changed()


def test_a_dead_listener_is_replaced_and_nothing_is_missed(
    store: Store, other: Store, operator: psycopg.Connection[Any]
) -> None:
    """# fault D8"""
    quiet(store)
    listener = database_of(store).listener
    assert listener is not None
    operator.execute("select pg_terminate_backend(%s, 5000)", [listener.info.backend_pid])
    write(other, "meanwhile")
    assert store.changed()
    quiet(store)
    write(other, "later")
    assert store.changed() and not store.changed()


def test_notices_of_other_stores_on_the_server_are_not_for_us(
    store: Store, opened: Open, postgres_server: str
) -> None:
    with fresh_schema(postgres_server) as url:
        stranger = opened(url)
        quiet(store)
        write(stranger, "elsewhere")
        assert not store.changed()
        stranger.close()


# -- refusals -------------------------------------------------------------------------------------


def test_a_deadlock_is_a_busy_store_and_undoes_the_change(
    store: Store, operator: psycopg.Connection[Any]
) -> None:
    """# fault D12: headway's own locks have one order; someone with psql may have another."""
    write(store, "a")
    write(store, "b")
    database = database_of(store)
    operator.execute("set deadlock_timeout = '1min'")  # so that it is we who notice
    with operator.transaction():
        operator.execute("update jobs set slug = 'theirs' where name = 'b'")
        waiting = threading.Thread(
            target=operator.execute, args=("update jobs set slug = 'theirs' where name = 'a'",)
        )
        with pytest.raises(StoreBusyError, match="deadlock detected; try again"), store.write():
            database.execute("set local deadlock_timeout = '10ms'", {})
            database.execute("update jobs set slug = 'ours' where name = 'a'", {})
            waiting.start()
            own = database.connections.first.info.backend_pid
            held_up = "select 1 from pg_stat_activity where %(own)s = any(pg_blocking_pids(pid))"
            while not database.execute(held_up, {"own": own}):
                pass
            database.execute("update jobs set slug = 'ours' where name = 'b'", {})
        waiting.join()
    with store.read() as tx:
        assert [job.slug for job in tx.jobs.active()] == ["theirs", "theirs"]


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        ("40001", StoreUndoneError),  # serialization_failure
        ("40P01", StoreUndoneError),  # deadlock_detected
        ("55P03", StoreUndoneError),  # lock_not_available
        ("53100", StoreFullError),  # disk_full
        ("25006", StoreReadOnlyError),  # read_only_sql_transaction
        ("XX000", StoreError),  # internal_error
    ],
)
def test_what_the_server_refuses_is_said_in_our_words_and_undone(
    store: Store, code: str, refusal: type[StoreError]
) -> None:
    """# fault D12"""
    fail = f"do $$ begin raise exception 'it happens' using errcode = '{code}'; end $$"
    with pytest.raises(refusal) as error, store.write() as tx:
        add(tx)
        database_of(store).execute(fail, {})
    assert type(error.value) is refusal and error.value.exit_code == 6
    assert names(store) == []


def test_a_refusal_at_the_very_commit_is_said_in_our_words(store: Store) -> None:
    """# fault D12: a constraint that is checked last fails when COMMIT is asked for."""
    database = database_of(store)
    database.execute(
        "create function full_now() returns trigger language plpgsql as $$ begin "
        "raise exception 'it happens' using errcode = '53100'; end $$",
        {},
    )
    database.execute(
        "create constraint trigger late after insert on jobs deferrable initially deferred "
        "for each row execute function full_now()",
        {},
    )
    with pytest.raises(StoreFullError, match="it happens"):
        write(store, "never")
    assert names(store) == []


def test_a_server_that_only_reads_is_read(store: Store, opened: Open, postgres_url: str) -> None:
    write(store, "there")
    replica = opened(with_option(postgres_url, "default_transaction_read_only=on"))
    assert names(replica) == ["there"]
    with pytest.raises(StoreReadOnlyError):
        write(replica, "never")
    assert names(store) == ["there"]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:s3cret@127.0.0.1:1/x",
        "postgresql://ann:s3cret@127.0.0.1:1/x?connect_timeout=2",
        "postgresql://127.0.0.1:1/x?user=ann&password=s3cret",
        "postgresql://127.0.0.1:1/x?sslpassword=s3cret&user=ann",
        "postgresql://ann:@s3cret@127.0.0.1:1/x",
        "postgresql://ann:s3cret@s3cret@127.0.0.1:1/x",
        "postgresql://ann:12/s3cret@127.0.0.1:1/x",
        "postgresql://ann:s3cret/1@127.0.0.1:1/x",
        "postgresql://ann:s3cret%zz@127.0.0.1:1/x",
        "postgresql://ann:s3cret@127.0.0.1:1/x?nonsense",
        "postgresql://ann:s3cret@[::1/x",
        "postgresql://ann:s3cret?@127.0.0.1:1/x",
        "postgresql://ann:s3cret#@127.0.0.1:1/x",
    ],
)
def test_a_password_is_in_no_message(url: str) -> None:
    with pytest.raises((StoreBusyError, InvalidInputError)) as error:
        open_store(url, FakeClock(START))
    assert "s3cret" not in str(error.value) and "ann" in str(error.value)
    assert isinstance(error.value, HeadwayError)


def test_everything_but_closing_is_refused_in_a_forked_process(
    store: Store, other: Store, tmp_path: Path
) -> None:
    """# fault C8: not even a notice that is meant for the parent is taken away."""
    quiet(store)
    write(other, "news")
    child = os.fork()
    if child == 0:
        refused = 0
        for act in (store.changed, store.hints, lambda: store.backup(str(tmp_path / "copy"))):
            try:
                act()
            except StoreError as error:
                refused += "a forked process opens its own" in str(error)
        store.close()
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert store.changed()
    write(store, "unharmed")
    assert names(other) == ["news", "unharmed"]


# -- copies ---------------------------------------------------------------------------------------


def test_a_backup_is_a_file_with_everything_in_it(store: Store, tmp_path: Path) -> None:
    with store.write() as tx:
        ended = add(tx, labels={"n": "é"}, locks=(Lock("k"),), key="once")
        tx.claims.finish([finish_of(start(tx, ended), document={"n": 1})])
        add(tx, after=(ended.id,))
        tx.waits.park([parking(add(tx, locks=(Lock("k"),)), "lock:k", reserves=True)])
        start(tx, add(tx), 2)
        tx.events.add([Event("submitted", ended.id, {"n": [1, None]})], actor="ann")
        tx.settings.set("scheduler.max_active", 3, by="ann")
        tx.settings.pause(Pause("ann", "because", START))
    path = tmp_path / "copy.db"
    store.backup(str(path))
    assert os.listdir(tmp_path) == ["copy.db"]
    copy = open_store(f"sqlite://{path}", FakeClock(START))
    try:
        assert everything(copy) == everything(store)
        with copy.write() as tx:
            assert add(tx).id == 5  # it can be worked with
            tx.events.add([Event("restored")], actor="ann")
            assert [event.seq for event in tx.events.since(0, 10)] == [1, 2]
    finally:
        copy.close()


def everything(store: Store) -> dict[str, Any]:
    with store.read() as tx:
        ids = range(1, 9)
        return {
            "jobs": tx.jobs.by_id(ids),
            "runs": tx.jobs.runs(ids),
            "events": tx.events.since(0, 100),
            "evidence": tx.jobs.evidence(ids),
            "claims": sorted(tx.claims.live()),
            "predecessors": tx.waits.predecessors(tx.jobs.active()),
            "locks": tx.claims.lock_views(["k"]),
            "settings": tx.settings.all(),
            "pause": tx.settings.pause_in_force(),
            "marks": tx.settings.marks(),
        }


def test_a_backup_is_of_one_instant(store: Store, other: Store, tmp_path: Path) -> None:
    def meanwhile(name: str) -> None:
        note(other)
        write(other, name)

    copy_to_file(Watched(store, meanwhile), str(tmp_path / "copy.db"))
    copy = open_store(f"sqlite://{tmp_path}/copy.db", FakeClock(START))
    try:
        with copy.read() as tx:
            assert tx.jobs.active() == [] and tx.events.since(0, 10) == []
            assert tx.settings.marks()["next_job_id"] == 1
    finally:
        copy.close()
