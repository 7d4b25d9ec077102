"""Find jobs by their ids or slugs; say what to do about one that is not there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.base.errors import ConflictError, NotFoundError
from headway.core.model import Job, JobId, shown
from headway.jobs.references import parse_reference

if TYPE_CHECKING:
    from headway.jobs.context import Context
    from headway.store.new_jobs import Event
    from headway.store.records import Progress
    from headway.store.transaction import ReadTx


MOST_LISTED = 10
MOST_COMPARED = 1_000
RECENT = 7 * 86_400_000_000


def find_id(context: Context, text: str) -> JobId:
    """The id of the job that is called this: by an id, or by a slug."""
    reference = parse_reference(text)
    if not isinstance(reference, str):
        return reference
    with context.store.read() as tx:
        return _with_slug(tx, reference)


def _with_slug(tx: ReadTx, slug: str) -> JobId:
    """The one active job that has it; if none has, the one that ended last."""
    active = tx.jobs.active_with_slug(slug, limit=MOST_LISTED + 1)
    if len(active) == 1:
        return active[0].id
    if active:
        listed = [f"{shown(job.id)} ({job.status})" for job in active[:MOST_LISTED]]
        more = " and more" if len(active) > MOST_LISTED else ""
        raise ConflictError(
            f"several active jobs have the slug {slug!r}: {', '.join(listed)}{more}; "
            "name one by its id"
        )
    last = tx.jobs.last_with_slug(slug)
    if last is None:
        raise NotFoundError(
            f"{slug!r} is not a job; "
            + (_meant(tx, slug) or "write it like job-24 or 24, or by a slug that a job has")
        )
    return last.id


def _meant(tx: ReadTx, word: str) -> str | None:
    """The recent job that has it as its name, else the nearest slug."""
    from difflib import get_close_matches
    from itertools import islice

    from headway.store.records import Search

    recent = Search(ended_since=tx.now() - RECENT)
    found = (job for each in tx.search.jobs(recent, size=MOST_COMPARED) for job in each.jobs)
    jobs = list(islice(found, MOST_COMPARED))
    named = [job for job in jobs if job.name == word]
    if named:
        return f"{shown(named[0].id)} has that name, which is no slug"
    slugs = {job.slug: job for job in reversed(jobs) if job.slug is not None}
    near = get_close_matches(word, slugs, 1)
    return f"did you mean {near[0]} ({shown(slugs[near[0]].id)})?" if near else None


def find_job(context: Context, job_id: JobId) -> Job:
    with context.store.read() as tx:
        return require(tx, [job_id])[job_id]


def last_of_chain(context: Context, job_id: JobId) -> Job:
    """The job that decides for this one's chain."""
    with context.store.read() as tx:
        job = require(tx, [job_id])[job_id]
        return tx.jobs.last_in_chain(job.chain) or job


def history(context: Context, job_id: JobId) -> list[Event]:
    with context.store.read() as tx:
        require(tx, [job_id])
        return tx.events.of_job(job_id)


def progress(context: Context, job_id: JobId) -> Progress | None:
    """How far a function says that it has come."""
    with context.store.read() as tx:
        return tx.jobs.progress([job_id]).get(job_id)


def require(tx: ReadTx, ids: Sequence[JobId]) -> dict[JobId, Job]:
    """These jobs; raises NotFoundError if one of them is not there."""
    jobs = tx.jobs.by_id(ids) if ids else {}
    for job_id in ids:
        if job_id not in jobs:
            raise unknown_job(tx, job_id)
    return jobs


def unknown_job(tx: ReadTx, job_id: JobId, called: str | None = None) -> NotFoundError:
    """The error for a job or run without a row. An id that was given out once had a row."""
    called = called or shown(job_id)
    if job_id < tx.settings.marks()["next_job_id"]:
        return NotFoundError(
            f"there is no {called} any more: ended jobs are removed after a time "
            "(scheduler.retention_days), or by hand"
        )
    return NotFoundError(f"there is no {called}; `headway jobs list --all`")
