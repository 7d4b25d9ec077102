"""Stores that are made already, and a quick place for them: most tests begin with an empty store,
and to migrate one anew for each takes longer than what they prove.

That the migrations themselves make such a store is proven in tests/store/test_store_migrations.py.
"""

import atexit
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any

import psycopg

import lines
from headway.base.clock import Clock, SystemClock
from headway.store import open_store
from headway.store.store import Store
from postgres import drop_schema, fresh_schema, new_schema, with_schema

MEMORY = "/dev/shm"
ROOM = 4 << 30
MOMENTS = 50
LARGE = 1 << 20  # a schema that had so many bytes of jobs is not emptied but dropped

_TICK = threading.Event()  # never set: waiting on it is a pause between two looks


def live_in_memory() -> None:
    """Let temporary folders be in memory if there is room, unless TMPDIR says where."""
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    there = os.statvfs(MEMORY)
    if there.f_bavail * there.f_frsize > ROOM and not there.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = MEMORY
        tempfile.tempdir = None  # pytest has asked already, and the answer is remembered


def keep_trust_apart() -> None:
    """Let the record of trust of all that tests make be a temporary one, never the user's."""
    folder = tempfile.mkdtemp(prefix="headway-state-")
    os.environ["XDG_STATE_HOME"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def open_ready(url: str, clock: Clock) -> Store:
    """Open a store; one in a file that is not there begins as a copy."""
    scheme, _, path = url.partition("://")
    if scheme == "sqlite" and not os.path.exists(path) and not os.path.exists(f"{path}-wal"):
        fresh = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(fresh, "wb") as file:
            file.write(_empty_file())
    with lines.kept_lines():
        return open_store(url, clock, create=True)


@cache
def _empty_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/headway.db"
        open_store(f"sqlite://{path}", SystemClock(), create=True).close()
        with open(path, "rb") as file:
            return file.read()


class Schemas:
    """Migrated schemas of a server of our own, each for one test at a time.

    A schema is emptied for the next test, unless the test changed more than its rows or somebody
    who came since is still connected, and might write later; then it is dropped. Who was there
    before, as one that an earlier test forgot, knows nothing of it.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._operator = psycopg.connect(server, autocommit=True)
        self._free: list[str] = []
        self._shapes: dict[str, Any] = {}
        self._back: dict[str, list[tuple[str, list[str]]]] = {}

    @contextmanager
    def one(self) -> Iterator[str]:
        name = self._free.pop() if self._free else self._make()
        since = self._operator.execute("select clock_timestamp()").fetchall()[0][0]
        url = with_schema(self._server, name)
        lines.keep(url)
        yield url
        if self._is_as_made(name, since, lines.idle_pids(url)):
            with self._operator.transaction():
                for query, values in self._back[name]:
                    self._operator.execute(query, values, prepare=True)
            self._free.append(name)
        else:
            lines.drop(url)
            drop_schema(self._operator, name)

    def close(self) -> None:
        lines.drop_all()
        self._operator.close()

    def _make(self) -> str:
        if not self._shapes:
            self._operator.execute(_GIVE_ROWS)
        name = new_schema(self._operator)
        open_store(with_schema(self._server, name), SystemClock(), create=True).close()
        self._shapes[name] = self._shape(name)
        self._back[name] = self._way_back(name)
        return name

    def _way_back(self, name: str) -> list[tuple[str, list[str]]]:
        """What makes the schema as it is now: few statements, each of which is planned once."""
        rows = self._operator.execute(_ROWS, [name]).fetchall()[0][0]
        parts = self._operator.execute(_PARTS, [name]).fetchall()
        tables = [part for kind, part in parts if kind == "r"]
        full = [part for part in tables if rows[part]]
        deleted = [f"of_{at} as (delete from {name}.{part})" for at, part in enumerate(tables)]
        reset = [f"setval('{name}.{part}', 1, false)" for kind, part in parts if kind == "S"]
        return [
            ("select set_config('session_replication_role', 'replica', true)", []),  # no trigger
            (f"with {', '.join(deleted)} select", []),
            (f"select {', '.join(reset)}", []),
            *((_FILL.format(f"{name}.{part}"), [json.dumps(rows[part])]) for part in full),
        ]

    def _is_as_made(self, name: str, since: datetime, kept: list[int]) -> bool:
        size = self._operator.execute(_SIZE, [f"{name}.jobs"]).fetchall()[0][0]
        if size is None or size > LARGE or not self._all_have_left(since, kept):
            return False
        return bool(self._shape(name) == self._shapes[name])

    def _all_have_left(self, since: datetime, kept: list[int]) -> bool:
        """Who closed a connection is still shown for an instant."""
        for _ in range(MOMENTS):
            if not self._operator.execute(_OTHERS, [since, kept]).fetchall()[0][0]:
                return True
            _TICK.wait(0.002)
        return False

    def _shape(self, name: str) -> Any:
        return self._operator.execute(_SHAPE, {"schema": name}).fetchall()


@contextmanager
def schemas(server: str) -> Iterator[Schemas | None]:
    """None for a server that others use, too: there it is not known who is connected to what."""
    if "HEADWAY_TEST_POSTGRES" in os.environ:
        yield None
        return
    made = Schemas(server)
    yield made
    made.close()


@contextmanager
def ready_schema(server: str, schemas: Schemas | None) -> Iterator[str]:
    """The URL of an empty store in a schema of its own."""
    if schemas is not None:
        with schemas.one() as url:
            yield url
        return
    with fresh_schema(server) as url:
        open_store(url, SystemClock(), create=True).close()
        yield url


_OTHERS = """
select count(*) from pg_stat_activity
where backend_type = 'client backend' and pid <> pg_backend_pid() and backend_start >= %s
  and pid <> all(%s::int[])
"""
_SIZE = "select pg_total_relation_size(to_regclass(%s))"

# Whatever alters a table, an index, a trigger, a rule or a function leaves a newer row here.
_SHAPE = """
with parts as (
  select oid, xmin from pg_class where relnamespace = to_regnamespace(%(schema)s)
), rows as (
  select 'class' as kind, xmin from parts
  union all select 'column', a.xmin from pg_attribute a join parts p on p.oid = a.attrelid
  union all select 'default', d.xmin from pg_attrdef d join parts p on p.oid = d.adrelid
  union all select 'index', i.xmin from pg_index i join parts p on p.oid = i.indexrelid
  union all select 'trigger', t.xmin from pg_trigger t join parts p on p.oid = t.tgrelid
  union all select 'constraint', xmin from pg_constraint
            where connamespace = to_regnamespace(%(schema)s)
  union all select 'function', xmin from pg_proc where pronamespace = to_regnamespace(%(schema)s)
)
select kind, count(*), max(xmin::text::bigint) from rows group by kind order by kind
"""

# All rows as they are: a JSON object of the tables.
_ROWS = "select public.headway_rows(%s)"
_FILL = "insert into {0} select * from jsonb_populate_recordset(null::{0}, %s)"
_PARTS = """
select relkind, quote_ident(relname) from pg_class
where relnamespace = to_regnamespace(%s) and relkind in ('r', 'S') order by relname
"""

_GIVE_ROWS = """
create or replace function public.headway_rows(given text) returns jsonb language plpgsql as $$
declare
  part record;
  rows jsonb;
  found jsonb = '{}';
begin
  for part in select oid::regclass as name, relname from pg_class
              where relnamespace = to_regnamespace(given) and relkind = 'r' loop
    execute format('select jsonb_agg(to_jsonb(t)) from %s t', part.name) into rows;
    found = found || jsonb_build_object(part.relname, rows);
  end loop;
  return found;
end $$;
"""
