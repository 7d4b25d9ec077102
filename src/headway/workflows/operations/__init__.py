"""What Headway itself does for a node of a workflow: one function an operation, in a process of its
own. It reads all from the claim. Neither a store nor a worker may enter.

`OPERATIONS` is the table. An operation is given a `NodeTask` and returns a `Done`. It raises
`BlockedError` where a person has to look, and `FailedError` where it failed; `node_process` says so
to the supervisor. An operation may be repeated after a crash at any point, with the same `key`: it
first looks whether it is done.
"""

from collections.abc import Mapping
from importlib import import_module

from headway.workflows.operations.model import Operation

# By what a label does; a module of this package and the function in it.
OPERATIONS: Mapping[str, str] = {
    "fan": "fan:announce",
    "worktree.prepare": "worktrees:prepare_worktree",
    "worktree.cleanup": "worktrees:clean_worktree",
    "plan.persist": "plans:persist_plan",
    "git.stage_commit": "commits:stage_commit",
    "git.integrate_plan_branch": "integration:integrate_plan_branch",
    "git.save_worktree_patch": "patches:save_worktree_patch",
    "patch.pipeline_prepare": "patches:prepare_pipeline",
    "patch.pipeline_finalize": "patches:save_worktree_patch",
    "patch.execute_pipeline": "patches:execute_pipeline",
    "build.materialize_step": "build_steps:materialize_step",
    "merge.sentinel.write": "sentinels:write_sentinel",
    "merge.sentinel.clear": "sentinels:clear_sentinel",
    "gate.conflict_resolution": "conflicts:resolve_conflict",
    "prompt.resolve": "prompts:resolve",
}


def operation_of(name: str) -> Operation:
    """Only the module of the one that is asked for is loaded."""
    module, _, function = OPERATIONS[name].partition(":")
    found: Operation = getattr(import_module(f"headway.workflows.operations.{module}"), function)
    return found
