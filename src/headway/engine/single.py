"""One planning step without a worker: `headway scheduler run` where none lives."""

import os

from headway.clock import Clock
from headway.config import Config
from headway.engine.engine import Engine
from headway.errors import WorkerPresentError
from headway.home import Home
from headway.host import Host
from headway.store.base import Store
from headway.supervise.launcher import Launcher
from headway.supervise.workerlock import START, WorkerLock

MOST_LOOKS = 5  # one gate after another may ask for one


def single_step(
    store: Store, home: Home, config: Config, host: Host, clock: Clock, *, limit: int
) -> list[int]:
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
        known = {claim.token for claim in engine.finisher.claims}
        _step(engine, limit)
        started = [claim for claim in engine.finisher.claims if claim.token not in known]
        _until_launched(engine, clock)
        return [claim.job_id for claim in started]
    finally:
        engine.finisher.close()
        lock.close()


def _step(engine: Engine, limit: int) -> None:
    """One step; where a gate had to look at the world first, the step is made with what it saw."""
    before = len(engine.finisher.claims)
    for _ in range(MOST_LOOKS):
        engine.step(limit=limit - (len(engine.finisher.claims) - before))
        if not engine.looks.unsure():
            return


def _until_launched(engine: Engine, clock: Clock) -> None:
    """Wait for the parent's answers, so that what was reported as started was."""
    deadline = clock.monotonic() + 5.0
    while engine.finisher.unanswered() and clock.monotonic() < deadline:
        for key, _ in engine.finisher.selector.select(0.1):
            key.data()
        engine.step(limit=0)
