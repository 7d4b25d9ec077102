"""`worktree.prepare` and `worktree.cleanup`: the checkout that the nodes after it work in.

The worktree belongs to the job that made it. The claim's transaction says so before anything
exists, so that whatever a crash leaves is found again. What became of others is in the outputs
`cleaned` and `degraded`, which the transaction of the end reads.
"""

import os
from collections.abc import Mapping
from typing import Any

from headway.base.errors import HeadwayError
from headway.core.artifacts import plan_branch
from headway.integrations.git.cleanup import Cleaned, clean
from headway.integrations.git.ownership import Worktree
from headway.integrations.git.program import GitError
from headway.integrations.git.questions import commit_of
from headway.integrations.git.worktrees import CheckedOutError, Prepared, prepare
from headway.workflows.operations.model import BlockedError, Done, FailedError, NodeTask
from headway.workflows.operations.repository import branch_name, repository, slug_of, text_of

SAVED = "worktree.patch"
_KEPT = ("failed", "blocked", "cancelled")


def prepare_worktree(task: NodeTask) -> Done:
    """A checkout of the branch, which is used as it stands or made at the base."""
    branch = branch_of(task)
    made, outputs = own_tree(task, branch, text_of(task, "base") or "HEAD")
    outputs |= {"path": made.path, "branch": branch, "base": made.base, "head": made.head}
    return Done(f"{branch} at {made.head[:12]} in {made.path}", outputs)


def branch_of(task: NodeTask) -> str:
    """The branch that the arguments name."""
    branch = text_of(task, "branch")
    if branch is not None:
        return branch_name(task, branch)
    slug = slug_of(task, "slug", "plan")
    if slug is None:
        raise FailedError("worktree.prepare could not determine branch (set branch or slug/plan)")
    return plan_branch(slug)


def own_tree(task: NodeTask, branch: str, base: str) -> tuple[Prepared, dict[str, Any]]:
    """A worktree of the job, after those that may go are taken back, and what became of them."""
    repo = repository(task)
    cleaned, degraded = _clean_old(task)
    try:
        worktree = Worktree(repo, own_path(task), branch, commit_of(repo, base))
        made = prepare(worktree, task.job)
    except HeadwayError as error:
        outputs = {"cleaned": [*cleaned, *nothing_made(task)], "degraded": degraded}
        if isinstance(error, CheckedOutError):
            raise BlockedError(_in_the_way(task, error), outputs) from None
        if isinstance(error, GitError) and error.of_host:
            raise
        raise FailedError(str(error), outputs) from None
    return made, {"cleaned": cleaned, "degraded": degraded}


def own_path(task: NodeTask) -> str:
    return os.path.join(task.worktrees, task.job)


def nothing_made(task: NodeTask) -> list[str]:
    """The job itself, if it owns no worktree after all."""
    return [] if os.path.lexists(own_path(task)) else [task.job]


def _clean_old(task: NodeTask) -> tuple[list[str], dict[str, str]]:
    """Take back the worktrees of earlier jobs of the chain, and of runs that have ended."""
    cleaned: list[str] = []
    degraded: dict[str, str] = {}
    for each in task.old_trees:
        if not each["ended"]:
            continue
        result = _clean(task, each)
        if result.status == "degraded":
            degraded[each["job"]] = result.error or ""
        else:
            cleaned.append(each["job"])
    return cleaned, degraded


def _clean(task: NodeTask, tree: Mapping[str, Any]) -> Cleaned:
    worktree = Worktree(tree["repo"], tree["path"], tree["branch"], tree["base"])
    owner = tree["job"]
    folder = os.path.join(os.path.dirname(task.folder), owner.removeprefix("job-"))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return clean(worktree, owner, os.path.join(folder, SAVED), inside=task.worktrees)


def _in_the_way(task: NodeTask, error: CheckedOutError) -> str:
    known = next((each for each in task.old_trees if each["job"] == error.owner), None)
    if known is not None and known["run"] is not None and not known["ended"]:
        words = f"{task.operation}: {error} of {known['run']}"
        return f"{words}; wait until it has ended, or stop it"
    return f"{task.operation}: {error}; check out another branch there, or remove it, then retry"


def clean_worktree(task: NodeTask) -> Done:
    """Remove the worktree that the node works in. What is not committed is saved first."""
    if task.root is None:
        return Done("worktree cleanup skipped")
    if task.state in _KEPT and task.args.get("always") is not True:
        return Done(f"worktree kept for a retry: {task.run} {task.state}", {"saved": None})
    result = _clean(task, task.root)
    owner = task.root["job"]
    if result.status == "degraded":
        outputs = {"saved": None, "degraded": {owner: result.error or ""}}
        return Done(f"worktree cleanup degraded: {result.error}", outputs)
    return Done(
        "worktree cleanup done" if result.status == "done" else "worktree cleanup skipped",
        {"saved": result.saved, "cleaned": [owner]},
    )
