"""How long jobs waited and ran, for many at once."""

from collections.abc import Sequence
from typing import NamedTuple

from headway.base.clock import SECOND
from headway.core.model import JobId
from headway.jobs.context import Context


class JobTimes(NamedTuple):
    """`waited` is from when it could first have started, by its submitter's word; None where it was
    never started."""

    job_id: JobId
    type: str
    waited: float | None
    ran: float | None


def times_of(context: Context, job_ids: Sequence[JobId]) -> list[JobTimes]:
    """In seconds; those that are gone are left out."""
    with context.store.read() as tx:
        kept = tx.jobs.records(job_ids)
    found = []
    for job in kept.jobs.values():
        run = kept.runs.get(job.id)
        begin = run.started_at if run is not None else None
        end = run.finished_at if run is not None else None
        since = max(job.created_at, job.not_before or 0)
        waited = None if begin is None else max(0, begin - since) / SECOND
        ran = None if begin is None or end is None else max(0, end - begin) / SECOND
        found.append(JobTimes(job.id, job.type, waited, ran))
    return found
