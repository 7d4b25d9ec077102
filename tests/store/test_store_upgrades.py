"""A store of an older schema on a server, while others have it open, or found in other ways."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from older import columns_of_schema
from stocked import add, job

from headway.base.errors import StoreUndoneError
from headway.core.model import JobId, Stage
from headway.core.states import Status
from headway.store import store as general
from headway.store.new_jobs import Alike, Model
from headway.store.postgres import database as postgres
from headway.store.postgres.database import DIALECT
from headway.store.queries import migrations, schema_version
from headway.store.store import Store

Open = Callable[..., Store]
OLD = 8
PLAIN = Alike(Model(job(0, stage=Stage.READY)), {0: {}})


@pytest.fixture
def operator(bare_postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Where a store of schema 8 is."""
    with psycopg.connect(bare_postgres_url, autocommit=True) as connection:
        for step in migrations(DIALECT)[:OLD]:
            connection.execute(step.script.encode())
        connection.execute("create table schema_version (version bigint)")
        connection.execute(f"insert into schema_version values ({OLD})".encode())
        yield connection


@pytest.fixture
def old(
    operator: psycopg.Connection[Any],
    opened: Open,
    bare_postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Store:
    """The same, opened by one who knows no newer schema."""
    with monkeypatch.context() as patch:
        patch.setattr(postgres, "schema_version", lambda: OLD)
        patch.setattr(general, "COLUMNS", columns_of_schema(OLD))
        return opened(bare_postgres_url)


def names(store: Store) -> list[str]:
    """By a query that any schema answers."""
    with store.read() as tx:
        return [each.name for each in tx.jobs.by_id(range(1, 20)).values()]


def test_one_who_has_it_open_goes_on(old: Store, opened: Open, bare_postgres_url: str) -> None:
    """Its statements were prepared for columns of another type."""
    for number in range(4):
        with old.write() as tx:
            add(tx, name=f"n-{number}")
        assert len(names(old)) == number + 1
    opened(bare_postgres_url)
    with pytest.raises(StoreUndoneError, match="try again"):
        names(old)
    old.transact(lambda tx: add(tx, name="after"))
    assert len(names(old)) == 5


@pytest.mark.bulk
def test_it_is_brought_up_to_date_where_it_is(
    operator: psycopg.Connection[Any], old: Store, opened: Open, bare_postgres_url: str
) -> None:
    """By a user who has an empty schema of the user's own before the one with the tables."""
    with old.write() as tx:
        add(tx, name="kept")
    (schema,) = operator.execute("select current_schema()").fetchone() or ("",)
    empty = f"{schema}_Own"
    operator.execute(f'create schema "{empty}"')
    try:
        found_behind = opened(bare_postgres_url.replace(schema, f"%22{empty}%22,{schema}"))
        assert names(found_behind) == ["kept"]
        for store in (found_behind, opened(bare_postgres_url)):
            for _ in range(3):
                assert store.add_alike([PLAIN]) is not None
        assert operator.execute(IN_SCHEMA, {"schema": f'"{empty}"'}).fetchall() == []
        assert len(names(found_behind)) == len(names(old)) == 7
    finally:
        operator.execute(f'drop schema "{empty}" cascade')


IN_SCHEMA = """
select relname from pg_class where relnamespace = %(schema)s::regnamespace
union all select proname from pg_proc where pronamespace = %(schema)s::regnamespace
union all select typname from pg_type where typnamespace = %(schema)s::regnamespace
"""


def add_chain(tx: Any, length: int) -> JobId:
    """Of retries; the last has succeeded, the others have failed."""
    first: JobId = tx.jobs.take_ids(length)
    for each in range(length):
        made = job(first + each, chain=first, retry_of=first + each - 1 if each else None)
        (tx.jobs.add_retries if each else tx.jobs.add)([made])
        status = Status.SUCCEEDED if each == length - 1 else Status.FAILED
        assert tx.jobs.end_waiting(made, status, "because", None)
    return first


def test_chains_are_found_as_before(
    operator: psycopg.Connection[Any], old: Store, opened: Open, bare_postgres_url: str
) -> None:
    """Also by those who come at once, of whom one brings it up to date."""
    with old.write() as tx:
        chains = [add_chain(tx, length) for length in (1, 2, 40, 1)]
        waiting = add(tx, after=(chains[2], chains[3]))

    def found(store: Store) -> Any:
        with store.read() as tx:
            waits = tx.waits.predecessors(tx.waits.woken(100))
            return [(tx.jobs.last_in_chain(each), tx.jobs.chain(each)) for each in chains], waits

    before = found(old)
    assert before[1] == {waiting.id: ()}
    with ThreadPoolExecutor(4) as many:
        stores = [*many.map(opened, [bare_postgres_url] * 4)]
    assert [found(store) for store in stores] == [before] * 4
    assert operator.execute("select version from schema_version").fetchall() == [
        (schema_version(),)
    ]


@pytest.mark.bulk
def test_who_may_only_use_the_tables_can_submit(
    operator: psycopg.Connection[Any], opened: Open, bare_postgres_url: str
) -> None:
    opened(bare_postgres_url)
    (schema,) = operator.execute("select current_schema()").fetchone() or ("",)
    role = f"{schema}_user"
    operator.execute(f"create role {role}")
    operator.execute(f"grant usage on schema {schema} to {role}")
    operator.execute(f"grant all on all tables in schema {schema} to {role}")
    try:
        theirs = opened(f"{bare_postgres_url}%20-crole%3D{role}")
        for _ in range(4):
            assert theirs.add_alike([PLAIN]) is not None
        assert len(names(theirs)) == 4
    finally:
        operator.execute(f"drop owned by {role}")
        operator.execute(f"drop role {role}")
