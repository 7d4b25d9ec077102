"""An engine without processes, stepped by hand, and a count by rows of what is in use.

The store, the engine and the verbs are real; a process is an entry of a simulated machine that ends
when its time has come.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from headway.base.clock import SECOND
from headway.base.home import Home
from headway.base.host import Host
from headway.base.new_home import make_home
from headway.client import Client
from headway.core.model import Claim, Job, JobId, Lock, Rate
from headway.core.states import ACTIVE, WAITING
from headway.integrations.probes import answers_to
from headway.jobs.context import Context
from headway.jobs.quotas import parse_limit
from headway.jobs.settings import Config
from headway.store.store import Store
from headway.store.transaction import ReadTx
from headway.testing.clock import FakeClock
from headway.worker.step import Engine
from simulation import machines
from simulation.machines import Fate, Machine, Process, SimulatedLauncher
from simulation.seams import Crash, WorkersStore
from simulation.world import SimulatedClock

LIMITS = "scheduler.limits."
SOON = 0.01  # seconds


class Caller(Context):
    def wake(self, word: bytes | None = None) -> bool:
        return False


class Yard:
    def __init__(self, folder: Path, open_store: Callable[[str, FakeClock], Store]) -> None:
        self.folder = folder
        self.clock = SimulatedClock()
        self.rng = Random(1)
        self.noise = False
        self.home = Home(str(folder / ".headway"))
        make_home(self.home)
        self.store = open_store(str(folder), self.clock)
        self.machine = Machine(self, "host")
        machines.place(self.home.path, self.machine)
        self.client = Client(
            Caller(
                self.home,
                Config({"worker.autostart": False}),
                self.store,
                self.clock,
                environ={"PATH": "/bin:/usr/bin"},
                actor="ann",
            )
        )
        self.config = Config({"worker.autostart": False})
        self.fails: set[JobId] = set()  # chains whose first job fails
        self.fuse = -1  # at how many more points the worker dies
        self.counted = Counted(self.store)
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._lives = 0
        self.due = 0
        self.come_up()

    def close(self) -> None:
        self._leave()
        machines.remove(self.home.path)
        self.store.close()

    # -- the worker ----------------------------------------------------------------------------

    def come_up(self) -> None:
        """As a process that knows nothing but the store and the evidence."""
        self._lives += 1
        self.fuse = -1
        self.machine.worker_lives = True
        host = Host("host", f"boot-{self.machine.boot}", self.home.path, "")
        self.client.context.host = host
        launcher: Any = SimulatedLauncher(self.machine)
        store: Any = WorkersStore(self.store, self.passed)
        self.engine = Engine(
            store,
            self.home,
            self.config,
            host,
            self.clock,
            worker_id=f"worker-{self._lives}",
            launcher=launcher,
        )
        self.engine.probes._ask = lambda questions: answers_to(questions, {})
        self.engine.planner._specify = lambda job, claim: {}
        self.engine.launches.open()
        self.engine.recover()

    def _leave(self) -> None:
        self.machine.worker_lives = False
        self.machine.release_worker_locks()
        self.engine.close()
        self.engine.probes.close()

    def crash(self, *, reboot: bool = False) -> None:
        """kill -9; supervisors go on, unless the whole machine goes down."""
        self._leave()
        if reboot:
            self.machine.reboot()
        self.come_up()

    def passed(self, point: str) -> None:
        """A worker passes a point at which it may die."""
        self.fuse -= 1
        if self.fuse == 0:
            self.machine.worker_lives = False
            raise Crash(point)

    def step(self) -> None:
        """One step of the worker, in which it may die; then the rows are counted."""
        delay = SOON
        try:
            delay = self.engine.step()
        except Crash:
            self.counted.check()
            self.crash()
        self.due = self.clock.now() + int(max(delay, SOON) * SECOND)
        self.counted.check()

    def pass_time(self, seconds: float) -> None:
        """The worker steps whenever something has ended, and when it is time."""
        until = self.clock.now() + int(seconds * SECOND)
        while (at := min(self.due, self._agenda[0][0] if self._agenda else until)) < until:
            self.clock.move_to(at)
            while self._agenda and self._agenda[0][0] <= at:
                heapq.heappop(self._agenda)[2]()
            self.step()
        self.clock.move_to(until)
        self.step()

    def live(self) -> list[Claim]:
        with self.store.read() as tx:
            return sorted(tx.claims.live(), key=lambda claim: claim.job_id)

    def active(self) -> list[JobId]:
        with self.store.read() as tx:
            return [job.id for job in tx.jobs.active() if job.status in ACTIVE]

    # -- what machines ask ---------------------------------------------------------------------

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        self._count += 1
        at = self.clock.now() + math.ceil(seconds * SECOND)
        heapq.heappush(self._agenda, (at, self._count, act))

    def fate(self, job_id: JobId) -> Fate:
        return Fate(seconds=1 + job_id % 3, code=int(job_id in self.fails))

    def locks_of(self, job_id: JobId) -> tuple[Lock, ...]:
        return ()

    def process_started(self, machine: Machine, process: Process) -> None: ...
    def process_runs(self, machine: Machine, process: Process) -> None: ...

    def tell_worker(self, machine: Machine, message: bytes) -> None:
        if self.machine.worker_lives:
            self.engine.launches.receive(message)


class Counted:
    """By the rows alone: who holds what, and that nobody got more than the limits of that moment
    left. Only what ran before a limit was lowered may be beyond it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._before: dict[str, int] = {}  # how many held it when it was last looked at
        self._starts: dict[str, tuple[JobId, int]] = {}  # token: whose start, and when
        self.seen: set[JobId] = set()

    def check(self) -> None:
        with self._store.read() as tx:
            caps = caps_of(tx)
            now = in_use(tx, caps)
            self._check_rates(tx)
        for key, holders in now.items():
            allowed = max(caps[key], self._before.get(key, 0))
            assert len(holders) <= allowed, f"{holders} hold {key}, of which there are {caps[key]}"
        self._before = {key: len(holders) for key, holders in now.items()}

    def changed(self) -> None:
        """A limit is another one: what holds it now may go on."""
        with self._store.read() as tx:
            now = in_use(tx, caps_of(tx))
        self._before = {key: len(holders) for key, holders in now.items()}

    def _check_rates(self, tx: ReadTx) -> None:
        claims = {claim.token: claim for claim in tx.claims.live()}
        gone = {token: each for token, (each, _) in self._starts.items() if token not in claims}
        jobs = tx.jobs.by_id(sorted({*gone.values()})) if gone else {}
        for token, job_id in gone.items():
            if jobs[job_id].status in WAITING:
                del self._starts[token]  # it was taken back: nothing was started
        new = [claim for token, claim in claims.items() if token not in self._starts]
        self._starts |= {claim.token: (claim.job_id, claim.claimed_at) for claim in new}
        self.seen |= {claim.job_id for claim in new}
        if not new:
            return
        jobs = tx.jobs.by_id(sorted({job_id for job_id, _ in self._starts.values()}))
        text = {key: value for key, value in tx.settings.all().items() if value}
        for claim in new:
            for rate in jobs[claim.job_id].rates:
                if f"{LIMITS}rate.{rate.key}" in text:
                    most, period = parse_limit(text[f"{LIMITS}rate.{rate.key}"])
                    self._check_rate(jobs, claim, Rate(rate.key, most, period), everyone=True)
                if rate.most is not None:
                    self._check_rate(jobs, claim, rate, everyone=False)

    def _check_rate(
        self, jobs: Mapping[JobId, Job], claim: Claim, rate: Rate, *, everyone: bool
    ) -> None:
        """A rate that a job brings itself concerns only those who do: others may have started
        after it at the same instant."""
        now = claim.claimed_at
        counted = [
            job_id
            for job_id, at in self._starts.values()
            if now - rate.period < at <= now
            and rate.key in [each.key for each in jobs[job_id].rates]
            and (at < now or everyone or rate in jobs[job_id].rates)
        ]
        assert len(counted) <= (rate.most or 0), f"{counted} started within {rate.period}"


def caps_of(tx: ReadTx) -> dict[str, int]:
    settings = tx.settings.all()
    caps = {
        key.removeprefix(LIMITS).replace(".", ":", 1): value
        for key, value in settings.items()
        if key.startswith(LIMITS) and isinstance(value, int)
    }
    most = settings.get("scheduler.max_active", 1)
    return {**caps, "slot": most} if most > 0 else caps


def in_use(tx: ReadTx, keys: Iterable[str]) -> dict[str, list[int]]:
    """For each key the running jobs, and below zero the direct calls, that hold it themselves: who
    has the place of another that waits for it holds only what that one does not."""
    claims = list(tx.claims.live())
    jobs = tx.jobs.by_id([claim.job_id for claim in claims])
    lending = {each.job_id for each in tx.claims.lendings()}
    held: dict[int, set[str]] = {}
    lenders: dict[int, int | None] = {}
    for claim in claims:
        job = jobs[claim.job_id]
        words = {"slot", f"type:{job.type}", *(f"resource:{each}" for each in job.resources)}
        held[job.id] = words | ({f"target:{job.target}"} if job.target else set())
        lenders[job.id] = claim.borrowed_from if claim.borrowed_from in lending else None
    for call in tx.reservations.all():
        if not call.waits:
            held[-call.id] = {"slot", *call.occupies}
            lenders[-call.id] = call.inside

    def has(each: int | None, key: str) -> bool:
        return each in held and (key in held[each] or has(lenders[each], key))

    return {
        key: [each for each in held if key in held[each] and not has(lenders[each], key)]
        for key in keys
    }
