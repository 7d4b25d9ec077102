"""A write by one who asks nothing: all of it in one round trip, refused if others wrote before."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from recording import verbs
from servers import Line
from stocked import add, job

from harness import wait_for
from headway.base.clock import SystemClock
from headway.base.errors import OthersWroteError, StoreBusyError, StoreError
from headway.core.model import FUNCTIONS, Stage
from headway.integrations.probes import answers_to
from headway.store.new_jobs import Alike, Model
from headway.store.postgres import session as pgsession
from headway.store.postgres.database import PostgresDatabase
from headway.store.postgres.notices import notice_in
from headway.store.store import Store
from headway.worker.fastlane.memory import Memory
from headway.worker.probes import Probes

Open = Callable[..., Store]
CALL = Alike(Model(job(0, type="function", queue=FUNCTIONS, stage=Stage.READY)), {0: {}})


@pytest.fixture
def mine(opened: Open, line: Line) -> Store:
    """One that knows how things stand, and whose statements are prepared."""
    store = opened(line.url)
    with store.write() as tx:
        tx.others_wrote()
        tx.settings.set_mark("log_bytes", 0)
    for number in range(4):
        mark(store, number)
    return store


@pytest.fixture
def theirs(opened: Open, postgres_url: str) -> Store:
    return opened(postgres_url)


def mark(store: Store, value: int, *, push: bool = False, **options: Any) -> None:
    """`push`: the server has begun before all is said."""
    with store.write_soon(optimistic=True, **options) as tx:
        assert not tx.others_wrote(), "so it seems"
        tx.settings.set_mark("last_dispatch_count", value)
        if push:
            store.database.push()  # type: ignore[attr-defined]
        tx.settings.set_mark("log_bytes", value)


def marked(store: Store) -> int:
    with store.read() as tx:
        return tx.settings.marks()["log_bytes"]


@verbs("write_soon")
def test_a_file_is_written_as_always(store: Store) -> None:
    """And a server by who does not know anything yet, not at all."""
    if store.shared:
        with pytest.raises(OthersWroteError):
            mark(store, 7)
    else:
        with store.write_soon(optimistic=True) as tx:
            tx.settings.set_mark("log_bytes", 7)
    assert marked(store) == (0 if store.shared else 7)


def test_all_of_it_travels_once(mine: Store, theirs: Store, line: Line) -> None:
    before = line.round_trips
    mark(mine, 8)
    mark(mine, 9)
    assert line.round_trips - before == 2
    assert marked(theirs) == 9 and theirs.changed()


@pytest.mark.bulk
@pytest.mark.parametrize("kind", ["a call", "a mark", "a job"])
@pytest.mark.parametrize("push", [False, True])
def test_it_is_refused_if_anyone_wrote_anything(
    mine: Store, theirs: Store, kind: str, push: bool
) -> None:
    if kind == "a call":
        theirs.add_alike([CALL])
    else:
        with theirs.write() as tx:
            if kind == "a mark":
                tx.settings.set_mark("log_bytes", 50)
            else:
                add(tx)
    before = marked(theirs)
    for _ in range(2):  # it is not known by that what they wrote
        with pytest.raises(OthersWroteError):
            mark(mine, 8, push=push)
    assert marked(theirs) == before
    with mine.write_soon() as tx:
        assert tx.others_wrote() == (kind != "a call")
        tx.settings.set_mark("log_bytes", 9)
    mark(mine, 10, push=push)
    assert marked(theirs) == 10


def test_who_asks_after_all_is_answered_or_refused_then(
    mine: Store, theirs: Store, line: Line
) -> None:
    before = line.round_trips
    with mine.write_soon(optimistic=True) as tx:
        assert tx.settings.marks()["log_bytes"] == 3
        tx.settings.set_mark("log_bytes", 8)
    assert line.round_trips - before == 2
    with theirs.write() as tx:
        tx.settings.set_mark("log_bytes", 50)
    asked = mine.write_soon(optimistic=True)
    with pytest.raises(OthersWroteError), asked as tx:
        tx.settings.set_mark("log_bytes", 9)
        raise AssertionError(tx.settings.marks())
    assert marked(theirs) == 50


@pytest.mark.parametrize("seconds", [-2, 0.5])
def test_it_is_refused_if_the_time_is_not_what_was_thought(mine: Store, seconds: float) -> None:
    """A machine that was asleep must not write what is long past, nor what is to come."""
    database = mine.database  # type: ignore[attr-defined]
    assert isinstance(database, PostgresDatabase) and database._server_time is not None
    instant = database._server_time.instant + int(seconds * 1_000_000)
    database._server_time = database._server_time._replace(instant=instant)
    with pytest.raises(OthersWroteError):
        mark(mine, 8)
    assert marked(mine) == 3


def test_behind_a_pooler_nothing_is_written_optimistically(opened: Open, postgres_url: str) -> None:
    store = opened(postgres_url, poll_only=True)
    with store.write() as tx:
        tx.others_wrote()
        tx.settings.set_mark("log_bytes", 1)
    with pytest.raises(OthersWroteError):
        mark(store, 2)
    assert marked(store) == 1


@pytest.mark.parametrize("push", [False, True])
def test_one_whose_answer_is_lost_has_happened(
    mine: Store, theirs: Store, line: Line, push: bool
) -> None:
    """# fault D2"""
    line.cut = "after"
    mark(mine, 8, push=push)
    assert line.cut is None and marked(theirs) == 8
    with pytest.raises(OthersWroteError):
        mark(mine, 9)  # of that one the number is not known


@pytest.mark.parametrize("push", [False, True])
def test_one_that_never_arrived_has_not(mine: Store, theirs: Store, line: Line, push: bool) -> None:
    """# fault D2"""
    line.cut = "before"
    with pytest.raises(StoreBusyError, match="try again"):
        mark(mine, 8, push=push)
    assert line.cut is None and marked(theirs) == 3
    with pytest.raises(OthersWroteError):
        mark(mine, 8, push=push)  # who is at the other end of a new line is not known
    with mine.write_soon() as tx:
        tx.others_wrote()
        tx.settings.set_mark("log_bytes", 4)
    mark(mine, 9, push=push)
    assert marked(theirs) == 9


def test_something_else_is_done_while_it_is_committed(mine: Store, theirs: Store) -> None:
    seen = []
    mark(mine, 8, meanwhile=lambda: seen.append(marked(theirs)))
    assert seen and set(seen) <= {3, 8}
    with mine.write_soon(meanwhile=lambda: seen.append(-1)) as tx:
        assert tx.settings.marks()["log_bytes"] == 8
        assert -1 not in seen, "questions are not long enough for that"
        tx.settings.set_mark("log_bytes", 9)
    assert seen[-1] == -1


def test_who_falls_silent_when_the_server_has_begun_does_not_keep_the_turn(
    mine: Store, theirs: Store, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgsession, "SILENT_SECONDS", 0.05)
    held = "select 1 from pg_locks where locktype = 'advisory' and granted"
    with (
        psycopg.connect(postgres_url, autocommit=True) as operator,
        pytest.raises(StoreBusyError, match="try again"),
        mine.write_soon(optimistic=True) as tx,
    ):
        tx.settings.set_mark("log_bytes", 8)
        mine.database.push()  # type: ignore[attr-defined]
        wait_for(lambda: operator.execute(held).fetchall(), what="the turn")
        wait_for(lambda: not operator.execute(held).fetchall(), what="the end of it")
    assert marked(theirs) == 3


def test_what_follows_is_not_done_if_the_server_could_not_begin(
    mine: Store, theirs: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a transaction to be in, it would be one of its own."""
    monkeypatch.setattr(pgsession, "BEGIN_WRITE", "begin isolation level there_is_none")
    with pytest.raises(StoreError, match="there_is_none"):
        mark(mine, 8, push=True)
    assert marked(theirs) == 3


def test_what_the_server_has_begun_is_undone_with_the_rest(mine: Store, theirs: Store) -> None:
    class NotSoError(Exception):
        pass

    with pytest.raises(NotSoError), mine.write_soon(optimistic=True) as tx:
        tx.settings.set_mark("log_bytes", 8)
        mine.database.push()  # type: ignore[attr-defined]
        raise NotSoError
    assert marked(theirs) == 3
    mark(mine, 9, push=True)
    with mine.write_soon() as tx:
        assert tx.settings.marks()["log_bytes"] == 9
        tx.settings.set_mark("log_bytes", 10)
        mine.database.push()  # type: ignore[attr-defined]
        assert tx.settings.marks()["log_bytes"] == 10
    assert marked(theirs) == 10


# -- another thread, another line ------------------------------------------------------------------


def test_what_another_thread_wrote_is_not_known(mine: Store, theirs: Store) -> None:
    """Although it is the same process: it may have done so between any two steps of this one."""
    with ThreadPoolExecutor(1) as other:
        other.submit(written_by_another, mine).result()
    with pytest.raises(OthersWroteError):
        mark(mine, 8)
    assert marked(theirs) == 50
    with mine.write_soon() as tx:
        assert tx.others_wrote()


def written_by_another(store: Store) -> None:
    with store.write() as tx:
        tx.settings.set_mark("log_bytes", 50)


def test_the_same_number_of_another_history_is_not_taken_for_the_one_that_was_known(
    mine: Store, theirs: Store, postgres_url: str
) -> None:
    """# fault D1: a server without the last commits has taken over, and others have written since
    as many as it lacked."""
    with psycopg.connect(postgres_url, autocommit=True) as operator:
        pid = mine.database.connections.first.info.backend_pid  # type: ignore[attr-defined]
        operator.execute("select pg_terminate_backend(%s, 5000)", [pid])
        operator.execute("update commits set number = number - 2 where place = -1")
    for _ in range(2):
        theirs.add_alike([CALL])
    with suppress(OthersWroteError, StoreBusyError):
        mark(mine, 8)
    with pytest.raises(OthersWroteError):
        mark(mine, 8)
    assert marked(theirs) == 3
    with mine.write_soon() as tx:
        assert tx.others_wrote()
        tx.settings.set_mark("log_bytes", 9)
    mark(mine, 10)
    assert marked(theirs) == 10


def test_who_remembers_that_nobody_waits_is_refused_when_someone_does(
    mine: Store, theirs: Store
) -> None:
    """Else the end of what that one waits for would be told to nobody."""
    with theirs.write() as tx:
        first = add(tx)
    memory = Memory(mine, Probes(answers_to, SystemClock(), in_thread=False))
    with memory.write(usable=True) as tx:
        tx.waits.prefetch(0)
        memory.keep(tx)
        tx.settings.set_mark("log_bytes", 8)
    with theirs.write() as tx:
        add(tx, after=(first.id,))
    with pytest.raises(OthersWroteError), memory.write(usable=True) as tx:
        memory.recall(tx)
        tx.settings.set_mark("log_bytes", 9)
    assert marked(theirs) == 8


def test_what_an_older_headway_adds_is_seen(mine: Store, theirs: Store, postgres_url: str) -> None:
    """It may say of its commits that they only add jobs that wait: that counts for nothing here."""
    with theirs.write() as tx:
        add(tx)
    with psycopg.connect(postgres_url, autocommit=True) as older:
        older.execute(
            "insert into commits (place, number, token) select -2, number, number::text "
            "from commits where place = -1"
        )
    with pytest.raises(OthersWroteError):
        mark(mine, 8)
    assert marked(theirs) == 3
    assert not notice_in("7 12 token waits", deque()).calls
