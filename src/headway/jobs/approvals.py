"""Decisions of people about a waiting job: whether it may run, and on which commit.

A decision and its consequences are one transaction, and only a waiting job can be decided on. So if
an approval meets a cancel, exactly one comes first and the other is refused.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from headway.base.environment import kept_directory
from headway.base.errors import ConflictError, InvalidInputError
from headway.base.units import show_instant
from headway.core.approvals import approval_rule, asks_for_run, missing
from headway.core.model import (
    Approval,
    ApprovalState,
    Job,
    JobId,
    PinnedHead,
    Wait,
    WaitKind,
    shown,
    shown_run,
)
from headway.core.states import TERMINAL, Move, Status, after
from headway.jobs.actor import require_person
from headway.jobs.context import Context
from headway.jobs.lifecycle import end_unstarted
from headway.jobs.lookup import find_job, require
from headway.jobs.repository_gates import pin_of
from headway.jobs.revisions import refuse_changed, revisions_of
from headway.store.new_jobs import Event
from headway.store.transaction import ReadTx, WriteTx

LONGEST_REASON = 2000


def approve(context: Context, job_id: JobId, *, revision: str | None = None) -> Job:
    """Let a job pass its gate, now or when its turn comes; refused if it was changed since this
    revision of it was seen."""
    return _approve(context, {job_id: revision})[0]


def approve_all(context: Context, job_ids: Sequence[JobId]) -> list[Job]:
    """Let jobs pass their gates, now or when their turn comes; all of them or none."""
    return _approve(context, dict.fromkeys(job_ids))


def _approve(context: Context, seen: Mapping[JobId, str | None]) -> list[Job]:
    """These jobs, each by the revision of it that was seen."""
    require_person(context, "approve")

    def decide(tx: WriteTx) -> list[Job]:
        undecided = [_undecided(context, tx, job_id, seen[job_id]) for job_id in seen]
        passed: dict[JobId, Job] = {}
        for job, pending in undecided:
            if job.id not in passed:
                passed[job.id] = _let_pass(context, tx, job, pending)
                for other in _beside(tx, job):
                    passed[other.id] = _let_pass(context, tx, other, other.approval or pending)
        return [passed[job.id] for job, _ in undecided]

    jobs = context.store.transact(decide)
    context.wake()
    return jobs


def _let_pass(context: Context, tx: WriteTx, job: Job, pending: Approval) -> Job:
    """Where several must agree, the last of them lets it pass."""
    required = approval_rule(job).required
    agreed = (*pending.approved_by, context.actor) if required > 1 else ()
    data = {"agreed": len(agreed), "of": required} if required > 1 else {}
    if len(agreed) < required and required > 1:
        decided = pending._replace(approved_by=agreed)
    else:
        decided = _decided(pending, ApprovalState.APPROVED, context.actor, tx.now())
        decided = decided._replace(approved_by=agreed)
    tx.graph.set_approval(job.id, decided)
    tx.events.add([Event("approved", job.id, data)], actor=context.actor)
    tx.waits.wake([job.id])
    return job._replace(approval=decided)


def reject(
    context: Context, job_id: JobId, reason: str | None, *, revision: str | None = None
) -> Job:
    """End a job that a person does not want to run; the reason is kept. Refused if the job was
    changed since this revision of it was seen."""
    require_person(context, "reject")
    reason = _checked(reason)
    words = f"rejected by {context.actor}" + (f": {reason}" if reason else "")

    def decide(tx: WriteTx) -> Job:
        job, pending = _undecided(context, tx, job_id, revision)
        decided = _decided(pending, ApprovalState.REJECTED, context.actor, tx.now(), reason)
        together = (job, *_beside(tx, job))
        for each in together:  # first: what has ended cannot be changed
            tx.graph.set_approval(each.id, decided)
        for each in together:
            status = after(each.status, Move.BLOCK_BY_APPROVAL)
            tx.events.add([Event("rejected", each.id, {"reason": reason})], actor=context.actor)
            wait = Wait(WaitKind.APPROVAL, words)
            end_unstarted(tx, each, status, words, wait=wait, actor=context.actor)
        return job._replace(approval=decided, status=Status.BLOCKED_BY_APPROVAL, reason=words)

    job = context.store.transact(decide)
    context.wake()
    return job


def inbox(context: Context) -> list[dict[str, Any]]:
    """The jobs that wait for a person: first those that lack nothing else, then those whose turn
    has not come; of each the oldest first. Of those that ask for a whole run one is enough."""
    with context.store.read() as tx:
        found = [job for job in tx.graph.to_approve() if _is_pending(job)]
        found.sort(key=lambda job: job.status is not Status.WAITING_ON_APPROVAL)
        asking: dict[tuple[str, int], Job] = {}
        for job in found:
            asking.setdefault(_decision(job), job)
        revisions = revisions_of(tx, [job.id for job in asking.values()])
    return [
        {**_asked(context, job, job.approval), "revision": revisions[job.id]}
        for job in asking.values()
        if job.approval is not None
    ]


def _decision(job: Job) -> tuple[str, int]:
    """What a person decides on by this job."""
    return ("run", job.workflow_run or 0) if asks_for_run(job) else ("job", job.id)


def _beside(tx: ReadTx, job: Job) -> list[Job]:
    """The others that wait for the same decision, about their run."""
    if not asks_for_run(job):
        return []
    asking = (each for each in tx.graph.to_approve() if _is_pending(each))
    return [each for each in asking if each.id != job.id and _decision(each) == _decision(job)]


def repin(
    context: Context, job_id: JobId, *, revision: str | None = None
) -> tuple[PinnedHead, PinnedHead]:
    """Move a waiting job's pin to where its branch is now; the old pin and the new one. Refused if
    the job was changed since this revision of it was seen."""
    require_person(context, "repin")
    job = find_job(context, job_id)
    seen = _movable_pin(job)
    new = pin_of(job.repo or "", None if seen.head else seen.branch)

    def move(tx: WriteTx) -> PinnedHead:
        present = require(tx, [job_id])[job_id]
        old = _movable_pin(present)
        refuse_changed(tx, job_id, revision)
        tx.graph.set_gates(present._replace(pinned_head=new))
        data = {"branch": new.branch, "from": old.oid, "to": new.oid}
        tx.events.add([Event("repinned", job_id, data)], actor=context.actor)
        tx.waits.wake([job_id])
        return old

    old = context.store.transact(move)
    context.wake()
    return old, new


def _movable_pin(job: Job) -> PinnedHead:
    if job.pinned_head is None:
        raise ConflictError(f"{shown(job.id)} is not pinned to a commit; submit it with --pin-head")
    _refuse_unless_waiting(job)
    return job.pinned_head


def _undecided(
    context: Context, tx: ReadTx, job_id: JobId, seen: str | None
) -> tuple[Job, Approval]:
    """The job and its pending approval; refused if there is nothing to decide, or something else
    than was seen."""
    job = require(tx, [job_id])[job_id]
    last = tx.jobs.last_in_chain(job.chain) or job
    try:
        if job.approval is None:
            raise ConflictError(f"{shown(job_id)} asks for no approval; it is {job.status}")
        if job.approval.state is not ApprovalState.PENDING:
            by = job.approval.decided_by
            raise ConflictError(f"{shown(job_id)} was already {job.approval.state} by {by}")
        _refuse_unless_waiting(job)
        _refuse_stranger(context, job, job.approval)
    except ConflictError as error:
        if last.id == job.id or not _is_pending(last):
            raise
        raise ConflictError(f"{error}; of its chain {shown(last.id)} awaits approval") from None
    refuse_changed(tx, job_id, seen)
    return job, job.approval


def _refuse_stranger(context: Context, job: Job, pending: Approval) -> None:
    """Some gates say who decides, and nobody counts twice."""
    approvers = approval_rule(job).approvers
    if approvers and context.actor not in approvers:
        raise ConflictError(
            f"{shown(job.id)} is decided by {' or '.join(approvers)}, "
            f"and you are {context.actor} (--as NAME, before the command)"
        )
    if context.actor in pending.approved_by:
        left = missing(job)
        raise ConflictError(
            f"{context.actor} has agreed to {shown(job.id)} already; {left} more must"
        )


def _is_pending(job: Job) -> bool:
    pending = job.approval is not None and job.approval.state is ApprovalState.PENDING
    return pending and job.stage is not None


def _refuse_unless_waiting(job: Job) -> None:
    if job.status in TERMINAL:
        raise ConflictError(f"{shown(job.id)} has already ended ({job.status})")
    if job.stage is None:
        raise ConflictError(f"{shown(job.id)} is already {job.status}")


def _decided(
    asked: Approval, state: ApprovalState, actor: str, now: int, reason: str | None = None
) -> Approval:
    return asked._replace(state=state, decided_at=now, decided_by=actor, reason=reason)


def _checked(reason: str | None) -> str | None:
    if reason is None or not reason.strip():
        return None
    reason = reason.strip()
    if len(reason) > LONGEST_REASON:
        raise InvalidInputError(
            f"--reason has {len(reason)} characters; {LONGEST_REASON} are allowed"
        )
    return "".join(char if char.isprintable() else " " for char in reason)


def _asked(context: Context, job: Job, approval: Approval) -> dict[str, Any]:
    now, rule = job.status is Status.WAITING_ON_APPROVAL, approval_rule(job)
    return {
        "id": shown(job.id),
        "name": job.name,
        "state": job.status.value,
        "now": now,
        "requested_at": show_instant(approval.requested_at),
        "requested_by": approval.requested_by or None,
        "question": rule.question,
        "needed": rule.required,
        "approved_by": list(approval.approved_by),
        "approvers": list(rule.approvers),
        "workflow_run": None if job.workflow_run is None else shown_run(job.workflow_run),
        "runs": what_it_runs(job.params),
        "directory": _where_it_runs(context, job),
        "attempt": job.attempt,
        "wait": {"kind": job.wait.kind.value, "detail": job.wait.detail} if job.wait else None,
    }


def what_it_runs(params: Mapping[str, Any]) -> str:
    """The command, the shell's line or the call, as a person would write it."""
    if params.get("task"):
        arguments = (f"{name}={value!r}" for name, value in (params.get("args") or {}).items())
        return f"{params['task']}({', '.join(arguments)})"
    if params.get("agent"):
        agent = params["agent"]
        words = f" -- {shlex.join(agent['argv'])}" if agent.get("argv") else ""
        return f"{agent.get('runner')}{words}: {agent.get('prompt')}"
    return str(params.get("shell") or shlex.join(params.get("argv") or ()))


def _where_it_runs(context: Context, job: Job) -> str | None:
    """Its directory as it was asked for, else that of its submitter; of another host: None."""
    kept = kept_directory(context.home, job.env_digest) if job.env_digest else None
    return job.params.get("cwd") or kept
