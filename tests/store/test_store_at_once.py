"""What goes to a server as a whole: many rows in a statement, a submit in a round trip."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from servers import CrashableServer, Line
from stocked import add, job

from harness import wait_for
from headway.base.errors import StoreBusyError, StoreError
from headway.store.new_jobs import Alike, Event, Model
from headway.store.postgres import session as pgsession
from headway.store.postgres.database import DIALECT, PostgresDatabase
from headway.store.postgres.multi_insert import insert_of
from headway.store.queries import Queries
from headway.store.rows import COLUMNS
from headway.store.store import Store

Open = Callable[..., Store]
MODEL = Model(job(1, name="alike", submitted_by="ann"))
ONE = [Alike(MODEL, {0: {"a": 1}})]


def ids(store: Store) -> list[int]:
    with store.read() as tx:
        return sorted(each.id for each in tx.jobs.active())


# -- a submit -------------------------------------------------------------------------------------


@pytest.mark.bulk
def test_a_plain_submit_needs_one_round_trip(opened: Open, line: Line) -> None:
    store = opened(line.url)
    for _ in range(4):
        store.add_alike(ONE)  # what is often asked is now prepared
    before = line.round_trips
    assert store.add_alike(ONE) == 5
    assert line.round_trips - before == 1
    store.close()


@pytest.mark.bulk
def test_a_place_that_is_taken_after_all_is_refused_and_then_asked_for(
    opened: Open, postgres_url: str
) -> None:
    store = opened(postgres_url)
    assert store.add_alike(ONE) == 1
    with psycopg.connect(postgres_url, autocommit=True) as operator:
        operator.execute("update jobs set id = 2, chain = 2")  # of which no commit of ours tells
    with pytest.raises(psycopg.errors.UniqueViolation):
        store.add_alike(ONE)
    assert store.add_alike(ONE) == 3
    assert ids(store) == [2, 3]


@pytest.mark.bulk
def test_over_another_connection_the_place_is_asked_for(opened: Open, postgres_url: str) -> None:
    """The server may be one that took over without the last commits, and made others since."""
    store = opened(postgres_url)
    assert store.add_alike(ONE) == 1
    with psycopg.connect(postgres_url, autocommit=True) as operator:
        operator.execute("update jobs set id = 5, chain = 5")
        pid = store.database._next.over.server_pid  # type: ignore[attr-defined]
        operator.execute("select pg_terminate_backend(%s)", [pid])
    assert store.add_alike(ONE) == 6


@pytest.mark.bulk
@pytest.mark.parametrize("poll_only", [False, True])
def test_others_hear_of_it_and_who_submits_does_not(
    opened: Open, postgres_url: str, poll_only: bool
) -> None:
    store, other = opened(postgres_url, poll_only=poll_only), opened(postgres_url)
    for each in (store, other):
        each.hints()
        each.changed()
    for number in range(1, 4):
        assert store.add_alike(ONE) == number
        wait_for(other.changed, what="the notice")  # it may come after the answer
        assert not store.changed()


@pytest.mark.bulk
def test_the_first_trace_of_all_is_left_like_any_other(opened: Open, postgres_url: str) -> None:
    store, other = opened(postgres_url), opened(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as operator:
        operator.execute("delete from commits")
        for number in (1, 2):
            assert store.add_alike(ONE) == number and other.changed()
            traces = operator.execute("select place, number, token from commits order by 1")
            head, *left = traces.fetchall()
            assert head == (-1, number, str(number)), "it is no call of a function"
            assert [place for place, _, _ in left] == list(range(1, number + 1))
            assert left[-1][2].endswith(f" {number}")


@pytest.mark.bulk
@pytest.mark.parametrize("earlier", [1, 2, 3])  # the second time it is prepared, then used so
@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_submit_whose_answer_is_lost_happens_once_and_has_its_id(
    opened: Open, line: Line, postgres_url: str, cut: Any, earlier: int
) -> None:
    """# fault D2"""
    store, other = opened(line.url), opened(postgres_url)
    before = [store.add_alike(ONE) for _ in range(earlier)]
    theirs: list[Any] = []
    line.cut, line.meanwhile = cut, lambda: theirs.append(other.add_alike(ONE))
    mine = store.add_alike(ONE)
    assert line.cut is None
    assert sorted([*before, mine, *theirs]) == ids(store) == list(range(1, earlier + 3))
    with store.read() as tx:
        assert [each.kind for each in tx.events.of_job(mine or 0)] == ["submitted"]
    store.close()


@pytest.mark.bulk
def test_whether_it_happened_is_said_to_be_unknown_when_its_trace_may_be_overwritten(
    opened: Open, line: Line, postgres_url: str
) -> None:
    """# fault D2"""
    store = opened(line.url)
    store.add_alike(ONE)

    def overwrite_all_traces() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as operator:
            while operator.execute("select count(*) from jobs").fetchone() != (2,):
                pass  # the server has the commit, but may not have made it yet
            operator.execute("update commits set number = number + 1000000, token = 'another'")

    line.cut, line.meanwhile = "after", overwrite_all_traces
    with pytest.raises(StoreBusyError, match="look before you repeat it"):
        store.add_alike(ONE)
    assert ids(store) == [1, 2]
    store.close()


@pytest.mark.bulk
def test_a_submit_to_a_server_that_was_restarted_happens_once(
    opened: Open, crashable: CrashableServer, crashable_url: str
) -> None:
    """# fault D1"""
    store = opened(crashable_url)
    assert store.add_alike(ONE) == 1
    crashable.crash()
    assert store.add_alike(ONE) == 2
    assert ids(store) == [1, 2]


@pytest.mark.bulk
def test_a_turn_that_does_not_come_is_a_busy_store(
    opened: Open, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pgsession, "BUSY_SECONDS", 0.05)
    store, other = opened(postgres_url), opened(postgres_url)
    store.add_alike(ONE)
    with other.write(), pytest.raises(StoreBusyError, match="another process is writing"):
        store.add_alike(ONE)
    assert store.add_alike(ONE) == 2


@pytest.mark.bulk
def test_who_waited_for_the_turn_sees_what_was_committed_before_it(
    opened: Open, postgres_url: str
) -> None:
    """Also where transactions see what was there when they began, unless they ask for another."""
    assert "?options=" in postgres_url or "&options=" in postgres_url
    strict_url = f"{postgres_url}%20-cdefault_transaction_isolation%3Dserializable"
    store, other = opened(strict_url), opened(postgres_url)
    mine = []
    with psycopg.connect(postgres_url, autocommit=True) as operator:

        def waits() -> bool:
            asked = "select 1 from pg_locks where not granted and locktype = 'advisory'"
            return operator.execute(asked).fetchone() is not None

        with other.write() as tx:
            add(tx)
            waiting = threading.Thread(target=lambda: mine.append(store.add_alike(ONE)))
            waiting.start()
            wait_for(waits)
        waiting.join()
    assert mine == [2] and ids(other) == [1, 2]


def test_with_an_ageing_nothing_is_added(opened: Open, postgres_url: str) -> None:
    store = opened(postgres_url)
    with store.write() as tx:
        tx.settings.set("scheduler.ageing", "1h", by="ann")
    with psycopg.connect(postgres_url, autocommit=True) as operator:
        before = operator.execute("select * from commits order by place").fetchall()
        assert store.add_alike(ONE) is None and ids(store) == []
        assert operator.execute("select * from commits order by place").fetchall() == before


@pytest.mark.bulk
def test_what_the_server_refuses_harms_nothing(opened: Open, postgres_url: str) -> None:
    store = opened(postgres_url)
    store.add_alike(ONE)
    wrong = [Alike(Model(job(1, name="n", type="a\0b")), {0: {}})]
    with pytest.raises(StoreError, match="NUL"):
        store.add_alike(wrong)
    assert store.add_alike(ONE) == 2


# -- a transaction without changes ----------------------------------------------------------------


def test_who_only_looks_leaves_no_trace(opened: Open, postgres_url: str) -> None:
    store, other = opened(postgres_url), opened(postgres_url)
    other.hints()
    other.changed()
    with store.write() as tx:
        assert tx.jobs.active() == [] and tx.settings.marks()["next_job_id"] == 1
    assert not other.changed()
    with store.write() as tx:
        tx.settings.set_mark("last_dispatch_count", 7)
    assert other.changed()


def test_prepared_statements_are_not_planned_anew_while_writing(
    opened: Open, postgres_url: str
) -> None:
    database = opened(postgres_url).database  # type: ignore[attr-defined]
    assert isinstance(database, PostgresDatabase)
    database.begin_write()
    shown = database.execute("show plan_cache_mode", {})
    database.rollback()
    assert shown == [("force_generic_plan",)]
    assert database.execute("show plan_cache_mode", {}) == [("auto",)]


# -- many rows ------------------------------------------------------------------------------------

ODD_TEXTS = [
    "",
    "a",
    "'",
    '"',
    "\\",
    "{}",
    ",",
    "null",
    "NULL",
    "é\n\t",
    "\x1f",
    "🙂",
    '{"a":"b\\n"}',
]


@pytest.mark.parametrize("texts", [ODD_TEXTS, [*ODD_TEXTS, None], ["a", None], ["\x1f", "b"]])
def test_many_rows_are_the_same_as_each_by_itself(
    opened: Open, postgres_url: str, texts: list[str | None]
) -> None:
    store = opened(postgres_url)
    with store.write() as tx:
        few = [add(tx, slug=text, name=text or "x", params={"x": text}) for text in texts]
        first = tx.jobs.take_ids(len(texts))
        many = [
            each._replace(id=first + n, chain=first + n, position=each.position + n)
            for n, each in enumerate(few)
        ]
        tx.jobs.add(many)
        found = tx.jobs.by_id([each.id for each in [*few, *many]])
        assert [found[each.id] for each in [*few, *many]] == [*few, *many]


def test_many_rows_are_stored_in_their_order(opened: Open, postgres_url: str) -> None:
    store = opened(postgres_url)
    kinds = [f"kind-{number:03}" for number in range(300)]
    with store.write() as tx:
        tx.events.add((Event(kind) for kind in kinds), actor="ann")
    with store.read() as tx:
        assert [each.kind for each in tx.events.since(0, 1000)] == kinds


def test_every_insert_of_many_rows_that_has_only_values_is_one_statement() -> None:
    queries = Queries(DIALECT, COLUMNS).all()
    together = {name for name, query in queries.items() if insert_of(query.sql)}
    assert {"add_jobs", "add_events", "add_claims", "add_waits", "hold_locks"} <= together
    assert {"keep_results", "add_evidence"} <= together, "one that is there already is kept"
    assert not {"add_edges", "copy_edges", "lend", "set_setting"} & together
