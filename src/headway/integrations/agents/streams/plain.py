"""Programs without a format of their own: lines of JSON as any program can write them, or text.

Of `jsonl` a line with `"type"` counts: `turn` (one more), `denied` (`tool`), `error` (`message`,
`class`), `usage` (all so far: `input`, `cached`, `output`, `cost_usd`), and `result` with any of
`ok`, `error`, `class`, `text`, `session_id`, `model`, `turns`, `usage`, `cost_usd`, `denials`. All
are optional, and every other line is text.
"""

from __future__ import annotations

from headway.core.retry_causes import OF_AGENTS
from headway.integrations.agents.streams.base import (
    AgentReport,
    count_or_none,
    sum_or_none,
    text_or_none,
    within,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TextReport(AgentReport):
    """Its whole output is its answer, and its exit code the verdict."""

    needs_a_result = False

    def read(self, line: str) -> None:
        self.plain(line)

    def plain(self, line: str) -> None:
        self._answer.add(line)


class LinesReport(TextReport):
    def read(self, line: str) -> None:
        AgentReport.read(self, line)

    def line(self, document: dict[str, Any]) -> None:
        match document.get("type"):
            case "turn":
                self.turn()
            case "denied":
                self.deny(document.get("tool"), document.get("detail"))
            case "error":
                self.stumble(document.get("message"), _class_in(document))
            case "usage":
                self._uses(document)
            case "result":
                self._result(document)

    def _uses(self, usage: dict[str, Any]) -> None:
        """All that it used so far."""
        self.cost_usd = _later(usage.get("cost_usd"), self.cost_usd)
        self.spent(
            given=usage.get("input"),
            cached=usage.get("cached"),
            written=usage.get("output"),
            reasoning=usage.get("reasoning"),
        )

    def _result(self, document: dict[str, Any]) -> None:
        self.end()
        self.session_id = text_or_none(document.get("session_id"))
        self.model = text_or_none(document.get("model"))
        turns = count_or_none(document.get("turns"))
        self.turns = self.turns if turns is None else turns
        self.cost_usd = _later(document.get("cost_usd"), self.cost_usd)
        if usage := within(document, "usage"):
            self._uses(usage)
        denials = document.get("denials")
        for each in denials if isinstance(denials, list) else ():
            self.deny(each.get("tool") if isinstance(each, dict) else each)
        if "text" in document:
            self.answer(document["text"])
        if document.get("error") or document.get("ok") not in (None, True):
            self.fail(document.get("error"), _class_in(document))


def _later(value: object, before: float | None) -> float | None:
    said = sum_or_none(value)
    return before if said is None else said


def _class_in(document: dict[str, Any]) -> str | None:
    error_class = document.get("class")
    return error_class if error_class in OF_AGENTS else None
