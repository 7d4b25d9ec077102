"""The job document: one schema for the CLI, the files and, later, the HTTP API and webhooks.

Times are RFC 3339 in UTC; what does not apply is null. Environment values never appear, only names.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from headway.core.model import AGENT, FUNCTION, Approval, Claim, Job, JobId, Run, Wait, shown
from headway.core.states import API_STATUS, Status
from headway.core.subjects import RECORDED, SLING, recorded_value
from headway.core.worktrees import OwnedWorktree, WorktreeState
from headway.home import Home
from headway.quotas import rate_text
from headway.store.base import Marker, Progress, ReadTx
from headway.supervise.evidence import Evidence
from headway.supervise.folder import Folder
from headway.units import show_instant

VERSION = 1


def job_documents(tx: ReadTx, ids: Sequence[JobId], home: Home) -> dict[JobId, dict[str, Any]]:
    """Documents of the given jobs with their runs; without those that cannot be read."""
    kept = tx.records(ids)
    jobs = kept.jobs
    called = [each for each in kept.runs if jobs[each].type == FUNCTION]
    results = tx.results(called) if called else {}
    worktrees, made = worktrees_of(tx, jobs.values()), _made(kept.markers)
    return {
        job.id: job_document(
            job,
            kept.runs.get(job.id),
            kept.evidence.get(job.id, {}),
            folder=home.job(job.id),
            result=results.get(job.id),
            worktree=worktrees.get(job.id),
            artifacts=made.get(job.id, ()),
        )
        for job in jobs.values()
    }


def worktrees_of(tx: ReadTx, jobs: Iterable[Job]) -> dict[JobId, OwnedWorktree]:
    """The worktrees that these jobs still own; few jobs ask for one."""
    asked = [job.id for job in jobs if "worktree" in job.params]
    found = tx.worktrees(asked) if asked else {}
    return {each: row for each, row in found.items() if row.state is not WorktreeState.CLEANED}


def made_by(tx: ReadTx, ids: Sequence[JobId]) -> dict[JobId, list[str]]:
    """The artifacts that these jobs have published, and that still count."""
    return _made(tx.markers_by(ids) if ids else ())


def _made(markers: Iterable[Marker]) -> dict[JobId, list[str]]:
    made: dict[JobId, list[str]] = {}
    for marker in markers:
        if marker.withdrawn_at is None:
            made.setdefault(marker.job_id, []).append(marker.artifact)
    return made


def job_document(
    job: Job,
    run: Run | None = None,
    evidence: Mapping[str, Any] | None = None,
    *,
    wait: Wait | None = None,
    folder: str | None = None,
    host: str | None = None,
    result: Any = None,
    progress: Progress | None = None,
    worktree: OwnedWorktree | None = None,
    artifacts: Sequence[str] = (),
) -> dict[str, Any]:
    """`wait` overrides the stored one, for jobs whose wait is known only at the door; `host` says
    who ran it, if that was another one than this."""
    wait = wait or job.wait
    return {
        "id": shown(job.id),
        "name": job.name,
        "slug": job.slug,
        "type": job.type,
        "state": job.status.value,
        "status": API_STATUS[job.status],
        "reason": job.reason,
        "labels": dict(job.labels),
        "priority": job.priority,
        "position": job.position,
        "params": shown_params(job.params),
        "after": [shown(each) for each in job.after],
        "needs": list(job.needs),
        "produces": list(job.produces),
        "locks": [{"key": lock.key, "mode": lock.mode.value} for lock in job.locks],
        "pinned_head": job.pinned_head
        and {"branch": job.pinned_head.branch, "oid": job.pinned_head.oid},
        "preconditions": list(job.preconditions),
        "approval": approval_document(job.approval),
        "wait": {"kind": wait.kind.value, "detail": wait.detail} if wait else None,
        "waited_on": list(job.waited_on),
        "group_id": f"group-{job.group_id}" if job.group_id else None,
        "sequence_number": job.sequence_number,
        "template_id": job.template_id,
        "schedule_id": job.schedule_id,
        "workflow": None,
        "subject": job.subject,
        "target": job.target,
        "sling": sling_document(job),
        "resources": list(job.resources),
        "rates": [rate_text(each) for each in job.rates],
        "retry_of": shown(job.retry_of) if job.retry_of else None,
        "attempt": job.attempt,
        "max_attempts": job.retry.max_attempts,
        "created_at": show_instant(job.created_at),
        "not_before": show_instant(job.not_before),
        "started_at": show_instant(job.started_at),
        "finished_at": show_instant(job.finished_at),
        "cancel_requested_at": show_instant(job.cancel_requested_at),
        "execution_root": execution_root(job, worktree),
        "worktree": worktree_document(worktree),
        "submitted_by": job.submitted_by or None,
        "run": {
            **run_document(job, run, evidence or {}, folder, host),
            "artifacts": [*run.artifacts, *artifacts],
            "result": _result_of_agent(job, folder, host) if job.type == AGENT else result,
            "progress": progress and {"fraction": progress.fraction, "text": progress.text},
        }
        if run
        else None,
    }


def _result_of_agent(job: Job, folder: str | None, host: str | None) -> dict[str, Any] | None:
    """What its wrapper wrote down; on another host it cannot be seen from here."""
    from headway.runners.results import read_result

    ended = job.finished_at is not None and host is None
    return read_result(folder) if folder and ended else None


def sling_document(job: Job) -> dict[str, Any] | None:
    """The record of a slung job: what it was slung with, and how its dispatch went so far."""
    record = job.params.get(SLING)
    if record is None:
        return None
    given = record["vars"]
    return {
        "version": record["version"],
        "item": job.subject,
        "title": record["title"],
        "source": record["source"],
        "place": record["place"],
        "target": job.target,
        "recipe": record["recipe"],
        "args": record["args"],
        "vars": given,
        "enqueued_at": show_instant(job.created_at),
        "group": f"group-{job.group_id}" if job.group_id else None,
        **{name: recorded_value(name, given) for name in RECORDED},
        "dispatch_failures": job.launch_failures,
        "last_failure": job.last_failure,
    }


def execution_root(job: Job, worktree: OwnedWorktree | None) -> str | None:
    """Where it works, as seen from the top of its repository."""
    if worktree is None:
        return "." if job.repo else None
    inside = os.path.relpath(worktree.path, worktree.repo)
    return worktree.path if inside.startswith("..") else inside


def worktree_document(worktree: OwnedWorktree | None) -> dict[str, Any] | None:
    if worktree is None:
        return None
    degraded = worktree.state is WorktreeState.DEGRADED
    return {
        "path": worktree.path,
        "branch": worktree.branch,
        "base": worktree.base,
        "state": worktree.state.value,
        "error": worktree.error,
        "retry_cleanup_status": "degraded" if degraded else None,
        "retry_cleanup_error": worktree.error if degraded else None,
    }


def approval_document(approval: Approval | None) -> dict[str, Any] | None:
    if approval is None:
        return None
    return {
        "required": True,
        "state": approval.state.value,
        "requested_at": show_instant(approval.requested_at),
        "requested_by": approval.requested_by or None,
        "decided_at": show_instant(approval.decided_at),
        "decided_by": approval.decided_by,
        "reason": approval.reason,
    }


def run_document(
    job: Job,
    run: Run,
    evidence: Mapping[str, Any],
    folder: str | None = None,
    host: str | None = None,
) -> dict[str, Any]:
    outcome = evidence.get("outcome") or {}
    logs = outcome.get("logs") or {}
    duration = run.finished_at - run.started_at if run.finished_at is not None else None
    return {
        "run_id": f"run-{run.job_id}",
        "status": run.status,
        "exit_code": run.exit_code,
        "signal": outcome.get("signal") if job.status is not Status.SUCCEEDED else None,
        "error": run.error,
        "started_at": show_instant(run.started_at),
        "finished_at": show_instant(run.finished_at),
        "duration_ms": duration // 1000 if duration is not None else None,
        "worker_id": run.worker_id,
        "host": host,
        "params_snapshot": shown_params(run.params_snapshot),
        "stdout_path": _log_path(job, run, folder, host, "stdout", logs),
        "stderr_path": _log_path(job, run, folder, host, "stderr", logs),
        "dropped_bytes": sum(log.get("dropped", 0) for log in logs.values()),
        "usage": outcome.get("usage"),
        "patch": outcome.get("patch"),
        "late_outcome": evidence.get("late_outcome"),
    }


def _log_path(
    job: Job, run: Run, folder: str | None, host: str | None, stream: str, logs: Mapping[str, Any]
) -> str | None:
    """A command's logs are there from its start. A function has none before its first word, and a
    job that ended without a start never has."""
    if folder is None:
        return None
    path = os.path.join(folder, f"{stream}.log")
    if stream in logs or (job.type != FUNCTION and (host is not None or run.status is None)):
        return path
    return path if os.path.exists(path) else None


def shown_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with the names, but not the values, of environment variables."""
    if not params.get("env"):
        return dict(params)
    return {**params, "env": sorted(params["env"])}


def write_job_files(claim: Claim, document: Mapping[str, Any]) -> None:
    """`outcome.json` and `job.json` in the job's folder: copies for people, never read back."""
    with suppress(OSError):  # the store has it all; a full disk must not stop the engine
        Evidence(claim.folder, claim.token).link_outcome()
        content = json.dumps({"version": VERSION, "job": document}) + "\n"
        with Folder(claim.folder) as folder:  # no link leads elsewhere, whenever it was planted
            folder.remove("job.json")
            folder.create("job.json", content.encode())
            os.chmod("job.json", 0o400, dir_fd=folder.fd)
