"""Queries about chains: what they cost depends neither on how many jobs there are nor on how long a
chain is; also for a server that has planned them once for all values, as it does for a worker."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from stocked import START, job

from headway.store import open_store
from headway.store.postgres.database import DIALECT, PostgresDatabase
from headway.store.postgres.wire import _text_and_names
from headway.store.queries import Queries
from headway.store.rows import COLUMNS
from headway.testing.clock import FakeClock
from postgres import fresh_schema

LONG = 200  # jobs in a chain
FIRST = 4001  # of it
MANY = """
insert into jobs (id, name, type, status, priority, position, params, created_at, chain, labels,
  after_ids, locks, retry, attempt, retries_used, spec_digest, on_finish, submitted_by,
  launch_failures, waited_on, started_at, finished_at)
select i, 'n', 'command', 'succeeded', 0, 100 * i, '{}', i, i, '{}', '[]', '[]', '{}', 1, 0, '',
  '[]', 'ann', 0, '[]', i, i from generate_series(1, 4000) as i
"""
AROUND = (
    "insert into artifacts (artifact, job_id, at)"
    " select 'custom:' || id, id, 1 from jobs where id <= 400",
    "insert into produces (artifact, job_id, chain) select 'custom:' || id, id, id from jobs",
    "insert into edges (job_id, ord, declared, chain, mark)"
    " select id, 0, id - 1, id - 1, 'satisfied' from jobs where id > 1",
    "insert into claims (token, job_id, state, slot, worker_id, host_id, home, boot_id, folder,"
    " claimed_at, probe) select 't' || id, id, 'gone', 1, 'w', 'h', '/', 'b', '/', 1, 0 from jobs",
    "insert into job_webhooks (chain, url, types) select id, 'https://x', '[]' from jobs",
)
# What shows all that is active reads all that is active.
VIEWS = {"outlines_shown"}


def about_chains() -> list[str]:
    found = Queries(DIALECT, COLUMNS).all().values()
    return sorted(
        query.name
        for query in found
        if re.search(r"tail\.chain|later\.chain", query.sql) and query.name not in VIEWS
    )


@pytest.fixture(scope="module")
def large(postgres_server: str) -> Iterator[PostgresDatabase]:
    with ExitStack() as stack:
        url = stack.enter_context(fresh_schema(postgres_server))
        store: Any = open_store(url, FakeClock(START), create=True)
        stack.callback(store.close)
        with store.write() as tx:
            store.database.execute(MANY, {})
            for statement in AROUND:
                store.database.execute(statement, {})
            add_chain(tx)
        store.database.execute("analyze", {})
        store.database.execute("set plan_cache_mode = force_generic_plan", {})
        yield store.database


def add_chain(tx: Any) -> None:
    tx.settings.set_mark("next_job_id", FIRST + LONG)
    tx.jobs.add(
        [
            job(FIRST + each, chain=FIRST, retry_of=FIRST + each - 1 if each else None)
            for each in range(LONG)
        ]
    )


def plan_of(database: PostgresDatabase, name: str) -> Any:
    """The one for all values."""
    text, names = _text_and_names(Queries(DIALECT, COLUMNS)[name].sql)
    database.execute(f"prepare asked as {text.decode()}", {})
    try:
        values = ", ".join("null" for _ in names)
        rows = database.execute(f"explain (format json) execute asked({values})", {})
    finally:
        database.execute("deallocate asked", {})
    plan = rows[0][0]
    return (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]


def scans(node: Any, *, first: bool = False) -> Iterator[str]:
    """What reads all jobs, by themselves or by an index of all of them; the `first` of an index is
    not all."""
    whole = node["Node Type"] == "Seq Scan" or (
        node.get("Index Name") == "jobs_pkey" and "Index Cond" not in node and not first
    )
    if whole and node.get("Relation Name") == "jobs":
        yield node["Node Type"]
    for each in node.get("Plans", ()):
        yield from scans(each, first=node["Node Type"] == "Limit")


def test_there_are_such_queries() -> None:
    assert {"last_in_chain", "members_of_chains", "satisfy_chains_of_calls"} <= {*about_chains()}


@pytest.mark.parametrize("name", sorted({*about_chains(), "withdraw_markers"}))
def test_no_query_about_chains_reads_all_jobs(large: PostgresDatabase, name: str) -> None:
    """# fault C11"""
    plan = plan_of(large, name)
    assert not list(scans(plan)), plan


def rows_of(node: Any) -> float:
    own: float = node["Actual Rows"] * node["Actual Loops"]
    return own + sum(map(rows_of, node.get("Plans", ())))


@pytest.mark.parametrize("name", ["last_in_chain", "chain_ends", "add_edges", "chain_lasts"])
def test_who_asks_for_the_last_of_a_chain_does_not_read_the_others(
    large: PostgresDatabase, name: str
) -> None:
    given = {"chain": FIRST, "job_id": FIRST + 7, "declared": FIRST + 7, "ids": [FIRST + 7]}
    sql = Queries(DIALECT, COLUMNS)[name].sql
    large.begin_write()
    try:
        rows = large.execute(f"explain (analyze, format json) {sql}", {"ord": 0, **given})
    finally:
        large.rollback()
    assert rows_of(rows[0][0][0]["Plan"]) < 10
