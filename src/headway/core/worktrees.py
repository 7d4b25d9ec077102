"""Whose worktree is where. Pure: path and branch of a job's own worktree follow from its id."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from headway.core.gates.routes import OF_NODE
from headway.core.model import Job, JobId, shown


class WorktreeState(StrEnum):
    OWNED = "owned"  # from when the job was added, so before anything exists
    DEGRADED = "degraded"  # it could not be cleaned away, and is to be tried again
    CLEANED = "cleaned"  # nothing is there any more, and nothing will be


class OwnedWorktree(NamedTuple):
    job_id: JobId
    repo: str
    path: str
    branch: str
    base: str
    inside: str = "."  # where in it the command runs
    state: WorktreeState = WorktreeState.OWNED
    error: str | None = None


# Operations of workflows that make worktrees, or remove them.
PREPARE, CLEANUP = "worktree.prepare", "worktree.cleanup"
RESOLUTION = "gate.conflict_resolution"


def may_own(job: Job) -> bool:
    """Whether the job has a worktree of its own, or may have made one."""
    return "worktree" in job.params or operation_of(job) in (PREPARE, RESOLUTION)


def operation_of(job: Job) -> str | None:
    """What a node of a workflow does; None for any other job."""
    policy = job.params[OF_NODE]["policy"] if job.workflow_run is not None else None
    return None if policy is None else str(policy)


def owned_worktree(job: Job) -> OwnedWorktree | None:
    """The worktree that a job asked for, with the folder that its home keeps them in."""
    asked = job.params.get("worktree")
    if not isinstance(asked, Mapping) or "folder" not in asked:
        return None
    name = shown(job.id)
    return OwnedWorktree(
        job_id=job.id,
        repo=asked["repo"],
        path=f"{asked['folder']}/{name}",
        branch=f"headway/{name}",
        base=asked["base"],
        inside=asked.get("inside", "."),
    )
