"""The peers that run Python functions, each behind the same few verbs. Used by `consumption.py`.

Each is at the setting at which it drains fastest on two cores, and as shipped otherwise.
"""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from noops import write_instant

PAYLOAD = b"[1, 2]"


class Peer(Protocol):
    """`left` is what its own store says; `consume` never returns and calls `ready` when all that
    is still to do is to take jobs."""

    processes: int

    def fill(self, count: int) -> None: ...
    def record(self, path: str) -> None: ...
    def left(self) -> int: ...
    def consume(self, ready: Callable[[], None]) -> None: ...


class Huey:
    """One thread, its best. It deletes a job when it takes it: `left` is what was not yet taken."""

    processes = 1

    def __init__(self, folder: Path, url: str) -> None:
        from huey import SqliteHuey

        self._huey = SqliteHuey("bench", filename=str(folder / "huey.db"))
        self._noop = self._huey.task(name="noop")(noop)
        self._record = self._huey.task(name="record")(write_instant)

    def fill(self, count: int) -> None:
        for _ in range(count):
            self._noop(1, 2)

    def record(self, path: str) -> None:
        self._record(path)

    def left(self) -> int:
        return int(self._huey.storage.queue_size())

    def consume(self, ready: Callable[[], None]) -> None:
        consumer = self._huey.create_consumer(workers=1, worker_type="thread", periodic=False)
        ready()
        consumer.run()


class Pgqueuer:
    """Batches of 100, its best (10 as shipped), on one asyncpg connection."""

    processes = 1

    def __init__(self, folder: Path, url: str) -> None:
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._queries: Any = None

    def fill(self, count: int) -> None:
        self._enqueue(["noop"] * count, [PAYLOAD] * count, [0] * count)

    def record(self, path: str) -> None:
        self._enqueue("record", path.encode())

    def left(self) -> int:
        return counted(self._url, "select count(*) from pgqueuer")

    def consume(self, ready: Callable[[], None]) -> None:
        asyncio.run(self._consume(ready))

    async def _consume(self, ready: Callable[[], None]) -> None:
        import asyncpg
        from pgqueuer import PgQueuer

        queue = PgQueuer.from_asyncpg_connection(await asyncpg.connect(self._url))

        @queue.entrypoint("noop")
        async def _(job: Any) -> None:
            pass

        @queue.entrypoint("record")
        async def _(job: Any) -> None:
            write_instant(job.payload.decode())

        ready()
        await queue.run(batch_size=100)

    def _enqueue(self, *arguments: Any) -> None:
        if self._queries is None:
            self._queries = self._loop.run_until_complete(self._install())
        self._loop.run_until_complete(self._queries.enqueue(*arguments))

    async def _install(self) -> Any:
        import asyncpg
        from pgqueuer.db import AsyncpgDriver
        from pgqueuer.queries import Queries

        queries = Queries(AsyncpgDriver(await asyncpg.connect(self._url)))
        await queries.install()
        return queries


class Procrastinate:
    """Two workers that run ten at a time, its best."""

    processes = 2

    def __init__(self, folder: Path, url: str) -> None:
        from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

        self._url = url
        self._sync = App(connector=SyncPsycopgConnector(conninfo=url))
        self._async = App(connector=PsycopgConnector(conninfo=url))
        self._noop = self._sync.task(name="noop")(noop)
        self._record = self._sync.task(name="record")(write_instant)

        @self._async.task(name="noop")
        async def _(number: int, other: int) -> None:
            pass

        @self._async.task(name="record")
        async def _(path: str) -> None:
            write_instant(path)

    def fill(self, count: int) -> None:
        self._opened()
        self._noop.batch_defer(*[{"number": 1, "other": 2}] * count)

    def record(self, path: str) -> None:
        self._opened()
        self._record.defer(path=path)

    def left(self) -> int:
        return counted(
            self._url,
            "select count(*) from procrastinate_jobs where status in ('todo', 'doing')",
        )

    def consume(self, ready: Callable[[], None]) -> None:
        asyncio.run(self._consume(ready))

    async def _consume(self, ready: Callable[[], None]) -> None:
        async with self._async.open_async():
            ready()
            await self._async.run_worker_async(concurrency=10)

    def _opened(self) -> None:
        if not getattr(self, "_is_open", False):
            self._sync.open()
            self._sync.schema_manager.apply_schema()
            self._is_open = True


class Dbos:
    """No limit on its queue, as shipped and its best."""

    processes = 1

    def __init__(self, folder: Path, url: str) -> None:
        self._file = folder / "dbos.sqlite"
        self._store = url
        self._url = dbos_url(self._file, url)
        self._client: Any = None

    def fill(self, count: int) -> None:
        for _ in range(count):
            self._enqueue("noop", 1, 2)

    def record(self, path: str) -> None:
        self._enqueue("record", path)

    def left(self) -> int:
        active = "workflow_status where status in ('ENQUEUED', 'PENDING')"
        if self._store:
            return counted(self._store, f"select count(*) from dbos.{active}")
        import apsw

        with apsw.Connection(str(self._file), flags=apsw.SQLITE_OPEN_READONLY) as connection:
            connection.set_busy_timeout(30_000)
            return int(connection.execute(f"select count(*) from {active}").fetchall()[0][0])

    def consume(self, ready: Callable[[], None]) -> None:
        from dbos import DBOS

        self._launch()
        ready()
        DBOS.register_queue("bench")
        threading.Event().wait()

    def _launch(self) -> None:
        from dbos import DBOS

        DBOS(config=dbos_config(self._url))
        DBOS.workflow(name="noop")(noop)
        DBOS.workflow(name="record")(write_instant)
        DBOS.launch()

    def _enqueue(self, workflow: str, *arguments: Any) -> None:
        if self._client is None:
            from dbos import DBOS, DBOSClient

            self._launch()  # makes the tables
            DBOS.destroy()
            self._client = DBOSClient(system_database_url=self._url)
        options = {"workflow_name": workflow, "queue_name": "bench", "app_version": "1"}
        self._client.enqueue(options, *arguments)


def noop(number: int, other: int) -> None:
    pass


def dbos_url(file: Path, url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://") if url else f"sqlite:///{file}"


def dbos_config(url: str) -> Any:
    return {
        "name": "bench",
        "system_database_url": url,
        "log_level": "ERROR",
        "application_version": "1",
    }


_connections: dict[str, Any] = {}


def counted(url: str, query: str) -> int:
    import psycopg

    if url not in _connections:
        _connections[url] = psycopg.connect(url, autocommit=True)
    return int(_connections[url].execute(query).fetchone()[0])


PEERS: dict[str, Callable[[Path, str], Peer]] = {
    "huey": Huey,
    "pgqueuer": Pgqueuer,
    "procrastinate": Procrastinate,
    "dbos": Dbos,
}
