"""One planning step without a worker: `headway scheduler run` where none lives."""

import os

from headway.clock import SECOND, Clock
from headway.config import Config, store_setting
from headway.core.model import JobId
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
    """Recover, take in, start at most `limit` jobs, and leave; returns the ids of the started."""
    lock = WorkerLock(home.worker_lock)
    if not lock.take(START):
        lock.close()
        raise WorkerPresentError(f"a worker is already there (pid {lock.read_pid()})")
    values = {**config.values, "app.modules": ()}
    without_functions = Config(values, config.env, config.conditions)
    engine = Engine(
        store,
        home,
        without_functions,
        host,
        clock,
        worker_id=f"single-{os.urandom(4).hex()}",
        launcher=Launcher(),
    )
    try:
        engine.finisher.open()
        engine.recover()
        started = _pass(engine, clock, limit)
        _until_launched(engine, clock)
        return started
    finally:
        engine.finisher.close()
        lock.close()


def _pass(engine: Engine, clock: Clock, limit: int) -> list[JobId]:
    """One pass. With a spawn delay there is a pause between two jobs, and none after the last."""
    with engine.store.read() as tx:
        delay = parse_duration(store_setting(tx.settings(), "scheduler.spawn_delay")) / SECOND
    if not delay:
        return _step(engine, limit)
    started = _step(engine, 1)
    while started and len(started) < limit:
        with engine.store.read() as tx:
            if not engine.planner.would_start(tx):
                break
        clock.sleep(delay)
        more = _step(engine, 1)
        if not more:
            break
        started += more
    return started


def _step(engine: Engine, limit: int) -> list[JobId]:
    """One step; where a gate had to look at the world first, the step is made with what it saw."""
    started: list[JobId] = []
    for _ in range(MOST_LOOKS):
        engine.step(limit=limit - len(started))
        started += [claim.job_id for claim in engine.started]
        if not engine.looks.unsure():
            break
    return started


def _until_launched(engine: Engine, clock: Clock) -> None:
    """Wait for the parent's answers, so that what was reported as started was."""
    deadline = clock.monotonic() + 5.0
    while engine.finisher.unanswered() and clock.monotonic() < deadline:
        for key, _ in engine.finisher.selector.select(0.1):
            key.data()
        engine.step(limit=0)
