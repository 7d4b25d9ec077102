"""One pass without a worker: `headway scheduler run` where none lives.

The plan says how many may start. Each is started by a step that may start one, so the
planner decides here as everywhere; the spawn delay lies between two, and never after the last. Then
all other jobs are planned as in a worker's step: each says why it waits, or ends.
"""

import os
from collections.abc import Sequence

from headway.base.clock import SECOND, Clock
from headway.base.errors import WorkerPresentError
from headway.base.home import Home
from headway.base.host import Host
from headway.base.worker_lock import START, WorkerLock
from headway.core.model import Job, JobId
from headway.core.plan import Batch
from headway.core.states import WAITING
from headway.jobs.facts import spacing
from headway.jobs.passes import PASS_SECONDS, Cycle
from headway.jobs.settings import Config
from headway.store.store import Store
from headway.supervise.launcher import Launcher
from headway.worker.step import Engine

MOST_PROBES = 5  # one gate after another may ask for one


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
        engine.launches.open()
        engine.recover()
        started = _pass(engine, clock, limit)
        undone = _until_launched(engine, clock)
        if undone:
            _decide(engine, clock, Batch(limit, 0))  # each of these says what it waits for
        engine.helpers.finish()
        return [each for each in started if each not in undone]
    finally:
        engine.close()
        lock.close()


def _pass(engine: Engine, clock: Clock, limit: int) -> list[JobId]:
    store, started = engine.store, []
    engine.step(limit=0)  # what has ended makes room
    while engine.rounds.pending and engine.rounds.next_in() is not None:
        engine.step(limit=0)  # and what the jobs file wants is made

    def capacity() -> int | None:
        with store.read() as tx:
            return engine.planner.free_places(tx)

    def ready() -> Sequence[Job]:
        with store.read() as tx:  # what is seen of the world counts for the steps to come, too
            return engine.planner.preview(tx, engine.probes.probe_now, batch=limit).to_dispatch

    def start(job: Job) -> None:
        started.extend(_start_one(engine))

    with store.read() as tx:
        delay = spacing(tx) / SECOND
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
    """Make one step; where a gate needs a probe first, make another with its answer."""
    for _ in range(MOST_PROBES):
        engine.step(limit=1)
        if engine.started or not engine.probes.unsure():
            break
    return engine.started


def _decide(engine: Engine, clock: Clock, batch: Batch) -> list[JobId]:
    """Make steps until everything is decided, with the answers of probes. A job that ends may let
    another one ask, so only probes that end no job are counted."""
    started: list[JobId] = []
    in_vain = 0
    give_up_at = clock.monotonic() + PASS_SECONDS
    while in_vain < MOST_PROBES and clock.monotonic() < give_up_at:
        engine.step(limit=batch._replace(left=batch.left - len(started)))
        started += engine.started
        if not (engine.more or engine.probes.unsure()):
            break
        in_vain = 0 if engine.more or engine.planner.blocked else in_vain + 1
    return started


def _until_launched(engine: Engine, clock: Clock) -> list[JobId]:
    """Wait for the parent's answers, and until it was checked what jobs are to start on, so that
    what is reported as started was. The jobs that were not."""
    deadline = clock.monotonic() + 5.0
    checked = {claim.job_id for claim in engine.launches.checking()}
    while clock.monotonic() < deadline:
        if not (engine.launches.unanswered() or engine.launches.checking()):
            break
        for key, _ in engine.launches.watchlist.select(0.1):
            key.data()
        engine.step(limit=0)
    if not checked:
        return []
    with engine.store.read() as tx:
        return [job.id for job in tx.jobs.by_id(sorted(checked)).values() if job.status in WAITING]
