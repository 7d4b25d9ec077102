"""A job that is submitted after another on a server: in one round trip, while all is as it was when
it was last heard of; else as if nothing had been supposed."""

import select
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import psycopg
import pytest
from servers import Line
from stocked import SECOND, add, job

from harness import wait_for
from headway.adding import Origin, Submitted, Waiting, add_jobs, submit_jobs
from headway.core.model import FUNCTION, POSITION_GAP, JobSpec, Stage
from headway.errors import NotFoundError, OthersWroteError
from headway.store.base import Store, WriteTx
from headway.store.postgres import PostgresDatabase
from headway.store.seam_adding import Alike, Model

Open = Callable[..., Store]
ANN = Origin("ann", "/worktrees")


def link(*after: int) -> JobSpec:
    return JobSpec(type=FUNCTION, name="link", params={"task": "m.f"}, after=after)


def submit(store: Store, *after: int) -> Submitted:
    [submitted] = store.story(lambda tx: submit_jobs(tx, [link(*after)], ANN))
    return submitted


def operate(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as operator:
        operator.execute(statement)


def end(url: str, job_id: int, status: str = "succeeded") -> None:
    operate(
        url,
        f"update jobs set status = '{status}', stage = null, finished_at = created_at + 1 "
        f"where id = {job_id}",
    )


def edges(url: str, job_id: int) -> list[tuple[int, str]]:
    with psycopg.connect(url) as operator:
        found = operator.execute("select chain, mark from edges where job_id = %s", [job_id])
        return found.fetchall()


def waits(url: str, job_id: int) -> list[str]:
    with psycopg.connect(url) as operator:
        found = operator.execute("select topic from waits where job_id = %s", [job_id])
        return [topic for (topic,) in found.fetchall()]


@pytest.fixture
def mine(opened: Open, line: Line) -> Store:
    """One that has submitted jobs 1 to 7, each after the one before; its statements are
    prepared."""
    store = opened(line.url)
    submit(store)
    for number in range(1, 7):
        submit(store, number)
    return store


@pytest.fixture
def theirs(opened: Open, postgres_url: str) -> Store:
    return opened(postgres_url)


def as_stored(store: Store, job_id: int) -> Any:
    with store.read() as tx:
        job = tx.jobs([job_id])[job_id]
        kinds = [(each.kind, each.data) for each in tx.events_of(job_id)]
        edges = tx.predecessors([job])
    return job._replace(id=0, chain=0, position=0, created_at=0), kinds, edges[job_id]


def test_it_needs_one_round_trip(mine: Store, line: Line) -> None:
    before = line.round_trips
    assert submit(mine, 7) == Waiting(8, created=True)
    assert submit(mine, 8, 3) == Waiting(9, created=True)
    assert line.round_trips - before == 2


def test_it_is_stored_like_one_of_which_nothing_was_supposed(
    mine: Store, theirs: Store, line: Line
) -> None:
    before = line.round_trips
    supposed = submit(mine, 5, 6).job_id
    assert line.round_trips - before == 1
    asked = submit(theirs, 5, 6).job_id
    assert as_stored(theirs, supposed) == as_stored(theirs, asked)
    with theirs.read() as tx:
        first, second = tx.jobs([supposed, asked]).values()
        assert first.created_at <= second.created_at <= tx.now() < first.created_at + 60 * SECOND
    assert (first.chain, second.chain) == (supposed, asked) == (8, 9)
    assert second.position - first.position == POSITION_GAP


@pytest.mark.parametrize("others", ["succeed", "fail", "submit", "move", "age", "retry", "chain"])
def test_if_it_is_not_so_it_is_asked(
    mine: Store, theirs: Store, postgres_url: str, line: Line, others: str
) -> None:
    stage, expected = Stage.FILED, 8
    match others:
        case "succeed" | "fail":
            end(postgres_url, 7, "succeeded" if others == "succeed" else "failed")
            stage = Stage.WOKEN
        case "submit":
            assert submit(theirs).job_id == 8
            expected = 9
        case "move":
            operate(postgres_url, "update marks set value = 50 where name = 'positions_ahead'")
        case "age":
            with theirs.write() as tx:
                tx.set_setting("scheduler.ageing", "1h", by="ann")
        case "retry":
            end(postgres_url, 7, "failed")
            with theirs.write() as tx:
                add(tx, chain=7, retry_of=7, attempt=2)
            expected = 9
        case "chain":
            operate(postgres_url, "update jobs set chain = 6 where id = 7")
    before = line.round_trips
    submitted = submit(mine, 7)
    assert line.round_trips - before <= 4  # in vain, undone, and then as ever
    assert submitted.job_id == expected
    with theirs.read() as tx:
        job = tx.jobs([expected])[expected]
    marks = {"succeed": "satisfied", "fail": "failed"}
    assert edges(postgres_url, expected) == [
        (6 if others == "chain" else 7, marks.get(others, "pending"))
    ]
    assert job.stage is stage
    assert waits(postgres_url, expected) == [
        *([f"chain:{6 if others == 'chain' else 7}"] if stage is Stage.FILED else [])
    ]
    assert (job.dispatch_level != job.priority) == (others == "age")
    assert job.position == POSITION_GAP * expected + (50 if others == "move" else 0)


def test_what_has_ended_once_is_not_supposed_to_go_on(
    mine: Store, postgres_url: str, line: Line
) -> None:
    """While the worker is as fast as who submits, nothing is sent in vain."""
    end(postgres_url, 7)
    submit(mine, 7)
    before = line.round_trips
    end(postgres_url, 8)
    assert submit(mine, 8) == Submitted(9, created=True)
    assert submit(mine, 9) == Waiting(10, created=True)
    assert line.round_trips - before == 4
    submit(mine, 10)
    assert line.round_trips - before == 5


def test_after_what_is_not_there_nothing_is_submitted(mine: Store, theirs: Store) -> None:
    with pytest.raises(NotFoundError, match="job-99"):
        submit(mine, 7, 99)
    with theirs.read() as tx:
        assert len(tx.active_jobs()) == 7
    assert submit(mine, 7).job_id == 8


@pytest.mark.parametrize("cut", ["before", "after"])
def test_one_whose_answer_is_lost_happens_once(
    mine: Store, theirs: Store, line: Line, cut: Any
) -> None:
    """# fault D2"""
    line.cut = cut
    assert submit(mine, 7) == Waiting(8, created=True)
    assert line.cut is None
    with theirs.read() as tx:
        assert [each.id for each in tx.active_jobs()] == list(range(1, 9))
        assert [each.kind for each in tx.events_of(8)] == ["submitted", "waiting_on_deps"]


def test_over_another_connection_it_is_asked(mine: Store, line: Line) -> None:
    """The server may be one that took over without the last commits, and made others since."""
    database = mine.database  # type: ignore[attr-defined]
    assert isinstance(database, PostgresDatabase) and database._next is not None
    database._next.over.close()
    before = line.round_trips
    assert submit(mine, 7) == Waiting(8, created=True)
    assert line.round_trips - before == 3  # to get ready, to ask, to write


def test_when_it_was_not_so_nothing_is_supposed_that_another_thread_was_told(
    mine: Store, theirs: Store, postgres_url: str
) -> None:
    """What is heard by one is of use to all, but not to one who was refused."""
    end(postgres_url, 7)
    database: Any = mine.database  # type: ignore[attr-defined]
    place, refused = database._next, []

    def told(tx: WriteTx) -> list[Submitted]:
        refused.append(database._next)
        database._next, database._waited = place, True  # as another thread does
        return submit_jobs(tx, [link(7)], ANN)

    assert mine.story(told) == [Submitted(8, created=True)]
    assert len(refused) == 2


def test_under_an_ageing_no_place_is_remembered(mine: Store, theirs: Store) -> None:
    """A place says nothing of the level that a job has by it."""
    with theirs.write() as tx:
        tx.set_setting("scheduler.ageing", "1h", by="ann")
    assert submit(mine, 7) == Waiting(8, created=True)
    plain = Alike(Model(job(1, name="plain", submitted_by="ann")), {0: {}})
    assert mine.add_alike([plain]) is None
    assert submit(mine).job_id == 9
    with theirs.read() as tx:
        found = tx.jobs([8, 9])
    assert {each.dispatch_level for each in found.values()} != {0}
    assert found[8].dispatch_level == found[9].dispatch_level


@pytest.mark.parametrize("seconds", [-2, 0.5])
def test_if_the_time_is_not_what_was_thought_it_is_asked(
    mine: Store, line: Line, seconds: float
) -> None:
    database = mine.database  # type: ignore[attr-defined]
    assert isinstance(database, PostgresDatabase) and database._heard is not None
    instant = database._heard.instant + int(seconds * 1_000_000)
    database._heard = database._heard._replace(instant=instant)
    before = line.round_trips
    assert submit(mine, 7) == Waiting(8, created=True)
    assert line.round_trips - before == 4  # in vain, undone, and then as ever
    with mine.read() as tx:
        assert 0 <= tx.now() - tx.jobs([8])[8].created_at < 60 * SECOND
        assert [each.kind for each in tx.events_of(8)] == ["submitted", "waiting_on_deps"]


def test_behind_a_pooler_it_is_asked(opened: Open, line: Line) -> None:
    store = opened(line.url, poll_only=True)
    submit(store)
    for number in range(1, 6):
        submit(store, number)
    before = line.round_trips
    assert submit(store, 6) == Waiting(7, created=True)
    assert line.round_trips - before == 2


@pytest.mark.parametrize("alone", [True, False])
def test_no_worker_is_told_to_look_if_nothing_else_is_done(
    mine: Store, theirs: Store, alone: bool
) -> None:
    hints = theirs.hints()
    theirs.changed()
    with theirs.write() as tx:
        tx.others_wrote()
        tx.set_mark("log_bytes", 1)
    theirs.changed()

    def with_more(tx: WriteTx) -> None:
        add_jobs(tx, [link(7)], ANN)
        tx.set_mark("last_dispatch_count", 1)

    if alone:
        submit(mine, 7)
    else:
        mine.story(with_more)
    assert select.select([hints], [], [], 30)[0], "it was told"
    wait_for(theirs.changed, what="the other's commit")  # the first hint may be of its own
    assert theirs.only_waits_came() == alone
    expected = nullcontext() if alone else pytest.raises(OthersWroteError)
    with expected, theirs.write_soon(blindly=True, but_waits=True) as tx:
        tx.set_mark("log_bytes", 2)
