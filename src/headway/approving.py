"""What people decide about a job that waits: whether it may run, and on which commit.

A decision and its consequences are one transaction, and only a job that waits can be decided on, so
of an approval and a cancel that meet exactly one comes first and the other is refused.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from headway.client import Client
from headway.consequences import end_unstarted
from headway.core.model import (
    Approval,
    ApprovalState,
    Job,
    JobId,
    PinnedHead,
    Wait,
    WaitKind,
    shown,
)
from headway.core.states import TERMINAL, Move, Status, after
from headway.environment import kept_directory
from headway.errors import ConflictError, InvalidInputError
from headway.gating import pin_of
from headway.person import require_person
from headway.store.base import Event, ReadTx, WriteTx
from headway.units import show_instant

LONGEST_REASON = 2000


def approve(client: Client, job_id: JobId) -> Job:
    """Let a job pass its gate, now or when its turn comes."""
    require_person(client, "approve")

    def decide(tx: WriteTx) -> Job:
        job, pending = _undecided(client, tx, job_id)
        decided = _decided(pending, ApprovalState.APPROVED, client.actor, tx.now())
        tx.set_approval(job.id, decided)
        tx.add_events([Event("approved", job.id)], actor=client.actor)
        tx.wake_jobs([job.id])
        return job._replace(approval=decided)

    job = client.store.story(decide)
    client.wake()
    return job


def reject(client: Client, job_id: JobId, reason: str | None) -> Job:
    """End a job that a person does not want to run; the reason is kept."""
    require_person(client, "reject")
    reason = _checked(reason)
    told = f"rejected by {client.actor}" + (f": {reason}" if reason else "")

    def decide(tx: WriteTx) -> Job:
        job, pending = _undecided(client, tx, job_id)
        status = after(job.status, Move.BLOCK_BY_APPROVAL)
        decided = _decided(pending, ApprovalState.REJECTED, client.actor, tx.now(), reason)
        tx.set_approval(job.id, decided)  # first: what has ended cannot be changed
        tx.add_events([Event("rejected", job.id, {"reason": reason})], actor=client.actor)
        wait = Wait(WaitKind.APPROVAL, told)
        end_unstarted(tx, job, status, told, wait=wait, actor=client.actor)
        return job._replace(approval=decided, status=status, reason=told)

    job = client.store.story(decide)
    client.wake()
    return job


def inbox(client: Client) -> list[dict[str, Any]]:
    """What waits for a person: first the jobs that lack nothing else, then those whose turn has
    not come; of each the oldest first."""
    with client.store.read() as tx:
        asking = [
            job
            for job in tx.to_approve()
            if job.approval is not None and job.approval.state is ApprovalState.PENDING
        ]
    asking.sort(key=lambda job: job.status is not Status.WAITING_ON_APPROVAL)
    return [_asked(client, job, job.approval) for job in asking if job.approval is not None]


def repin(client: Client, job_id: JobId) -> tuple[PinnedHead, PinnedHead]:
    """Move a waiting job's pin to where its branch is now; the old pin and the new one."""
    job = client.job(job_id)
    seen = _movable_pin(job)
    new = pin_of(job.repo or "", None if seen.head else seen.branch)

    def move(tx: WriteTx) -> PinnedHead:
        present = client.require(tx, [job_id])[job_id]
        old = _movable_pin(present)
        tx.set_gates(present._replace(pinned_head=new))
        data = {"branch": new.branch, "from": old.oid, "to": new.oid}
        tx.add_events([Event("repinned", job_id, data)], actor=client.actor)
        tx.wake_jobs([job_id])
        return old

    old = client.store.story(move)
    client.wake()
    return old, new


def _movable_pin(job: Job) -> PinnedHead:
    if job.pinned_head is None:
        raise ConflictError(f"{shown(job.id)} is not pinned to a commit; submit it with --pin-head")
    _refuse_unless_waiting(job)
    return job.pinned_head


def _undecided(client: Client, tx: ReadTx, job_id: JobId) -> tuple[Job, Approval]:
    """The job and its pending approval; refused if there is nothing to decide."""
    job = client.require(tx, [job_id])[job_id]
    last = tx.last_in_chain(job.chain) or job
    try:
        if job.approval is None:
            raise ConflictError(f"{shown(job_id)} asks for no approval; it is {job.status}")
        if job.approval.state is not ApprovalState.PENDING:
            by = job.approval.decided_by
            raise ConflictError(f"{shown(job_id)} was already {job.approval.state} by {by}")
        _refuse_unless_waiting(job)
    except ConflictError as error:
        if last.id == job.id or not _is_pending(last):
            raise
        raise ConflictError(f"{error}; of its chain {shown(last.id)} awaits approval") from None
    return job, job.approval


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


def _asked(client: Client, job: Job, approval: Approval) -> dict[str, Any]:
    now = job.status is Status.WAITING_ON_APPROVAL
    return {
        "id": shown(job.id),
        "name": job.name,
        "state": job.status.value,
        "now": now,
        "requested_at": show_instant(approval.requested_at),
        "requested_by": approval.requested_by or None,
        "runs": what_it_runs(job.params),
        "directory": _where_it_runs(client, job),
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


def _where_it_runs(client: Client, job: Job) -> str | None:
    """Its directory as it was asked for, else that of its submitter; of another host: None."""
    kept = kept_directory(client.home, job.env_digest) if job.env_digest else None
    return job.params.get("cwd") or kept
