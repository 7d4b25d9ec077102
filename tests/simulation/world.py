"""One world: its clock, its hosts and their workers, what people do, and in which order.

Everything that happens is an event in one queue. Events of the same instant come in an order that
the seed decides, so workers, processes and people meet in ever other ways.
"""

import heapq
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Collection
from contextlib import ExitStack
from random import Random
from typing import Any

from headway.base.clock import SECOND
from headway.base.home import Home
from headway.base.host import Host
from headway.base.new_home import make_home
from headway.core.facts import Answer
from headway.core.model import JobId, Lock, Question
from headway.jobs.settings import Config
from headway.store.store import Store
from headway.testing.clock import NEW_YEAR, FakeClock
from headway.worker.probes import LONGEST_AGAIN
from headway.worker.step import Engine
from simulation import machines
from simulation.machines import Fate, Machine, Process, SimulatedLauncher
from simulation.people import People, Profile
from simulation.seams import Crash, WorkersStore, installed
from simulation.watching import Violation, Watch, recently

POLL = 1.0
MOST_EVENTS_PER_JOB = 2000
OpenStore = Callable[[str, FakeClock], Store]


class SimulatedClock(FakeClock):
    """Counts in whole microseconds, so that its two times never part by a rounding."""

    _jumped = 0

    def monotonic(self) -> float:
        return (self._now - self._jumped - NEW_YEAR) / SECOND

    def jump(self, micros: int) -> None:
        """The clock is set; no time passes."""
        self._now += micros
        self._jumped += micros

    def move_to(self, instant: int) -> None:
        self._now = max(self._now, instant)


class Worker:
    """The life of one host's workers, one after the other."""

    def __init__(self, world: "World", machine: Machine, home: Home, store: Store) -> None:
        self._world = world
        self.machine = machine
        self.home = home
        self.store = store
        self.lives = 0
        self.engine: Engine | None = None
        self._due = 0.0
        self._woken = True
        self._poll_at = math.inf

    @property
    def host(self) -> Host:
        return Host(self.machine.name, f"boot-{self.machine.boot}", self.home.path, "")

    def come_up(self) -> None:
        """As a process that knows nothing but the store and the evidence."""
        self.lives += 1
        self.machine.worker_lives = True
        launcher: Any = SimulatedLauncher(self.machine)
        store: Any = WorkersStore(self.store, self._world.passed)
        self.engine = Engine(
            store,
            self.home,
            Config({"worker.autostart": False}),
            self.host,
            self._world.clock,
            worker_id=f"{self.machine.name}-{self.lives}",
            launcher=launcher,
        )
        self.engine.probes._ask = self._world.look
        self.engine.tools.settler._chance = self._world.rng.random
        self.engine.planner._specify = lambda job, claim: {}
        self._recovered = False
        self.engine.launches.open()
        self._due, self._woken, self._poll_at = 0.0, True, math.inf
        self.poll_in(0.0)

    def poll_in(self, seconds: float) -> None:
        """At the latest; an earlier one that is planned stays."""
        at = self._world.clock.monotonic() + seconds
        if at < self._poll_at:
            self._poll_at = at
            self._world.later(seconds, lambda: self._poll() if at == self._poll_at else None)

    def wake(self) -> None:
        """A worker takes a moment to get to it, and then takes in all that has come."""
        if self.engine is not None:
            self._woken = True
            self.poll_in(self._world.profile.latency)

    def hear(self, message: bytes) -> None:
        if self.engine is not None:
            self.engine.launches.receive(message)
            self.wake()

    def _poll(self) -> None:
        """The loop of a worker: step when woken, when it is time, when others have committed."""
        self._poll_at = math.inf
        if self.engine is None:
            return
        now = self._world.clock.monotonic()
        if (self._woken or now >= self._due or self.store.changed()) and not self.step():
            return
        self.poll_in(max(0.0, min(self._due - now, POLL)))

    def step(self) -> bool:
        """One step; False if it died in it."""
        assert self.engine is not None
        self._woken = False
        self._world.stepping = self
        try:
            if not self._recovered:
                self.engine.recover()
                self._recovered = True
            self._due = self._world.clock.monotonic() + self.engine.step()
        except Crash:
            self._die()
            return False
        finally:
            self._world.stepping = None
            self._world.watch.look()
        return True

    def _die(self) -> None:
        self.leave()
        rng = self._world.rng
        if rng.random() < 0.2:
            self.machine.reboot()
        self._world.crashes += 1
        self._world.later(rng.choice((0.0, 0.1, 2.0, 15.0)), self.come_up)

    def leave(self) -> None:
        if self.engine is None:
            return
        self.machine.worker_lives = False
        self.machine.release_worker_locks()
        self.engine.close()
        self.engine.probes.close()
        self.engine = None


class World:
    """`jobs` is how many people submit; the seed decides all else."""

    def __init__(self, seed: str, open_store: OpenStore, *, jobs: int, hosts: int) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.clock = SimulatedClock()
        self.noise = True
        self.crashes = 0
        self.stepping: Worker | None = None
        self.max_active = 1
        self.limits: dict[str, int] = {}  # how many may have each of the resources
        self.profile = Profile.drawn(self.rng)
        self._queue: list[tuple[int, float, int, Callable[[], None]]] = []
        self._count = 0
        self._fuse = -1
        self._most = MOST_EVENTS_PER_JOB * jobs
        self.facts: dict[Question, list[tuple[float, Answer]]] = {}
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._folder = tempfile.mkdtemp(prefix="headway-world-", dir=memory)
        self._open = ExitStack()
        self.machines: list[Machine] = []
        self.workers: list[Worker] = []
        for number in range(1, hosts + 1):
            self._settle_in(f"host-{number}", open_store)
        store = self._opened(open_store)
        self.home = self.workers[0].home
        self.watch = Watch(self, store, self._opened(open_store))
        self.people = People(self, store, jobs // self.profile.share or 1)

    def _settle_in(self, name: str, open_store: OpenStore) -> None:
        home = Home(f"{self._folder}/{name}")
        make_home(home)
        machine = Machine(self, name)
        machines.place(home.path, machine)
        self._open.callback(machines.remove, home.path)
        self.machines.append(machine)
        self.workers.append(Worker(self, machine, home, self._opened(open_store)))

    def _opened(self, open_store: OpenStore) -> Store:
        store = open_store(self._folder, self.clock)
        self._open.callback(store.close)
        return store

    def close(self) -> None:
        for worker in self.workers:
            worker.leave()
        self._open.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # -- time ----------------------------------------------------------------------------------

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        self._count += 1
        at = self.clock.now() + math.ceil(seconds * SECOND)
        heapq.heappush(self._queue, (at, self.rng.random(), self._count, act))

    def run(self) -> None:
        """The whole story: people do what they do, all of it ends, and everything is checked."""
        with installed(self.rng, self.passed):
            self.people.begin()
            for worker in self.workers:
                worker.come_up()
            while not self.people.gone:
                self._next()
            self.people.see_all_end()
            self.watch.finished()

    def _next(self) -> None:
        at, _, number, act = heapq.heappop(self._queue)
        if number > self._most:
            raise Violation(f"seed {self.seed}: it does not come to rest")
        self.clock.move_to(at)
        act()

    def pass_time(self, seconds: float) -> None:
        until = self.clock.now() + int(seconds * SECOND)
        while self._queue and self._queue[0][0] <= until:
            self._next()
        self.clock.move_to(until)

    def come_to_rest(self) -> None:
        """Let go on without trouble for as long as the rarest look takes; then nothing may be
        left to do for anyone at this instant."""
        noise, self.noise = self.noise, False
        self._fuse = -1
        self.pass_time(31.0)
        while any(worker.engine is None for worker in self.workers):
            self.pass_time(1.0)
        before = -1
        while before != self.watch.seq:
            before = self.watch.seq
            for worker in self.workers:
                worker.step()
                worker.step()
        self.watch.at_rest()
        for worker in self.workers:
            worker.poll_in(0.0)
        self.noise = noise

    # -- trouble -------------------------------------------------------------------------------

    def passed(self, point: str) -> None:
        """A worker passes a point at which it may die; elsewhere others go on meanwhile."""
        if self.stepping is None or not self.noise:
            return
        if self._fuse < 0:
            if self.rng.random() < self.profile.crashes:
                self._fuse = self.rng.randrange(12)
            return
        self._fuse -= 1
        if self._fuse < 0:
            self.stepping.machine.worker_lives = False
            raise Crash(point)

    def hint(self) -> None:
        """Someone has committed; the workers may hear of it."""
        for worker in self.workers:
            if self.noise is False or self.rng.random() >= self.profile.lost_hints:
                worker.wake()

    def tell_worker(self, machine: Machine, message: bytes) -> None:
        if self.noise and self.rng.random() < self.profile.lost_hints:
            return
        for worker in self.workers:
            if worker.machine is machine:
                worker.hear(message)

    # -- the outside ---------------------------------------------------------------------------

    def fate(self, job_id: JobId) -> Fate:
        fate = self.profile.fate(self.rng, noise=self.noise)
        # Ends fall together, as they do when a machine is busy; else each would be a step.
        now, beat = self.clock.now(), self.profile.beat
        fate.seconds = ((now + int(fate.seconds * SECOND)) // beat * beat + beat - now) / SECOND
        return fate

    def locks_of(self, job_id: JobId) -> tuple[Lock, ...]:
        return self.watch.jobs[job_id].locks

    def process_started(self, machine: Machine, process: Process) -> None:
        self.watch.look()
        self.watch.process_started(machine, process)

    def process_runs(self, machine: Machine, process: Process) -> None:
        self.people.job_runs(process)

    def becomes(self, question: Question, answer: Answer) -> None:
        history = self.facts.setdefault(question, [(0.0, Answer())])
        history.append((self.clock.monotonic(), answer))

    def changed_lately(self, questions: Collection[Question]) -> bool:
        """Whether any of it is newer than the rarest look."""
        since = self.clock.monotonic() - LONGEST_AGAIN - POLL
        return any(self.facts[each][-1][0] >= since for each in questions if each in self.facts)

    def is_now(self, question: Question) -> Answer:
        history = self.facts.get(question)
        return history[-1][1] if history else Answer()

    def look(self, questions: Collection[Question]) -> dict[Question, Answer]:
        """What a look at the outside shows now."""
        answers = {}
        for question in questions:
            if self.noise and self.rng.random() < self.profile.failing_looks:
                answers[question] = Answer(trouble="git does not answer")
            else:
                answers[question] = self.is_now(question)
        return answers

    def recently(self, question: Question, wanted: Callable[[Answer], bool]) -> bool:
        history = self.facts.get(question, [(0.0, Answer())])
        return recently(history, self.clock.monotonic(), wanted)
