"""The scene of the starters draft, approve and merge: the repository, what the agent does, and the
story from a specification to a merged branch.

Stand-in agents play it in `test_three_stages.py`, the real programs in
`integrations/agents/real_programs.py`. As a program this is such a stand-in: it reads its prompt,
writes the files, and prints its result as a line of JSON.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from scratch import Scratch

SLUG = "login"
SPEC = "People must be able to log in."
PLAN = "# The plan\n\n1. write feature.txt"
CHECKS = "test:\n\t@grep -q fixed feature.txt || { echo 'feature is not ok'; exit 1; }\n"
COST_USD = 0.1  # of each answer of a stand-in


class AgentAnswer(NamedTuple):
    """What the agent says in the end, and the files that it writes before."""

    text: str
    files: Mapping[str, str] = {}


def answer_to(prompt: str) -> AgentAnswer:
    """It plans; it writes what is wrong, until it is told what the checks said; and it merges."""
    if "Write a plan" in prompt:
        return AgentAnswer(PLAN)
    if "Implement the plan" in prompt:
        told = "feature is not ok" in prompt
        feature = "fixed\n" if told else "broken\n"
        return AgentAnswer("done", {"notes.txt": "by the agent\n", "feature.txt": feature})
    if "A merge of git has met conflicts" in prompt:
        return AgentAnswer("resolved", {"notes.txt": "by a person\nby the agent\n"})
    return AgentAnswer("all is well")


class StageRun(Protocol):
    """A run of one stage."""

    @property
    def document(self) -> dict[str, Any]: ...
    def node(self, name: str) -> dict[str, Any]: ...
    def job(self, name: str) -> int: ...
    def ended(self) -> dict[str, Any]: ...


class Stage(Protocol):
    """Where the story is played: by a stepped worker, or by the real program."""

    scratch: "Scratch"

    def start(self, starter: str, **params: str) -> StageRun: ...
    def until(self, condition: Callable[[], Any], what: str) -> Any: ...
    def approve(self, job: int) -> None: ...
    def chain(self, job: int) -> list[dict[str, Any]]: ...


def play(stage: Stage) -> list[dict[str, Any]]:
    """From a specification to a merged branch, with a red check that the agent repairs, a person
    who agrees, and a conflict. The documents of the three runs."""
    scratch = stage.scratch
    scratch.write("Makefile", CHECKS)
    scratch.write("notes.txt", "before\n")
    scratch.commit("checks")

    draft = stage.start("draft", spec=SPEC)
    assert draft.ended()["state"] == "succeeded", draft.document
    plan = scratch.git("show", f"draft/{SLUG}:.headway/plans/{SLUG}.md")
    assert PLAN in plan and SPEC in plan

    approve = stage.start("approve")
    stage.until(lambda: approve.node("agree")["state"] == "waiting_on_approval", "the question")
    assert approve.node("implement")["state"] != "running"
    stage.approve(approve.job("agree"))
    assert approve.ended()["state"] == "succeeded", approve.document
    assert approve.node("ci")["pass"] == 2, "red, then green"
    assert scratch.git("show", f"draft/{SLUG}:feature.txt") == "fixed"

    scratch.write("notes.txt", "by a person\n")
    scratch.commit("a person works on the same file")
    merge = stage.start("merge")
    assert merge.ended()["state"] == "succeeded", merge.document
    resolved, not_needed = stage.chain(merge.job("resolve"))
    assert resolved["workflow"]["outcome"] == "succeeded"
    assert not_needed["workflow"]["outcome"] == "skipped"
    assert merge.node("integrate")["pass"] == 2 and merge.node("ci")["pass"] == 2
    assert (scratch.path / "notes.txt").read_text() == "by a person\nby the agent\n"
    assert (scratch.path / "feature.txt").read_text() == "fixed\n"
    message = scratch.git("log", "-1", "--format=%B", "main")
    assert PLAN in message, "the plan is in the message"
    assert scratch.git("ls-tree", "-r", "--name-only", "main").count(f"plans/{SLUG}.md") == 0
    assert scratch.git("status", "--porcelain", "--untracked-files=no") == ""
    return [draft.document, approve.document, merge.document]


def main() -> None:
    answer = answer_to(sys.stdin.read())
    for name, text in answer.files.items():
        Path(name).write_text(text)
    said = {"type": "result", "text": answer.text, "cost_usd": COST_USD}
    sys.stdout.write(f"{json.dumps(said)}\n")


if __name__ == "__main__":
    main()
