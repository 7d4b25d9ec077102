"""The job document: one schema for the CLI, the files and, later, the HTTP API and webhooks.

Times are RFC 3339 in UTC; what does not apply is null. Environment values never appear, only names.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from headway.base.home import Home
from headway.base.units import show_instant
from headway.core.agents import calls_agent
from headway.core.gates.routes import OF_NODE
from headway.core.model import (
    FIELDS,
    FUNCTION,
    Approval,
    Claim,
    Job,
    JobId,
    Run,
    Wait,
    shown,
    shown_run,
)
from headway.core.states import API_STATUS, Status
from headway.core.subjects import RECORDED, SLING, recorded_value
from headway.core.worktrees import OwnedWorktree, WorktreeState, may_own
from headway.jobs.quotas import rate_text
from headway.jobs.worktrees import RootTree, trees_of_roots
from headway.store.records import Marker, Progress
from headway.store.transaction import ReadTx
from headway.supervise.evidence import Evidence
from headway.supervise.folder import Folder

VERSION = 1
_OUTPUT = "custom:operation_output:"  # what a workflow's node leaves at its end


def job_documents(tx: ReadTx, ids: Sequence[JobId], home: Home) -> dict[JobId, dict[str, Any]]:
    """Documents of the given jobs with their runs; without those that cannot be read."""
    kept = tx.jobs.records(ids)
    jobs = kept.jobs
    called = [each for each in kept.runs if jobs[each].type == FUNCTION]
    results = tx.jobs.results(called) if called else {}
    worktrees, made = worktrees_of(tx, jobs.values()), _made(kept.markers)
    outcomes = node_outcomes(tx, jobs.values(), kept.outcomes)
    roots = trees_of_roots(tx, jobs.values())
    return {
        job.id: job_document(
            job,
            kept.runs.get(job.id),
            kept.evidence.get(job.id, {}),
            folder=home.job(job.id),
            result=results.get(job.id),
            worktree=worktrees.get(job.id),
            root=roots.get(job.id),
            artifacts=made.get(job.id, ()),
            outcome=outcomes.get(job.id),
        )
        for job in jobs.values()
    }


def worktrees_of(tx: ReadTx, jobs: Iterable[Job]) -> dict[JobId, OwnedWorktree]:
    """The worktrees that these jobs still own; few jobs ask for one."""
    asked = [job.id for job in jobs if may_own(job)]
    found = tx.graph.worktrees(asked) if asked else {}
    return {each: row for each, row in found.items() if row.state is not WorktreeState.CLEANED}


def made_by(tx: ReadTx, ids: Sequence[JobId]) -> dict[JobId, list[str]]:
    """The artifacts that these jobs have published, and that still count."""
    return _made(tx.graph.markers_by(ids) if ids else ())


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
    root: RootTree | None = None,
    artifacts: Sequence[str] = (),
    outcome: str | None = None,
) -> dict[str, Any]:
    """`wait` overrides the stored one, for jobs that only wait for capacity; `host` is the host
    that ran it, if it was another one."""
    wait = wait or job.wait
    made: dict[str, Any] = {
        "status": API_STATUS[job.status],
        "wait": {"kind": wait.kind.value, "detail": wait.detail} if wait else None,
        "workflow": workflow_document(job, outcome),
        "sling": sling_document(job),
        "max_attempts": job.retry.max_attempts,
        "execution_root": execution_root(job, root.worktree if root else worktree),
        "worktree": worktree_document(worktree),
        "run": {
            **run_document(job, run, evidence or {}, folder, host),
            "artifacts": [*run.artifacts, *artifacts],
            "result": _result_of_agent(job, folder, host) if calls_agent(job) else result,
            "progress": progress and {"fraction": progress.fraction, "text": progress.text},
        }
        if run
        else None,
    }
    return {key: made[key] if show is None else show(job[at]) for key, at, show in _SHOWN}


def _result_of_agent(job: Job, folder: str | None, host: str | None) -> dict[str, Any] | None:
    """The result that its wrapper wrote; a result on another host cannot be read from here."""
    from headway.integrations.agents.results import read_result

    ended = job.finished_at is not None and host is None
    return read_result(folder) if folder and ended else None


def _same(value: Any) -> Any:
    return value


def shown_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with the names, but not the values, of environment variables. What a node is
    of its workflow stands under a key of its own."""
    shown = {key: value for key, value in params.items() if key != OF_NODE}
    return {**shown, "env": sorted(params["env"])} if params.get("env") else shown


def _origin(url: str) -> str:
    """Of the URL of a webhook, which is often as good as a password."""
    from headway.core.destinations import destination_of

    found = destination_of(url)
    return found if isinstance(found, str) else found.origin


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


# How a document shows the value of a field, by the word that the table of fields has for it.
SHOWS: Mapping[str, Callable[[Any], Any]] = {
    "": _same,
    "approval": approval_document,
    "group": lambda number: f"group-{number}" if number else None,
    "instant": show_instant,
    "job": lambda job_id: shown(job_id) if job_id else None,
    "jobs": lambda ids: [shown(each) for each in ids],
    "list": list,
    "locks": lambda locks: [{"key": lock.key, "mode": lock.mode.value} for lock in locks],
    "object": dict,
    "origins": lambda urls: [_origin(each) for each in urls],
    "or_null": lambda text: text or None,
    "params": shown_params,
    "pin": lambda pin: pin and {"branch": pin.branch, "oid": pin.oid},
    "rates": lambda rates: [rate_text(each) for each in rates],
    "value": lambda word: word.value,
}
# Each key of the document, the place of its field in a job, and how that is shown; None: the
# document itself makes it.
_SHOWN = tuple(
    (field.shown, -1, None)
    if field.show == "made"
    else (field.shown, Job._fields.index(field.name), SHOWS[field.show])
    for field in FIELDS
    if field.shown
)


OUTPUT_OF_NODE = "custom:operation_output:"


def node_outcomes(
    tx: ReadTx, jobs: Iterable[Job], known: Mapping[JobId, str | None]
) -> dict[JobId, str | None]:
    """Of those that are nodes of workflow runs and have ended: what each came to. Of the last jobs
    of their chains that is `known`."""
    ended = [job for job in jobs if job.workflow_run is not None and job.finished_at is not None]
    earlier = [job for job in ended if job.id not in known]  # of passes before, or retried
    return {**known, **_left_by(tx, earlier)}


def _left_by(tx: ReadTx, jobs: Sequence[Job]) -> dict[JobId, str | None]:
    """The outcome that each of these left when its pass ended; None if it was retried."""
    left = {
        each.job_id: each.data["outcome"]
        for each in (tx.graph.markers_by([job.id for job in jobs]) if jobs else ())
        if each.artifact.startswith(OUTPUT_OF_NODE) and each.data
    }
    return {job.id: left.get(job.id) for job in jobs}


def workflow_document(job: Job, outcome: str | None) -> dict[str, Any] | None:
    """What a job is of a workflow run."""
    if job.workflow_run is None:
        return None
    node = job.params[OF_NODE]
    gates = {
        "approval": job.approval is not None,
        "require": list(job.preconditions),
        "pin_head": job.pinned_head.branch if job.pinned_head is not None else None,
        "when": [each["text"] for each in node["when"]],
    }
    return {
        "run_id": shown_run(job.workflow_run),
        "template_id": node["workflow"],
        "template_version": node["version"],
        "node_id": job.node,
        "node_attempt": job.attempt,
        "pass": job.node_pass,
        "outcome": outcome,
        "payload_refs": [f"{_OUTPUT}{job.node}"] if outcome is not None else [],
        "executor_class": node["class"],
        "executor_operation": node["policy"] if node["class"] is not None else None,
        "control_policy": node["policy"] if node["class"] is None else None,
        "policy_snapshot_hash": node["policy_hash"],
        "gates": gates,
        "routes": [
            {"source": each["source"], "accepts": each["accepts"], "required": each["required"]}
            for each in node["edges"]
        ],
        "loops": [node["loop"]] if node.get("loop") else [],
        "item": node.get("item"),
    }


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
        "not_produced": [f"file:{each}" for each in outcome.get("unmade") or ()],
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


def write_job_files(claim: Claim, document: Mapping[str, Any]) -> None:
    """`outcome.json` and `job.json` in the job's folder: copies for people, never read back."""
    with suppress(OSError):  # the store has it all; a full disk must not stop the engine
        Evidence(claim.folder, claim.token).link_outcome()
        content = json.dumps({"version": VERSION, "job": document}) + "\n"
        with Folder(claim.folder) as folder:  # no link leads elsewhere, whenever it was planted
            folder.remove("job.json")
            folder.create("job.json", content.encode())
            os.chmod("job.json", 0o400, dir_fd=folder.fd)
