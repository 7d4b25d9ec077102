"""Run a failed segment again: the job, and everything that follows from it.

One transaction makes the new jobs, resets the waiting ones and withdraws what the set has made.
What is outside of the store (worktrees of the old attempts, conflict sentinels) is cleaned after
it: a crash in between leaves them owned, and they are cleaned later.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from headway.base.crashpoints import reach
from headway.base.errors import ConflictError
from headway.base.units import show_instant
from headway.core.artifacts import ArtifactKind, artifact_key, sentinel_path
from headway.core.model import NOTHING, Job, JobId, shown
from headway.core.rewind import (
    Rewind,
    asked_again,
    kept_times,
    last_successful_point,
    plan_repeat,
    plan_rewind,
    put_back,
)
from headway.core.settle import ChainRetry
from headway.core.states import Status
from headway.jobs.context import Context
from headway.jobs.downstream import downstream
from headway.jobs.lifecycle import continue_chain
from headway.jobs.locks import give_up_locks
from headway.jobs.lookup import require
from headway.jobs.upstream import root_of_block
from headway.jobs.worktrees import clean_worktrees
from headway.store.new_jobs import Event
from headway.store.transaction import ReadTx, WriteTx


class Rewound(NamedTuple):
    """What a rewind did, or would do."""

    requested: JobId
    root: JobId
    last_successful_point: tuple[JobId, ...]
    members: tuple[JobId, ...]
    reset: tuple[JobId, ...]  # the jobs that are queued now: new ones, and those reset in place
    new_root: JobId
    kept_times: Mapping[JobId, int] = NOTHING  # of these jobs: what submitters gave, and is to come
    blocked_by: JobId | None = None  # the job before the root that has to be retried instead

    def document(self, restarted: Sequence[str]) -> dict[str, Any]:
        document: dict[str, Any] = {
            "requested_job": shown(self.requested),
            "retry_root": shown(self.root),
            "last_successful_point": [shown(each) for each in self.last_successful_point],
            "retry_set": [shown(each) for each in self.members],
            "reset": [shown(each) for each in self.reset],
            "restarted": [each for each in restarted if each in map(shown, self.reset)],
        }
        if self.kept_times:
            kept = self.kept_times.items()
            document["not_before"] = {shown(each): show_instant(at) for each, at in kept}
        if self.blocked_by is not None:
            document["blocked_by"] = shown(self.blocked_by)
        return document


Planner = Callable[[Job, Sequence[Job]], Rewind]


def preview(context: Context, job_id: JobId) -> Rewound:
    """What a rewind would do now; changes nothing."""
    return _preview(context, job_id, plan_rewind)


def preview_repeat(context: Context, job_id: JobId) -> Rewound:
    """What a repetition would do now; changes nothing."""
    return _preview(context, job_id, plan_repeat)


def rewind(context: Context, job_id: JobId) -> Rewound:
    """Queue the job and all that follows from it once more; refused if all of it succeeded."""
    return _rewind(context, job_id, plan_rewind)


def repeat(context: Context, job_id: JobId) -> Rewound:
    """Queue the job and all that follows from it once more, also if all of it succeeded."""
    return _rewind(context, job_id, plan_repeat)


def _preview(context: Context, job_id: JobId, plan: Planner) -> Rewound:
    with context.store.read() as tx:
        rewind = _plan(tx, job_id, plan)
        _refuse_within_merge(context, rewind)
        members = tuple(job.id for job in rewind.members)
        return Rewound(
            requested=job_id,
            root=rewind.root.id,
            last_successful_point=_last_good(tx, rewind.root),
            members=members,
            reset=members,
            new_root=rewind.root.id,
            kept_times=kept_times(rewind.members, tx.now()),
            blocked_by=_blocked_by(tx, rewind.root),
        )


def _rewind(context: Context, job_id: JobId, plan: Planner) -> Rewound:
    with context.store.read() as tx:
        _refuse_within_merge(context, _plan(tx, job_id, plan))

    def transaction(tx: WriteTx) -> tuple[Rewind, Rewound]:
        planned = _plan(tx, job_id, plan)
        return planned, _apply(context, tx, job_id, planned)

    planned, rewound = context.store.transact(transaction)
    reach("rewind.committed")
    _clear_sentinels(context, planned)
    context.wake()
    _take_back_worktrees(context, planned)
    return rewound


def _plan(tx: ReadTx, job_id: JobId, plan: Planner) -> Rewind:
    asked = require(tx, [job_id])[job_id]
    root = tx.jobs.last_in_chain(asked.chain) or asked
    return plan(root, downstream(tx, [root]))


def _apply(context: Context, tx: WriteTx, requested: JobId, planned: Rewind) -> Rewound:
    now, actor = tx.now(), context.actor
    if any(job.subject for job in planned.again):
        from headway.jobs.subjects import refuse_second

        refuse_second(tx, planned.again)
    data = {"reason": "by hand", "root": shown(planned.root.id)}
    new = {}
    for job in planned.again:
        fresh = job._replace(approval=asked_again(job.approval, now=now, by=actor))
        new[job.id] = continue_chain(tx, fresh, ChainRetry(None, 0), actor=actor, data=data)
        tx.waits.chain_reopened(job.chain)
    # All jobs that wait for any of it are in the set themselves, and are so checked again.
    reset = [put_back(job, now=now, by=actor) for job in planned.reset]
    tx.jobs.reset(reset)
    tx.events.add((Event("rewound", job.id, data) for job in planned.reset), actor=actor)
    for job in planned.reset:  # another host may be the one that checks it again
        give_up_locks(tx, job)
    waiting = sorted((*new.values(), *reset), key=lambda job: job.id)
    queued = [job.id for job in waiting]
    tx.graph.reopen_edges(queued, planned.chains)
    tx.groups.reopen(planned.chains)
    if any(job.workflow_run is not None for job in planned.members):
        from headway.jobs.routes import reopen_runs

        reopen_runs(tx, planned.chains)
    withdrawn = tx.graph.withdraw(planned.chains)
    tx.events.add(
        (Event("withdrawn", planned.root.id, {"artifact": each}) for each in withdrawn),
        actor=actor,
    )
    return Rewound(
        requested=requested,
        root=planned.root.id,
        last_successful_point=_last_good(tx, planned.root),
        members=tuple(job.id for job in planned.members),
        reset=tuple(queued),
        new_root=new.get(planned.root.id, planned.root).id,
        kept_times=kept_times(waiting, now),
        blocked_by=_blocked_by(tx, planned.root),
    )


def _blocked_by(tx: ReadTx, root: Job) -> JobId | None:
    """Upstream is not touched, so what blocked the root blocks it again."""
    before = root_of_block(tx, root)
    return None if before is None else before.id


def _last_good(tx: ReadTx, root: Job) -> tuple[JobId, ...]:
    """The direct predecessors of the root that have succeeded, also those that made what it
    needs."""
    status: dict[JobId, Status] = {}
    for job in tx.jobs.by_id(root.after).values() if root.after else ():
        last = tx.jobs.last_in_chain(job.chain) or job
        status[last.id] = last.status
    views = tx.graph.artifact_views(artifact_key(text, root.repo) for text in root.needs)
    for view in views.values():
        status |= {each.job_id: each.status for each in view.producers}
    return last_successful_point(status)


def _refuse_within_merge(context: Context, planned: Rewind) -> None:
    """A conflict that a person is resolving must not be cleared away under their hands."""
    from headway.integrations.git.program import GitError
    from headway.integrations.git.questions import in_progress, repository_of

    repositories = {job.repo for job in planned.members if job.repo}
    own = repository_of(os.path.dirname(context.home.path))
    for repo in sorted({*repositories, own} - {None}, key=str):
        busy = None
        with suppress(GitError):  # one that is gone is in the middle of nothing
            busy = in_progress(str(repo))
        if busy is not None:
            raise ConflictError(
                f"{repo} is in the middle of a {busy}; finish it (git {busy} --continue) or "
                f"give it up (git {busy} --abort), then retry"
            )


def _take_back_worktrees(context: Context, planned: Rewind) -> None:
    """Those of all earlier attempts; each new job makes its own."""
    with context.store.read() as tx:
        members = tx.jobs.of_chains(planned.chains)
    owners = [job.id for jobs in members.values() for job in jobs if "worktree" in job.params]
    clean_worktrees(context.store, context.home, owners, actor=context.actor)


def _clear_sentinels(context: Context, planned: Rewind) -> None:
    """The marks of conflicts that the old attempts left; the new ones make their own."""
    for job in planned.members:
        for text in (*job.needs, *job.produces):
            kind, _, slug = text.partition(":")
            if kind == ArtifactKind.MERGE_SENTINEL:
                with suppress(FileNotFoundError):
                    os.unlink(sentinel_path(context.home.path, slug))
