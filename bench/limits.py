"""One planning step with all policies on beside one with none: what limits and rates cost."""

import statistics
import time
from contextlib import ExitStack
from typing import Any

from headway.base.clock import SystemClock
from headway.base.home import Home
from headway.core.model import Claim, Job, Rate
from headway.core.states import Status
from headway.store import open_store
from headway.store.store import Store
from headway.worker.planner import Planner
from headway.worker.probes import Probes
from headway.worker.settler import Settler
from measure import Figures, Lab
from planning import HOST, handed_on
from server import database

STEPS = 60
RUNNING = 8
WAITING = 200  # under each limit that is used up
SETTINGS = {
    **{f"type.kind{each}": 100 for each in range(4)},
    **{f"resource.r{each}": 50 for each in range(8)},
    **{f"target.t{each}": 50 for each in range(4)},
    "resource.busy": 1,
    "target.busy": 1,
    "rate.api": "100000/d",
    "rate.slow": "1/d",
}


def limited(lab: Lab) -> Figures:
    """Settle one job and start the next of the queue, in one durable transaction; the median of 60
    steps, in ms.

    `plain` has neither limits nor words; `all` has jobs with a type, two resources, a target and a
    rate, 18 limits, two rates, and 600 more jobs that wait for a resource, a target and a rate that
    are used up.
    """
    figures: Figures = {}
    for store in ("sqlite", "postgres") if lab.postgres else ("sqlite",):
        systems = {name: _system(lab, store, name == "all") for name in ("plain", "all")}
        taken: dict[str, list[float]] = {name: [] for name in systems}
        for _ in range(STEPS):
            for name, system in systems.items():
                taken[name].append(system.hand_on())
        for name, times in taken.items():
            figures[f"limits.{store}.{name}"] = 1e3 * statistics.median(times)
    return figures


def _system(lab: Lab, store: str, all_on: bool) -> "Governed":
    folder = lab.fresh("limits")
    url = f"sqlite://{folder}/store.db"
    if store == "postgres":
        assert lab.postgres
        url = ExitStack().enter_context(database(lab.postgres))  # it goes with its server
    return Governed(open_store(url, SystemClock(), create=True), str(folder), all_on=all_on)


class Governed:
    """A store, and an engine without processes: a job ends when this says so."""

    def __init__(self, store: Store, folder: str, *, all_on: bool) -> None:
        self._store = store
        self._all_on = all_on
        self._count = 0
        self._settler = Settler(HOST, "worker")
        self._planner = Planner(
            HOST,
            "worker",
            self._settler,
            specify=lambda job, claim: {},
            log_budget=1 << 60,
            home=Home(folder),
            probes=Probes(lambda questions: {}, SystemClock(), in_thread=False),
        )
        with store.write() as tx:
            tx.settings.set("scheduler.max_active", RUNNING, by="bench")
            for key, value in SETTINGS.items() if all_on else ():
                tx.settings.set(f"scheduler.limits.{key}", value, by="bench")
        if all_on:
            self._fill_the_limits()
        self._add(STEPS + 2 * RUNNING)
        self._running = [*self._plan()] if not all_on else [*self._kept, *self._plan()]
        if len(self._running) != RUNNING:
            raise RuntimeError(f"{len(self._running)} run, not {RUNNING}")

    def _fill_the_limits(self) -> None:
        """One job takes each, and many wait for it."""
        words: list[dict[str, Any]] = [
            {"resources": ("busy",)},
            {"target": "busy"},
            {"rates": (Rate("slow"),)},
        ]
        for each in words:
            self._add(1, **each)
        self._kept = self._plan()
        for each in words:
            self._add(WAITING, **each)
        if self._plan():
            raise RuntimeError("a limit was exceeded")

    def hand_on(self) -> float:
        """End the job that runs longest of those that hold nobody up, and start the next."""
        ended = self._running.pop(3)
        started, taken = handed_on(self._store, self._settler, self._planner, ended)
        self._running.append(started)
        return taken

    def _plan(self) -> list[Claim]:
        started: list[Claim] = []
        while True:
            with self._store.write() as tx:
                step = self._planner.step(tx)
            started += step.started
            if not step.more and not step.started:
                return started

    def _add(self, count: int, **fields: Any) -> None:
        with self._store.write() as tx:
            position = tx.jobs.next_places().position
            first = tx.jobs.take_ids(count)
            tx.jobs.add([self._job(first + n, position + 100 * n, fields) for n in range(count)])

    def _job(self, job_id: int, position: int, fields: dict[str, Any]) -> Job:
        self._count += 1
        n = self._count
        if self._all_on and not fields:
            fields = {
                "type": f"kind{n % 4}",
                "resources": (f"r{n % 8}", f"r{(n + 3) % 8}"),
                "target": f"t{n % 4}",
                "rates": (Rate("api"),),
            }
        return Job(
            id=job_id,
            name="true",
            status=Status.QUEUED,
            priority=0,
            position=position,
            params={"argv": ["true"]},
            created_at=time.time_ns() // 1000,
            chain=job_id,
            submitted_by="bench",
            **{"type": "command", **fields},
        )
