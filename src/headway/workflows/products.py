"""What operations make besides what their nodes say they produce: artifacts of plans. Pure."""

from collections.abc import Mapping
from typing import Any

from headway.base.errors import InvalidInputError
from headway.core.artifacts import ArtifactKind, parse_artifact
from headway.workflows.references import OPEN

BRANCH, DOCUMENT = ArtifactKind.PLAN_BRANCH, ArtifactKind.PLAN_DOC
SENTINEL, TARGET = ArtifactKind.MERGE_SENTINEL, ArtifactKind.TARGET_BRANCH
# By operation and outcome: the kinds, each with the arguments of which the first one names it.
_MADE: Mapping[str, Mapping[str, tuple[tuple[ArtifactKind, tuple[str, ...]], ...]]] = {
    "worktree.prepare": {"succeeded": ((BRANCH, ("slug", "plan")),)},
    "plan.persist": {"succeeded": ((BRANCH, ("slug",)), (DOCUMENT, ("slug",)))},
    "git.integrate_plan_branch": {"blocked": ((SENTINEL, ("slug",)),)},
    "build.materialize_step": {"succeeded": ((BRANCH, ("slug",)), (TARGET, ("target",)))},
    "merge.sentinel.write": {"succeeded": ((SENTINEL, ("slug",)),)},
}


def made_by(
    operation: str, args: Mapping[str, Any], said: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """What a node makes by outcome: what it says, and what its operation makes by itself."""
    found = dict(said)
    for outcome, made in _MADE.get(operation, {}).items():
        if operation == "worktree.prepare" and args.get("branch"):
            continue
        texts = (_artifact(kind, names, args) for kind, names in made)
        found[outcome] = tuple(
            dict.fromkeys([*found.get(outcome, ()), *(each for each in texts if each)])
        )
    return found


def announced(made: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The artifacts that a node is known to make: those of its success, and the mark of a conflict,
    which others wait for while it may still come."""
    marks = (text for texts in made.values() for text in texts if text.startswith(f"{SENTINEL}:"))
    return list(dict.fromkeys([*made.get("succeeded", ()), *marks]))


def _artifact(kind: ArtifactKind, names: tuple[str, ...], args: Mapping[str, Any]) -> str | None:
    """None where that is not known yet, or no such artifact can be."""
    value = next((args[name] for name in names if args.get(name)), None)
    if value is None or OPEN in str(value):
        return None
    try:
        return parse_artifact(f"{kind}:{value}").text
    except InvalidInputError:
        return None
