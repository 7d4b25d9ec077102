"""One pass without a worker: `headway scheduler run` where none lives.

The plan says how many may start. Each is started by a step of the engine that may start one, so the
planner decides here as everywhere; the spawn delay lies between two.
"""

import os
from collections.abc import Sequence

from headway.clock import SECOND, Clock
from headway.config import Config, store_setting
from headway.core.admission import free_slots
from headway.core.facts import Door
from headway.core.model import Job
from headway.engine.cycle import Cycle
from headway.engine.engine import Engine
from headway.errors import WorkerPresentError
from headway.gather import door as open_door
from headway.home import Home
from headway.host import Host, queues_of
from headway.passing import plan_pass
from headway.store.base import ReadTx, Store
from headway.supervise.launcher import Launcher
from headway.supervise.workerlock import START, WorkerLock
from headway.units import parse_duration

MOST_LOOKS = 5  # one gate after another may ask for one


def single_step(
    store: Store, home: Home, config: Config, host: Host, clock: Clock, *, limit: int
) -> list[int]:
    """Recover, take in, make one pass that starts at most `limit` jobs, and leave; returns the ids
    of the started."""
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
        _pass(engine, host, without_functions, clock, limit)
        started = [claim for claim in engine.finisher.claims if claim.token not in known]
        _until_launched(engine, clock)
        engine.helpers.finish()
        return [claim.job_id for claim in started]
    finally:
        engine.helpers.close()
        engine.finisher.close()
        lock.close()


def _pass(engine: Engine, host: Host, config: Config, clock: Clock, limit: int) -> None:
    store = engine.store
    engine.step(limit=0)  # what has ended makes room

    def door(tx: ReadTx) -> Door:
        return open_door(tx, host.id, log_budget=config.bytes("logs.budget"))

    def capacity() -> int | None:
        with store.read() as tx:
            now = door(tx)
        return None if now.lenders else free_slots(now)

    def ready() -> Sequence[Job]:
        with store.read() as tx:
            queues = queues_of(store.shared, host)
            planned = plan_pass(
                tx,
                door(tx),
                queues,
                home=engine.home,
                look=engine.looks.look_now,  # the steps to come see the same
                batch=limit,
            )
        return planned.to_dispatch

    with store.read() as tx:
        delay = parse_duration(store_setting(tx.settings(), "scheduler.spawn_delay")) / SECOND
    report = Cycle(
        clock,
        capacity=capacity,
        query=ready,
        execute=lambda job: _step(engine, 1),
        batch_size=limit,
        spawn_delay=delay,
    ).run()
    if not report.done:
        _step(engine, limit)  # nothing may start, and each job says why


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
