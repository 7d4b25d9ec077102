"""Gemini CLI: `--output-format stream-json`. The last line has `type: result`."""

from __future__ import annotations

from headway.integrations.agents.streams.base import AgentReport, one_line, text_or_none, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXITS = {41: "auth", 42: "task", 44: "task", 52: "task", 53: "limit"}
# What it says of a tool that it may not use, and of one that it has not at all in this mode.
DENIED = ("policy_violation", "tool_not_registered", "execution_denied")


class GeminiReport(AgentReport):
    def __init__(self) -> None:
        super().__init__()
        self._answering = False
        self._tools: dict[str, str] = {}

    def line(self, document: dict[str, Any]) -> None:
        match document.get("type"):
            case "init":
                self.session_id = text_or_none(document.get("session_id"))
                self.model = text_or_none(document.get("model"))
            case "message" if document.get("role") == "assistant":
                self._message(document)
            case "tool_use":
                self._answers()
                if len(self._tools) < 1000:
                    name = one_line(document.get("tool_name"))[:200]
                    self._tools[one_line(document.get("tool_id"))] = name
            case "tool_result":
                self._tool_result(document)
            case "error":
                self._error(document)
            case "result":
                self._result(document)

    def exit_class(self, code: int) -> str | None:
        return EXITS.get(code)

    def _answers(self) -> bool:
        """Count a turn when the model begins to answer."""
        begins = not self._answering
        if begins:
            self._answering = True
            self.turn()
        return begins

    def _message(self, document: dict[str, Any]) -> None:
        """Parts of one answer follow each other."""
        text = document.get("content")
        if self._answers() or not document.get("delta"):
            self._answer.begin_with("")
        if isinstance(text, str):
            self._answer.add(text)

    def _tool_result(self, document: dict[str, Any]) -> None:
        self._answering = False
        tool = self._tools.pop(one_line(document.get("tool_id")), "a tool")
        error = within(document, "error")
        if document.get("status") == "error" and error.get("type") in DENIED:
            self.deny(tool, error.get("message"))

    def _error(self, document: dict[str, Any]) -> None:
        message = one_line(document.get("message"))
        if "loop detected" in message.lower() or "turns" in message.lower():
            self.fail(message, "limit")
        elif document.get("severity") == "error":
            self.fail(message)

    def _result(self, document: dict[str, Any]) -> None:
        self.end()
        stats = within(document, "stats")
        self.spent(
            given=stats.get("input_tokens"),
            cached=stats.get("cached"),
            written=stats.get("output_tokens"),
        )
        models = within(stats, "models")
        if len(models) == 1:
            self.model = text_or_none(next(iter(models)))
        if document.get("status") != "success":
            error = document.get("error")
            self.fail(error.get("message") if isinstance(error, dict) else error)
