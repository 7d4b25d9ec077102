"""What the schema itself refuses, whoever writes: correctness does not rest on the code above."""

from typing import Any

import apsw
import psycopg
import pytest
from stocked import START, add, claim_for, finish_of, start

from headway.base.errors import ConflictError
from headway.store.database import Database
from headway.store.new_jobs import Event
from headway.store.store import Store

BROKEN = (apsw.ConstraintError, psycopg.IntegrityError)  # which both stores pass on as they are


@pytest.fixture
def database(store: Store) -> Database:
    found: Database = store.database  # type: ignore[attr-defined]
    return found


def refused(database: Database, sql: str) -> str:
    """The database's own words; fails if it obeys."""
    with pytest.raises((*BROKEN, ConflictError)) as error:
        database.execute(sql, {})
    return str(error.value)


def rows(database: Database, table: str) -> list[tuple[Any, ...]]:
    return database.execute(f"select * from {table} order by 1", {})


# Values stand in the text: the databases differ in how a parameter is spelled.
COPY_JOB = """
insert into jobs (id, name, type, status, priority, position, params, created_at, chain, labels,
  after_ids, locks, retry, retry_of, attempt, retries_used, idempotency_key, spec_digest, on_finish,
  submitted_by, launch_failures, waited_on)
select {id}, name, type, status, priority, position, params, created_at, chain, labels, after_ids,
  locks, retry, {retry_of}, attempt, retries_used, {key}, spec_digest, on_finish, submitted_by,
  launch_failures, waited_on
from jobs limit 1
"""


@pytest.mark.req("D7")
def test_a_job_has_one_run(store: Store, database: Database) -> None:
    with store.write() as tx:
        claim = start(tx, add(tx))
        tx.claims.finish([finish_of(claim)])
    before = rows(database, "runs")
    words = refused(
        database,
        "insert into runs (job_id, started_at, worker_id, params_snapshot, artifacts) "
        f"values ({claim.job_id}, 1, 'w', '{{}}', '[]')",
    )
    assert "runs" in words and rows(database, "runs") == before


@pytest.mark.req("D3")
def test_a_slot_has_one_running_job(store: Store) -> None:
    with store.write() as tx:
        first, second = add(tx), add(tx)
        held = start(tx, first, slot=1)
    with pytest.raises(BROKEN, match=r"claims\.slot|claims_one_live_per_slot"), store.write() as tx:
        tx.claims.begin([(second, claim_for(second.id, slot=1))])
    with store.write() as tx:
        assert tx.claims.live() == [held]
        assert tx.jobs.by_id([second.id])[second.id] == second
        tx.claims.finish([finish_of(held)])
        start(tx, second, slot=1)


@pytest.mark.req("D3")
def test_a_job_has_one_live_claim(store: Store, database: Database) -> None:
    with store.write() as tx:
        start(tx, add(tx))
    words = refused(
        database,
        "insert into claims select job_id, 'another', state, 9, worker_id, host_id, home, boot_id, "
        "folder, claimed_at, borrowed_from, probe, lease_until, function_host, occupies "
        "from claims",
    )
    assert "claims.job_id" in words or "pkey" in words


def test_a_job_has_one_child_per_retry(store: Store, database: Database) -> None:
    with store.write() as tx:
        add(tx)
    database.execute(COPY_JOB.format(id=50, retry_of=1, key="null"), {})
    words = refused(database, COPY_JOB.format(id=51, retry_of=1, key="null"))
    assert "retry_of" in words or "jobs_one_child_per_retry" in words
    database.execute(COPY_JOB.format(id=52, retry_of="null", key="null"), {})
    database.execute(COPY_JOB.format(id=53, retry_of="null", key="null"), {})


def test_an_idempotency_key_names_one_job(store: Store, database: Database) -> None:
    with store.write() as tx:
        add(tx, key="nightly")
    again = COPY_JOB.format(id=50, retry_of="null", key="'nightly'")
    assert "idempotency_key" in refused(database, again)


@pytest.mark.parametrize(
    "status",
    ["succeeded", "failed", "skipped", "cancelled", "blocked_by_dependency", "blocked_by_approval"],
)
@pytest.mark.parametrize(
    "change", ["status = 'queued'", "reason = 'x'", "stage = 'woken'", "started_at = 1"]
)
def test_a_terminal_row_does_not_change(
    store: Store, database: Database, status: str, change: str
) -> None:
    with store.write() as tx:
        add(tx)
    database.execute(f"update jobs set status = '{status}', finished_at = 1", {})
    before = rows(database, "jobs")
    assert refused(database, f"update jobs set {change}") == "a terminal job is final"
    assert rows(database, "jobs") == before


@pytest.mark.parametrize(
    "table_and_word", ["jobs.status", "jobs.stage", "runs.status", "claims.state"]
)
def test_only_known_words_are_stored(store: Store, database: Database, table_and_word: str) -> None:
    with store.write() as tx:
        start(tx, add(tx))
    table, column = table_and_word.split(".")
    words = refused(database, f"update {table} set {column} = 'dispatched'")
    assert "check constraint" in words.lower()


@pytest.mark.req("D1")
def test_params_are_frozen_while_the_job_runs(store: Store, database: Database) -> None:
    with store.write() as tx:
        waiting = add(tx)
    database.execute('update jobs set params = \'{"argv":["b"]}\'', {})  # it still waits
    with store.write() as tx:
        start(tx, tx.jobs.by_id([waiting.id])[waiting.id])
    assert refused(database, "update jobs set params = '{}'") == "Cannot modify params"
    with store.read() as tx:
        assert tx.jobs.by_id([waiting.id])[waiting.id].params == {"argv": ["b"]}
        assert tx.jobs.runs([waiting.id])[waiting.id].params_snapshot == {"argv": ["b"]}


@pytest.mark.req("D2")
@pytest.mark.parametrize("column", ["job_id", "started_at", "worker_id", "params_snapshot"])
def test_a_run_is_an_audit_record(store: Store, database: Database, column: str) -> None:
    with store.write() as tx:
        start(tx, add(tx))
    before = rows(database, "runs")
    words = refused(database, f"update runs set {column} = '9'")
    assert words == "Cannot modify immutable fields of a run" and rows(database, "runs") == before


@pytest.mark.req("D2")
def test_a_run_may_be_completed_and_then_is_final(store: Store, database: Database) -> None:
    with store.write() as tx:
        start(tx, add(tx))
    allowed = {
        "artifacts": "'[]'",
        "error": "'x'",
        "exit_code": "1",
        "finished_at": str(START),
        "status": "'FAILED'",
    }
    for column, value in allowed.items():
        database.execute(f"update runs set {column} = {value}", {})
    before = rows(database, "runs")
    for column, value in {**allowed, "status": "'COMPLETED'"}.items():
        words = refused(database, f"update runs set {column} = {value}")
        assert words == "a finished run is final"
    assert rows(database, "runs") == before


def test_events_are_only_ever_appended(store: Store, database: Database) -> None:
    with store.write() as tx:
        tx.events.add([Event("submitted", 1), Event("paused")], actor="ann")
    before = rows(database, "events")
    assert refused(database, "update events set actor = 'bob'") == "events are append-only"
    assert rows(database, "events") == before
    assert refused(database, "delete from events where job_id is null") == "events are append-only"
    assert len(rows(database, "events")) == 2


def test_events_about_no_job_may_go_when_they_are_a_day_older_than_the_newest(
    store: Store, database: Database
) -> None:
    day = 86_400_000_000
    with store.write() as tx:
        job = add(tx)
    for kind, at, job_id in (
        ("old", START, "null"),
        ("of_job", START, job.id),
        ("young", START + 1, "null"),
        ("newest", START + day, "null"),
    ):
        database.execute(
            "insert into events (at, actor, kind, job_id, data) "
            f"values ({at}, 'ann', '{kind}', {job_id}, '{{}}')",
            {},
        )
    for stays in ("of_job", "young", "newest"):
        words = refused(database, f"delete from events where kind = '{stays}'")
        assert words == "events are append-only"
    words = refused(database, "update events set actor = 'bob' where kind = 'old'")
    assert words == "events are append-only"
    database.execute("delete from events where kind = 'old'", {})
    assert [row[3] for row in rows(database, "events")] == ["of_job", "young", "newest"]


def test_a_run_and_its_events_stay_as_long_as_their_job(store: Store, database: Database) -> None:
    with store.write() as tx:
        claim = start(tx, add(tx))
        tx.claims.finish([finish_of(claim)])
        tx.events.add([Event("ended", claim.job_id)], actor="ann")
    assert refused(database, "delete from runs") == "a finished run is final"
    assert refused(database, "delete from events") == "events are append-only"
    database.execute("delete from jobs", {})
    database.execute("delete from runs", {})
    database.execute("delete from events", {})
    assert rows(database, "runs") == rows(database, "events") == []
