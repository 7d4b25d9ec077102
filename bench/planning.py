"""One planning step in a small and in a large store: its cost must not grow with what waits."""

import re
import statistics
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import apsw

from headway.base.clock import SystemClock
from headway.base.home import Home
from headway.base.host import Host
from headway.core.model import Claim, Job, Lock, LockMode
from headway.core.settle import Ending, Outcome, Verdict
from headway.core.states import Status
from headway.store import open_store
from headway.store.store import Store
from headway.worker.planner import Planner
from headway.worker.probes import Probes
from headway.worker.settler import Settler
from measure import Figures, Lab
from server import database

HOST = Host("host", "boot", "/home")
STEPS = 40
READY = 5 * STEPS
DAY = 86_400_000_000
DOCUMENT = {
    "logs": {name: {"bytes": 0, "dropped": 0} for name in ("stdout", "stderr")},
    "usage": {"user_seconds": 0.001, "system_seconds": 0.001, "max_rss_kb": 2000},
}


def planning(lab: Lab) -> Figures:
    """Settle one job and start one, in one durable transaction, 40 times; the median, in ms.

    The small store has 1,000 waiting jobs, the large one 100,000 and 1,000,000 finished ones with
    their runs, claims, outcomes and events. Half of the waiting jobs wait for one lock, half for
    one job. Two kinds of steps: `queue` starts the next of the queue, `lock` hands the one lock to
    the next of those who wait for it. No processes; the claim's files are made as always. On both
    databases, which have been given the time to look at what they hold (`analyze`).
    """
    figures: Figures = {}
    for store in ("sqlite", "postgres") if lab.postgres else ("sqlite",):
        figures |= _on(lab, store)
    return figures


def _on(lab: Lab, store: str) -> Figures:
    sizes = {"small": (1_000, 0), "large": (lab.size(100_000), lab.size(1_000_000))}
    systems = {
        name: lab.once(f"planning.{store}.{name}", lambda size=size: _system(lab, store, *size))
        for name, size in sizes.items()
    }
    taken: dict[str, list[float]] = {}
    for _ in range(STEPS):
        for name, system in systems.items():
            for kind in ("queue", "lock"):
                figure = f"planning.{store}.{kind}.{name}"
                taken.setdefault(figure, []).append(system.hand_on(kind))
    return {name: 1e3 * statistics.median(times) for name, times in taken.items()}


def _system(lab: Lab, store: str, waiting: int, finished: int) -> "System":
    folder = lab.fresh("planning")
    if store == "sqlite":
        path = str(folder / "store.db")
        return System(folder, f"sqlite://{path}", SqliteRows(path), waiting, finished)
    assert lab.postgres
    url = ExitStack().enter_context(database(lab.postgres))  # it goes with its server
    return System(folder, url, PostgresRows(url), waiting, finished)


class System:
    """A store with real waiting and finished jobs, each kind cloned from one that was made by the
    planner itself, and an engine without processes: a job ends when this says so."""

    def __init__(self, folder: Path, url: str, rows: "Rows", waiting: int, finished: int) -> None:
        self._store: Store = open_store(url, SystemClock(), create=True)
        self._rows = rows
        settler = Settler(HOST, "worker")
        self._settler = settler
        self._planner = Planner(
            HOST,
            "worker",
            settler,
            specify=lambda job, claim: {},
            log_budget=1 << 60,
            home=Home(str(folder)),
            probes=Probes(lambda questions: {}, SystemClock(), in_thread=False),
        )
        self._running: dict[str, Claim] = {}
        self._fill(waiting, finished)

    def hand_on(self, kind: str) -> float:
        """End the running job of this kind and start the next; the seconds until it is durable."""
        ended = self._running[kind]
        self._running[kind], taken = handed_on(self._store, self._settler, self._planner, ended)
        return taken

    def _fill(self, waiting: int, finished: int) -> None:
        # One slot more than is used, so that who waits is filed under what it waits for; with none
        # free it would wait for capacity.
        self._set_slots(3)
        lock = (Lock("repo", LockMode.EXCLUSIVE),)
        self._running["lock"] = self._start(locks=lock)
        self._running["queue"] = self._start()
        done = self._running["queue"].job_id
        self._add()
        self.hand_on("queue")
        never = self._add(not_before=time.time_ns() // 1000 + DAY)
        filed_for_lock = self._add(locks=lock)
        filed_for_job = self._add(after=(never,))
        with self._store.write() as tx:
            self._planner.step(tx)
        self._clone(done, finished)
        self._clone(filed_for_lock, waiting // 2)
        self._clone(filed_for_job, waiting // 2)
        self._set_slots(2)
        for _ in range(READY):
            self._add()
        with self._store.write() as tx:
            self._planner.step(tx)
        self._store.tidy()
        self._rows.analyze()

    def _set_slots(self, count: int) -> None:
        with self._store.write() as tx:
            tx.settings.set("scheduler.max_active", count, by="bench")

    def _start(self, **fields: Any) -> Claim:
        self._add(**fields)
        with self._store.write() as tx:
            return self._planner.step(tx).started[0]

    def _add(self, **fields: Any) -> int:
        with self._store.write() as tx:
            job_id = tx.jobs.take_ids(1)
            defaults: dict[str, Any] = {
                "id": job_id,
                "name": "true",
                "type": "command",
                "status": Status.QUEUED,
                "priority": 0,
                "position": tx.jobs.next_places().position,
                "params": {"argv": ["true"]},
                "created_at": tx.now(),
                "chain": job_id,
                "submitted_by": "bench",
            }
            tx.jobs.add([Job(**(defaults | fields))])
        return int(job_id)

    def _clone(self, job_id: int, count: int) -> None:
        """Rows like those of this job in every table that speaks of it, by the database itself."""
        if not count:
            return
        with self._store.write() as tx:
            base = tx.jobs.take_ids(count)
        given = {"count": count, "base": base, "job_id": job_id}
        for table in ("jobs", "runs", "claims", "evidence", "edges", "waits", "events"):
            self._rows.run(cloning(table, self._rows.columns(table)), given)


class Rows(Protocol):
    """A database reached beside the store, without its care for durability."""

    def columns(self, table: str) -> list[str]: ...
    def run(self, sql: str, given: Mapping[str, int]) -> None: ...
    def analyze(self) -> None: ...


class SqliteRows:
    def __init__(self, path: str) -> None:
        self._path = path

    def _connection(self) -> apsw.Connection:
        connection = apsw.Connection(self._path)
        connection.execute("pragma busy_timeout = 10000")
        connection.execute("pragma synchronous = off")
        return connection

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self._connection().execute(f"pragma table_info({table})")]

    def run(self, sql: str, given: Mapping[str, int]) -> None:
        self._connection().execute(sql, given)

    def analyze(self) -> None:
        pass  # its plans do not depend on it


class PostgresRows:
    def __init__(self, url: str) -> None:
        self._url = url

    def columns(self, table: str) -> list[str]:
        import psycopg

        with psycopg.connect(self._url) as connection:
            found = connection.execute(f"select * from {table} limit 0").description
        return [column.name for column in found or ()]

    def run(self, sql: str, given: Mapping[str, int]) -> None:
        import psycopg

        with psycopg.connect(self._url) as connection:
            connection.execute("set synchronous_commit = off")
            connection.execute(re.sub(r":(\w+)", r"%(\1)s::bigint", sql), given)

    def analyze(self) -> None:
        import psycopg

        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute("vacuum analyze")


def cloning(table: str, columns: list[str]) -> str:
    columns = [name for name in columns if name != "seq"]
    changed = {
        "id": "n.i + :base",
        "job_id": "n.i + :base",
        "token": "token || '-' || (n.i + :base)",
        "position": "position + 100 * (n.i + 1)",
    }
    if table == "jobs":
        changed["chain"] = "n.i + :base"
    values = ", ".join(changed.get(name, name) for name in columns)
    key = "id" if table == "jobs" else "job_id"
    return (
        "with recursive n(i) as (select 0 union all select i + 1 from n where i + 1 < :count) "
        f"insert into {table} ({', '.join(columns)}) "
        f"select {values} from (select * from {table} where {key} = :job_id) as one cross join n"
    )


def handed_on(
    store: Store, settler: Settler, planner: Planner, ended: Claim
) -> tuple[Claim, float]:
    """End this and start the next: its claim, and the seconds until both are durable."""
    begin = time.perf_counter()
    with store.write() as tx:
        outcome = Outcome(Ending.EXITED, tx.now(), exit_code=0)
        settler.apply(tx, [(ended, Verdict(outcome, tree_gone=True, document=DOCUMENT))])
        started = planner.step(tx).started
    taken = time.perf_counter() - begin
    if len(started) != 1:
        raise RuntimeError(f"{len(started)} jobs were started, not one")
    return started[0], taken
