"""One job, its chain and its run, with all that is known of them."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway.base.errors import NotFoundError
from headway.base.units import show_instant
from headway.core.model import FUNCTION, Job, JobId, Run, shown
from headway.core.states import Status
from headway.jobs.context import Context
from headway.jobs.lookup import require, unknown_job
from headway.jobs.views.documents import job_document, made_by, node_outcomes, worktrees_of
from headway.jobs.views.hosts import ran_elsewhere
from headway.jobs.views.present import hindrance_of, present_facts, present_wait
from headway.jobs.worktrees import trees_of_roots
from headway.store.transaction import ReadTx

AT_ONCE = 500  # jobs of one transaction
_RUN_ID = re.compile(r"(?:run-|#)?([1-9][0-9]{0,17})")


def parse_run_id(text: str) -> JobId:
    """A run has the number of its job."""
    match = _RUN_ID.fullmatch(text.strip())
    if not match:
        raise NotFoundError(f"{text!r} is not a run; write it like run-24 or 24")
    return int(match[1])


def document(context: Context, job_id: JobId) -> dict[str, Any]:
    """All about one job; for a running one also what hinders it."""
    return documents(context, [job_id])[0]


def documents(context: Context, job_ids: Sequence[JobId]) -> list[dict[str, Any]]:
    """The same of each of these, in their order: so many in each transaction, because a long one
    keeps the log of the store from being emptied."""
    found: list[dict[str, Any]] = []
    for begin in range(0, len(job_ids), AT_ONCE):
        part = job_ids[begin : begin + AT_ONCE]
        with context.store.read() as tx:
            known = require(tx, part)
            jobs = [known[each] for each in part]
            described = describe(context, tx, jobs)
            for job, shows in zip(jobs, described, strict=True):
                wait = hindrance_of(context, tx, job)
                if wait is not None:
                    shows["wait"] = {"kind": wait.kind.value, "detail": wait.detail}
        found += described
    return found


def chain_documents(context: Context, job_id: JobId) -> list[dict[str, Any]]:
    """The documents of every job of this one's chain, the oldest first."""
    with context.store.read() as tx:
        job = require(tx, [job_id])[job_id]
        return describe(context, tx, tx.jobs.chain(job.chain))


def describe(context: Context, tx: ReadTx, jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """Their documents, with the waits as they are now."""
    ids = [job.id for job in jobs]
    runs = tx.jobs.runs(ids)
    evidence = tx.jobs.evidence(ids)
    facts = present_facts(context, tx)
    elsewhere = ran_elsewhere(context, tx, runs)
    called = [job.id for job in jobs if job.id in runs and job.type == FUNCTION]
    results = tx.jobs.results(called) if called else {}
    progress = tx.jobs.progress(called) if called else {}
    worktrees, made = worktrees_of(tx, jobs), made_by(tx, list(runs))
    roots = trees_of_roots(tx, jobs)
    outcomes = node_outcomes(tx, jobs, tx.workflows.outcomes_of(ids))
    documents = []
    for job in jobs:
        there = elsewhere.get(job.id)
        documents.append(
            job_document(
                job,
                runs.get(job.id),
                evidence.get(job.id, {}),
                wait=present_wait(job, facts),
                folder=there.folder if there else context.home.job(job.id),
                host=there.host if there else None,
                result=results.get(job.id),
                progress=progress.get(job.id),
                worktree=worktrees.get(job.id),
                root=roots.get(job.id),
                artifacts=made.get(job.id, ()),
                outcome=outcomes.get(job.id),
            )
        )
    return documents


def executed(context: Context, run_id: JobId) -> Job:
    """The job of this run; one that was never started has none."""
    with context.store.read() as tx:
        job = tx.jobs.by_id([run_id]).get(run_id)
        if job is None:
            raise unknown_job(tx, run_id, f"run-{run_id}")
    if job.started_at is None:
        raise NotFoundError(
            f"there is no run-{run_id}: {shown(run_id)} was never started ({job.status}); "
            f"`headway jobs show {shown(run_id)}`"
        )
    return job


def chain_of(context: Context, job_id: JobId) -> list[dict[str, Any]]:
    """Every job of the chain that this one belongs to, the oldest first."""
    with context.store.read() as tx:
        job = require(tx, [job_id])[job_id]
        jobs = tx.jobs.chain(job.chain)
        ids = [each.id for each in jobs]
        runs, evidence = tx.jobs.runs(ids), tx.jobs.evidence(ids)
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


def saved_patch(context: Context, job_id: JobId) -> bytes:
    """What a job changed in its worktree, as it was saved at its end."""
    run = document(context, job_id)["run"] or {}
    saved = run.get("patch")
    if saved is None:
        raise NotFoundError(f"{shown(job_id)} has no patch; `--save-patch` keeps one")
    if not saved["saved"]:
        raise NotFoundError(f"the patch of {shown(job_id)} was not saved: {saved['error']}")
    path = os.path.join(context.home.job(job_id), "command.patch")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise NotFoundError(f"{path} cannot be read: {error.strerror}") from None
