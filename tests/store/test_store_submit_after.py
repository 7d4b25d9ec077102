"""A job that is submitted after another on a server: two round trips, whatever others do."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from servers import Line
from stocked import SECOND, add, job

from headway.base.errors import NotFoundError
from headway.core.model import FUNCTION, POSITION_GAP, JobSpec, Stage
from headway.jobs.insert import Origin, Submitted, Waiting, add_jobs
from headway.store.new_jobs import Alike, Model
from headway.store.store import Store

Open = Callable[..., Store]
ANN = Origin("ann", "/worktrees")


def link(*after: int) -> JobSpec:
    return JobSpec(type=FUNCTION, name="link", params={"task": "m.f"}, after=after)


def submit(store: Store, *after: int) -> Submitted:
    [submitted] = store.transact(lambda tx: add_jobs(tx, [link(*after)], ANN))
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
        job = tx.jobs.by_id([job_id])[job_id]
        kinds = [(each.kind, each.data) for each in tx.events.of_job(job_id)]
        edges = tx.waits.predecessors([job])
    return job._replace(id=0, chain=0, position=0, created_at=0), kinds, edges[job_id]


def test_it_needs_two_round_trips(mine: Store, line: Line) -> None:
    before = line.round_trips
    assert submit(mine, 7) == Waiting(8, created=True)
    assert submit(mine, 8, 3) == Waiting(9, created=True)
    assert line.round_trips - before == 4


def test_by_another_it_is_stored_alike(mine: Store, theirs: Store) -> None:
    one, other = submit(mine, 5, 6).job_id, submit(theirs, 5, 6).job_id
    assert as_stored(theirs, one) == as_stored(theirs, other)
    with theirs.read() as tx:
        first, second = tx.jobs.by_id([one, other]).values()
        assert first.created_at <= second.created_at <= tx.now() < first.created_at + 60 * SECOND
    assert (first.chain, second.chain) == (one, other) == (8, 9)
    assert second.position - first.position == POSITION_GAP


@pytest.mark.parametrize("others", ["succeed", "fail", "submit", "move", "age", "retry", "chain"])
def test_what_others_changed_is_seen(
    mine: Store, theirs: Store, postgres_url: str, line: Line, others: str
) -> None:
    stage, expected = Stage.PARKED, 8
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
                tx.settings.set("scheduler.ageing", "1h", by="ann")
        case "retry":
            end(postgres_url, 7, "failed")
            with theirs.write() as tx:
                add(tx, chain=7, retry_of=7, attempt=2)
            expected = 9
        case "chain":
            operate(postgres_url, "update jobs set chain = 6 where id = 7")
    before = line.round_trips
    submitted = submit(mine, 7)
    assert line.round_trips - before == 2
    assert submitted.job_id == expected
    with theirs.read() as tx:
        job = tx.jobs.by_id([expected])[expected]
    marks = {"succeed": "satisfied", "fail": "failed"}
    assert edges(postgres_url, expected) == [
        (6 if others == "chain" else 7, marks.get(others, "pending"))
    ]
    assert job.stage is stage
    assert waits(postgres_url, expected) == [
        *([f"chain:{6 if others == 'chain' else 7}"] if stage is Stage.PARKED else [])
    ]
    assert (job.dispatch_level != job.priority) == (others == "age")
    assert job.position == POSITION_GAP * expected + (50 if others == "move" else 0)


def test_after_what_is_not_there_nothing_is_submitted(mine: Store, theirs: Store) -> None:
    with pytest.raises(NotFoundError, match="job-99"):
        submit(mine, 7, 99)
    with theirs.read() as tx:
        assert len(tx.jobs.active()) == 7
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
        assert [each.id for each in tx.jobs.active()] == list(range(1, 9))
        assert [each.kind for each in tx.events.of_job(8)] == ["submitted", "waiting_on_deps"]


def test_under_an_ageing_no_place_is_remembered(mine: Store, theirs: Store) -> None:
    """A place says nothing of the level that a job has by it."""
    with theirs.write() as tx:
        tx.settings.set("scheduler.ageing", "1h", by="ann")
    assert submit(mine, 7) == Waiting(8, created=True)
    plain = Alike(Model(job(1, name="plain", submitted_by="ann")), {0: {}})
    assert mine.add_alike([plain]) is None
    assert submit(mine).job_id == 9
    with theirs.read() as tx:
        found = tx.jobs.by_id([8, 9])
    assert {each.dispatch_level for each in found.values()} != {0}
    assert found[8].dispatch_level == found[9].dispatch_level


def test_behind_a_pooler_it_is_the_same(opened: Open, line: Line) -> None:
    store = opened(line.url, poll_only=True)
    submit(store)
    for number in range(1, 6):
        submit(store, number)
    before = line.round_trips
    assert submit(store, 6) == Waiting(7, created=True)
    assert line.round_trips - before == 2
