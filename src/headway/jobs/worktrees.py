"""Take back the worktrees of jobs that have ended, and keep the record of it true.

git is asked outside of any transaction, then what came of it is written down. A crash in between
leaves the worktree owned in the store and gone on disk; the next cleaning finds nothing there
and says so. What cannot be removed without losing something stays owned, as *degraded*, and every
later cleaning tries it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.crashpoints import reach
from headway.base.home import Home
from headway.core.gates.routes import OF_NODE
from headway.core.model import Job, JobId, shown
from headway.core.states import TERMINAL, Status
from headway.core.worktrees import (
    CLEANUP,
    PREPARE,
    RESOLUTION,
    OwnedWorktree,
    WorktreeState,
    operation_of,
)
from headway.store.new_jobs import Event
from headway.store.store import Store
from headway.store.transaction import ReadTx, WriteTx

if TYPE_CHECKING:
    from headway.integrations.git.cleanup import Cleaned

WAIT_SECONDS = 30.0
SAVED = "worktree.patch"


def clean_worktrees(
    store: Store,
    home: Home,
    job_ids: Sequence[JobId],
    *,
    actor: str,
    wait_seconds: float = WAIT_SECONDS,
) -> dict[JobId, Cleaned]:
    """Clean the worktrees that these jobs still own; those of jobs that have not ended, and of
    other homes, are left alone. What was not committed is saved in the job's folder first."""

    def beside(job_id: JobId) -> str:
        return os.path.join(home.job(job_id), SAVED)

    return _clean_all(store, home, job_ids, actor, beside, wait_seconds)


def clean_for_good(
    store: Store,
    home: Home,
    job_ids: Sequence[JobId],
    *,
    actor: str,
    wait_seconds: float = WAIT_SECONDS,
) -> dict[JobId, Cleaned]:
    """The same for jobs whose folders go next: what was not committed outlives them."""

    def apart(job_id: JobId) -> str:
        os.makedirs(home.saved, mode=0o700, exist_ok=True)
        return os.path.join(home.saved, f"{shown(job_id)}.patch")

    return _clean_all(store, home, job_ids, actor, apart, wait_seconds)


class RootTree(NamedTuple):
    """The job that made the worktree a node works in, and that worktree."""

    job: Job
    worktree: OwnedWorktree


def trees_of_roots(tx: ReadTx, jobs: Iterable[Job]) -> dict[JobId, RootTree]:
    """The worktrees that nodes work in: what the last job of a node's root owns that has succeeded,
    as it is now or was when the node started. Without those that have none."""
    makers: dict[tuple[int, str], list[Job]] = {}
    found: dict[JobId, RootTree] = {}
    for job in jobs:
        root = job.params[OF_NODE]["root"] if job.workflow_run is not None else None
        if root is None:
            continue
        place = (job.workflow_run or 0, root)
        if place not in makers:
            makers[place] = _succeeded(tx, *place)
        until = job.started_at
        made = [each for each in makers[place] if until is None or (each.finished_at or 0) <= until]
        last = max(made, key=lambda each: each.id, default=None)
        row = tx.graph.worktrees([last.id]).get(last.id) if last is not None else None
        if last is not None and row is not None:
            found[job.id] = RootTree(last, row)
    return found


def _succeeded(tx: ReadTx, run: int, node: str) -> list[Job]:
    """The jobs of a node, or of one instance of it, that have succeeded."""
    nodes = tx.workflows.nodes(run)
    chains = [each.chain for each in nodes if node in (each.written, each.node)]
    members = tx.jobs.of_chains(chains) if chains else {}
    return [each for jobs in members.values() for each in jobs if each.status is Status.SUCCEEDED]


def degraded(tx: ReadTx, job_ids: Sequence[JobId]) -> list[JobId]:
    """Of these jobs, those with a worktree that an earlier cleaning could not remove."""
    rows = tx.graph.worktrees(job_ids)
    return [each for each, row in rows.items() if row.state is WorktreeState.DEGRADED]


def note_cleaned(tx: WriteTx, job: Job, outputs: Mapping[str, Any], *, actor: str) -> None:
    """A node of a workflow has taken back worktrees, which is in its outputs: `cleaned` has their
    owners, `degraded` those whose worktree could not be taken back, each with the reason."""
    from headway.integrations.git.cleanup import Cleaned

    if operation_of(job) not in (PREPARE, CLEANUP, RESOLUTION):
        return
    cleaned, degraded = outputs.get("cleaned"), outputs.get("degraded")
    found = {each: Cleaned("done") for each in cleaned or () if isinstance(cleaned, list)}
    if isinstance(degraded, dict):
        found |= {each: Cleaned("degraded", str(error)) for each, error in degraded.items()}
    numbers = {str(each).removeprefix("job-"): result for each, result in found.items()}
    asked = {int(each): result for each, result in numbers.items() if each.isdecimal()}
    known = tx.graph.worktrees(list(asked)) if asked else {}
    _record(tx, {each: result for each, result in asked.items() if each in known}, actor=actor)


def _clean_all(
    store: Store,
    home: Home,
    job_ids: Sequence[JobId],
    actor: str,
    save_to: Callable[[JobId], str],
    wait_seconds: float,
) -> dict[JobId, Cleaned]:
    if not job_ids:
        return {}
    with store.read() as tx:
        owned, busy = _to_clean(tx, home, job_ids, shared=store.shared)
    cleaned: dict[JobId, Cleaned] = {}
    for each in owned:
        if each.job_id in busy:
            cleaned[each.job_id] = _not_yet()
        else:
            cleaned[each.job_id] = _clean(each, home, save_to(each.job_id), wait_seconds)
        reach("worktrees.cleaned")
    if cleaned:
        store.transact(lambda tx: _record(tx, cleaned, actor=actor))
        reach("worktrees.recorded")
    return cleaned


def _to_clean(
    tx: ReadTx, home: Home, job_ids: Sequence[JobId], *, shared: bool
) -> tuple[list[OwnedWorktree], set[JobId]]:
    """The worktrees to clean, and those of them in which a process may still be at work."""
    rows = tx.graph.worktrees(job_ids)
    jobs = tx.jobs.readable(list(rows))
    owned = [
        row
        for each, row in rows.items()
        if row.state is not WorktreeState.CLEANED
        and each in jobs
        and jobs[each].status in TERMINAL
        # On a store of several hosts it may be another's, whom this one cannot speak for.
        and (not shared or os.path.dirname(row.path) == home.worktrees)
    ]
    busy = {claim.job_id for claim in tx.claims.unproven()} if owned else set()
    return owned, busy


def _not_yet() -> Cleaned:
    from headway.integrations.git.cleanup import Cleaned

    return Cleaned("degraded", "its processes are not yet proven gone; clean it again later")


def _clean(worktree: OwnedWorktree, home: Home, save_to: str, wait_seconds: float) -> Cleaned:
    from headway.integrations.git.cleanup import clean
    from headway.integrations.git.ownership import Worktree

    return clean(
        Worktree(worktree.repo, worktree.path, worktree.branch, worktree.base),
        shown(worktree.job_id),
        save_to,
        inside=home.worktrees,
        wait_seconds=wait_seconds,
    )


def _record(tx: WriteTx, cleaned: Mapping[JobId, Cleaned], *, actor: str) -> None:
    rows = tx.graph.worktrees(list(cleaned))
    for job_id, result in cleaned.items():
        if rows[job_id].state is WorktreeState.CLEANED:
            continue  # another cleaning came first, and has recorded it
        if result.status == "degraded":
            tx.graph.set_worktree_state(job_id, WorktreeState.DEGRADED, result.error)
            event = Event("worktree_degraded", job_id, {"error": result.error})
        else:
            tx.graph.set_worktree_state(job_id, WorktreeState.CLEANED)
            data = {"saved": result.saved, "kept": result.kept, "why": result.error}
            event = Event("worktree_cleaned", job_id, {k: v for k, v in data.items() if v})
        tx.events.add([event], actor=actor)
