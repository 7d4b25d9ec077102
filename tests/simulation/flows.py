"""Random workflow runs over the real engine, without processes; a worker dies after a commit.

A world has one host and one store. Each run is a random file, compiled as any other. Its processes
end as chance has it. In the end every node must stand as the last outcomes of its sources require,
by the rules of `core.routes` alone.
"""

import heapq
import itertools
import math
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headway.base.clock import SECOND
from headway.base.errors import ConflictError
from headway.base.home import Home
from headway.base.host import Host
from headway.base.new_home import make_home
from headway.core.model import JobId, Lock
from headway.core.routes import NodeOutcome
from headway.jobs.cancel import cancel
from headway.jobs.context import Context
from headway.jobs.settings import Config
from headway.store.store import Store
from headway.worker.step import Engine
from headway.workflows.compiler import compile_text
from headway.workflows.mistakes import WorkflowError
from headway.workflows.model import Manifest
from headway.workflows.runs import show_run, stop_run
from headway.workflows.start import RunRequest, start
from run_model import RunModel, refuse_wrong_end
from simulation import machines
from simulation.machines import Fate, Machine, Process, SimulatedLauncher
from simulation.seams import Crash, WorkersStore, installed
from simulation.world import SimulatedClock

SKIPS, MOST_STEPS = 77, 4000
CODES = {0: 4, 1: 3, SKIPS: 1}  # how often a process ends so


# -- random files --------------------------------------------------------------------------------


def random_file(chance: random.Random) -> Manifest:
    """The manifest of a file that is right; wrong ones are thrown away."""
    while True:
        try:
            text = _text(chance)
            return compile_text(text, {}, name="flow", file="flow.toml", limit=1000)
        except WorkflowError:
            continue


def _text(chance: random.Random) -> str:
    names = [f"n{number}" for number in range(chance.randint(2, 7))]
    last = names[-1] if len(names) > 3 and chance.random() < 0.4 else None
    lines = [f'finally = ["{last}"]'] if last else []
    lines.append('params.items = { type = "list", default = ["a", "b"] }')
    for at, name in enumerate(names):
        lines += [f"[nodes.{name}]", 'argv = ["true"]', f"skip_exit_codes = [{SKIPS}]"]
        if name == last:
            continue
        lines += _of_node(chance, name, names[:at])
    return "\n".join(lines)


def _of_node(chance: random.Random, name: str, before: list[str]) -> Iterator[str]:
    sources = [each for each in before if chance.random() < 0.5] or before[-1:]
    if sources:
        yield f"after = [{', '.join(_after(chance, each) for each in sources)}]"
    if chance.random() < 0.2:
        yield 'join = "any"'
    if chance.random() < 0.2:
        yield "tolerate = " + chance.choice(('["failed"]', '["failed", "blocked"]'))
    if before and chance.random() < 0.3:
        on = chance.choice(('["failed"]', '["failed"]', '["failed", "blocked"]', '["succeeded"]'))
        to = chance.choice([*before, name])
        yield f'loop = {{ to = "{to}", on = {on}, times = {chance.randint(1, 3)} }}'
    many = chance.random()
    if many < 0.12:
        yield f"matrix = {{ x = {list(range(chance.randint(2, 3)))} }}"
    elif many < 0.24:
        yield 'each = { in = "${{ params.items }}" }'
    if chance.random() < 0.15:
        yield "retries = 1"
        yield 'retry_base = "0s"'


def _after(chance: random.Random, source: str) -> str:
    words = ("failed", "blocked", "cancelled", "skipped", "ended")
    if chance.random() < 0.6:
        return f'"{source}"'
    accepted = sorted({chance.choice(words) for _ in range(chance.randint(1, 2))})
    if chance.random() < 0.3:
        accepted.append("succeeded")
    return f'{{ node = "{source}", on = {accepted} }}'.replace("'", '"')


# -- the world -----------------------------------------------------------------------------------


class FlowWorld:
    """One host on one store. `crashes`: a worker's life ends after its first or second commit, in
    turns; what the first one decided is then only found again."""

    noise = False

    def __init__(self, store: Store, clock: SimulatedClock, folder: str, *, crashes: bool) -> None:
        self.clock = clock
        self.rng = random.Random(7)
        self.crashes = crashes
        self.lives = 0
        self.starts: dict[JobId, int] = {}
        self._left = -1  # commits until the present life ends
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._count = itertools.count()
        self._store = store
        self.home = Home(folder)
        make_home(self.home)
        self.machine = Machine(self, "host")
        machines.place(self.home.path, self.machine)
        self._host = Host("host", "boot-1", self.home.path, "")
        self.context = Context(
            self.home,
            Config({"worker.autostart": False}),
            store,
            clock,
            environ={"PATH": os.defpath},
            actor="ada",
            folder=os.path.dirname(folder),
            host=self._host,
            wake=lambda word: True,
        )
        self._engine: Engine | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        with installed(self.rng, self._passed):
            try:
                yield
            finally:
                self._leave()
                machines.remove(self.home.path)

    def play(self, chance: random.Random) -> tuple[Manifest, RunModel]:
        """One run from its start to its end; how it stands then."""
        self.rng = chance
        manifest = random_file(chance)
        run = start(self.context, manifest, RunRequest()).run
        stop_at = chance.randint(0, 8) if chance.random() < 0.25 else None
        cancel_at = chance.randint(0, 8) if chance.random() < 0.25 else None
        for number in range(MOST_STEPS):
            document = self._settled(run)
            if document["ended_at"] is not None:
                return manifest, self._standing(manifest, run)
            if number == stop_at:
                stop_run(self.context, run)
            active = [each for each in document["nodes"] if each["outcome"] is None]
            if number == cancel_at and active:
                with suppress(ConflictError):  # it may have ended since
                    cancel(self.context, [int(chance.choice(active)["job"].removeprefix("job-"))])
            self._next_event()
        told = [(each["id"], each["state"], each["wait"]) for each in document["nodes"]]
        raise AssertionError(f"wf-{run} stands still: {told}")

    def _settled(self, run: int) -> dict[str, Any]:
        """The run after as many steps as follow each other at once. One more would find nothing to
        do: nobody would make it before something happens."""
        while self._step() == 0.0:
            pass
        document = show_run(self.context, run)
        if not self.crashes:
            self._step()
            assert show_run(self.context, run) == document, f"wf-{run} waited for a step"
        return document

    def _standing(self, manifest: Manifest, run: int) -> RunModel:
        """The model of the run as the store has it, for the check of its end."""
        with self._store.read() as tx:
            record = tx.workflows.by_id([run])[run]
            nodes, loops = tx.workflows.nodes(run), tx.workflows.loops(run)
        counts: dict[str, int] = {}
        routes = manifest.routes
        for each in nodes:
            counts[each.written] = counts.get(each.written, 0) + (not each.fan)
        model = RunModel(routes.rules, routes.loops, {name: counts[name] or 1 for name in counts})
        model.stopped = record.stopped_at is not None
        at: dict[str, Iterator[int]] = {name: itertools.count() for name in counts}
        for each in nodes:
            if each.fan and counts[each.written]:
                assert each.outcome is not None
                continue
            standing = model.standing[each.written, next(at[each.written])]
            standing.outcome, standing.passes = each.outcome, each.passes
            standing.by_a_person = each.outcome is NodeOutcome.CANCELLED
        model.counts = {each.rule.source: each.so_far for each in loops}
        return model

    # -- the worker ----------------------------------------------------------------------------

    def _passed(self, point: str) -> None:
        if point == "store.committed" and self.crashes and self._engine is not None:
            self._left -= 1
            if self._left == 0:
                raise Crash(point)

    def _step(self) -> float:
        """The seconds until the next step; after a death none is made at once."""
        try:
            if self._engine is None:
                self._come_up()
            assert self._engine is not None
            return self._engine.step()
        except Crash:
            self._leave()
            return 1.0

    def _come_up(self) -> None:
        self.lives += 1
        self._left = 1 + self.lives % 2
        self.machine.worker_lives = True
        launcher: Any = SimulatedLauncher(self.machine)
        store: Any = WorkersStore(self._store, self._passed)
        config = Config({"worker.autostart": False, "scheduler.max_active": 4})
        worker = f"worker-{self.lives}"
        engine = Engine(
            store, self.home, config, self._host, self.clock, worker_id=worker, launcher=launcher
        )
        engine.planner._specify = lambda job, claim: {}
        engine.launches.open()
        self._engine = engine
        engine.recover()

    def _leave(self) -> None:
        if self._engine is not None:
            self.machine.worker_lives = False
            self.machine.release_worker_locks()
            self._engine.close()
            self._engine.probes.close()
            self._engine = None

    # -- the outside ---------------------------------------------------------------------------

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        at = self.clock.now() + math.ceil(seconds * SECOND)
        heapq.heappush(self._queue, (at, next(self._count), act))

    def _next_event(self) -> None:
        if not self._queue:
            self.clock.move_to(self.clock.now() + SECOND)
            return
        at, _, act = heapq.heappop(self._queue)
        self.clock.move_to(at)
        act()

    def fate(self, job_id: JobId) -> Fate:
        code = self.rng.choices(list(CODES), list(CODES.values()))[0]
        return Fate(seconds=self.rng.choice((0.1, 0.1, 0.3, 2.0)), code=code)

    def locks_of(self, job_id: JobId) -> tuple[Lock, ...]:
        return ()

    def process_started(self, machine: Machine, process: Process) -> None:
        self.starts[process.job_id] = self.starts.get(process.job_id, 0) + 1
        assert self.starts[process.job_id] == 1, f"job-{process.job_id} was started twice"

    def process_runs(self, machine: Machine, process: Process) -> None: ...

    def tell_worker(self, machine: Machine, message: bytes) -> None:
        if self._engine is not None:
            self._engine.launches.receive(message)


def play_many(world: FlowWorld, seed: int, graphs: int) -> dict[str, int]:
    """So many runs, each checked at its end; how often what may happen did."""
    told = {"runs": 0, "loops": 0, "fans": 0, "stopped": 0, "passes": 0}
    with world.running():
        for number in range(graphs):
            manifest, model = world.play(random.Random(f"{seed}.{number}"))
            try:
                refuse_wrong_end(model, model.stopped)
            except AssertionError as error:
                raise AssertionError(f"run {seed}.{number}: {error}; {model.standing}") from error
            told["runs"] += 1
            told["loops"] += bool(manifest.routes.loops)
            told["fans"] += any(node.each for node in manifest.nodes)
            told["stopped"] += model.stopped
            told["passes"] += sum(each.passes - 1 for each in model.standing.values())
    return told
