"""What Headway itself does for a node of a workflow: one function an operation, in a process of its
own. It reads all from the claim. Neither a store nor a worker may enter.

`OPERATIONS` is the table. An operation is given a `NodeTask` and returns a `Done`. It raises
`BlockedError` where a person has to look, and `FailedError` where it failed; `node_process` says so
to the supervisor. An operation may be repeated after a crash at any point, with the same `key`: it
first looks whether it is done.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from headway.base.errors import HeadwayError
from headway.core.model import NOTHING


class NodeTask(NamedTuple):
    """What the claim says of a node. `args` have their values; `artifacts` are the data of what it
    needs, by the artifact's text without its run."""

    run: str  # wf-7
    node: str
    node_pass: int
    attempt: int
    job: str  # job-31, the owner of what it makes
    label: str
    operation: str
    key: str  # the same for all tries of a pass, see `operation_key`
    args: Mapping[str, Any]
    command: list[str] | None
    outputs: list[str]
    produces: list[str]
    artifacts: Mapping[str, Any]
    repository: str | None  # the top folder of the repository that the run works in
    directory: str  # where it works: its worktree, or the repository
    root: Mapping[str, Any] | None  # what its `worktree.prepare` node has set, with `job`
    home: str  # of Headway
    folder: str  # of its job
    state: str  # of the run besides `finally`: running, succeeded, failed, blocked, cancelled
    began: int  # when the run did, in seconds
    worktrees: str = ""  # the folder in which jobs have theirs
    old_trees: Sequence[Mapping[str, Any]] = ()  # worktrees that are in its way, see `values`


class Done(NamedTuple):
    """It succeeded. `summary` is a line for people."""

    summary: str = ""
    outputs: Mapping[str, Any] = NOTHING


class FailedError(HeadwayError):
    """It failed; `outputs` are set all the same."""

    def __init__(self, message: str, outputs: Mapping[str, Any] = NOTHING) -> None:
        super().__init__(message)
        self.outputs = outputs


class BlockedError(FailedError):
    """It cannot go on by itself: a person, or another node, has to act first."""


class ParkedError(FailedError):
    """Its agent met what holds for all jobs of the runner: it goes on when these may. `parks` is
    what the verdict says of that."""

    def __init__(self, message: str, parks: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.parks = parks


Operation = Callable[[NodeTask], Done]

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


def operation_key(host: str, run: str, node: str, node_pass: int) -> str:
    """Names one operation of one pass: all of its tries share it, and the next pass has another."""
    import hashlib

    text = "\0".join((host, run, node, str(node_pass)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def gone_root(what: str, node: str, job: str, run: str) -> str:
    """What is said where the worktree that a node works in, or its branch, was taken away."""
    from shlex import quote

    return (
        f"the {what} of {node} ({job}) is gone; headway workflows retry {run} --from {quote(node)}"
    )
