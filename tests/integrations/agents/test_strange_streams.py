"""Whatever an agent prints or leaves, its result is written: strange lines, random ones, bytes."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_streams import CLAUDE, report, result, verdict

from headway.integrations.agents.model import PARSERS
from headway.integrations.agents.process import Lines, read_line
from headway.integrations.agents.streams import report_of
from headway.integrations.agents.streams.base import LONGEST_TEXT, AgentReport
from headway.integrations.agents.verdict import (
    ProcessEnd,
    added_by_agent,
    judge,
    result_document,
    summary_line,
)
from headway.integrations.agents.wrapper import _written_by_agent
from headway.supervise.folder import Folder


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(
    "line",
    [
        "",
        "\x00\x1b[2J",
        "[" * 100_000,
        '{"type": ' * 20_000,
        '{"type": {"a": 1}}',
        '{"type": ["result"], "usage": 3}',
        '{"type": "result", "usage": 3, "stats": [], "permission_denials": 5, "num_turns": "x"}',
        '{"type": "assistant", "message": {"id": {}, "content": [1, null, {"type": "text"}]}}',
        '{"type": "item.completed", "item": []}',
        '{"type": "turn.failed", "error": ["a"]}',
        '{"type": "tool_result", "status": "error", "error": "x", "tool_id": {}}',
        '{"type": "message", "role": "assistant", "content": {"a": 1}}',
        '{"type": "result", "cost_usd": true, "denials": [null, {}], "text": 4, "turns": -3}',
        f'{{"type": "result", "num_turns": {"9" * 5000}}}',
        f'{{"type": "result", "cost_usd": {"9" * 400}, "total_cost_usd": {"9" * 400}}}',
        f'{{"type": "result", "turns": {"9" * 4300}, "num_turns": {"9" * 4300}}}',
        '{"type": "result", "cost_usd": NaN, "total_cost_usd": -Infinity}',
        '{"type": "result", "cost_usd": 1e999, "total_cost_usd": 1e999, "usage": {"input": 1e999}}',
        '{"type": "result", "session_id": "\\ud800", "text": "\\udfff", "result": "\\udfff"}',
        "codex_core::tools error=" * 100_000,
    ],
)
def test_no_line_is_too_strange_to_be_read(parser: str, line: str) -> None:
    story = report(parser, line, {"type": "turn"}, said=line)
    assert written(story)["unreadable_lines"] == story.unreadable
    assert len(story.final_text) <= LONGEST_TEXT


def written(story: AgentReport, code: int = 0) -> dict[str, Any]:
    """The result as it stands in its file, which every reader of JSON can read."""
    ending = ProcessEnd(code, None, None)
    judged = judge("r", story, ending, denials="fail")
    document = result_document({"runner": "r", "model": None}, story, ending, judged, {})
    summary_line(document).encode(errors="replace")
    found: dict[str, Any] = json.loads(json.dumps(document, indent=1, allow_nan=False))
    return found


KEYS = (
    *("type", "subtype", "id", "message", "content", "text", "result", "is_error", "usage"),
    *("num_turns", "turns", "total_cost_usd", "cost_usd", "permission_denials", "denials"),
    *("tool_name", "tool_input", "tool", "tool_id", "item", "status", "error", "stats", "models"),
    *("role", "delta", "severity", "class", "session_id", "input_tokens", "input", "ok", "errors"),
)
WORDS = (
    *("system", "init", "assistant", "result", "error", "text", "success", "error_max_turns"),
    *("item.started", "item.completed", "turn.completed", "turn.failed", "thread.started"),
    *("tool_use", "tool_result", "turn", "denied", "agent_message", "declined", "user", "auth"),
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=12,
)
DOCUMENTS = st.builds(
    lambda kind, rest: {**rest, "type": kind},
    st.sampled_from(WORDS) | VALUES,
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6),
)


@settings(max_examples=80, deadline=None)
@given(lines=st.lists(DOCUMENTS.map(json.dumps), max_size=3))
def test_no_story_is_too_strange_to_be_written_down(lines: list[str]) -> None:
    for parser in PARSERS:
        story = report_of(parser)
        for line in lines:
            story.read(line + "\n")
            story.said(line)
        assert len(written(story)["final_text"]) <= LONGEST_TEXT
        assert len(written(story, 3)["reason"]) <= 600


@settings(max_examples=80, deadline=None)
@given(chunks=st.lists(st.binary(max_size=200), max_size=8))
def test_no_bytes_are_too_strange_to_be_read(chunks: list[bytes]) -> None:
    for parser in PARSERS:
        story, lines = report_of(parser), Lines(longest=100)
        for chunk in chunks:
            for line in lines.feed(chunk):
                story.read(line)
                story.said(line)
        for line in lines.end():
            story.read(line)
        written(story)


class Broken(AgentReport):
    """A reader with a mistake of its own."""

    def line(self, document: dict[str, Any]) -> None:
        self.finished = True
        raise document["raises"]

    def read(self, line: str) -> None:
        if line == "worse":
            raise RuntimeError(line)
        super().read(line)

    def said(self, line: str) -> None:
        raise RuntimeError(line)


def test_a_mistake_in_reading_a_line_is_a_line_that_was_not_understood() -> None:
    story = Broken()
    read_line(story, 1, "worse")
    read_line(story, 2, "words")
    read_line(story, 1, '{"raises": 1}')
    assert story.unreadable == 3
    assert verdict(story) == ("task", "r: its result cannot be read"), "so it is no success"


def test_an_error_whose_kind_cannot_be_read_is_an_error() -> None:
    assert verdict(report(CLAUDE, result(subtype=["x"], is_error=True, result="no"))) == (
        "task",
        "r: no",
    )


@pytest.mark.parametrize(
    "content",
    [
        '{"structured": NaN}',
        '{"structured": 1e999}',
        '{"structured": ' + "[" * 20_000 + "]" * 20_000 + "}",
        '{"structured": ' + "9" * 5000 + "}",
        '"\\ud800',
        "x" * (65 << 10),
    ],
)
def test_what_an_agent_adds_and_nobody_could_write_again_is_nothing(
    tmp_path: Path, content: str
) -> None:
    (tmp_path / "agent.json").write_text(content)
    tmp_path.chmod(0o700)
    with Folder(str(tmp_path)) as folder:
        assert _written_by_agent(folder, "agent.json") is None
        (tmp_path / "agent.json").write_text('{"structured": [[1]]}')
        assert _written_by_agent(folder, "agent.json") == {"structured": [[1]]}


def test_what_an_agent_adds_may_nest_only_so_deeply_that_every_reader_can_follow() -> None:
    def nested(levels: int) -> Any:
        return json.loads("[" * levels + "]" * levels)

    assert added_by_agent({"structured": nested(100)}) == {"structured": nested(100)}
    for levels in (101, 500, 900):
        assert added_by_agent({"structured": nested(levels), "summary": "s"}) == {"summary": "s"}
        assert added_by_agent({"artifacts": nested(levels), "summary": "s"}) == {"summary": "s"}
