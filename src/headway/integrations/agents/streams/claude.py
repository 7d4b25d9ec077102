"""Claude Code: `--output-format stream-json`. The last line has `type: result` and says it all."""

from __future__ import annotations

from headway.integrations.agents.budget import USED_UP
from headway.integrations.agents.streams.base import (
    AgentReport,
    class_of,
    count_or_none,
    one_line,
    sum_or_none,
    text_or_none,
    whole,
    within,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMITS = {
    "error_max_turns": "it used up its turns",
    "error_max_budget_usd": USED_UP,
}


class ClaudeReport(AgentReport):
    def __init__(self) -> None:
        super().__init__()
        self._last_message: object = None
        self._before: list[int] = [0, 0, 0, 0]  # what the messages before this one have used
        self._used: list[int] = [0, 0, 0, 0]
        self._denied: list[dict[str, Any]] = []  # from results, which say more than the lines

    def line(self, document: dict[str, Any]) -> None:
        self.session_id = text_or_none(document.get("session_id")) or self.session_id
        match document.get("type"), document.get("subtype"):
            case "system", "init":
                self.model = text_or_none(document.get("model"))
                self.version = text_or_none(document.get("claude_code_version"))
            case "system", "permission_denied":
                self.deny(document.get("tool_name"))
            case "assistant", _:
                self._said_by_the_model(within(document, "message"))
            case "result", _:
                self._result(document)

    def _said_by_the_model(self, message: dict[str, Any]) -> None:
        """One message comes in several lines."""
        if message.get("id") != self._last_message:
            self._last_message = message.get("id")
            self._before = self._used
            self.turn()
        if usage := within(message, "usage"):
            self._uses(usage)
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "text":
                self.answer(part.get("text"))

    def _uses(self, usage: dict[str, Any]) -> None:
        """What the stream shows while it goes on; its last line has the whole."""
        kinds = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        now = [whole(usage.get(kind)) for kind in (*kinds, "output_tokens")]
        self._used = [old + new for old, new in zip(self._before, now, strict=True)]
        given, cached, made, written = self._used
        self.spent(given=given, cached=cached, written=written, besides=cached + made)

    def _result(self, document: dict[str, Any]) -> None:
        self.end()
        turns = count_or_none(document.get("num_turns"))
        self.turns = self.turns if turns is None else turns
        self.cost_usd = sum_or_none(document.get("total_cost_usd"))
        usage = within(document, "usage")
        cached = usage.get("cache_read_input_tokens")
        self.spent(
            given=usage.get("input_tokens"),
            cached=cached,
            written=usage.get("output_tokens"),
            reasoning=within(usage, "output_tokens_details").get("thinking_tokens"),
            besides=whole(cached) + whole(usage.get("cache_creation_input_tokens")),
        )
        self.answer(document.get("result"))
        denied = document.get("permission_denials")
        if isinstance(denied, list):
            self.denials = list(self._denied)
            for each in denied:
                if isinstance(each, dict):
                    self.deny(each.get("tool_name"), each.get("tool_input"))
            self._denied = list(self.denials)
        subtype, status = document.get("subtype"), document.get("api_error_status")
        if isinstance(subtype, str) and subtype in LIMITS:
            self.fail(LIMITS[subtype], "limit")
        elif document.get("is_error") or (isinstance(subtype, str) and subtype != "success"):
            words = one_line(document.get("result") or document.get("errors") or subtype)
            self.fail(words, class_of(words, status))
