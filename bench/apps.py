"""Headway's function jobs in a scratch home: an app here, a worker and its host in other processes.

The app is this process's own, with the same functions under the same names as the host's.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import noops
from headway.client import Client
from headway.functions.app import App
from headway.functions.tasks import Call
from homes import open_client, worker
from measure import HERE, Lab, children, wait_for
from server import database


class Site(NamedTuple):
    """A home, a way to look at it, and the tasks that can be submitted to it."""

    folder: Path
    client: Client
    app: App
    noop: Any
    record: Any


@contextmanager
def site(lab: Lab, store: str, *, max_active: int) -> Iterator[Site]:
    """A new home on a new SQLite file or PostgreSQL database."""
    folder = lab.fresh(f"functions-{store}")
    shutil.copy(HERE / "noops.py", folder)
    with database(lab.postgres) if store == "postgres" else nullcontext(None) as url:
        client = open_client(folder, url)
        client.set_setting("scheduler.max_active", max_active)
        app = open_app(folder, url)
        try:
            yield Site(folder, client, app, app.tasks["noops.noop"], app.tasks["noops.record"])
        finally:
            app.close()
            client.close()


def chain_of(home: Site, count: int) -> list[Call]:
    """Calls of which each waits for the one before, to be submitted together."""
    calls: list[Call] = []
    for _ in range(count):
        calls.append(home.noop.options(after=calls[-1:]).call(1, 2))
    return calls


def open_app(folder: Path, url: str | None) -> App:
    """The tasks of noops.py for this one home, which must be there."""
    app = App(url, home=str(folder / ".headway"), actor="bench")
    for task in noops.app.tasks.values():
        app.task(task_name=f"noops.{task.__name__}")(task.function)
    return app


@contextmanager
def working(site: Site) -> Iterator[subprocess.Popen[bytes]]:
    """A worker with one host, up and warm: a first call has been made."""
    with worker(site.client, "--app", "noops") as process:
        site.noop.submit(0, 0).result(timeout=60)
        yield process


@contextmanager
def held(site: Site, process: subprocess.Popen[bytes]) -> Iterator[None]:
    """The worker cannot begin anything inside this block, nor get ready to: it is stopped."""
    wait_for(lambda: _stopped(site, process.pid))
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def _stopped(site: Site, pid: int) -> bool:
    """Stop it, unless it is inside of a transaction, where it would keep everybody out."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.02)
    if not _somebody_writes(site):
        return True
    os.kill(pid, signal.SIGCONT)
    time.sleep(random.uniform(0.0, 0.02))
    return False


def _somebody_writes(site: Site) -> bool:
    url = site.client.context.home.store_url
    if url:
        import psycopg

        with psycopg.connect(url) as connection:
            found = connection.execute(
                "select 1 from pg_stat_activity where datname = current_database() "
                "and state <> 'idle' and pid <> pg_backend_pid()"
            )
            return found.fetchone() is not None
    import apsw

    with closing(apsw.Connection(str(site.folder / ".headway" / "headway.db"))) as connection:
        try:
            connection.execute("begin immediate")
        except apsw.BusyError:
            return True
        return False


def fill(site: Site, count: int) -> list[int]:
    handles = site.app.submit_many(site.noop.call(1, 2) for _ in range(count))
    return [each.job_id for each in handles]


def tree(pid: int) -> list[int]:
    """A process and all below it; of the worker: its parent, the supervisors and the hosts."""
    return [pid, *(below for child in children(pid) for below in tree(child))]


def stores(lab: Lab) -> tuple[str, ...]:
    return ("sqlite",) if lab.postgres is None else ("sqlite", "postgres")
