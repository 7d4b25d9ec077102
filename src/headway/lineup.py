"""The queue as it will be dispatched: what waits, with places and estimates of how long."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headway.client import Client
from headway.core.admission import closed
from headway.core.facts import Door
from headway.core.forecast import Expected, Pace, forecast, pace_of
from headway.core.model import Job, JobId, Stage, WaitKind
from headway.core.policies import ENTRY, place_of
from headway.listing import Query, fits, has_state, is_about, with_groups_known
from headway.store.base import ReadTx

LOOKED_BACK = 1000  # ended jobs
SECOND = 1_000_000


class Lineup(NamedTuple):
    documents: list[dict[str, Any]]
    more: bool  # there are others behind
    stands: str | None  # why nothing starts at all


def line_up(client: Client, query: Query, *, limit: int, most: int) -> Lineup:
    """The first `limit` that the query asks for; places count all that wait. No more than `most`
    are looked at."""
    with client.store.read() as tx:
        query = with_groups_known(tx, query)
        jobs = tx.queue(most + 1)
        door = client.door(tx)
        shut = closed(door, tx.now())
        starts = _starts(tx, jobs, door) if shut is None else {}
        places = {job.id: place for place, job in enumerate(jobs[:most], 1)}
        wanted = [job for job in jobs[:most] if fits(job, query) and has_state(job, query)]
        chosen = wanted[: limit + 1] if not _of_documents(query) else wanted
        documents = [
            {**document, **_of_queue(job.id, places, starts)}
            for job, document in zip(chosen, client.describe(tx, chosen), strict=True)
            if is_about(document, query)
        ]
        client.unreadable = dict(tx.unreadable())
    more = len(documents) > limit or len(jobs) > most
    return Lineup(documents[:limit], more, shut.detail if shut else None)


def _of_documents(query: Query) -> bool:
    return bool(query.groups or query.subjects)


def _of_queue(
    job_id: JobId, places: Mapping[JobId, int], starts: Mapping[JobId, int]
) -> dict[str, Any]:
    known = starts.get(job_id)
    seconds = None if known is None else round(known / SECOND, 1)
    return {"place": places[job_id], "estimated_wait_seconds": seconds}


def _starts(tx: ReadTx, jobs: Sequence[Job], door: Door) -> dict[JobId, int]:
    now = tx.now()
    pace = pace_of(tx.finished_jobs(0, LOOKED_BACK))
    slots = tx.slots()
    running = tx.readable_jobs(sorted(slots.running))
    entries = {each.job_id or 0 for each in slots.occupants if ENTRY in each.keys}
    left = {job.id: _left(job, pace, now) for job in running.values()}
    lasts = tx.chain_lasts(sorted({each for job in jobs for each in job.after}))
    waiting = [_expected(job, pace, now, lasts) for job in jobs]
    cap = door.max_active if door.max_active > 0 else None
    return forecast(waiting, left, cap, parallel=door.parallel, entries=entries)


def _left(job: Job, pace: Pace, now: int) -> int | None:
    takes = pace.of(job.name)
    return None if takes is None else max(0, takes - (now - (job.started_at or now)))


def _expected(job: Job, pace: Pace, now: int, lasts: Mapping[JobId, JobId]) -> Expected:
    due_in: int | None = max(0, (job.not_before or now) - now)
    foreseeable = [WaitKind.TIME, WaitKind.DEPENDENCIES]
    if job.is_entry:  # it is not filed in the queue while it waits for its place
        foreseeable.append(WaitKind.CAPACITY)
    if job.stage is Stage.FILED and (job.wait is None or job.wait.kind not in foreseeable):
        due_in = None
    if job.needs and job.stage is Stage.FILED:
        due_in = None
    after = tuple(lasts.get(each, each) for each in job.after)
    return Expected(job.id, pace.of(job.name), due_in, after, place_of(job))
