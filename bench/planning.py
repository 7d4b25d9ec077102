"""One planning step in a small and in a large store: its cost must not grow with what waits."""

import statistics
import time
from pathlib import Path
from typing import Any

import apsw

from headway.clock import SystemClock
from headway.core.model import Claim, Job, Lock, LockMode
from headway.core.settle import Ending, Outcome
from headway.core.states import Status
from headway.engine.planner import Planner
from headway.engine.settling import Settler, Verdict
from headway.host import Host
from headway.store import open_store
from headway.store.base import Store
from measure import Figures, Lab

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
    the next of those who wait for it. No processes; the claim's files are made as always.
    """
    small = lab.once("planning.small", lambda: System(lab.fresh("small"), 1_000, 0))
    large = lab.once(
        "planning.large",
        lambda: System(lab.fresh("large"), lab.size(100_000), lab.size(1_000_000)),
    )
    taken: dict[str, list[float]] = {}
    for _ in range(STEPS):
        for name, system in (("small", small), ("large", large)):
            taken.setdefault(f"planning.queue.{name}", []).append(system.hand_on("queue"))
            taken.setdefault(f"planning.lock.{name}", []).append(system.hand_on("lock"))
    return {name: 1e3 * statistics.median(times) for name, times in taken.items()}


class System:
    """A store with real waiting and finished jobs, each kind cloned from one that was made by the
    planner itself, and an engine without processes: a job ends when this says so."""

    def __init__(self, folder: Path, waiting: int, finished: int) -> None:
        self._path = str(folder / "store.db")
        self._store: Store = open_store(f"sqlite://{self._path}", SystemClock(), create=True)
        settler = Settler(HOST, "worker")
        self._settler = settler
        self._planner = Planner(
            HOST,
            "worker",
            settler,
            specify=lambda job, claim: {},
            folder_of=lambda job_id: str(folder / "jobs" / str(job_id)),
            log_budget=1 << 60,
        )
        self._running: dict[str, Claim] = {}
        self._fill(waiting, finished)

    def hand_on(self, kind: str) -> float:
        """End the running job of this kind and start the next; the seconds until it is durable."""
        ended = self._running[kind]
        begin = time.perf_counter()
        with self._store.write() as tx:
            outcome = Outcome(Ending.EXITED, tx.now(), exit_code=0)
            self._settler.apply(tx, [(ended, Verdict(outcome, tree_gone=True, document=DOCUMENT))])
            started = self._planner.step(tx).started
        taken = time.perf_counter() - begin
        if len(started) != 1:
            raise RuntimeError(f"{len(started)} jobs were started, not one")
        self._running[kind] = started[0]
        return taken

    def _fill(self, waiting: int, finished: int) -> None:
        # One slot more than is used, so that who waits is filed under what it waits for; with none
        # free it would stay at the door.
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

    def _set_slots(self, count: int) -> None:
        with self._store.write() as tx:
            tx.set_setting("scheduler.max_active", count, by="bench")

    def _start(self, **fields: Any) -> Claim:
        self._add(**fields)
        with self._store.write() as tx:
            return self._planner.step(tx).started[0]

    def _add(self, **fields: Any) -> int:
        with self._store.write() as tx:
            job_id = tx.take_ids(1)
            defaults: dict[str, Any] = {
                "id": job_id,
                "name": "true",
                "type": "command",
                "status": Status.QUEUED,
                "priority": 0,
                "position": tx.next_position(0),
                "params": {"argv": ["true"]},
                "created_at": tx.now(),
                "chain": job_id,
                "submitted_by": "bench",
            }
            tx.add_jobs([Job(**(defaults | fields))])
        return int(job_id)

    def _clone(self, job_id: int, count: int) -> None:
        """Rows like those of this job in every table that speaks of it, by the database itself."""
        if not count:
            return
        connection = apsw.Connection(self._path)
        connection.execute("pragma busy_timeout = 10000")
        connection.execute("pragma synchronous = off")
        with connection:
            (base,) = next(connection.execute("select value from marks where name='next_job_id'"))
            for table in ("jobs", "runs", "claims", "evidence", "edges", "waits", "events"):
                _clone_rows(connection, table, job_id, count=count, base=base)
            connection.execute(
                "update marks set value = value + ? where name = 'next_job_id'", (count,)
            )
        connection.close()


def _clone_rows(
    connection: apsw.Connection, table: str, job_id: int, *, count: int, base: int
) -> None:
    columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
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
    connection.execute(
        "with recursive n(i) as (values(0) union all select i + 1 from n where i + 1 < :count) "
        f"insert into {table} ({', '.join(columns)}) "
        f"select {values} from (select * from {table} where {key} = :job_id) cross join n",
        {"count": count, "base": base, "job_id": job_id},
    )
