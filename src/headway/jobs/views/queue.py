"""The queue as it will be dispatched: what waits, with places and estimates of how long."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headway.core.capacity import closed
from headway.core.facts import Capacity
from headway.core.forecast import Expected, Pace, forecast, pace_of
from headway.core.model import Job, JobId, Stage, WaitKind
from headway.core.policies import ENTRY, place_of
from headway.jobs.context import Context
from headway.jobs.revisions import revision_of_queue
from headway.jobs.views.details import describe
from headway.jobs.views.present import present_capacity
from headway.jobs.views.search import SearchQuery, fits, has_state, resolved
from headway.store.transaction import ReadTx

LOOKED_BACK = 1000  # ended jobs
MOST_FORESEEN = 1000  # waiting jobs that an estimate plays through
SECOND = 1_000_000


class Lineup(NamedTuple):
    documents: list[dict[str, Any]]
    more: bool  # there are others behind
    stands: str | None  # why nothing starts at all
    unreadable: Mapping[JobId, str]  # rows that could not be read, and why
    revision: str  # of its order


def line_up(context: Context, query: SearchQuery, *, limit: int, most: int) -> Lineup:
    """The first `limit` that the query asks for; places count all that wait. No more than `most`
    are read."""
    with context.store.read() as tx:
        query = resolved(tx, query)
        jobs = tx.queue_order.waiting(most + 1)
        capacity = present_capacity(context, tx)
        shut = closed(capacity, tx.now())
        starts = _starts(tx, jobs, capacity) if shut is None else {}
        places = {job.id: place for place, job in enumerate(jobs[:most], 1)}
        wanted = [job for job in jobs[:most] if fits(job, query) and has_state(job, query)]
        chosen = wanted[:limit]
        documents = [
            {**document, **_of_queue(job.id, places, starts)}
            for job, document in zip(chosen, describe(context, tx, chosen), strict=True)
        ]
        unreadable, revision = dict(tx.unreadable()), revision_of_queue(tx)
    more = len(wanted) > limit or len(jobs) > most
    return Lineup(documents, more, shut.detail if shut else None, unreadable, revision)


class Estimate(NamedTuple):
    """When waiting jobs start and running ones end, as far as the past tells."""

    starts_at: Mapping[JobId, int]
    ends_at: Mapping[JobId, int]


def estimate(context: Context, tx: ReadTx, running: Sequence[Job]) -> Estimate:
    """Of all that wait, and of these running jobs. A running job is measured only by jobs of its
    own name."""
    now = tx.now()
    waiting = tx.queue_order.waiting(MOST_FORESEEN)
    capacity = present_capacity(context, tx)
    starts = _starts(tx, waiting, capacity) if waiting and closed(capacity, now) is None else {}
    takes = pace_of(tx.jobs.finished(0, LOOKED_BACK)).by_name if running else {}
    return Estimate(
        {job_id: now + micros for job_id, micros in starts.items()},
        {job.id: (job.started_at or now) + takes[job.name] for job in running if job.name in takes},
    )


def _of_queue(
    job_id: JobId, places: Mapping[JobId, int], starts: Mapping[JobId, int]
) -> dict[str, Any]:
    known = starts.get(job_id)
    seconds = None if known is None else round(known / SECOND, 1)
    return {"place": places[job_id], "estimated_wait_seconds": seconds}


def _starts(tx: ReadTx, jobs: Sequence[Job], capacity: Capacity) -> dict[JobId, int]:
    now = tx.now()
    pace = pace_of(tx.jobs.finished(0, LOOKED_BACK))
    slots = tx.claims.slots()
    running = tx.jobs.readable(sorted(slots.running))
    entries = {each.job_id or 0 for each in slots.occupants if ENTRY in each.keys}
    left = {job.id: _left(job, pace, now) for job in running.values()}
    lasts = tx.graph.chain_lasts(sorted({each for job in jobs for each in job.after}))
    waiting = [_expected(job, pace, now, lasts) for job in jobs]
    cap = capacity.max_active if capacity.max_active > 0 else None
    return forecast(waiting, left, cap, parallel=capacity.parallel, entries=entries)


def _left(job: Job, pace: Pace, now: int) -> int | None:
    """What a running job still takes; None if nobody knows, as of one that takes longer than
    usual."""
    takes = pace.of(job.name)
    left = None if takes is None else takes - (now - (job.started_at or now))
    return left if left is not None and left >= 0 else None


def _expected(job: Job, pace: Pace, now: int, lasts: Mapping[JobId, JobId]) -> Expected:
    due_in: int | None = max(0, (job.not_before or now) - now)
    foreseeable = [WaitKind.TIME, WaitKind.DEPENDENCIES]
    if job.is_entry:  # it is not parked in the queue while it waits for its place
        foreseeable.append(WaitKind.CAPACITY)
    if job.stage is Stage.PARKED and (job.wait is None or job.wait.kind not in foreseeable):
        due_in = None
    if job.needs and job.stage is Stage.PARKED:
        due_in = None
    after = tuple(lasts.get(each, each) for each in job.after)
    return Expected(job.id, pace.of(job.name), due_in, after, place_of(job))
