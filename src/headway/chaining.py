"""A chain from the outside: each try, how it ended and why, and when the next one may start."""

import re
from collections.abc import Mapping
from typing import Any

from headway.client import Client
from headway.collecting import unknown_job
from headway.core.model import Job, JobId, Run, shown
from headway.core.states import Status
from headway.errors import NotFoundError
from headway.units import show_instant

_RUN_ID = re.compile(r"(?:run-|#)?([1-9][0-9]{0,17})")


def parse_run_id(text: str) -> JobId:
    """A run has the number of its job."""
    match = _RUN_ID.fullmatch(text.strip())
    if not match:
        raise NotFoundError(f"{text!r} is not a run; write it like run-24 or 24")
    return int(match[1])


def executed(client: Client, run_id: JobId) -> Job:
    """The job of this run; one that was never started has none."""
    with client.store.read() as tx:
        job = tx.jobs([run_id]).get(run_id)
        if job is None:
            raise unknown_job(tx, run_id, f"run-{run_id}")
    if job.started_at is None:
        raise NotFoundError(
            f"there is no run-{run_id}: {shown(run_id)} was never started ({job.status}); "
            f"`headway jobs show {shown(run_id)}`"
        )
    return job


def chain_of(client: Client, job_id: JobId) -> list[dict[str, Any]]:
    """Every job of the chain that this one belongs to, the oldest first."""
    with client.store.read() as tx:
        job = client.require(tx, [job_id])[job_id]
        jobs = tx.chain(job.chain)
        ids = [each.id for each in jobs]
        runs, evidence = tx.runs(ids), tx.evidence(ids)
    return [_entry(each, runs.get(each.id), evidence.get(each.id, {})) for each in jobs]


def _entry(job: Job, run: Run | None, evidence: Mapping[str, Any]) -> dict[str, Any]:
    outcome = evidence.get("outcome") or {}
    ended_well = job.status is Status.SUCCEEDED
    return {
        "id": shown(job.id),
        "attempt": job.attempt,
        "executions": job.max_executions,  # that its budget allows for
        "retry_of": shown(job.retry_of) if job.retry_of else None,
        "state": job.status.value,
        "exit_code": run.exit_code if run else None,
        "signal": None if ended_well else outcome.get("signal"),
        "reason": job.reason,
        "not_before": show_instant(job.not_before),
        "started_at": show_instant(job.started_at),
        "finished_at": show_instant(job.finished_at),
    }
