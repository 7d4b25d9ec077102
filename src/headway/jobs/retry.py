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
from headway.core.gates.routes import OF_NODE
from headway.core.model import NOTHING, Job, JobId, shown
from headway.core.rewind import (
    Rewind,
    kept_times,
    last_successful_point,
    plan_repeat,
    plan_rewind,
)
from headway.core.states import Status
from headway.core.worktrees import RESOLUTION, WorktreeState, may_own, operation_of
from headway.jobs.context import Context
from headway.jobs.downstream import downstream
from headway.jobs.lookup import require
from headway.jobs.repeat import repeat_jobs
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
FindRoots = Callable[[ReadTx], Sequence[Job]]


def preview(context: Context, job_id: JobId) -> Rewound:
    """What a rewind would do now; changes nothing."""
    return preview_from(context, _last_of(job_id), plan_rewind)._replace(requested=job_id)


def preview_repeat(context: Context, job_id: JobId) -> Rewound:
    """What a repetition would do now; changes nothing."""
    return preview_from(context, _last_of(job_id), plan_repeat)._replace(requested=job_id)


def rewind(
    context: Context, job_id: JobId, check: Callable[[Sequence[Job]], None] | None = None
) -> Rewound:
    """Queue the job and all that follows from it once more; refused if all of it succeeded, or if
    `check`, which is given all these jobs within the transaction, refuses it."""

    def refuse(tx: WriteTx, planned: Rewind) -> None:
        if check is not None:
            check(planned.members)

    return rewind_from(context, _last_of(job_id), plan_rewind, refuse)._replace(requested=job_id)


def repeat(context: Context, job_id: JobId) -> Rewound:
    """Queue the job and all that follows from it once more, also if all of it succeeded."""
    return rewind_from(context, _last_of(job_id), plan_repeat)._replace(requested=job_id)


def preview_from(context: Context, find: FindRoots, plan: Planner) -> Rewound:
    """What a rewind of several jobs at once would do now; changes nothing."""
    with context.store.read() as tx:
        rewind = _plan(tx, find, plan)
        _refuse_within_merge(context, tx, rewind)
        members = tuple(job.id for job in rewind.members)
        return Rewound(
            requested=rewind.root.id,
            root=rewind.root.id,
            last_successful_point=_last_good(tx, rewind.root),
            members=members,
            reset=members,
            new_root=rewind.root.id,
            kept_times=kept_times(rewind.members, tx.now()),
            blocked_by=_blocked_by(tx, rewind.root),
        )


def rewind_from(
    context: Context,
    find: FindRoots,
    plan: Planner,
    add: Callable[[WriteTx, Rewind], None] = lambda tx, planned: None,
) -> Rewound:
    """Rewind several jobs, and all that follows from any of them, in one transaction. The first of
    them is the root; `add` writes within that transaction."""
    with context.store.read() as tx:
        _refuse_within_merge(context, tx, _plan(tx, find, plan))

    def transaction(tx: WriteTx) -> tuple[Rewind, Rewound]:
        planned = _plan(tx, find, plan)
        add(tx, planned)
        return planned, _apply(context, tx, planned)

    planned, rewound = context.store.transact(transaction)
    reach("rewind.committed")
    _clear_sentinels(context, planned)
    context.wake()
    _take_back_worktrees(context, planned)
    return rewound


def _last_of(job_id: JobId) -> FindRoots:
    def find(tx: ReadTx) -> Sequence[Job]:
        asked = require(tx, [job_id])[job_id]
        return [tx.jobs.last_in_chain(asked.chain) or asked]

    return find


def _plan(tx: ReadTx, find: FindRoots, plan: Planner) -> Rewind:
    first, *others = find(tx)
    return plan(first, [*others, *downstream(tx, [first, *others])])


def _apply(context: Context, tx: WriteTx, planned: Rewind) -> Rewound:
    now, actor = tx.now(), context.actor
    if any(job.subject for job in planned.again):
        from headway.jobs.subjects import refuse_second

        refuse_second(tx, planned.again)
    data = {"reason": "by hand", "root": shown(planned.root.id)}
    if any(job.workflow_run is not None for job in planned.members):
        from headway.jobs.routes import reopen_runs

        reopen_runs(tx, planned.chains)
    done = repeat_jobs(tx, planned.again, planned.reset, actor=actor, data=data)
    tx.groups.reopen(planned.chains)
    tx.events.add(
        (Event("withdrawn", planned.root.id, {"artifact": each}) for each in done.withdrawn),
        actor=actor,
    )
    waiting = sorted(done.waiting.values(), key=lambda job: job.id)
    return Rewound(
        requested=planned.root.id,
        root=planned.root.id,
        last_successful_point=_last_good(tx, planned.root),
        members=tuple(job.id for job in planned.members),
        reset=tuple(job.id for job in waiting),
        new_root=done.waiting.get(planned.root.chain, planned.root).id,
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


def _refuse_within_merge(context: Context, tx: ReadTx, planned: Rewind) -> None:
    """A conflict that a person is resolving must not be cleared away under their hands."""
    from headway.integrations.git.program import GitError
    from headway.integrations.git.questions import in_progress, repository_of

    repositories = {job.repo for job in planned.members if job.repo}
    repositories |= _checkouts_of_nodes(tx, planned.members)
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


def _checkouts_of_nodes(tx: ReadTx, jobs: Sequence[Job]) -> set[str]:
    """Where nodes of workflows work: the repository of their run, and the worktrees of it."""
    of_runs = [job for job in jobs if job.workflow_run is not None]
    found = {job.params[OF_NODE].get("repository") for job in of_runs}
    runs = {job.workflow_run for job in of_runs}
    chains = {node.chain for run in runs for node in tx.workflows.nodes(run or 0)}
    members = tx.jobs.of_chains(sorted(chains)) if chains else {}
    owners = [job.id for jobs in members.values() for job in jobs if may_own(job)]
    kept = tx.graph.worktrees(owners).values() if owners else ()
    found |= {row.path for row in kept if row.state is not WorktreeState.CLEANED}
    return {each for each in found if each}


def _take_back_worktrees(context: Context, planned: Rewind) -> None:
    """Those of all earlier attempts; each new job makes its own."""
    with context.store.read() as tx:
        members = tx.jobs.of_chains(planned.chains)
    owners = [job.id for jobs in members.values() for job in jobs if may_own(job)]
    clean_worktrees(context.store, context.home, owners, actor=context.actor)


def _clear_sentinels(context: Context, planned: Rewind) -> None:
    """The marks of conflicts that the old attempts left; the new ones make their own."""
    for job in planned.members:
        for text in (*job.needs, *job.produces, *_of_merge(job)):
            kind, _, slug = text.partition(":")
            if kind == ArtifactKind.MERGE_SENTINEL:
                with suppress(FileNotFoundError):
                    os.unlink(sentinel_path(context.home.path, slug))


def _of_merge(job: Job) -> list[str]:
    """What a node makes by another end than success; of one that resolves conflicts, the conflict
    that it is about."""
    if job.workflow_run is None:
        return []
    node = job.params[OF_NODE]
    made = [text for texts in node.get("products", {}).values() for text in texts]
    if operation_of(job) == RESOLUTION:
        made.append(f"{ArtifactKind.MERGE_SENTINEL}:{node['args'].get('slug')}")
    return made
