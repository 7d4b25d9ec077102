"""The locks of nodes that say none: each only as wide as what it writes."""

from typing import Any

import pytest

from headway.core.model import LockMode
from headway.workflows.labels import LABELS
from headway.workflows.locks import default_locks

BUILTIN, SHELL = "cap.env.builtin.", "cap.env.shell."
SHARING = LockMode.SHARED
TREE, ALONE, SHARED = "worktree:wf-7/tree", "checkout:R", "checkout:R:shared"


@pytest.mark.req("V101")
@pytest.mark.parametrize(
    ("label", "args", "in_repository", "in_worktree"),
    [
        (SHELL + "command.run", {}, [SHARED], [TREE]),
        (SHELL + "cicd.run", {}, [SHARED], [TREE]),
        ("control.gate.cicd", {}, [SHARED], [TREE]),
        ("control.gate.stop_condition", {}, [SHARED], [TREE]),
        ("cap.agent.invoke", {}, [ALONE], [TREE]),
        (BUILTIN + "git.stage_commit", {}, [ALONE], [TREE]),
        (BUILTIN + "patch.execute_pipeline", {}, [ALONE], [TREE]),
        (BUILTIN + "worktree.prepare", {"slug": "s"}, ["branch:draft/s"], [TREE, "branch:draft/s"]),
        (BUILTIN + "worktree.prepare", {"branch": "b"}, ["branch:b"], [TREE, "branch:b"]),
        (BUILTIN + "plan.persist", {"slug": "s"}, ["branch:draft/s"], [TREE, "branch:draft/s"]),
        (
            BUILTIN + "git.integrate_plan_branch",
            {"slug": "s", "target": "main"},
            ["branch:draft/s", "branch:main", ALONE],
            [TREE, "branch:draft/s", "branch:main", ALONE],
        ),
        ("control.gate.conflict_resolution", {"slug": "s"}, ["branch:draft/s"], None),
        ("control.gate.approval", {}, [], []),
        ("control.terminal", {}, [], []),
        (BUILTIN + "prompt.resolve", {}, [], []),
        (SHELL + "prompt.resolve", {}, [], []),
    ],
)
def test_a_node_locks_what_it_writes(
    label: str, args: dict[str, Any], in_repository: list[str], in_worktree: list[str] | None
) -> None:
    def locks(root: str | None) -> list[str]:
        found = default_locks(LABELS[label], args, root=root, run="wf-7", repository="R")
        return [f"{each.key}:shared" if each.mode is SHARING else each.key for each in found]

    assert locks(None) == in_repository
    if in_worktree is not None:
        assert locks("tree") == in_worktree


def test_a_branch_is_no_mode_of_a_lock() -> None:
    label = LABELS[BUILTIN + "worktree.prepare"]
    args = {"branch": "shared"}
    (lock,) = default_locks(label, args, root=None, run="wf-7", repository="R")
    assert lock == ("branch:shared", LockMode.EXCLUSIVE)
