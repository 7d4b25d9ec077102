"""The locks that are held or waited for."""

from typing import Any

from headway.base.units import show_instant
from headway.core.model import (
    Job,
    JobId,
    LockMode,
    shown,
)
from headway.jobs.context import Context

MOST_WAITERS = 10_000


def locks(context: Context) -> list[dict[str, Any]]:
    """The holders of each lock that is held or waited for, and its waiters, in the order of getting
    it."""
    with context.store.read() as tx:
        held, waiting = tx.claims.locks_held(), tx.claims.lock_waiters(MOST_WAITERS)
        ids = {*(each.job_id for each in held), *(each.job_id for each in waiting)}
        jobs = tx.jobs.readable(sorted(ids))
        now = tx.now()
    found: dict[str, dict[str, Any]] = {
        key: {"key": key, "holders": [], "waiters": []}
        for key in sorted({*(each.key for each in held), *(each.key for each in waiting)})
    }
    for lock in held:
        holder = _holder(lock.job_id, lock.mode, jobs.get(lock.job_id), now)
        found[lock.key]["holders"].append(holder)
    for waiter in waiting:
        job = jobs.get(waiter.job_id)
        found[waiter.key]["waiters"].append(
            {
                "job": shown(waiter.job_id),
                "name": job.name if job else None,
                "mode": waiter.mode.value,
                "reserves": waiter.reserves,
                "since": show_instant(job.created_at) if job else None,
            }
        )
    return list(found.values())


def _holder(job_id: JobId, mode: LockMode, job: Job | None, now: int) -> dict[str, Any]:
    """A lock is taken when the job starts, and kept until its last process is gone."""
    since = job.started_at if job else None
    return {
        "job": shown(job_id),
        "name": job.name if job else None,
        "state": job.status.value if job else None,
        "mode": mode.value,
        "since": show_instant(since),
        "held_ms": (now - since) // 1000 if since is not None else None,
    }
