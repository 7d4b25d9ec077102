"""Whose worktree is where. Pure: path and branch of a job's own worktree follow from its id."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

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
