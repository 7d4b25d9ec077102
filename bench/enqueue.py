"""One contender submits no-ops, in a process of its own: `enqueue.py CONTENDER FOLDER COUNT [URL]`.

Prints how many a second it stored durably, one by one and, where it can, all in one call. SQLite
stores are WAL with synchronous=FULL (Headway's, and Huey's as shipped); PostgreSQL is as its server
is configured, the same for all.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

PAYLOAD = b"[1, 2]"


def headway(folder: Path, count: int, url: str) -> dict[str, float]:
    """Client.submit and Client.submit_many of `true`, with every check that they make."""
    from headway.jobs.request import Request
    from homes import open_client

    client = open_client(folder, url or None)
    request = Request(argv=("true",))
    client.submit(request)  # keeps the environment, which later ones share
    one = rate(count, lambda: [client.submit(request) for _ in range(count)])
    bulk = rate(count, lambda: client.submit_many([request] * count))
    client.close()
    return {"one": one, "bulk": bulk}


def tasks(folder: Path, count: int, url: str) -> dict[str, float]:
    """Task.submit and App.submit_many of a Python function, its arguments bound and checked."""
    from apps import open_app
    from homes import open_client

    open_client(folder, url or None).close()
    app = open_app(folder, url or None)
    noop = app.tasks["noops.noop"]
    noop.submit(1, 2)
    one = rate(count, lambda: [noop.submit(1, 2) for _ in range(count)])
    bulk = rate(count, lambda: app.submit_many(noop.call(1, 2) for _ in range(count)))
    app.close()
    return {"one": one, "bulk": bulk}


def huey(folder: Path, count: int, url: str) -> dict[str, float]:
    """A call of a task, which is how Huey is enqueued to; it has no bulk call."""
    from huey import SqliteHuey

    queue = SqliteHuey("bench", filename=str(folder / "huey.db"))
    synchronous = queue.storage.conn.execute("pragma synchronous").fetchone()[0]
    if synchronous != 2:
        raise SystemExit(f"Huey's synchronous is {synchronous}, not 2: no fair comparison")

    @queue.task()
    def noop(number: int, other: int) -> None:
        pass

    noop(1, 2)
    return {"one": rate(count, lambda: [noop(1, 2) for _ in range(count)])}


def pgqueuer(folder: Path, count: int, url: str) -> dict[str, float]:
    """Queries.enqueue on one asyncpg connection, one by one and as a list of all."""
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(asyncpg.connect(url))
    queries = Queries(AsyncpgDriver(connection))
    loop.run_until_complete(queries.install())
    loop.run_until_complete(queries.enqueue("noop", PAYLOAD))

    async def one_by_one() -> None:
        for _ in range(count):
            await queries.enqueue("noop", PAYLOAD)

    async def together() -> None:
        await queries.enqueue(["noop"] * count, [PAYLOAD] * count, [0] * count)

    one = rate(count, lambda: loop.run_until_complete(one_by_one()))
    bulk = rate(count, lambda: loop.run_until_complete(together()))
    loop.run_until_complete(connection.close())
    return {"one": one, "bulk": bulk}


def procrastinate(folder: Path, count: int, url: str) -> dict[str, float]:
    """Task.defer and Task.batch_defer through the synchronous connector."""
    from procrastinate import App, SyncPsycopgConnector

    app = App(connector=SyncPsycopgConnector(conninfo=url))

    @app.task(name="noop")
    def noop(number: int, other: int) -> None:
        pass

    arguments = {"number": 1, "other": 2}
    with app.open():
        app.schema_manager.apply_schema()
        noop.defer(**arguments)
        one = rate(count, lambda: [noop.defer(**arguments) for _ in range(count)])
        bulk = rate(count, lambda: noop.batch_defer(*[arguments] * count))
    return {"one": one, "bulk": bulk}


def dbos(folder: Path, count: int, url: str) -> dict[str, float]:
    """DBOSClient.enqueue of a workflow; it has no bulk call."""
    from peers import Dbos

    peer = Dbos(folder, url)
    peer.fill(1)
    return {"one": rate(count, lambda: peer.fill(count))}


def rate(count: int, action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return count / (time.perf_counter() - begin)


CONTENDERS = {each.__name__: each for each in (headway, tasks, huey, pgqueuer, procrastinate, dbos)}

if __name__ == "__main__":
    contender, folder, count, *url = sys.argv[1:]
    os.chdir(folder)
    print(json.dumps(CONTENDERS[contender](Path(folder), int(count), *(url or [""]))), flush=True)
    os._exit(0)  # what a peer's own threads still do is of no interest
