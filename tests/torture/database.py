"""The store as plain SQL shows it, read without Headway."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw

Select = Callable[[str], list[tuple[Any, ...]]]


class JobRow(NamedTuple):
    id: int
    status: str
    chain: int
    retry_of: int | None
    attempt: int
    retries_used: int
    reason: str | None
    cancel_requested_at: int | None


class RunRow(NamedTuple):
    job: int
    status: str | None
    exit_code: int | None
    error: str | None
    started_at: int
    finished_at: int | None


class ClaimRow(NamedTuple):
    token: str
    job: int
    state: str


class EventRow(NamedTuple):
    job: int | None
    kind: str
    actor: str
    data: str

    def __str__(self) -> str:
        return f"event {self.kind} by {self.actor} {self.data}"


class Rows(NamedTuple):
    jobs: dict[int, JobRow]
    runs: dict[int, RunRow]
    claims: list[ClaimRow]
    outcomes: set[str]  # tokens whose outcome was taken in
    events: list[EventRow]
    held_locks: list[tuple[str, int]]
    lendings: list[int]


@contextmanager
def opened(url: str) -> Iterator[Select]:
    """A connection that can only read."""
    if url.startswith("sqlite://"):
        path = url.removeprefix("sqlite://")
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(10_000)
        try:
            yield lambda query: list(connection.execute(query))
        finally:
            connection.close()
        return
    import psycopg

    with psycopg.connect(url, autocommit=True) as server:
        server.execute("set default_transaction_read_only = on")
        yield lambda query: server.execute(query.encode()).fetchall()


def read(select: Select) -> Rows:
    jobs = select(
        "select id, status, chain, retry_of, attempt, retries_used, reason, cancel_requested_at"
        " from jobs order by id"
    )
    runs = select("select job_id, status, exit_code, error, started_at, finished_at from runs")
    outcomes = select("select token from evidence where kind = 'outcome'")
    events = select("select job_id, kind, actor, data from events order by seq")
    return Rows(
        {row[0]: JobRow(*row) for row in jobs},
        {row[0]: RunRow(*row) for row in runs},
        [ClaimRow(*row) for row in select("select token, job_id, state from claims")],
        {row[0] for row in outcomes},
        [EventRow(*row) for row in events],
        [(row[0], row[1]) for row in select("select key, job_id from held_locks")],
        [row[0] for row in select("select job_id from lendings")],
    )


def active(select: Select) -> int:
    """How many jobs have not ended."""
    return int(select("select count(*) from jobs where finished_at is null")[0][0])


def unsettled(select: Select) -> int:
    """How many claims are live, or have a tree that was not yet seen to be gone."""
    return int(select("select count(*) from claims where state <> 'gone'")[0][0])


def gone_tokens(select: Select, *, since: int) -> set[str]:
    """The claims made since then (microseconds UTC) whose trees are gone."""
    query = f"select token from claims where state = 'gone' and claimed_at >= {since}"
    return {row[0] for row in select(query)}
