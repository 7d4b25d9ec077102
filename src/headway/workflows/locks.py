"""The locks of a node that asks for none: a node that writes to a checkout has it alone. Pure.

Nodes of one worktree exclude each other. In the repository itself, agents and operations have its
checkout alone, and commands and functions share it. An operation that moves a branch has that
branch alone, and the checkout only if the branch may be checked out there.
"""

from collections.abc import Mapping
from typing import Any

from headway.core.artifacts import plan_branch
from headway.core.model import Lock, LockMode
from headway.workflows.labels import (
    APPROVAL,
    FUNCTION_CALL,
    PROMPT_RESOLVE,
    SHELL,
    TERMINAL,
    ExecutorClass,
    Label,
)

INTEGRATE = "git.integrate_plan_branch"
_WITHOUT = frozenset({APPROVAL, TERMINAL, PROMPT_RESOLVE, SHELL + "prompt.resolve"})
# Operations that write a branch, with the arguments that may name it. A slug or a plan is its
# branch `draft/SLUG`.
_BRANCHES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "worktree.prepare": (("branch", "slug", "plan"),),
    "plan.persist": (("slug",),),
    INTEGRATE: (("source", "slug"), ("target",)),
    "build.materialize_step": (("branch", "slug"),),
    "gate.conflict_resolution": (("source", "slug"),),
}
_OF_PLANS = ("slug", "plan")


def default_locks(
    label: Label,
    args: Mapping[str, Any],
    *,
    root: str | None,
    run: str,
    repository: str,
) -> tuple[Lock, ...]:
    """`root` is the node whose worktree it works in."""
    if label.name in _WITHOUT:
        return ()
    checkout = f"checkout:{repository}"
    worktree = () if root is None else (_alone(f"worktree:{run}/{root}"),)
    if label.operation in _BRANCHES:
        branches = (_alone(f"branch:{each}") for each in _branches(label, args))
        whole = (_alone(checkout),) if label.operation == INTEGRATE else ()
        return (*worktree, *branches, *whole)
    if worktree:
        return worktree
    alone = label.executor in (ExecutorClass.BUILTIN, ExecutorClass.AGENT)
    alone = alone and label.name != FUNCTION_CALL
    return (_alone(checkout) if alone else Lock(checkout, LockMode.SHARED),)


def _alone(key: str) -> Lock:
    return Lock(key, LockMode.EXCLUSIVE)


def _branches(label: Label, args: Mapping[str, Any]) -> list[str]:
    found = []
    for words in _BRANCHES.get(label.operation, ()):
        for word in words:
            if word in args:
                value = str(args[word])
                found.append(plan_branch(value) if word in _OF_PLANS else value)
                break
    return found
