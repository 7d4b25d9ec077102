"""OpenAI Codex: `codex exec --json`.

It has one turn for a whole job, so what is counted as a turn here is each answer of the model, as
far as the stream shows it: what it says or does until the result of something it did. An `error` is
not final, since it connects again; `turn.failed` is.
"""

from __future__ import annotations

import re

from headway.integrations.agents.streams.base import (
    LONGEST_SAID,
    AgentReport,
    one_line,
    text_or_none,
    within,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SAYINGS = ("agent_message", "reasoning")
NO_WORK = ("error", "todo_list")
# A refused tool is reported on standard error alone.
_REJECTED = re.compile(r"codex_core::tools.*\berror=(.*\breject.*)")


class CodexReport(AgentReport):
    def __init__(self) -> None:
        super().__init__()
        self._answering = False

    def line(self, document: dict[str, Any]) -> None:
        match document.get("type"):
            case "thread.started":
                self.session_id = text_or_none(document.get("thread_id"))
            case "item.started" | "item.completed" as kind:
                self._item(within(document, "item"), ended=kind == "item.completed")
            case "turn.started":
                self.finished = False  # its end must come, too
            case "turn.completed":
                self._completed(within(document, "usage"))
            case "turn.failed":
                self.end()
                error = document.get("error")
                self.fail(error.get("message") if isinstance(error, dict) else error)
            case "error":
                self.said(one_line(document.get("message")))

    def said(self, line: str) -> None:
        super().said(line)
        found = _REJECTED.search(line[:LONGEST_SAID])
        if found:
            self.deny("a command", found[1])

    def _item(self, item: dict[str, Any], *, ended: bool) -> None:
        kind = item.get("type")
        if kind in NO_WORK:
            return
        if not self._answering:
            self._answering = True
            self.turn()
        if kind == "agent_message":
            self.answer(item.get("text"))
        elif ended and item.get("status") == "declined":
            self.deny(kind, item.get("command"))
        if ended and kind not in SAYINGS:
            self._answering = False

    def _completed(self, usage: dict[str, Any]) -> None:
        self.end()
        self.spent(
            given=usage.get("input_tokens"),
            cached=usage.get("cached_input_tokens"),
            written=usage.get("output_tokens"),
            reasoning=usage.get("reasoning_output_tokens"),
        )
