"""Programs without a format of their own: lines of JSON as any program can write them, or text.

Of `jsonl` a line with `"type"` counts: `turn` (one more), `denied` (`tool`), `error` (`message`,
`class`), and `result` with any of `ok`, `error`, `class`, `text`, `session_id`, `model`, `turns`,
`usage`, `cost_usd`, `denials`. All are optional, and every other line is text.
"""

from __future__ import annotations

from headway.retrying import OF_AGENTS
from headway.runners.streams.base import LONGEST_TEXT, Told, text_or_none, whole, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class TextTold(Told):
    """Its whole output is its answer, and its exit code the verdict."""

    needs_a_result = False

    def read(self, line: str) -> None:
        self.plain(line)

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._length = 0
        super().__init__()

    @property
    def final_text(self) -> str:
        return "".join(self._lines)[-LONGEST_TEXT:]

    @final_text.setter
    def final_text(self, text: str) -> None:
        self._lines, self._length = [text], len(text)

    def plain(self, line: str) -> None:
        """Cut only now and then, so that many short lines cost little."""
        self._lines.append(line)
        self._length += len(line)
        if self._length > 2 * LONGEST_TEXT:
            self.final_text = self.final_text


class LinesTold(TextTold):
    def read(self, line: str) -> None:
        Told.read(self, line)

    def line(self, document: dict[str, Any]) -> None:
        match document.get("type"):
            case "turn":
                self.turn()
            case "denied":
                self.deny(document.get("tool"), document.get("detail"))
            case "error":
                self._failed(document, document.get("message"))
            case "result":
                self._result(document)

    def _failed(self, document: dict[str, Any], words: object) -> None:
        error_class = document.get("class")
        self.fail(words, error_class if error_class in OF_AGENTS else None)

    def _result(self, document: dict[str, Any]) -> None:
        self.finished = True
        self.session_id = text_or_none(document.get("session_id"))
        self.model = text_or_none(document.get("model"))
        if isinstance(document.get("turns"), int):
            self.turns = whole(document["turns"])
        if isinstance(document.get("cost_usd"), int | float):
            self.cost_usd = float(document["cost_usd"])
        if usage := within(document, "usage"):
            self.spent(
                given=usage.get("input"),
                cached=usage.get("cached"),
                written=usage.get("output"),
                reasoning=usage.get("reasoning"),
            )
        denials = document.get("denials")
        for each in denials if isinstance(denials, list) else ():
            self.deny(each.get("tool") if isinstance(each, dict) else each)
        if "text" in document:
            self.answer(document["text"])
        if document.get("error") or document.get("ok") is False:
            self._failed(document, document.get("error"))
        else:
            self.error = None
