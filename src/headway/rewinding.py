"""Run a failed segment again: the job, and everything that follows from it.

One transaction makes the new jobs, resets the waiting ones and withdraws what the set has made.
What is outside of the store (worktrees of the old attempts, conflict sentinels) is cleaned after
it: a crash in between leaves them owned, and they are cleaned later.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from headway.client import Client
from headway.consequences import continue_chain, give_up_locks
from headway.core.artifacts import ArtifactKind, artifact_key, sentinel_path
from headway.core.model import NOTHING, Job, JobId, shown
from headway.core.rewind import (
    Rewind,
    asked_again,
    kept_times,
    last_successful_point,
    plan_rewind,
    put_back,
)
from headway.core.settle import Retry
from headway.core.states import Status
from headway.crashpoints import reach
from headway.downstream import downstream
from headway.errors import ConflictError
from headway.store.base import Event, ReadTx, WriteTx
from headway.units import show_instant
from headway.worktreeing import clean_worktrees


class Rewound(NamedTuple):
    """What a rewind did, or would do."""

    requested: JobId
    root: JobId
    last_successful_point: tuple[JobId, ...]
    members: tuple[JobId, ...]
    reset: tuple[JobId, ...]  # the jobs that are queued now: new ones, and those reset in place
    new_root: JobId
    kept_times: Mapping[JobId, int] = NOTHING  # of these jobs: what submitters gave, and is to come

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
        return document


def preview(client: Client, job_id: JobId) -> Rewound:
    """What a rewind would do now; changes nothing."""
    with client.store.read() as tx:
        rewind = _plan(client, tx, job_id)
        _refuse_within_merge(client, rewind)
        members = tuple(job.id for job in rewind.members)
        return Rewound(
            requested=job_id,
            root=rewind.root.id,
            last_successful_point=_last_good(tx, rewind.root),
            members=members,
            reset=members,
            new_root=rewind.root.id,
            kept_times=kept_times(rewind.members, tx.now()),
        )


def rewind(client: Client, job_id: JobId) -> Rewound:
    """Queue the job and all that follows from it once more."""
    with client.store.read() as tx:
        _refuse_within_merge(client, _plan(client, tx, job_id))

    def tell(tx: WriteTx) -> tuple[Rewind, Rewound]:
        planned = _plan(client, tx, job_id)
        return planned, _apply(client, tx, job_id, planned)

    planned, rewound = client.store.story(tell)
    reach("rewind.committed")
    _clear_sentinels(client, planned)
    client.wake()
    _take_back_worktrees(client, planned)
    return rewound


def _plan(client: Client, tx: ReadTx, job_id: JobId) -> Rewind:
    asked = client.require(tx, [job_id])[job_id]
    root = tx.last_in_chain(asked.chain) or asked
    return plan_rewind(root, downstream(tx, [root]))


def _apply(client: Client, tx: WriteTx, requested: JobId, planned: Rewind) -> Rewound:
    now, actor = tx.now(), client.actor
    if any(job.subject for job in planned.again):
        from headway.subjects import refuse_second

        refuse_second(tx, planned.again)
    data = {"reason": "by hand", "root": shown(planned.root.id)}
    new = {}
    for job in planned.again:
        fresh = job._replace(approval=asked_again(job.approval, now=now, by=actor))
        new[job.id] = continue_chain(tx, fresh, Retry(None, 0), actor=actor, data=data)
        tx.chain_reopened(job.chain)
    # All who wait for any of it are in the set themselves, and are looked at anew by that.
    reset = [put_back(job, now=now, by=actor) for job in planned.reset]
    tx.reset_jobs(reset)
    tx.add_events((Event("rewound", job.id, data) for job in planned.reset), actor=actor)
    for job in planned.reset:  # who looks at it anew, and when, may be another host's affair
        give_up_locks(tx, job)
    waiting = sorted((*new.values(), *reset), key=lambda job: job.id)
    queued = [job.id for job in waiting]
    tx.reopen_edges(queued, planned.chains)
    tx.reopen_groups(planned.chains)
    withdrawn = tx.withdraw(planned.chains)
    tx.add_events(
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
    )


def _last_good(tx: ReadTx, root: Job) -> tuple[JobId, ...]:
    """The direct predecessors of the root that have succeeded, also those that made what it
    needs."""
    status: dict[JobId, Status] = {}
    for job in tx.jobs(root.after).values() if root.after else ():
        last = tx.last_in_chain(job.chain) or job
        status[last.id] = last.status
    views = tx.artifact_views(artifact_key(text, root.repo) for text in root.needs)
    for view in views.values():
        status |= {each.job_id: each.status for each in view.producers}
    return last_successful_point(status)


def _refuse_within_merge(client: Client, planned: Rewind) -> None:
    """A conflict that a person is resolving must not be cleared away under their hands."""
    from headway.git.looking import in_progress, repository_of
    from headway.git.program import GitError

    repositories = {job.repo for job in planned.members if job.repo}
    own = repository_of(os.path.dirname(client.home.path))
    for repo in sorted({*repositories, own} - {None}, key=str):
        busy = None
        with suppress(GitError):  # one that is gone is in the middle of nothing
            busy = in_progress(str(repo))
        if busy is not None:
            raise ConflictError(
                f"{repo} is in the middle of a {busy}; finish it (git {busy} --continue) or "
                f"give it up (git {busy} --abort), then retry"
            )


def _take_back_worktrees(client: Client, planned: Rewind) -> None:
    """Those of all earlier attempts; each new job makes its own."""
    with client.store.read() as tx:
        members = tx.jobs_of_chains(planned.chains)
    owners = [job.id for jobs in members.values() for job in jobs if "worktree" in job.params]
    clean_worktrees(client.store, client.home, owners, actor=client.actor)


def _clear_sentinels(client: Client, planned: Rewind) -> None:
    """The marks of conflicts that the old attempts left; the new ones make their own."""
    for job in planned.members:
        for text in (*job.needs, *job.produces):
            kind, _, slug = text.partition(":")
            if kind == ArtifactKind.MERGE_SENTINEL:
                with suppress(FileNotFoundError):
                    os.unlink(sentinel_path(client.home.path, slug))
