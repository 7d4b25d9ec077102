"""One pass without a worker: `headway scheduler run` where none lives.

The plan says how many may start. Each is started by a step of the engine that may start one, so the
planner decides here as everywhere; the spawn delay lies between two, and never after the last. Then
everyone else is looked at as in a worker's step: each says why it waits, or ends.
"""

import os
from collections.abc import Sequence

from headway.clock import SECOND, Clock
from headway.config import Config, store_setting
from headway.core.model import Job, JobId
from headway.core.plan import Batch
from headway.core.states import WAITING
from headway.engine.cycle import PASS_SECONDS, Cycle
from headway.engine.engine import Engine
from headway.errors import WorkerPresentError
from headway.home import Home
from headway.host import Host
from headway.store.base import Store
from headway.supervise.launcher import Launcher
from headway.supervise.workerlock import START, WorkerLock
from headway.units import parse_duration

MOST_LOOKS = 5  # one gate after another may ask for one


def single_step(
    store: Store, home: Home, config: Config, host: Host, clock: Clock, *, limit: int
) -> list[JobId]:
    """Recover, take in, make one pass that starts at most `limit` jobs, and leave; returns the ids
    of the started."""
    lock = WorkerLock(home.worker_lock)
    if not lock.take(START):
        lock.close()
        raise WorkerPresentError(f"a worker is already there (pid {lock.read_pid()})")
    without_functions = config.changed({"app.modules": ()})
    engine = Engine(
        store,
        home,
        without_functions,
        host,
        clock,
        worker_id=f"single-{os.urandom(4).hex()}",
        launcher=Launcher(),
    )
    engine.rounds.asking.modules = config["app.modules"]
    try:
        engine.finisher.open()
        engine.recover()
        started = _pass(engine, clock, limit)
        undone = _until_launched(engine, clock)
        if undone:
            _decide(engine, clock, Batch(limit, 0))  # each of these says what it waits for
        engine.helpers.finish()
        return [each for each in started if each not in undone]
    finally:
        engine.helpers.close()
        engine.rounds.close()
        engine.finisher.close()
        lock.close()


def _pass(engine: Engine, clock: Clock, limit: int) -> list[JobId]:
    store, started = engine.store, []
    engine.step(limit=0)  # what has ended makes room
    while engine.rounds.pending and engine.rounds.next_in() is not None:
        engine.step(limit=0)  # and what the jobs file wants is made

    def capacity() -> int | None:
        with store.read() as tx:
            return engine.planner.capacity(tx)

    def ready() -> Sequence[Job]:
        with store.read() as tx:  # what is seen of the world counts for the steps to come, too
            return engine.planner.preview(tx, engine.looks.look_now, batch=limit).to_dispatch

    def start(job: Job) -> None:
        started.extend(_start_one(engine))

    with store.read() as tx:
        delay = parse_duration(store_setting(tx.settings(), "scheduler.spawn_delay")) / SECOND
    Cycle(
        clock,
        capacity=capacity,
        query=ready,
        execute=start,
        batch_size=limit,
        spawn_delay=delay,
    ).run()
    return started + _decide(engine, clock, Batch(limit, 0 if started else limit))


def _start_one(engine: Engine) -> list[JobId]:
    """One step; where a gate had to look at the world first, the step is made with what it saw."""
    for _ in range(MOST_LOOKS):
        engine.step(limit=1)
        if engine.started or not engine.looks.unsure():
            break
    return engine.started


def _decide(engine: Engine, clock: Clock, batch: Batch) -> list[JobId]:
    """Steps until all that there is to decide has been, with what looks at the world show. Who ends
    may let another one look, so only looks that end nobody are counted."""
    started: list[JobId] = []
    in_vain = 0
    give_up_at = clock.monotonic() + PASS_SECONDS
    while in_vain < MOST_LOOKS and clock.monotonic() < give_up_at:
        engine.step(limit=batch._replace(left=batch.left - len(started)))
        started += engine.started
        if not (engine.more or engine.looks.unsure()):
            break
        in_vain = 0 if engine.more or engine.planner.blocked else in_vain + 1
    return started


def _until_launched(engine: Engine, clock: Clock) -> list[JobId]:
    """Wait for the parent's answers, and until it was checked what jobs are to start on, so that
    what is reported as started was. The jobs that were not."""
    deadline = clock.monotonic() + 5.0
    checked = {claim.job_id for claim in engine.finisher.checking()}
    while clock.monotonic() < deadline:
        if not (engine.finisher.unanswered() or engine.finisher.checking()):
            break
        for key, _ in engine.finisher.selector.select(0.1):
            key.data()
        engine.step(limit=0)
    if not checked:
        return []
    with engine.store.read() as tx:
        return [job.id for job in tx.jobs(sorted(checked)).values() if job.status in WAITING]
