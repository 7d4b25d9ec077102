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
AGENT_INVOKE = "cap.agent.invoke"
FUNCTION_CALL = BUILTIN + "function.call"
PROMPT_RESOLVE = BUILTIN + "prompt.resolve"
WORKTREE_PREPARE = BUILTIN + "worktree.prepare"
TERMINAL = CONTROL + "terminal"
APPROVAL = CONTROL + "gate.approval"
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

LABELS: Mapping[str, Label] = {each.name: each for each in _ROWS}


def renamed(label: str) -> str | None:
    """The present name of a label of before: `vizier.*`, or `cap.*` without its family."""
    family, _, rest = label.partition(".")
    if family not in ("vizier", "cap") or label in LABELS:
        return None
    rest = rest.removeprefix("env.").removeprefix("control.")
    meant = (each.name for each in _ROWS if each.operation == rest)
    return next(meant, None)
