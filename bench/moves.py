"""A move in a short and in a long queue: its cost must not grow with what waits."""

import statistics
import time
from contextlib import ExitStack
from random import Random

from headway.base.clock import SystemClock
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.client import Client
from headway.core.model import Job, Stage
from headway.core.order import Place, Side
from headway.core.states import Status
from headway.jobs.context import Context
from headway.jobs.order import move
from headway.jobs.settings import Config
from headway.store import open_store
from measure import Figures, Lab
from planning import PostgresRows, Rows, SqliteRows
from server import database

MOVES = 60
MOVED = 25  # jobs
SHORT, LONG = 100, 100_000


def moves(lab: Lab) -> Figures:
    """Move a job to the front, and right before and after another, 60 times each, in one durable
    transaction each; the median in ms. In a queue of 100 jobs and in one of 100,000, taking turns,
    on both databases, which have been given the time to look at what they hold (`analyze`).

    In either queue it is the same number of jobs that are moved about, spread over all of it: the
    first change of a page costs PostgreSQL a copy of it, and a long queue has more pages.
    """
    figures: Figures = {}
    for store in ("sqlite", "postgres") if lab.postgres else ("sqlite",):
        figures |= _on(lab, store)
    return figures


def _on(lab: Lab, store: str) -> Figures:
    queues = {
        name: lab.once(f"moves.{store}.{name}", lambda size=size: _queue(lab, store, size))
        for name, size in {"short": SHORT, "long": lab.size(LONG)}.items()
    }
    taken: dict[str, list[float]] = {}
    for _ in range(MOVES):
        for side in (Side.FRONT, Side.BEFORE, Side.AFTER):
            for name, queue in queues.items():
                taken.setdefault(f"moves.{store}.{side}.{name}", []).append(queue.move(side))
    return {name: 1e3 * statistics.median(times) for name, times in taken.items()}


class Queue:
    def __init__(self, client: Client, rows: Rows, size: int) -> None:
        self._client = client
        self._lots = Random(size)
        self._moved = range(1, size + 1, size // MOVED)
        with client.context.store.write() as tx:
            first = tx.jobs.take_ids(size)
            tx.jobs.add([_job(first + each, 100 * (each + 1)) for each in range(size)])
        client.context.store.tidy()
        rows.analyze()

    def move(self, side: Side) -> float:
        """Move one of them beside another; the seconds until it is durable."""
        job, other = self._lots.sample(self._moved, 2)
        begin = time.perf_counter()
        told = move(self._client.context, job, Place(side, other if side is not Side.FRONT else 0))
        taken = time.perf_counter() - begin
        if told.job.id != job:
            raise RuntimeError(f"job-{told.job.id} was moved, not job-{job}")
        return taken


def _queue(lab: Lab, store: str, size: int) -> Queue:
    folder = lab.fresh("moves")
    home = Home(str(folder / ".headway"))
    make_home(home)
    rows: Rows
    if store == "sqlite":
        url, rows = f"sqlite://{home.database}", SqliteRows(home.database)
    else:
        assert lab.postgres
        url = ExitStack().enter_context(database(lab.postgres))  # it goes with its server
        rows = PostgresRows(url)
    clock = SystemClock()
    opened = open_store(url, clock, create=True)
    config = Config({"worker.autostart": False})
    return Queue(
        Client(Context(home, config, opened, clock, environ={}, actor="bench")), rows, size
    )


def _job(job_id: int, position: int) -> Job:
    return Job(
        id=job_id,
        name="true",
        type="command",
        status=Status.QUEUED,
        priority=0,
        position=position,
        params={"argv": ["true"]},
        created_at=time.time_ns() // 1000,
        chain=job_id,
        stage=Stage.READY,
    )
