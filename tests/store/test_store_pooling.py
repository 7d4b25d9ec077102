"""Threads, poolers and round trips: how a PostgreSQL store uses its connections."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from others import another, words
from pooler import pooler_to
from servers import CrashableServer, Line
from stocked import START, add, job

from headway.base.errors import StoreBusyError, StoreError, StoreUndoneError
from headway.client import Client, connect
from headway.jobs.request import Request
from headway.store import open_store
from headway.store.new_jobs import Alike, Event, Model
from headway.store.postgres.database import PostgresDatabase
from headway.store.postgres.statements import LOCK_SPACE
from headway.store.store import Store
from headway.testing.clock import FakeClock

TRUE = Request(argv=("true",))
Open = Callable[..., Store]
Connect = Callable[[str], Client]


@pytest.fixture
def opened() -> Iterator[Open]:
    with ExitStack() as stack:

        def open_it(url: str, *, poll_only: bool = False) -> Store:
            store = open_store(url, FakeClock(START), poll_only=poll_only)
            stack.callback(store.close)
            return store

        yield open_it


@pytest.fixture
def client_of(tmp_path: Path) -> Iterator[Connect]:
    """Clients of one home, whose worker never starts."""
    home = tmp_path / ".headway"
    home.mkdir(0o700)
    (home / "config.toml").write_text("[worker]\nautostart = false\n")
    environ = {"PATH": os.environ["PATH"], "USER": "ann"}
    with ExitStack() as stack:

        def connected(url: str) -> Client:
            client = connect(home=str(home), store_url=url, create=True, environ=environ)
            stack.callback(client.close)
            return client

        yield connected


@pytest.fixture
def operator(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        yield connection


def write(store: Store, name: str) -> None:
    with store.write() as tx:
        add(tx, name=name)
        tx.events.add([Event("noted")], actor="ann")


def names(store: Store) -> list[str]:
    with store.read() as tx:
        return sorted(job.name for job in tx.jobs.active())


def database_of(store: Store) -> PostgresDatabase:
    found = store.database  # type: ignore[attr-defined]
    assert isinstance(found, PostgresDatabase)
    return found


# -- threads --------------------------------------------------------------------------------------


def in_threads(*acts: Callable[[], Any]) -> None:
    """All at once; fails if one of them fails or does not come to an end."""
    failed: list[BaseException] = []

    def run(act: Callable[[], Any]) -> None:
        try:
            act()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(act,), daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert failed == []


def test_a_thread_that_reads_does_not_wait_for_one_that_writes(
    opened: Open, postgres_url: str
) -> None:
    store = opened(postgres_url)
    write(store, "before")
    seen: list[str] = []
    with store.write() as tx:
        add(tx, name="meanwhile")
        in_threads(lambda: seen.extend(names(store)), store.changed)
    assert seen == ["before"]
    assert names(store) == ["before", "meanwhile"]


@pytest.mark.req("D8")
def test_many_threads_share_few_connections_and_lose_nothing(
    opened: Open, postgres_url: str, operator: psycopg.Connection[Any]
) -> None:
    store = opened(f"{postgres_url}&application_name=crowd")
    counts: list[int] = []

    def work(name: str) -> None:
        for number in range(5):
            write(store, f"{name}-{number}")
            names(store)
            rows = database_of(store).execute(
                "select count(*) from pg_stat_activity where application_name = 'crowd'", {}
            )
            counts.append(rows[0][0])

    in_threads(*(lambda each=each: work(str(each)) for each in range(8)))  # type: ignore[misc]
    assert names(store) == sorted(f"{each}-{n}" for each in range(8) for n in range(5))
    assert 1 < max(counts) <= 4


def test_a_second_transaction_of_the_same_thread_is_refused(
    opened: Open, postgres_url: str
) -> None:
    store = opened(postgres_url)
    with (
        store.write() as tx,
        pytest.raises(StoreError, match="within a transaction"),
        store.read(),
    ):
        raise AssertionError("it would see nothing of the first")
    del tx
    write(store, "unharmed")


def test_a_process_with_one_thread_needs_no_pool(postgres_url: str) -> None:
    """A command is short: it must not pay for threads and imports that it has no use for."""
    script = """
store = opened()
with store.write() as tx:
    add(tx)
with store.read() as tx:
    tx.jobs.active()
store.changed()
store.close()
import threading
print("psycopg_pool" in sys.modules, threading.active_count())
"""
    assert words(another(script, postgres_url)) == ["False 1"]


def test_what_the_url_says_about_a_dead_line_goes_before_our_own(
    opened: Open, postgres_url: str
) -> None:
    store = opened(f"{postgres_url}&keepalives_idle=77&connect_timeout=3")
    given = database_of(store).connections.first.info.get_parameters()
    assert given["keepalives_idle"] == "77" and given["connect_timeout"] == "3"
    assert given["keepalives_count"] == "3"


def test_a_lost_connection_of_the_pool_is_replaced(
    opened: Open, postgres_url: str, operator: psycopg.Connection[Any]
) -> None:
    """# fault D1"""
    store = opened(f"{postgres_url}&application_name=lost")
    with store.write():
        in_threads(lambda: names(store))
    ended = operator.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
        "where application_name = 'lost'"
    ).fetchall()
    assert ended == [(True,), (True,)]
    with store.write() as tx:
        add(tx, name="after")
        in_threads(lambda: names(store))
    assert names(store) == ["after"]


# -- prepared statements and poolers --------------------------------------------------------------


def prepared(store: Store) -> int:
    return int(database_of(store).execute("select count(*) from pg_prepared_statements", {})[0][0])


def test_what_is_asked_often_is_prepared_and_stays_so(opened: Open, postgres_url: str) -> None:
    store = opened(postgres_url)
    for _ in range(6):
        write(store, "again")
        names(store)
    assert prepared(store) >= 4
    with pytest.raises(RuntimeError), store.write() as tx:
        add(tx)
        raise RuntimeError
    write(store, "after an undone one")


def test_after_a_failure_among_many_statements_the_next_are_not_taken_for_prepared(
    opened: Open, postgres_url: str
) -> None:
    store = opened(postgres_url)
    for number in range(12):
        with pytest.raises(psycopg.errors.UniqueViolation), store.write() as tx:
            made = add(tx)
            tx.jobs.add([made])
            tx.events.add([Event("noted")], actor="ann")
        write(store, f"{number:02}")
    assert len(names(store)) == 12


@pytest.mark.parametrize(("poll_only", "expected"), [(False, "off"), (True, "on")])
def test_a_plan_that_is_kept_reads_no_table_from_end_to_end(
    opened: Open, postgres_url: str, poll_only: bool, expected: str
) -> None:
    """It was made when the table was small, and is kept while the table grows."""
    database = database_of(opened(postgres_url, poll_only=poll_only))
    assert database.execute("show enable_seqscan", {}) == [(expected,)]
    assert poll_only or database.execute("show jit", {}) == [("off",)]


def test_behind_a_pooler_everything_works_with_poll_only(opened: Open, postgres_url: str) -> None:
    """# fault D8"""
    with pooler_to(postgres_url) as pooler:
        store, other = opened(pooler.url, poll_only=True), opened(pooler.url, poll_only=True)
        assert store.hints() is None
        store.changed()
        for number in range(12):
            write(store, f"{number:02}")
            assert len(names(other)) == number + 1
        assert not store.changed() and other.changed()
        with store.write() as tx:
            tx.events.add((Event("noted") for _ in range(60)), actor="ann")
            assert len(tx.events.since(0, 1000)) == 12 + 60
        in_threads(*(lambda each=each: write(store, str(each)) for each in range(4)))  # type: ignore[misc]
        assert len(names(other)) == 16
        assert other.changed()
        for each in (store, other):
            each.close()


def test_without_poll_only_a_pooler_is_noticed(opened: Open, postgres_url: str) -> None:
    """Or else the test above would show nothing."""
    with (
        pooler_to(postgres_url) as pooler,
        pytest.raises(StoreError, match="prepared statement"),
    ):
        store = opened(pooler.url)
        for _ in range(12):
            write(store, "again")


def test_who_meets_a_pooler_unprepared_is_told_the_setting(opened: Open, postgres_url: str) -> None:
    """# fault D8"""
    with pooler_to(postgres_url) as pooler, pytest.raises(StoreError) as refused:
        store = opened(pooler.url)
        for _ in range(12):
            write(store, "again")
    assert refused.value.exit_code == 6 and not isinstance(refused.value, StoreBusyError)
    assert "`headway config set store.poll_only true`" in str(refused.value)
    assert "pooler" in str(refused.value)


def test_a_prepared_statement_that_is_gone_is_a_poolers_too(
    opened: Open, postgres_url: str
) -> None:
    store = opened(postgres_url)
    for _ in range(4):
        names(store)
    database_of(store).connections.first.execute("deallocate all", prepare=False)
    with pytest.raises(StoreError, match=r"store\.poll_only"):
        names(store)


def test_poll_only_leaves_nothing_on_the_connection(opened: Open, postgres_url: str) -> None:
    """# fault D8"""
    store = opened(postgres_url, poll_only=True)
    for _ in range(12):
        write(store, "again")
        names(store)
        store.changed()
    assert prepared(store) == 0
    assert database_of(store).listener is None
    assert database_of(store).execute("select pg_listening_channels()", {}) == []
    assert database_of(store).execute("show lock_timeout", {}) == [("0",)]


def test_the_setting_reaches_the_store(client_of: Connect, postgres_url: str) -> None:
    client = client_of(postgres_url)
    assert client.context.store.hints() is not None
    with open(client.context.home.config, "a") as file:
        file.write("[store]\npoll_only = true\n")
    assert client_of(postgres_url).context.store.hints() is None


# -- round trips ----------------------------------------------------------------------------------


def test_a_submit_needs_two_round_trips(client_of: Connect, line: Line) -> None:
    """The turn together with a place, and the rest with the commit."""
    client = client_of(line.url)
    for _ in range(4):
        client.submit(TRUE)  # what is often asked is now prepared
    before = line.round_trips
    client.submit(TRUE)
    assert 0 < line.round_trips - before <= 2
    client.close()


def test_the_round_trips_of_many_jobs_do_not_grow_with_them(client_of: Connect, line: Line) -> None:
    client = client_of(line.url)
    taken = []
    for count in (100, 1000):
        before = line.round_trips
        submitted = client.submit_many([TRUE] * count)
        taken.append(line.round_trips - before)
        assert len({each.job_id for each in submitted}) == count
    assert taken[0] == taken[1] <= 2
    assert len(client.listing()) == 1100
    client.close()


def test_a_look_needs_one_round_trip(line: Line, opened: Open) -> None:
    store = opened(line.url)
    store.changed()
    before = line.round_trips
    store.changed()
    assert line.round_trips - before == 1
    store.close()


# -- made again -----------------------------------------------------------------------------------

FAILS_TWICE = """
create sequence tries;
create function fail_twice() returns trigger language plpgsql as $$ begin
  if nextval('tries') <= 2 then
    raise exception 'it happens' using errcode = '{code}';
  end if;
  return new;
end $$;
create trigger fail before insert on events for each row execute function fail_twice();
"""

VERBS: dict[str, Callable[[Client], Any]] = {
    "submit": lambda client: client.submit(TRUE),
    "cancel": lambda client: client.cancel([1]),
    "pause": lambda client: client.pause("because"),
    "reset": lambda client: client.scheduler.reset(),
    "set_setting": lambda client: client.set_setting("scheduler.max_active", 3),
}


@pytest.mark.parametrize("code", ["40001", "40P01", "55P03"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_the_server_undid_is_made_again_and_happens_once(
    client_of: Connect, postgres_url: str, operator: psycopg.Connection[Any], verb: str, code: str
) -> None:
    """# fault D12"""
    client = client_of(postgres_url)
    client.submit(TRUE)
    before = client.context.store.database.execute("select count(*) from events", {})[0][0]  # type: ignore[attr-defined]
    operator.execute(FAILS_TWICE.format(code=code))  # type: ignore[call-overload]
    VERBS[verb](client)
    after = client.context.store.database.execute("select count(*) from events", {})[0][0]  # type: ignore[attr-defined]
    assert after == before + 1
    assert operator.execute("select last_value from tries").fetchone() == (3,)


def test_what_is_undone_again_and_again_is_an_error(
    client_of: Connect, postgres_url: str, operator: psycopg.Connection[Any]
) -> None:
    client = client_of(postgres_url)
    operator.execute(FAILS_TWICE.format(code="40001").replace("<= 2", "<= 3"))  # type: ignore[call-overload]
    with pytest.raises(StoreUndoneError, match="try again"):
        client.submit(TRUE)
    assert client.listing() == []
    client.submit(TRUE)
    assert len(client.listing()) == 1


MEETS = """
create function meet() returns trigger language plpgsql as $$ begin
  -- until the other one waits for what we hold; once it has gone, not at all
  while exists (select 1 from pg_locks where pid = {pid} and relation = 'events'::regclass)
    and not exists (select 1 from pg_locks where pid = {pid} and not granted)
  loop
    perform pg_sleep(0.01);
  end loop;
  return new;
end $$;
create trigger meet before insert on jobs for each row execute function meet();
"""


def test_a_submit_that_ends_in_a_deadlock_is_made_again_and_happens_once(
    client_of: Connect, postgres_url: str, operator: psycopg.Connection[Any]
) -> None:
    """# fault D12: someone with psql takes our tables in another order."""
    client = client_of(postgres_url.replace("options=", "options=-cdeadlock_timeout%3D10ms%20"))
    with psycopg.connect(postgres_url) as stranger:
        stranger.execute("set deadlock_timeout = '1min'")  # so that it is we who notice
        stranger.execute("lock table events in exclusive mode")
        operator.execute(MEETS.format(pid=stranger.info.backend_pid))  # type: ignore[call-overload]
        tries = []
        store: Any = client.context.store
        begin, end = store.begin_soon, store.end

        def begun(**how: Any) -> Any:
            tries.append("begun")
            return begin(**how)

        def ended(*, well: bool) -> None:
            end(well=well)
            tries.extend(["committed"] if well else [])

        store.begin_soon, store.end = begun, ended
        submitting = threading.Thread(target=client.submit, args=(TRUE,), daemon=True)
        submitting.start()
        # It adds its job, and waits in the trigger until the other one wants that table.
        waits = "select 1 from pg_stat_activity where wait_event = 'PgSleep'"
        while not operator.execute(waits).fetchone():
            assert submitting.is_alive()
        stranger.execute("lock table jobs in exclusive mode")
        stranger.commit()
        submitting.join(60)
        assert not submitting.is_alive()
    (job,) = client.listing()
    assert job["id"] == "job-1" and [event.kind for event in client.jobs.history(1)] == [
        "submitted"
    ]
    assert tries == ["begun", "begun", "committed"], "the first was undone"


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_submit_whose_commit_is_cut_off_happens_once(
    client_of: Connect, line: Line, postgres_url: str, cut: Any
) -> None:
    """# fault D2"""
    client = client_of(line.url)
    client.submit(TRUE)
    line.cut = cut
    assert client.submit(TRUE).job_id == 2
    assert line.cut is None
    assert [job["id"] for job in client.listing()] == ["job-1", "job-2"]
    client.close()


@pytest.mark.bulk
def test_a_submit_that_waits_when_it_is_cut_off_happens_once_behind_whoever_hides_the_server(
    opened: Open, line: Line, postgres_url: str, operator: psycopg.Connection[Any]
) -> None:
    """# fault D2: a pooler gives each session another number than the server's process has."""
    line.false_pid = 1_999_999_999
    store, alike = opened(line.url), Alike(Model(job(0)), {0: {}})
    for _ in range(4):
        store.add_alike([alike])
    added: list[Any] = []
    adding = threading.Thread(target=lambda: added.append(store.add_alike([alike])), daemon=True)
    with psycopg.connect(postgres_url) as holder:
        key = database_of(store)._key
        holder.execute("select pg_advisory_xact_lock(%s, %s)", [LOCK_SPACE, key])
        line.cut = "after"
        adding.start()
        asks = "select query_start from pg_stat_activity where query like 'select ''gone''%%'"
        waits = "select 1 from pg_locks where locktype = 'advisory' and not granted"
        looked: list[Any] = []
        pause = timedelta(milliseconds=40)  # it looks twice with a longer one between
        while not looked or max(looked) - min(looked) < pause:
            assert adding.is_alive() and len(operator.execute(waits).fetchall()) < 2
            looked += [row[0] for row in operator.execute(asks)]
        assert line.cut is None
    adding.join(60)
    assert added == [5] and len(names(store)) == 5


def test_restarts_of_the_server_during_submits_lose_and_double_nothing(
    client_of: Connect, crashable: CrashableServer, crashable_url: str
) -> None:
    """# fault D1"""
    client = client_of(crashable_url)
    done: list[int] = []
    stop = threading.Event()

    def submit() -> None:
        while not stop.is_set():
            done.append(client.submit(TRUE).job_id)

    def crash() -> None:
        try:
            for _ in range(3):
                target = len(done) + 5
                while len(done) < target:
                    stop.wait(0.01)
                crashable.crash()
        finally:
            stop.set()

    in_threads(submit, crash)
    assert len(done) > 15
    assert [job["id"] for job in client.listing()] == [f"job-{each}" for each in done]
