"""The schema: what it is, that it is made whole or not at all, and by one process among many."""

import os
import re
import signal
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import psycopg
import pytest
from older import columns_of_schema
from others import another, words
from stocked import START, add, finish_of, job

from headway.base.epoch import EPOCH
from headway.base.errors import InvalidInputError, SchemaTooNewError
from headway.store import open_store
from headway.store.copy import TABLES
from headway.store.postgres.database import DIALECT as SERVER
from headway.store.queries import Dialect, Queries, migrations, schema_version
from headway.store.rows import dump_job
from headway.store.sqlite.database import DIALECT as FILE
from headway.testing.clock import FakeClock

SCHEMA = Path(__file__).with_name("schema.txt")


def schema_of(path: Path) -> str:
    """The schema of a database, one statement per paragraph, without comments or line breaks.

    After a wanted change of the schema, write the new one down, so that it is seen in review:
    `cd tests/store && PYTHONPATH=../../src:.. python -c
    'import test_store_migrations as t; t.write_down()'`
    """
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        version = connection.execute("pragma user_version").fetchall()[0][0]
        rows = connection.execute(
            "select sql from sqlite_schema where sql is not null order by type, name"
        ).fetchall()
    finally:
        connection.close()
    statements = [re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", str(row[0]))) for row in rows]
    return "\n\n".join([f"-- version {version}", *statements]) + "\n"


def write_down() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        open_store(f"sqlite://{folder}/headway.db", FakeClock(START), create=True).close()
        SCHEMA.write_text(schema_of(Path(folder, "headway.db")))


def test_migrating_from_nothing_gives_the_schema_that_was_reviewed(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    assert os.listdir(tmp_path) == ["headway.db"]
    assert schema_of(path) == SCHEMA.read_text()


@pytest.mark.req("D8")
def test_a_new_store_is_for_its_owner_alone_and_durable(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    store = open_store(f"sqlite://{path}", FakeClock(START), create=True)
    try:
        assert path.stat().st_mode & 0o777 == 0o600
        database = store.database  # type: ignore[attr-defined]
        assert database.execute("pragma journal_mode", {}) == [("wal",)]
        assert database.execute("pragma synchronous", {}) == [(2,)]
    finally:
        store.close()


def test_a_killed_creation_leaves_no_store_and_the_next_one_works(tmp_path: Path) -> None:
    """# fault A9"""
    path = tmp_path / "headway.db"
    killed = another("opened()", path, environ={"HEADWAY_POINTS": "store.migrated=kill"})
    assert words(killed) == [] and killed.returncode == -signal.SIGKILL
    assert not path.exists()
    store = open_store(f"sqlite://{path}", FakeClock(START), create=True)
    try:
        with store.write() as tx:
            assert add(tx).id == 1
        assert store.database.quick_check() == []  # type: ignore[attr-defined]
    finally:
        store.close()
    assert schema_of(path) == SCHEMA.read_text()


def test_what_a_killed_creation_left_behind_is_no_obstacle_and_goes(tmp_path: Path) -> None:
    """# fault A9: in a container the next process may well have the same number."""
    path = tmp_path / "headway.db"
    killed = another("opened()", path, environ={"HEADWAY_POINTS": "store.migrated=kill"})
    assert words(killed) == []
    for left in tmp_path.iterdir():
        left.rename(tmp_path / left.name.replace(str(killed.pid), str(os.getpid())))
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    assert os.listdir(tmp_path) == ["headway.db"]


def test_a_killed_migration_of_a_store_in_use_leaves_it_as_it_was(tmp_path: Path) -> None:
    """# fault A9"""
    path = tmp_path / "headway.db"
    connection = apsw.Connection(str(path))
    connection.execute(
        "pragma journal_mode = wal; create table mine (x); insert into mine values (1)"
    )
    connection.close()
    before = schema_of(path)
    killed = another("opened()", path, environ={"HEADWAY_POINTS": "store.migrated=kill"})
    assert words(killed) == [] and killed.returncode == -signal.SIGKILL
    connection = apsw.Connection(str(path))
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()
    assert schema_of(path) == before
    open_store(f"sqlite://{path}", FakeClock(START)).close()
    assert "create table jobs" in schema_of(path).lower()


def test_a_newer_schema_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    connection = apsw.Connection(str(path))
    connection.execute(f"pragma user_version = {schema_version() + 1}")
    connection.close()
    content = path.read_bytes()
    with pytest.raises(SchemaTooNewError, match="Upgrade Headway") as error:
        open_store(f"sqlite://{path}", FakeClock(START), create=True)
    assert error.value.exit_code == 6
    assert path.read_bytes() == content


def test_opening_once_more_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    content = path.read_bytes()
    open_store(f"sqlite://{path}", FakeClock(START)).close()
    assert path.read_bytes() == content


CREATE = """
sys.stdin.readline()
store = opened()
with store.write() as tx:
    print(add(tx).id)
"""


def test_ten_processes_that_create_one_store_make_one(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    makers = [another(CREATE, path) for _ in range(10)]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    numbers = [int(line) for maker in makers for line in words(maker)]
    assert sorted(numbers) == list(range(1, 11))
    open_store(f"sqlite://{path}", FakeClock(START)).close()
    assert os.listdir(tmp_path) == ["headway.db"]
    assert schema_of(path) == SCHEMA.read_text()


@pytest.mark.parametrize("url", ["", "headway.db", "sqlite://relative.db", "mysql:///srv/x.db"])
def test_an_unknown_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="use sqlite:///absolute") as error:
        open_store(url, FakeClock(START))
    assert error.value.exit_code == 5


# -- on a server ----------------------------------------------------------------------------------


class Shape(NamedTuple):
    """What both databases can tell about a schema, in the same words."""

    columns: dict[str, list[tuple[str, str, bool]]]  # table -> name, type, may be null
    keys: dict[str, list[str]]
    indexes: dict[str, str]  # name -> unique, columns in order and the condition
    triggers: set[tuple[str, str]]
    checks: dict[str, int]
    views: set[str]


OWN = {"commits", "schema_version"}  # which a file has no use for
TYPES = {
    "INTEGER": "bigint",
    "bigint": "bigint",
    "BIGINT": "bigint",
    "text": "text",
    "TEXT": "text",
}


def shape_of_file(path: Path) -> Shape:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = connection.execute("select type, name, tbl_name, sql from sqlite_schema").fetchall()
        tables = {str(row[1]): str(row[3]) for row in rows if row[0] == "table"}
        columns = {
            name: connection.execute(f"pragma table_info({name})").fetchall() for name in tables
        }
    finally:
        connection.close()
    return Shape(
        {
            name: [(row[1], TYPES[row[2].upper()], not row[3] and not row[5]) for row in found]
            for name, found in columns.items()
        },
        {
            name: [row[1] for row in sorted(found, key=lambda row: row[5]) if row[5]]
            for name, found in columns.items()
        },
        {str(row[1]): _index(str(row[3])) for row in rows if row[0] == "index" and row[3]},
        {(str(row[1]), str(row[2])) for row in rows if row[0] == "trigger"},
        {name: sql.count("check (") for name, sql in tables.items()},
        {str(row[1]) for row in rows if row[0] == "view"},
    )


def shape_of_schema(connection: psycopg.Connection[Any]) -> Shape:
    def ask(query: str) -> list[tuple[Any, ...]]:
        return connection.execute(query).fetchall()  # type: ignore[arg-type]

    columns: dict[str, list[tuple[str, str, bool]]] = {}
    for table, name, kind, nullable in ask(
        "select table_name, column_name, data_type, is_nullable from information_schema.columns "
        "join information_schema.tables using (table_schema, table_name) "
        "where table_schema = current_schema() and table_type = 'BASE TABLE' "
        "order by table_name, ordinal_position"
    ):
        columns.setdefault(table, []).append((name, TYPES[kind], nullable == "YES"))
    constraints = ask(
        "select relname, contype::text, array(select attname::text from unnest(conkey) "
        "with ordinality as key(number, place) join pg_attribute on attrelid = conrelid "
        "and attnum = number order by place) from pg_constraint join pg_class on "
        "pg_class.oid = conrelid where connamespace = current_schema()::regnamespace"
    )
    constraints += ask(  # those of the types of columns
        "select relname, contype::text, array[attname::text] from pg_constraint "
        "join pg_attribute on atttypid = contypid join pg_class on pg_class.oid = attrelid "
        "where relnamespace = current_schema()::regnamespace and relkind = 'r' and contypid <> 0"
    )
    keys = {table: key for table, kind, key in constraints if kind == "p"}
    indexes = ask(
        "select indexname, indexdef from pg_indexes where schemaname = current_schema() "
        "and indexname not like '%_pkey'"
    )
    triggers = ask(
        "select tgname, relname from pg_trigger join pg_class on pg_class.oid = tgrelid "
        "where relnamespace = current_schema()::regnamespace and not tgisinternal"
    )
    return Shape(
        {table: found for table, found in columns.items() if table not in OWN},
        {table: key for table, key in keys.items() if table not in OWN},
        {name: _index(sql) for name, sql in indexes},
        {(name, table) for name, table in triggers},
        {
            table: sum(kind == "c" for owner, kind, _ in constraints if owner == table)
            for table in columns
            if table not in OWN
        },
        {
            name
            for (name,) in ask("select viewname from pg_views where schemaname = current_schema()")
        },
    )


def _index(sql: str) -> str:
    """`CREATE INDEX i ON s.t USING btree (a, "b" DESC) WHERE (c = 'd'::text)` in one spelling."""
    sql = re.sub(r"\s+", " ", sql).lower()
    sql = re.sub(r" using btree|::text|::bigint|\"", "", sql)
    sql = re.sub(r" on (\w+\.)", " on ", sql)
    head, _, condition = sql.partition(" where ")
    return f"{head} where {re.sub('[()]', '', condition)}"


def shape_at(url: str) -> Shape:
    with psycopg.connect(url) as connection:
        return shape_of_schema(connection)


def test_a_copy_of_a_store_has_every_table(tmp_path: Path) -> None:
    """What is left out of the list would be lost with a backup of a server, and with a restore."""
    path = tmp_path / "headway.db"
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    assert sorted(TABLES) == sorted(shape_of_file(path).columns)


def test_a_server_gets_the_same_schema_as_a_file(tmp_path: Path, bare_postgres_url: str) -> None:
    path = tmp_path / "headway.db"
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    open_store(bare_postgres_url, FakeClock(START), create=True).close()
    wanted, found = shape_of_file(path), shape_at(bare_postgres_url)
    assert found.columns == wanted.columns
    assert found.keys == wanted.keys
    assert found.indexes == wanted.indexes and len(found.indexes) > 20
    assert found.triggers == wanted.triggers
    assert found.views == wanted.views and found.views
    assert found.checks == wanted.checks and sum(found.checks.values()) >= 5


def everything_on(connection: psycopg.Connection[Any]) -> list[str]:
    """The names of all tables, indexes and functions in the schema."""
    relations = connection.execute(
        "select relname from pg_class where relnamespace = current_schema()::regnamespace "
        "union all select proname from pg_proc where pronamespace = current_schema()::regnamespace"
    ).fetchall()
    return sorted(row[0] for row in relations)


def test_a_killed_migration_leaves_nothing_on_a_server_and_the_next_one_works(
    tmp_path: Path, bare_postgres_url: str
) -> None:
    """# fault A9"""
    killed = another(
        "opened()", bare_postgres_url, environ={"HEADWAY_POINTS": "store.migrated=kill"}
    )
    assert words(killed) == [] and killed.returncode == -signal.SIGKILL
    with psycopg.connect(bare_postgres_url, autocommit=True) as operator:
        assert everything_on(operator) == []
    store = open_store(bare_postgres_url, FakeClock(START), create=True)
    try:
        with store.write() as tx:
            assert add(tx).id == 1
    finally:
        store.close()
    path = tmp_path / "headway.db"
    open_store(f"sqlite://{path}", FakeClock(START), create=True).close()
    assert shape_at(bare_postgres_url) == shape_of_file(path)


def test_a_newer_schema_on_a_server_is_refused_and_not_touched(bare_postgres_url: str) -> None:
    open_store(bare_postgres_url, FakeClock(START), create=True).close()
    with psycopg.connect(bare_postgres_url, autocommit=True) as operator:
        operator.execute("update schema_version set version = version + 1")
        operator.execute("drop table lendings")  # which a newer one may have done
        before = everything_on(operator)
        with pytest.raises(SchemaTooNewError, match="Upgrade Headway") as error:
            open_store(bare_postgres_url, FakeClock(START), create=True)
        assert error.value.exit_code == 6
        assert everything_on(operator) == before
        version = operator.execute("select version from schema_version").fetchall()
        assert version == [(schema_version() + 1,)]


def test_ten_processes_that_create_one_store_on_a_server_make_one(bare_postgres_url: str) -> None:
    makers = [another(CREATE, bare_postgres_url) for _ in range(10)]
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    numbers = [int(line) for maker in makers for line in words(maker)]
    assert sorted(numbers) == list(range(1, 11))
    with psycopg.connect(bare_postgres_url) as operator:
        assert operator.execute("select version from schema_version").fetchall() == [
            (schema_version(),)
        ]


# -- from an older one ----------------------------------------------------------------------------

OLD_CLAIM = (
    "insert into claims values ('{}', {}, '{}', {}, 'worker', 'host', '/home', 'boot', '/jobs', "
    "{}, {}, 0, 9, 'host-a', 'type:function')"
)
OLD_CLAIMS = [  # token, job, state, slot, claimed_at, borrowed_from
    ("live", 1, "live", 1, 100, "null"),
    ("borrows", 2, "live", 2, 100, "1"),
    ("ended", 3, "ended", 1, 50, "null"),
    ("gone", 4, "gone", 1, 40, "null"),
    ("first try", 5, "gone", 3, 10, "null"),
    ("second try", 5, "live", 3, 60, "null"),
    ("one", 6, "ended", 2, 30, "null"),
    ("other", 6, "gone", 2, 20, "null"),
]
KEPT = ["live", "borrows", "ended", "gone", "second try", "one"]


def old_claims() -> list[tuple[str, dict[str, Any]]]:
    return [(OLD_CLAIM.format(*each), {}) for each in OLD_CLAIMS]


def assert_claims_are_kept(url: str) -> None:
    store = open_store(url, FakeClock(START))
    try:
        with store.read() as tx:
            live = {each.token: each for each in tx.claims.live()}
            assert {*live} == {"live", "borrows", "second try"}
            assert live["borrows"].borrowed_from == 1 and live["borrows"].slot == 2
            assert live["live"].function_host == "host-a" and live["live"].lease_until == 9
            assert live["live"].occupies == ("type:function",)
            assert [each.token for each in tx.claims.unproven()] == ["ended", "one"]
            last = tx.claims.last_of(range(1, 7))
            assert [last[job_id].token for job_id in range(1, 7)] == KEPT
            assert tx.claims.slots().used == {1, 2, 3}
        with store.write() as tx:
            assert tx.claims.finish([finish_of(live["live"])]) == [True]
            assert tx.claims.finish([finish_of(live["live"])]) == [False]
    finally:
        store.close()


Statements = list[tuple[str, dict[str, Any]]]


def make_file(path: Path, schema: int, statements: Statements) -> str:
    """One of an older schema, with what these put into it."""
    connection = apsw.Connection(str(path))
    for step in migrations(FILE):
        if step.number <= schema:
            connection.execute(step.script)
    for sql, values in statements:
        connection.execute(sql, values)
    connection.execute(f"pragma user_version = {schema}")
    connection.close()
    return f"sqlite://{path}"


def make_there(url: str, schema: int, statements: Statements) -> None:
    """The same on a server."""
    with psycopg.connect(url) as operator:
        for step in migrations(SERVER):
            if step.number <= schema:
                operator.execute(step.script.encode())
        operator.execute("create table schema_version (version bigint)")
        operator.execute(f"insert into schema_version values ({schema})".encode())
        for sql, values in statements:
            operator.execute(sql.encode(), values)


def test_claims_of_a_file_of_schema_6_are_kept(tmp_path: Path) -> None:
    """Those that live and those whose processes may; of several of one job the last."""
    path = tmp_path / "headway.db"
    assert_claims_are_kept(make_file(path, 6, old_claims()))
    assert schema_of(path) == SCHEMA.read_text()


def test_claims_of_a_server_of_schema_6_are_kept(bare_postgres_url: str) -> None:
    make_there(bare_postgres_url, 6, old_claims())
    assert_claims_are_kept(bare_postgres_url)
    with psycopg.connect(bare_postgres_url) as operator:
        versions = operator.execute("select version from schema_version").fetchall()
    assert versions == [(schema_version(),)]


OLD_TARGET = """
insert into targets values ('gas', 'gt-', '{"argv":["true"],"cwd":null,"env":{},"helper":[],
  "locks":[],"resources":[],"retries":0,"timeout":null}', 5, 'ann')
"""
OLD_RUN = """
insert into workflow_runs (id, name, version, policy_hash, manifest, params, created_at,
  created_by, state) values (1, 'flow', '1', 'f', '{}', '{}', 5, 'ann', 'running')
"""


def of_schema_18(dialect: Dialect) -> Statements:
    """A target, a run, and an open job about a subject."""
    sql = Queries(dialect, columns_of_schema(18))["add_jobs"].sql
    return [(OLD_TARGET, {}), (OLD_RUN, {}), (sql, dict(dump_job(job(1, subject="gt-1"))))]


def assert_subjects_are_kept(url: str) -> None:
    store = open_store(url, FakeClock(START))
    try:
        with store.read() as tx:
            target = tx.workitems.targets()["gas"]
            assert (target.argv, target.workflow, target.params) == (("true",), None, {})
            run = tx.workflows.by_id([1])[1]
            assert (run.subject, run.target) == (None, None)
            assert tx.workitems.open_about(["gt-1"])["gt-1"].id == 1
        with pytest.raises((apsw.ConstraintError, psycopg.IntegrityError)), store.write() as tx:
            tx.jobs.add([job(2, subject="gt-1")])
        with store.write() as tx:
            own = {"workflow_run": 1, "node": "a", "node_pass": 1, "subject": "gt-1"}
            tx.jobs.add([job(2, **own), job(3, **own)])
    finally:
        store.close()


def test_subjects_of_a_file_of_schema_18_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "headway.db"
    assert_subjects_are_kept(make_file(path, 18, of_schema_18(FILE)))
    assert schema_of(path) == SCHEMA.read_text()


def test_subjects_of_a_server_of_schema_18_are_kept(bare_postgres_url: str) -> None:
    make_there(bare_postgres_url, 18, of_schema_18(SERVER))
    assert_subjects_are_kept(bare_postgres_url)


MOVED = [(1, 300), (2, 5000), (3, 100)]  # jobs that were put elsewhere, and their positions


def moved_jobs(dialect: Dialect) -> Statements:
    queries = Queries(dialect, columns_of_schema(10))
    sql = queries["add_jobs"].sql
    told = {"at": START, "actor": "ann", "kind": "submitted", "job_id": 2, "data": "{}"}
    moved = [(sql, dict(dump_job(job(number, position=position)))) for number, position in MOVED]
    return [*moved, (queries["add_events"].sql, told)]


def assert_new_jobs_are_last(url: str, last: int) -> None:
    store = open_store(url, FakeClock(START))
    try:
        with store.write() as tx:
            assert tx.jobs.next_places()[:2] == (4, last + 100)
            assert [each.id for each in tx.queue_order.waiting(9)] == [3, 1, 2]
            added = add(tx, position=tx.jobs.next_places().position)
            assert [each.id for each in tx.queue_order.waiting(9)] == [3, 1, 2, added.id]
            assert len(tx.jobs.active()) == 4
            assert [each.kind for each in tx.events.of_job(2)] == ["submitted"]
        if not store.shared:
            assert store.database.integrity_check() == []  # type: ignore[attr-defined]
    finally:
        store.close()


def test_new_jobs_stand_after_all_of_a_file_of_schema_10(tmp_path: Path) -> None:
    url = make_file(tmp_path / "headway.db", 10, moved_jobs(FILE))
    assert_new_jobs_are_last(url, last=5000)


def test_new_jobs_stand_after_all_of_a_server_of_schema_10(bare_postgres_url: str) -> None:
    make_there(bare_postgres_url, 10, moved_jobs(SERVER))
    assert_new_jobs_are_last(bare_postgres_url, last=5000)


def epochs(*urls: str) -> set[int]:
    found = set()
    for url in urls:
        store = open_store(url, FakeClock(START))
        with store.read() as tx:
            found.add(tx.settings.marks()[EPOCH])
        store.close()
    return found


def test_files_of_schema_11_get_an_epoch_of_events_each_its_own(tmp_path: Path) -> None:
    urls = [make_file(tmp_path / f"{number}.db", 11, []) for number in range(2)]
    found = epochs(*urls)
    assert len(found) == 2 and min(found) > 0
    assert epochs(*urls) == found


def test_a_server_of_schema_11_gets_an_epoch_of_events(bare_postgres_url: str) -> None:
    make_there(bare_postgres_url, 11, [])
    found = epochs(bare_postgres_url)
    assert min(found) > 0 and epochs(bare_postgres_url) == found
