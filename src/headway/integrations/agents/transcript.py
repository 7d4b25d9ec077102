"""The stream of an agent as lines for people: what it says, the tools it uses, what goes wrong.

Bytes of the log go in as they come, and text comes out. A line that is no document of the format
passes as it is. Control characters never do: a stream has them escaped, and here they would act.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from headway.base.text import plain, shortened
from headway.integrations.agents.process import Lines
from headway.integrations.agents.streams.base import UNREADABLE, one_line, within

# What a tool was given is told by the first of these that it has, else by all of it.
TELLING = ("command", "file_path", "path", "pattern", "query", "url", "prompt", "description")


class Said(NamedTuple):
    """A whole text."""

    text: str


class ResultText(NamedTuple):
    """The text of a result. It often repeats what was said last; then it is left out."""

    text: str


class Piece(NamedTuple):
    """A text that goes on from the piece before it."""

    text: str


class Used(NamedTuple):
    """A tool, and what it was given."""

    tool: str
    detail: str = ""


class Trouble(NamedTuple):
    text: str


Entry = Said | ResultText | Piece | Used | Trouble


class Transcript:
    """Feed it the bytes of one stream, in order."""

    def __init__(self, parser: str, room: int) -> None:
        """Lines about tools and troubles are cut to `room` cells; what the agent says never is."""
        self._entries = FORMATS[parser]
        self._room = room
        self._lines = Lines()
        self._last_said = ""
        self._goes_on = False  # a piece has been written, and no end of its line

    def feed(self, data: bytes) -> bytes:
        shown = "".join(self._shown(line) for line in self._lines.feed(data))
        return shown.encode(errors="replace")

    def end(self) -> bytes:
        rest = "".join(self._shown(line) for line in self._lines.end())
        return (rest + self._end_of_pieces()).encode(errors="replace")

    def _shown(self, line: str) -> str:
        if not line.strip():
            return ""
        try:
            document = json.loads(line) if line.lstrip().startswith("{") else None
            if isinstance(document, dict):
                return "".join(self._written(entry) for entry in self._entries(document))
        except UNREADABLE:
            pass  # no document of this format, so it is text
        return self._said(line)

    def _written(self, entry: Entry) -> str:
        match entry:
            case Piece(text):
                self._goes_on = bool(text) and not text.endswith("\n")
                return _clean(text)
            case Said(text):
                return self._said(text)
            case ResultText(text):
                return "" if text.strip() == self._last_said else self._said(text)
            case Used(tool, detail):
                return self._whole_lines(self._cut(f"> {tool} {detail}"))
            case Trouble(text):
                return self._whole_lines(self._cut(f"! {text}")) if text else ""

    def _said(self, text: str) -> str:
        self._last_said = text.strip()
        return self._whole_lines(text.strip("\r\n")) if self._last_said else ""

    def _whole_lines(self, text: str) -> str:
        return f"{self._end_of_pieces()}{_clean(text)}\n"

    def _end_of_pieces(self) -> str:
        goes_on, self._goes_on = self._goes_on, False
        return "\n" if goes_on else ""

    def _cut(self, text: str) -> str:
        return shortened(plain(" ".join(text.split())), self._room)


def _clean(text: str) -> str:
    return "\n".join(plain(line.expandtabs().rstrip("\r")) for line in text.split("\n"))


def _of_claude(document: Mapping[str, Any]) -> Iterator[Entry]:
    match document.get("type"), document.get("subtype"):
        case "system", "permission_denied":
            yield Trouble(f"denied {one_line(document.get('tool_name'))}")
        case "assistant" | "user", _:
            content = within(dict(document), "message").get("content")
            for part in content if isinstance(content, list) else ():
                if isinstance(part, dict):
                    yield from _part_of_claude(part)
        case "result", _:
            if not document.get("is_error"):  # the verdict tells of that
                yield ResultText(_text(document.get("result")))


def _part_of_claude(part: Mapping[str, Any]) -> Iterator[Entry]:
    match part.get("type"):
        case "text":
            yield Said(_text(part.get("text")))
        case "tool_use":
            yield Used(one_line(part.get("name")) or "a tool", _given(part.get("input")))
        case "tool_result" if part.get("is_error"):
            yield Trouble(one_line(part.get("content")))


def _of_codex(document: Mapping[str, Any]) -> Iterator[Entry]:
    item = within(dict(document), "item")
    match document.get("type"), item.get("type"):
        case "item.completed", "agent_message":
            yield Said(_text(item.get("text")))
        case "item.completed", "file_change":
            changes = item.get("changes")
            paths = [
                one_line(each.get("path"))
                for each in (changes if isinstance(changes, list) else ())
                if isinstance(each, dict)
            ]
            yield Used("file_change", ", ".join(paths))
        case "item.completed", "error":
            yield Trouble(one_line(item.get("message")))
        case "item.completed", kind if item.get("status") in ("failed", "declined"):
            code = item.get("exit_code")
            ended = f" (exit {code})" if isinstance(code, int) else ""
            yield Trouble(f"{one_line(kind)} {item['status']}{ended}")
        case "item.started", "command_execution":
            yield Used("command", one_line(item.get("command")))
        case "item.started", "mcp_tool_call":
            tool = f"{one_line(item.get('server'))}.{one_line(item.get('tool'))}"
            yield Used(tool, _given(item.get("arguments")))
        case "item.started", "web_search":
            yield Used("web_search", one_line(item.get("query")))
        case "error", _:
            yield Trouble(one_line(document.get("message")))


def _of_gemini(document: Mapping[str, Any]) -> Iterator[Entry]:
    match document.get("type"):
        case "message" if document.get("role") == "assistant":
            text = _text(document.get("content"))
            yield Piece(text) if document.get("delta") else Said(text)
        case "tool_use":
            name = one_line(document.get("tool_name")) or "a tool"
            yield Used(name, _given(document.get("parameters")))
        case "tool_result" if document.get("status") == "error":
            yield Trouble(one_line(within(dict(document), "error").get("message")))
        case "error":
            yield Trouble(one_line(document.get("message")))


def _of_lines(document: Mapping[str, Any]) -> Iterator[Entry]:
    match document.get("type"):
        case "turn":
            return
        case "denied":
            yield Trouble(f"denied {one_line(document.get('tool'))}")
        case "error":
            yield Trouble(one_line(document.get("message")))
        case "result":
            yield ResultText(_text(document.get("text")))
        case _:
            raise ValueError("every other line is text")


FORMATS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Entry]]] = {
    "claude-stream-json": _of_claude,
    "codex-jsonl": _of_codex,
    "gemini-stream-json": _of_gemini,
    "jsonl": _of_lines,
}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _given(value: object) -> str:
    """In a few words, what a tool was given."""
    if not isinstance(value, dict) or not value:
        return ""
    return one_line(next((value[key] for key in TELLING if value.get(key)), value))
