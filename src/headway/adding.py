"""Make jobs of checked specifications: ids, places in the order, queues, and keys seen before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.core.artifacts import artifact_key, artifact_topic
from headway.core.model import (
    FUNCTION,
    FUNCTIONS,
    POSITION_GAP,
    Approval,
    ApprovalState,
    Job,
    JobId,
    JobSpec,
    Stage,
    shown,
)
from headway.core.states import Status
from headway.errors import ConflictError
from headway.store.base import Event, HostRecord, ReadTx, WriteTx
from headway.submission import digest

if TYPE_CHECKING:
    from headway.host import Host


class Submitted(NamedTuple):
    job_id: JobId
    created: bool


def add_jobs(
    tx: WriteTx,
    specs: Sequence[JobSpec],
    *,
    actor: str,
    host: Host | None,
    env_digest: str | None,
    worktrees: str,
) -> list[Submitted]:
    """Store those that are new; a key that was seen before names the job that has it.

    `host` is the submitter's, in a store of several; `worktrees` is where its jobs have theirs.
    """
    known = _known_keys(tx, specs)
    keyed = {spec.key for spec in specs} - {None, *known}
    count = len(keyed) + sum(spec.key is None for spec in specs)
    first = specs[0].priority if specs else 0
    next_id, position = tx.take_places(count, first)
    positions = {first: position}
    now = tx.now()
    jobs, submitted = [], []
    for spec in specs:
        spec_digest = digest(spec) if spec.key is not None else ""
        if spec.key is not None and spec.key in known:
            submitted.append(_seen_before(known[spec.key], spec.key, spec_digest))
            continue
        if spec.priority not in positions:
            positions[spec.priority] = tx.next_position(spec.priority)
        job = _job(
            spec,
            next_id,
            positions[spec.priority],
            now,
            env_digest=env_digest,
            spec_digest=spec_digest,
            queue=_queue(spec, host),
            submitted_by=actor,
        )
        if "worktree" in spec.params:
            job = _with_worktree(job, worktrees)
        if spec.require_approval:
            job = job._replace(approval=Approval(ApprovalState.PENDING, now, actor))
        next_id += 1
        positions[spec.priority] += POSITION_GAP
        jobs.append(job)
        submitted.append(Submitted(job.id, created=True))
        if spec.key is not None:
            known[spec.key] = job
    if host is not None and any(job.queue == host.id for job in jobs):
        tx.know_host(HostRecord(host.id, host.name, host.home))
    tx.add_jobs(jobs)
    tx.add_events((Event("submitted", job.id, {"name": job.name}) for job in jobs), actor=actor)
    made = [artifact_key(text, job.repo) for job in jobs for text in job.produces]
    if made:  # who waits for it may have waited for nobody until now
        tx.wake_topics(artifact_topic(each) for each in made)
    return submitted


def _queue(spec: JobSpec, host: Host | None) -> str:
    """In a store of several hosts a command is started where it was submitted: its program, its
    working directory and its environment are there."""
    if spec.type == FUNCTION:
        return FUNCTIONS
    return "" if host is None or spec.params.get("any_host") else host.id


def _job(spec: JobSpec, job_id: JobId, position: int, now: int, **kept: Any) -> Job:
    plain = not (
        spec.after
        or spec.locks
        or spec.delay
        or spec.at is not None
        or spec.needs
        or spec.repo
        or spec.require_approval
    )
    return Job(
        id=job_id,
        name=spec.name,
        type=spec.type,
        status=Status.QUEUED,
        priority=spec.priority,
        position=position,
        params=spec.params,
        created_at=now,
        chain=job_id,
        slug=spec.slug,
        labels=spec.labels,
        after=spec.after,
        locks=spec.locks,
        retry=spec.retry,
        not_before=spec.at if spec.at is not None else now + spec.delay if spec.delay else None,
        key=spec.key,
        on_finish=spec.on_finish,
        needs=spec.needs,
        produces=spec.produces,
        pinned_head=spec.pinned_head,
        preconditions=spec.preconditions,
        repo=spec.repo,
        # A call that waits for nothing stands at the door at once, without being looked at.
        stage=Stage.READY if plain and spec.type == FUNCTION else Stage.WOKEN,
        **kept,
    )


def _with_worktree(job: Job, folder: str) -> Job:
    """All jobs of its chain have theirs in the same folder."""
    asked = job.params["worktree"]
    return job._replace(params={**job.params, "worktree": {**asked, "folder": folder}})


def _known_keys(tx: ReadTx, specs: Sequence[JobSpec]) -> dict[str, Job]:
    keys = {spec.key for spec in specs if spec.key is not None}
    found = ((key, tx.job_by_key(key)) for key in keys)
    return {key: job for key, job in found if job is not None}


def _seen_before(known: Job, key: str, spec_digest: str) -> Submitted:
    if known.spec_digest != spec_digest:
        raise ConflictError(
            f"key {key!r} belongs to {shown(known.id)}, which has another specification; "
            "use another key"
        )
    return Submitted(known.id, created=False)
