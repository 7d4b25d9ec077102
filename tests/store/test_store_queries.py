"""The cost of a planning step grows with what changed, not with what lies in the store."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import apsw
import pytest
from stocked import (
    SECOND,
    START,
    Opener,
    claim_for,
    finish_of,
    job,
    only_a_file,
    parking,
    unclaim_of,
)

from headway.core.model import Job, Lock, Stage
from headway.core.states import WAITING, Status
from headway.store import open_store
from headway.store.database import Database
from headway.store.postgres.database import DIALECT as POSTGRES
from headway.store.queries import Dialect, Effect, Queries, parameters_of
from headway.store.records import (
    Lending,
    Marker,
    Search,
)
from headway.store.rows import COLUMNS
from headway.store.sqlite.database import DIALECT, SqliteDatabase
from headway.store.store import Store
from headway.store.transaction import WriteTx
from headway.testing.clock import FakeClock
from postgres import fresh_schema

NAMES = {each.name: Queries(each, COLUMNS).all().keys() for each in (DIALECT, POSTGRES)}
COMMON = NAMES["sqlite"] & NAMES["postgres"]
QUERIES = Queries(DIALECT, COLUMNS).all().values()
HOT = [query.name for query in QUERIES if query.hot and query.name in COMMON]

# What may be read as a whole, because it stays small whatever is submitted.
SMALL = {
    "marks": "a fixed handful of rows",
    "settings": "one row per setting that was ever set",
    "parked": "one row per runner of agents that met a limit",
    "pauses": "at most one row per scope",
    "breakers": "one row per host in trouble",
    "lendings": "one row per job that waits for another right now",
    "reservations": "one row per direct call that waits or runs right now",
}

# Where what a query wants is given as a set, and what each parameter looks like.
PLAUSIBLE: dict[str, Any] = {
    "ids": [1, 2, 3],
    "chains": [1, 2, 3],
    "keys": ["a", "b"],
    "tokens": ["token-1"],
    "topic": "lock:k-7",
    "artifact": "custom:made:7",
    "mode": "exclusive",
    "mark": "satisfied",
    "token": "token-1",
    "key": "key-1",
    "name": "log_bytes",
    "subject": "s-7",
    "host_id": "host",
    "queue": "",
    "status": "failed",
    "stage": "filed",
    "state": "gone",
    "waited_on": "[]",
    "reason": "because",
    "runner": "claude",
    "source": "n",
    "error": "it failed",
    "wait_kind": "locks",
    "wait_detail": "waiting",
    "launch_wait": "2",
    "last_failure": "none",
    "by": "ann",
    "rows": '[{"id": 1, "job_id": 1}]',
    "subjects": ["gt-1"],
    "groups": [1, 2, 3],
    "makers": ["jobs.yaml:a"],
    "schedules": ["schedule-7"],
    "schedule": "schedule-7",
    "outcome": "fired",
    "zones": "2026a",
    "given_place": [0, 1, 2],
    "given_params": ["{}", "{}", "{}"],
    **dict.fromkeys(("slug", "labels", "retry", "env_digest", "on_finish", "type", "data"), "x"),
    "given_job_id": [1, 2, 3],
    "given_token": ["token-1", "token-2", "token-3"],
    "given_at": [7, 8, 9],
    "given_attempt": [1, 1, 1],
    "given_slot": [1, 2, 3],
    **dict.fromkeys(("actor", "worker_id", "home", "boot_id", "folder", "function_host"), "x"),
    "occupies": "type:function",
}

FINISHED = """
with recursive n(i) as (select 1 union all select i + 1 from n where i < {count})
insert into jobs (id, name, type, status, priority, position, params, created_at, chain, labels,
  after_ids, locks, retry, attempt, retries_used, spec_digest, on_finish, submitted_by,
  launch_failures, waited_on, started_at, finished_at, group_id, sequence_number)
select i, 'n', 'command', 'succeeded', 0, 100 * i, '{{}}', {start} + i, i, '{{}}', '[]', '[]',
  '{{}}', 1, 0, '', '[]', 'ann', 0, '[]', {start} + i, {start} + i, i / 2, i from n
"""
FINISHED_CLAIMS = """
insert into claims (token, job_id, state, slot, worker_id, host_id, home, boot_id, folder,
  claimed_at, probe) select 't' || id, id, 'gone', 1, 'w', 'host', '/', 'b', '/', 1, 0 from jobs
"""
FINISHED_RUNS = """
insert into runs (job_id, started_at, worker_id, params_snapshot, status, artifacts, finished_at)
select id, 1, 'w', '{}', 'COMPLETED', '[]', 2 from jobs
"""
HELD = "insert into held_locks (key, job_id, mode) select 'held-' || id, id, 'shared' from jobs"
GRAPH = (
    "insert into needs (artifact, job_id) select 'custom:made:' || (id - 1), id from jobs",
    "insert into produces (artifact, job_id, chain) select 'custom:made:' || id, id, id from jobs",
    "insert into artifacts (artifact, job_id, at) select 'custom:made:' || id, id, 1 from jobs",
    "insert into withdrawals (artifact, chain, at) select 'custom:made:' || id, id, 1 from jobs",
    "insert into job_groups (id, name, subject, mode, on_failure, created_at, created_by, ended_at)"
    " select id, 'n-' || id, 's-' || id, 'sequential', 'stop', 1, 'ann', 2 from jobs",
    "insert into schedules (id, name, document, enabled, version, created_at, created_by, "
    "changed_at, next_slot, next_fire_at, looked_at, zones) select id, 'n-' || id, '{}', 1, 1, 1, "
    "'ann', 1, 9000000000000000 + id, 9000000000000000 + id, 1, '' from jobs",
    "insert into workflow_runs (id, name, version, policy_hash, manifest, params, created_at, "
    "created_by, ended_at, state)"
    " select id, 'n', '1', '', '{}', '{}', 1, 'ann', 2, 'succeeded' from jobs",
    "insert into workflow_nodes (run, ord, node, written, chain)"
    " select id, 1, 'n', 'n', id from jobs",
    "insert into workflow_loops (run, source, head, takes, tolerates, times, delay, used, called)"
    " select id, 'n', 'n', '[]', '[]', 1, 0, 0, 0 from jobs",
    "insert into firings (schedule_id, slot, last_slot, slots, outcome, job_id, at)"
    " select id, 1, 1, 1, 'fired', id, 1 from jobs",
)


def populate(store: Store, *, finished: int, filed: int) -> None:
    """Ended jobs with claims, runs and artifacts, filed jobs in equal parts of locks, edges and
    times."""
    database = store.database  # type: ignore[attr-defined]
    with store.write() as tx:
        database.execute(FINISHED.format(count=finished, start=START), {})
        database.execute(FINISHED_CLAIMS, {})
        database.execute(FINISHED_RUNS, {})
        for statement in (HELD, *GRAPH):
            database.execute(statement, {})
        first = finished + 1
        tx.settings.set_mark("next_job_id", first + filed)
        made = [job(first + each, **_kind(each, first)) for each in range(filed)]
        tx.jobs.add(made)
        tx.waits.park(map(_filed, made))


def _kind(number: int, first: int) -> dict[str, Any]:
    if number % 3 == 1:
        return {"after": (first,)}
    if number % 3 == 2:
        return {"locks": (Lock(f"k-{number % 50}"),)}
    return {"not_before": START + 3600 * SECOND + number}


def _filed(made: Job) -> Any:
    if made.after:
        return parking(made, f"chain:{made.after[0]}")
    if made.locks:
        return parking(made, f"lock:{made.locks[0].key}", reserves=True)
    return parking(made, wake_at=made.not_before)


def plan(database: Database, sql: str) -> list[str]:
    names = re.findall(r"(?<!:):(\w+)|%\((\w+)\)s", sql)
    values = {one or other: PLAUSIBLE.get(one or other, 7) for one, other in names}
    sets = {name: database.json(value) for name, value in values.items() if type(value) is list}
    return database.explain(sql, values | sets)


def scanned(database: Database, sql: str) -> list[str]:
    """Tables that are read from end to end, by themselves or by an index of all their rows.

    A partial index holds only rows of one state; to read it whole is to read what is asked for.
    """
    of = {"sqlite": _scanned_by_sqlite, "postgres": _scanned_by_postgres}[database.dialect.name]
    return [table for table in of(database, plan(database, sql)) if table not in SMALL]


def _scanned_by_sqlite(database: Database, lines: list[str]) -> Iterator[str]:
    schema = dict(database.execute("select name, sql from sqlite_schema", {}))
    for line in lines:
        match = re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", line)
        if match and match[1] in schema:
            index = match[2] and schema[match[2]]
            if not (index and " where " in index):
                yield match[1]


def _scanned_by_postgres(database: Database, lines: list[str]) -> Iterator[str]:
    """An index that is read without a condition on it is read whole, too, unless what is at its end
    is all that is asked for."""
    indexes = dict(
        database.execute(
            "select indexname, indexdef from pg_indexes where schemaname = current_schema()", {}
        )
    )
    for above, line, below in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        if match := re.search(r"Seq Scan on (\w+)", line):
            yield match[1]
        if "Limit " in above and " rows=1 " in above and "Filter" not in below:
            continue
        match = re.search(r"Index (?:Only )?Scan (?:Backward )?using (\w+) on (\w+)", line)
        if match and "Index Cond" not in below and " WHERE " not in indexes[match[1]]:
            yield match[2]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def large(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    with ExitStack() as stack:
        url = f"sqlite://{tmp_path_factory.mktemp('large')}/headway.db"
        if request.param == "postgres":
            url = stack.enter_context(fresh_schema(request.getfixturevalue("postgres_server")))
        store = open_store(url, FakeClock(START), create=True)
        stack.callback(store.close)
        populate(store, finished=2000, filed=1000)
        if request.param == "postgres":
            database = store.database  # type: ignore[attr-defined]
            database.execute("analyze", {})
            # A table of some thousand rows is a few pages, which it would rather read than seek.
            # What is asked here is whether it could seek, as it must when there are millions.
            database.execute("set enable_seqscan = off", {})
            database.execute("set enable_bitmapscan = off", {})
        yield store


@pytest.mark.parametrize("name", HOT)
def test_no_hot_query_reads_a_table_from_end_to_end(large: Store, name: str) -> None:
    """# fault C11"""
    database = large.database  # type: ignore[attr-defined]
    sql = large.queries[name].sql  # type: ignore[attr-defined]
    assert not scanned(database, sql), plan(database, sql)


def test_no_query_of_one_database_alone_reads_a_table_from_end_to_end(large: Store) -> None:
    """# fault C11: these are all in a step."""
    database = large.database  # type: ignore[attr-defined]
    queries = large.queries.all()  # type: ignore[attr-defined]
    own = queries.keys() - COMMON
    assert own
    for name in own:
        assert not scanned(database, queries[name].sql), plan(database, queries[name].sql)


@only_a_file
def test_a_single_submit_and_a_single_call_make_no_tables_on_the_way(store: Store) -> None:
    """As SQLite does of a list in a check, for each row. That costs little or much, as the memory
    of the process happens to be."""
    database = store.database  # type: ignore[attr-defined]
    queries = store.queries.all()  # type: ignore[attr-defined]
    own = {"add_one_alike"} | (queries.keys() - COMMON)
    statements = [queries[name].sql for name in own]
    of_one_call = ("start_calls", "add_runs", "claim_calls", "finish_calls")
    named = store.queries  # type: ignore[attr-defined]
    statements += [named.of_one(each).sql for each in of_one_call]
    assert len(statements) > 6
    for sql in statements:
        assert not tables_made(database, sql), sql
    assert tables_made(database, "update jobs set priority = 1 where status in ('a', 'b', 'c')")


def tables_made(database: Database, sql: str) -> list[str]:
    program = database.execute(f"explain {sql}", dict.fromkeys(parameters_of(sql)))
    return [step[1] for step in program if step[1] == "OpenEphemeral"]


def test_a_scan_would_be_noticed(large: Store) -> None:
    database = large.database  # type: ignore[attr-defined]
    assert scanned(database, "select id from jobs where name = 'n'") == ["jobs"]
    assert scanned(database, "select id from jobs order by chain") == ["jobs"]
    assert scanned(database, "select id from jobs where id = 7") == []


def test_what_a_planning_step_runs_is_marked_hot() -> None:
    """The reading and waking verbs of a step; what is left out here is not watched."""
    assert {
        "woken",
        "ready",
        "wake_due",
        "first_waiters",
        "wake_next",
        "wake_topics",
        "wake_dependents",
        "lock_holders",
        "first_reservers",
        "woken_anywhere",
        "unmet_edges",
        "claim_jobs",
        "end_claims",
        "finish_jobs",
        "finish_runs",
        "release_locks",
        "park_job",
        "clear_waits",
        "next_places",
        "next_wake",
        "published_keys",
        "withdrawn_keys",
        "producers_of",
        "chain_ends",
        "produced_by_chains",
        "end_withdrawals",
        "topics_waited_for",
        "turn_in_group",
        "active_in_group",
        "waiting_in_group",
        "groups_by_id",
        "due_schedules",
        "active_of_schedules",
        "fired_ahead",
    } <= set(HOT)


# -- counted work ---------------------------------------------------------------------------------
# On SQLite only: its machine counts its steps exactly. PostgreSQL tells buffers and times, which
# depend on what others did, on vacuum and on the planner's mood; there the plans above must do.


def add_and_start(tx: WriteTx) -> Any:
    made = job(tx.jobs.take_ids(1), position=tx.jobs.next_places().position, locks=(Lock("mine"),))
    tx.jobs.add([made])
    claim = claim_for(made.id, 3)
    tx.claims.begin([(made, claim)])
    return claim


def start_and_finish(tx: WriteTx) -> None:
    claim = add_and_start(tx)
    tx.claims.finish([finish_of(claim)])
    tx.waits.chains_succeeded([claim.job_id])
    tx.claims.release_locks([claim.job_id])


def start_and_undo(tx: WriteTx) -> None:
    claim = add_and_start(tx)
    tx.claims.undo([unclaim_of(claim)])
    tx.claims.release_locks([claim.job_id])


def park_for_capacity(tx: WriteTx) -> None:
    made = job(tx.jobs.take_ids(1), position=tx.jobs.next_places().position)
    tx.jobs.add([made])
    tx.waits.park([parking(made, stage=Stage.READY)])
    tx.waits.ready(10)


def need_and_make(tx: WriteTx) -> None:
    made = job(
        tx.jobs.take_ids(1), needs=("custom:made:7",), produces=("custom:made:new", "custom:made:7")
    )
    tx.jobs.add([made])


ACTS: dict[str, Callable[[WriteTx], Any]] = {
    "woken": lambda tx: tx.waits.woken(200),
    "ready": lambda tx: tx.waits.ready(200),
    "anything_woken": lambda tx: tx.waits.anything_woken(),
    "anything_active": lambda tx: tx.jobs.anything_active(),
    "next_wake": lambda tx: tx.waits.next_wake(),
    "wake_due": lambda tx: tx.waits.wake_due(START, 1000),
    "wake_first": lambda tx: tx.waits.wake_first(["lock:k-5"]),
    "wake_topics": lambda tx: tx.waits.wake_topics(["chain:7"]),
    "wake_jobs": lambda tx: tx.waits.wake([7]),
    "wake_chains": lambda tx: tx.waits.wake_chains([7]),
    "touch_checked": lambda tx: tx.waits.touch_checked([7]),
    "lock_views": lambda tx: tx.claims.lock_views(["k-5"]),
    "slots": lambda tx: tx.claims.slots(),
    "live_claims": lambda tx: tx.claims.live(),
    "unproven_claims": lambda tx: tx.claims.unproven(),
    "next_places": lambda tx: tx.jobs.next_places(),
    "stale_waiters": lambda tx: tx.waits.stale(START + SECOND, 10),
    "awaited_chains": lambda tx: tx.graph.awaited_chains(7),
    "lend": lambda tx: tx.claims.lend("lending", Lending(1, 2, START)),
    "chain_reopened": lambda tx: tx.waits.chain_reopened(7),
    "artifact_views": lambda tx: tx.graph.artifact_views(["custom:made:7", "command_patch:job-7"]),
    "produced_by": lambda tx: tx.graph.produced_by([7]),
    "consumers": lambda tx: tx.graph.consumers(["custom:made:7"]),
    "markers_by": lambda tx: tx.graph.markers_by([7]),
    "turns": lambda tx: tx.groups.turns([job(1, group_id=7, sequence_number=9)]),
    "group_is_active": lambda tx: tx.groups.is_active(7),
    "failed_member": lambda tx: tx.groups.failed_member(7),
    "waiting_members": lambda tx: tx.groups.waiting_members(7),
    "topics_waited_for": lambda tx: tx.waits.topics_waited_for(["lock:k-5"]),
    "publish": lambda tx: tx.graph.publish([Marker("custom:made:7", 7, START)]),
    "made_again": lambda tx: tx.graph.made_again([7]),
    "withdraw": lambda tx: tx.graph.withdraw([8]),
    "due_schedules": lambda tx: tx.schedules.due(START, 500),
    "note_next_fire": lambda tx: tx.schedules.note_next_fire(),
    "active_of_schedules": lambda tx: tx.schedules.active_jobs(["schedule-7"]),
    "fired_ahead": lambda tx: tx.schedules.fired_ahead([7]),
    "last_firings": lambda tx: tx.schedules.last_firings([7]),
    "needs and makes": need_and_make,
    "start and finish": start_and_finish,
    "start and undo": start_and_undo,
    "park for capacity": park_for_capacity,
}


def work(store: Store, act: Callable[[WriteTx], Any]) -> int:
    """How many steps SQLite's machine makes for this."""
    database = store.database  # type: ignore[attr-defined]
    assert isinstance(database, SqliteDatabase)
    connection = database._connection
    steps = []

    def count(event: dict[str, Any]) -> None:
        steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    with store.write() as tx:
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, count)
        act(tx)
        connection.trace_v2(0)
    assert steps
    return sum(steps)


@pytest.fixture(scope="module")
def small_and_huge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    stores = []
    for name, finished, filed in (("small", 200, 150), ("huge", 20_000, 5000)):
        path = tmp_path_factory.mktemp(name) / "headway.db"
        stores.append(open_store(f"sqlite://{path}", FakeClock(START), create=True))
        populate(stores[-1], finished=finished, filed=filed)
    yield stores[0], stores[1]
    for store in stores:
        store.close()


@pytest.mark.parametrize("name", ACTS)
def test_a_hundred_times_the_rows_cost_no_more_work(
    small_and_huge: tuple[Store, Store], name: str
) -> None:
    """# fault C11"""
    small, huge = (work(store, ACTS[name]) for store in small_and_huge)
    assert huge <= small * 1.5 + 100, (small, huge)


# What views read grows with what they show, not with what has ended.
LOOKS: dict[str, Callable[[WriteTx], Any]] = {
    "all that waits": lambda tx: list(tx.search.jobs(Search(statuses=WAITING), size=51)),
    "outlines_shown": lambda tx: tx.jobs.outlines_shown(1 << 40),
    "chain_ends": lambda tx: tx.jobs.chain_ends([7, 8, 9]),
    **{
        f"search by {name}": lambda tx, search=search: first_page(tx, search)
        for name, search in {
            "nothing": Search(),
            "time": Search(ended_since=START + 3600 * SECOND),
            "waiting": Search(statuses=WAITING),
            "running": Search(statuses=frozenset({Status.RUNNING})),
            "success": Search(statuses=frozenset({Status.SUCCEEDED})),
            "failure": Search(statuses=frozenset({Status.FAILED, Status.SKIPPED})),
            "label": Search(labels={}),
            "name": Search(name="n*"),
            "group": Search(groups=(7, 8)),
            "subject": Search(subjects=("s-7",)),
            "chain": Search(chains=(7, 8)),
        }.items()
    },
}


def first_page(tx: WriteTx, search: Search) -> None:
    """The newest 50, or all if there are not so many."""
    found = 0
    for stretch in tx.search.jobs(search, size=51):
        found += len(stretch.jobs)
        if found > 50:
            break


@pytest.fixture(scope="module")
def short_and_long_past(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Store, Store]]:
    stores = []
    for finished in (200, 20_000):
        path = tmp_path_factory.mktemp("past") / "headway.db"
        stores.append(open_store(f"sqlite://{path}", FakeClock(START), create=True))
        populate(stores[-1], finished=finished, filed=60)
    yield stores[0], stores[1]
    for store in stores:
        store.close()


@pytest.mark.parametrize("name", LOOKS)
def test_a_view_does_not_pay_for_what_has_ended(
    short_and_long_past: tuple[Store, Store], name: str
) -> None:
    """# fault C11"""
    short, long = (work(store, LOOKS[name]) for store in short_and_long_past)
    assert long <= short * 1.2 + 100, (short, long)


# Through what waits a search for what succeeded has to go: all that waits is newer.
PAGES = [each for each in LOOKS if each.startswith("search") and "success" not in each]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_costs_the_same_however_many_wait(
    small_and_huge: tuple[Store, Store], name: str
) -> None:
    """# fault C11"""
    small, huge = (work(store, LOOKS[name]) for store in small_and_huge)
    assert huge <= small * 1.5 + 100, (small, huge)


def test_counted_work_grows_where_it_must(small_and_huge: tuple[Store, Store]) -> None:
    small, huge = (work(store, lambda tx: tx.jobs.count_active()) for store in small_and_huge)
    assert huge > 10 * small


def test_a_set_of_values_is_one_parameter(opener: Opener) -> None:
    """So that a query's text, and its plan, do not depend on how many are asked for."""
    store = opener()
    database = store.database  # type: ignore[attr-defined]
    sql = store.queries["jobs_by_id"].sql  # type: ignore[attr-defined]
    for ids in ([], [1], list(range(1000))):
        assert database.execute(sql, {"ids": database.json(ids)}) == []


@pytest.mark.parametrize("dialect", [DIALECT, POSTGRES], ids=lambda each: each.name)
def test_what_a_query_changes_is_said_by_the_query(dialect: Dialect) -> None:
    for query in Queries(dialect, COLUMNS).all().values():
        written = re.findall(r"\b(?:update|insert into|delete from) (\w+)", query.sql)
        assert query.changes == {each for each in written if each != "set"}, query.name
        assert query.changes or query.effect is Effect.ANY, query.name
