"""The labels that a node may use: 16 operations, a call of a function, and five controls. Pure.

One table says what each label is, which arguments it has and which of them it cannot do without.
The reader, the schema and docs/operations.md read it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

BUILTIN = "cap.env.builtin."
SHELL = "cap.env.shell."
CONTROL = "control."
FAMILIES = "cap.env.builtin.*, cap.env.shell.*, cap.agent.invoke and control.*"


class ExecutorClass(StrEnum):
    """Who does the work of a node. A control is done by nobody: it decides."""

    BUILTIN = "environment.builtin"
    SHELL = "environment.shell"
    AGENT = "agent"


class RunsCommand(StrEnum):
    """Whether a node with this label has a command of its own (`argv` or `shell`)."""

    NEVER = "never"
    MAY = "may"
    MUST = "must"


class Label(NamedTuple):
    """One row: a name that `uses` may give."""

    name: str
    operation: str  # what it does, without the family; of a control its policy
    executor: ExecutorClass | None
    about: str
    arguments: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()  # it needs one of these arguments
    free: bool = False  # it takes arguments of any name, for its text
    command: RunsCommand = RunsCommand.NEVER

    @property
    def is_control(self) -> bool:
        return self.executor is None


def _builtin(
    operation: str, about: str, *arguments: str, one_of: tuple[str, ...] = (), free: bool = False
) -> Label:
    name, executor = BUILTIN + operation, ExecutorClass.BUILTIN
    return Label(name, operation, executor, about, arguments, one_of, free)


def _shell(operation: str, about: str) -> Label:
    name, executor = SHELL + operation, ExecutorClass.SHELL
    return Label(name, operation, executor, about, command=RunsCommand.MUST)


def _control(
    policy: str,
    about: str,
    *arguments: str,
    one_of: tuple[str, ...] = (),
    command: RunsCommand = RunsCommand.NEVER,
) -> Label:
    return Label(CONTROL + policy, policy, None, about, arguments, one_of, command=command)


PROMPT_TEXT = "custom:prompt_text:"  # what a prompt is published as
COMMAND_RUN = SHELL + "command.run"
CICD_RUN = SHELL + "cicd.run"
AGENT_INVOKE = "cap.agent.invoke"
FUNCTION_CALL = BUILTIN + "function.call"
PROMPT_RESOLVE = BUILTIN + "prompt.resolve"
WORKTREE_PREPARE = BUILTIN + "worktree.prepare"
STAGE_COMMIT = BUILTIN + "git.stage_commit"
NO_MESSAGE = "git.stage_commit has no message; give message, or need an artifact with a text"
TERMINAL = CONTROL + "terminal"
APPROVAL = CONTROL + "gate.approval"
RESOLUTION = CONTROL + "gate.conflict_resolution"
_MAY = RunsCommand.MAY

_ROWS = (
    _builtin(
        "prompt.resolve",
        "makes the text of a prompt",
        *("prompt_text", "prompt_file"),
        one_of=("prompt_text", "prompt_file"),
        free=True,
    ),
    Label(
        AGENT_INVOKE,
        "agent.invoke",
        ExecutorClass.AGENT,
        "lets a coding agent follow a prompt",
        ("runner", "model", "max_turns", "allowed_tools", "budget_usd", "max_tokens"),
    ),
    _builtin(
        "worktree.prepare",
        "makes a worktree of a branch, for the nodes after it",
        *("branch", "slug", "plan", "base"),
        one_of=("branch", "slug", "plan"),
    ),
    _builtin("worktree.cleanup", "removes that worktree, saving what is not committed", "always"),
    _builtin(
        "plan.persist",
        "commits a plan and its specification on the plan's branch",
        *("slug", "target", "spec_text", "spec_file"),
        one_of=("spec_text", "spec_file"),
    ),
    _builtin("git.stage_commit", "commits what has changed", "message", "paths"),
    _builtin(
        "git.integrate_plan_branch",
        "merges a branch into its target, with the plan in the message",
        *("slug", "source", "target", "squash", "delete_branch", "message"),
        one_of=("slug", "source"),
    ),
    _builtin("git.save_worktree_patch", "keeps the changes of a worktree as a patch"),
    _builtin("patch.pipeline_prepare", "takes copies of patch files", "files", one_of=("files",)),
    _builtin("patch.pipeline_finalize", "keeps what the patches came to as one patch"),
    _builtin(
        "patch.execute_pipeline",
        "applies patches, all or none",
        *("files", "from"),
        one_of=("files", "from"),
    ),
    _builtin(
        "build.materialize_step",
        "writes the description of a build's step, and its branches",
        *("build_id", "step_key", "slug", "branch", "target"),
    ),
    _builtin(
        "merge.sentinel.write",
        "notes that a merge met a conflict",
        *("slug", "source", "target"),
        one_of=("slug",),
    ),
    _builtin(
        "merge.sentinel.clear",
        "takes that note back",
        *("slug", "source", "target"),
        one_of=("slug",),
    ),
    _shell("command.run", "runs a command"),
    _shell("cicd.run", "runs the checks of a change"),
    _shell("prompt.resolve", "makes a prompt of what a command prints"),
    _builtin(
        "function.call",
        "calls a Python function of an app",
        *("task", "arguments"),
        one_of=("task",),
    ),
    _control("gate.stop_condition", "succeeds if its command does, or has none", command=_MAY),
    _control("gate.cicd", "the same, for the checks of a change", command=_MAY),
    _control(
        "gate.conflict_resolution",
        "resolves the conflict of a merge, by a command or an agent",
        *("slug", "source", "target", "auto_resolve", "runner", "prompt_file"),
        *("budget_usd", "max_tokens"),
        one_of=("slug",),
        command=_MAY,
    ),
    _control(
        "gate.approval",
        "waits until a person agrees",
        *("required", "question", "expires", "approvers"),
    ),
    _control("terminal", "says that a way through the workflow ends here"),
)  # fmt: skip


class OperationEnd(NamedTuple):
    """How an operation, or a control that works on a repository, may end besides well. All are
    sentences of docs/operations.md."""

    makes: str  # artifacts
    refuses: str  # why it is blocked, or fails
    repeats: str  # what a repetition after a crash finds


ENDS: Mapping[str, OperationEnd] = {
    "prompt.resolve": OperationEnd(
        "`custom:prompt_text:KEY` with `text`",
        "failed: a placeholder that nothing fills; a text over 512 KiB",
        "nothing is published, so it is made anew",
    ),
    "agent.invoke": OperationEnd(
        "what it `produces`, with `text`",
        "failed: by the class of the agent's end",
        "it is not repeated by itself",
    ),
    "worktree.prepare": OperationEnd(
        "`plan_branch:SLUG`",
        "failed: no branch can be determined, or no base; blocked: someone else has it checked out",
        "its record and marker. A branch that exists is used as it stands; worktrees of its own "
        "chain, and of ended runs that hold the branch, are cleaned first",
    ),
    "worktree.cleanup": OperationEnd(
        "none",
        "never: without a worktree it is skipped; in `finally` of a run that did not succeed "
        "the worktree is kept for a retry, unless `always` is true; what cannot be saved stays, "
        "degraded",
        "nothing is there any more",
    ),
    "plan.persist": OperationEnd(
        "`plan_branch:SLUG`, `plan_doc:SLUG`",
        "failed: no specification, or no slug; blocked: a dirty checkout of the branch",
        "its commit of `.headway/plans/SLUG.md`, by key",
    ),
    "git.stage_commit": OperationEnd(
        "none",
        "succeeded without changes; failed: no `message`, and nothing that it needs has a text; "
        "blocked: a merge in progress, `index.lock`",
        "its commit, by key",
    ),
    "git.integrate_plan_branch": OperationEnd(
        "`merge_sentinel:SLUG` if blocked by a conflict",
        "failed: no such branch; blocked: a conflict, a dirty checkout of the target, a target "
        "that moved five times",
        "each of its steps, by key; merged already is a success",
    ),
    "git.save_worktree_patch": OperationEnd(
        "`command_patch:job-N`", "failed: over 64 MiB", "the file, whole or not at all"
    ),
    "patch.pipeline_prepare": OperationEnd(
        "none", "failed: a file is missing, or over 64 MiB", "copies, by digest"
    ),
    "patch.pipeline_finalize": OperationEnd(
        "`command_patch:job-N`", "failed: over 64 MiB", "the file, whole or not at all"
    ),
    "patch.execute_pipeline": OperationEnd(
        "none",
        "failed: a patch is missing or does not fit, and then nothing has changed; blocked: a "
        "dirty checkout",
        "the tree that it came to; that tree there already is a success",
    ),
    "build.materialize_step": OperationEnd(
        "`plan_branch:SLUG`, `target_branch:BRANCH`",
        "failed: a branch that cannot be made",
        "the file, written again; branches are made only if they are not there",
    ),
    "merge.sentinel.write": OperationEnd(
        "`merge_sentinel:SLUG`", "failed: no slug", "the file, written again"
    ),
    "merge.sentinel.clear": OperationEnd("none", "failed: no slug", "nothing is there any more"),
    "command.run": OperationEnd(
        "what it `produces`", "failed: by its exit code", "as `retries` says"
    ),
    "cicd.run": OperationEnd(
        "what it `produces`", "failed: `cicd.run failed (exit N)`", "as `retries` says"
    ),
    "function.call": OperationEnd(
        "what it `produces`", "as [functions](functions.md)", "as functions"
    ),
    "gate.conflict_resolution": OperationEnd(
        "none",
        "blocked: unmerged files are left, the worktree has changes that are not committed, or "
        "others have the source checked out",
        "its commit, by key; a merge in progress is gone on with. An agent that has ended is not "
        "called again; if it was ended at its work, the node is blocked",
    ),
}  # fmt: skip

LABELS: Mapping[str, Label] = {each.name: each for each in _ROWS}


def renamed(label: str) -> str | None:
    """The present name of a label of before: `vizier.*`, or `cap.*` without its family."""
    family, _, rest = label.partition(".")
    if family not in ("vizier", "cap") or label in LABELS:
        return None
    rest = rest.removeprefix("env.").removeprefix("control.")
    meant = (each.name for each in _ROWS if each.operation == rest)
    return next(meant, None)
