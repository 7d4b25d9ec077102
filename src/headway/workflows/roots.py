"""Where a node of a workflow works: in the worktree of its root, or in the repository itself.

A `worktree.prepare` node makes a worktree and owns it. At its claim, each node after it finds out
which worktree that is by now. Links are resolved, so the folder is the one that it really works in.
"""

import os
from collections.abc import Mapping
from typing import Any

from headway.base.errors import HeadwayError
from headway.base.home import Home
from headway.core.artifacts import plan_branch
from headway.core.gates.routes import OF_NODE
from headway.core.model import Job, JobId, shown, shown_run
from headway.core.states import TERMINAL
from headway.core.worktrees import CLEANUP, RESOLUTION, OwnedWorktree, WorktreeState, may_own
from headway.integrations.git.layout import has_branch
from headway.jobs.worktrees import trees_of_roots
from headway.store.transaction import ReadTx
from headway.workflows.operations.model import gone_root
from headway.workflows.references import LookUp, fill_texts


class NodeValueError(HeadwayError):
    """A node cannot be given what its file says."""


def owned_tree(job: Job, home: Home) -> OwnedWorktree | None:
    """The worktree that a job whose values are filled in is going to make, if any."""
    if not may_own(job) or OF_NODE not in job.params:
        return None
    node = job.params[OF_NODE]
    branch, tree, repository = _branch(node), node["tree"], node.get("repository")
    if branch is None or repository is None:
        return None
    if node["policy"] == RESOLUTION and tree is not None and tree["branch"] == branch:
        return None
    path, base = f"{home.worktrees}/{shown(job.id)}", str(node["args"].get("base") or "")
    return OwnedWorktree(job.id, repository, path, branch, base)


def _branch(node: Mapping[str, Any]) -> str | None:
    args = node["args"]
    named = args.get("source" if node["policy"] == RESOLUTION else "branch")
    slug = args.get("slug") or args.get("plan")
    return str(named) if named else plan_branch(str(slug)) if slug else None


def old_trees(tx: ReadTx, job: Job, branch: str) -> list[dict[str, Any]]:
    """Worktrees of this chain, and those that hold the branch. They may be cleaned if they are
    earlier ones of the chain, or their run has ended."""
    kept = {each: row for each, row in tx.graph.kept_worktrees().items() if each != job.id}
    jobs = tx.jobs.readable(list(kept)) if kept else {}
    runs = tx.workflows.by_id([each.workflow_run for each in jobs.values() if each.workflow_run])
    found = []
    for job_id, row in kept.items():
        owner = jobs.get(job_id)
        if owner is None or (owner.chain != job.chain and row.branch != branch):
            continue
        run = runs.get(owner.workflow_run or 0)
        over = owner.chain == job.chain or (run is not None and run.ended_at is not None)
        ended = over and owner.status in TERMINAL
        found.append({**_document(row), "run": run and shown_run(run.id), "ended": ended})
    return found


def tree_of(tx: ReadTx, job: Job, home: Home) -> dict[str, Any] | None:
    """The worktree of the node's root: what the last job of that node that succeeded owns."""
    node = job.params[OF_NODE]
    root = node["root"]
    if root is None:
        return None
    cleans = node["policy"] == CLEANUP
    found = trees_of_roots(tx, [job]).get(job.id)
    if found is None:
        if cleans:
            return None
        raise NodeValueError(f"root: {_state(tx, job, root)}")
    last, row = found
    _refuse_outside(row.path, node.get("repository"), home)
    if cleans and row.state is WorktreeState.CLEANED:
        return None
    if not cleans and (gone := _gone(row)) is not None:
        words = gone_root(gone, root, shown(last.id), shown_run(job.workflow_run or 0))
        raise NodeValueError(words)
    left = _outputs_of(tx, last.id)
    return {**_document(row), "node": root, "base": left.get("base") or row.base}


def _gone(row: OwnedWorktree) -> str | None:
    """What someone has taken away meanwhile: the worktree, or its branch."""
    if row.state is WorktreeState.CLEANED or not os.path.isdir(row.path):
        return "worktree"
    return None if has_branch(row.repo, row.branch) else f"branch {row.branch}"


def _state(tx: ReadTx, job: Job, node: str) -> str:
    for each in tx.workflows.nodes(job.workflow_run or 0):
        if node in (each.written, each.node):
            return f"'{each.node}' ({shown(each.job_id)}) is {each.status}"
    return "unknown"


def _document(row: OwnedWorktree) -> dict[str, Any]:
    document = {key: getattr(row, key) for key in ("repo", "path", "branch", "base")}
    return {**document, "job": shown(row.job_id)}


def _outputs_of(tx: ReadTx, job_id: JobId) -> Mapping[str, Any]:
    """What a job of a node has set."""
    for each in tx.graph.markers_by([job_id]):
        if each.artifact.startswith("custom:operation_output:") and each.data:
            outputs: Mapping[str, Any] = each.data["outputs"]
            return outputs
    return {}


def _refuse_outside(path: str, repository: str | None, home: Home) -> None:
    """Links are resolved: what counts is where the node would work."""
    real = os.path.realpath(path)
    for folder in filter(None, (repository, home.worktrees)):
        inside = os.path.realpath(folder)
        if real == inside or real.startswith(f"{inside}/"):
            return
    top = repository or os.path.dirname(home.path)
    raise NodeValueError(
        f"workflow metadata.execution_root path {path} is outside repository root {top}"
    )


def inside_tree(tree: str, cwd: str | None, look_up: LookUp) -> str:
    """The node's own folder within the worktree."""
    own = fill_texts(cwd, look_up) if cwd else "."
    found = os.path.normpath(os.path.join(tree, own))
    if found != tree and not os.path.realpath(found).startswith(f"{os.path.realpath(tree)}/"):
        raise NodeValueError(
            f"workflow metadata.execution_root path {found} is outside repository root {tree}"
        )
    return found
