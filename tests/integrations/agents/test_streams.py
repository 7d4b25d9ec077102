"""What lines of the real programs mean: as they printed them, shortened."""

import json
from typing import Any

import pytest

from headway.integrations.agents.model import PARSERS
from headway.integrations.agents.process import Lines
from headway.integrations.agents.streams import report_of
from headway.integrations.agents.streams.base import (
    LONGEST_TEXT,
    MOST_DENIALS,
    AgentReport,
    Tail,
    class_of,
)
from headway.integrations.agents.verdict import (
    ProcessEnd,
    Stopped,
    added_by_agent,
    classes,
    exit_code,
    judge,
    summary_line,
)

CLAUDE, CODEX, GEMINI = PARSERS[:3]


def report(parser: str, *lines: Any, said: str = "") -> AgentReport:
    story = report_of(parser)
    for line in lines:
        story.read(line if isinstance(line, str) else json.dumps(line) + "\n")
    if said:
        story.said(said)
    return story


def result(**more: Any) -> dict[str, Any]:
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "num_turns": 3,
        "result": "done",
        "session_id": "s1",
        "total_cost_usd": 0.5,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 2},
        **more,
    }


def verdict(
    story: AgentReport, code: int = 0, *, signal: str | None = None
) -> tuple[str | None, str]:
    judged = judge("r", story, ProcessEnd(None if signal else code, signal, None), denials="fail")
    return judged.error_class, judged.reason or ""


@pytest.mark.parametrize(
    ("line", "code", "error_class", "words"),
    [
        (result(), 0, None, ""),
        (result(), 1, "task", "exit code 1"),
        (result(subtype="error_max_turns", is_error=True), 1, "limit", "used up its turns"),
        (result(subtype="error_max_budget_usd", is_error=True), 1, "limit", "budget"),
        (result(subtype="error_during_execution", is_error=True, result=None), 1, "task", "error"),
        (result(is_error=True, api_error_status=401, result="API Error"), 1, "auth", "API Error"),
        (result(is_error=True, api_error_status=529, result="no"), 1, "transient", "no"),
        (result(is_error=True, api_error_status=429, result="no"), 1, "transient", "no"),
        # Nobody is logged in: exit 1, and yet the subtype is success.
        (
            result(is_error=True, result="Not logged in · Please run /login"),
            1,
            "auth",
            "Not logged in",
        ),
        (result(is_error=True, result=""), 0, "task", "success"),
        (
            result(permission_denials=[{"tool_name": "Bash", "tool_input": {"command": "rm"}}]),
            0,
            "permission",
            "was denied Bash",
        ),
        ({"type": "system", "subtype": "init"}, 0, "task", "without telling a result"),
    ],
)
def test_claude(line: Any, code: int, error_class: str | None, words: str) -> None:
    found, reason = verdict(report(CLAUDE, line), code)
    assert found == error_class
    assert words in reason


def test_claude_tells_of_itself() -> None:
    init = {"type": "system", "subtype": "init", "model": "m", "claude_code_version": "2.1"}
    message = {"id": "a", "content": [{"type": "text", "text": "first"}, {"type": "tool_use"}]}
    again = {"id": "b", "content": [{"type": "text", "text": "second"}]}
    lines = [init, *({"type": "assistant", "message": each} for each in (message, message, again))]
    story = report(CLAUDE, *lines)
    assert (story.model, story.version, story.turns, story.final_text) == ("m", "2.1", 2, "second")
    story.read(json.dumps(result()))
    assert (story.turns, story.cost_usd, story.session_id) == (3, 0.5, "s1")
    assert story.usage == {"input": 10, "cached": 4, "output": 2, "reasoning": 0}


@pytest.mark.parametrize(
    ("lines", "code", "error_class", "words"),
    [
        ([{"type": "turn.completed", "usage": {"input_tokens": 3}}], 0, None, ""),
        # An error is not final: it connects again.
        (
            [
                {"type": "error", "message": "Reconnecting... 1/5 (status 503)"},
                {"type": "turn.completed", "usage": {}},
            ],
            0,
            None,
            "",
        ),
        (
            [{"type": "turn.failed", "error": {"message": "unexpected status 503 Unavailable"}}],
            1,
            "transient",
            "503",
        ),
        (
            [{"type": "turn.failed", "error": {"message": "unexpected status 401 Unauthorized"}}],
            1,
            "auth",
            "401",
        ),
        ([{"type": "turn.failed", "error": None}], 1, "task", "without a word"),
        ([{"type": "turn.started"}], 0, "task", "without telling a result"),
        (
            [
                {
                    "type": "item.completed",
                    "item": {"type": "command_execution", "status": "declined", "command": "rm"},
                },
                {"type": "turn.completed", "usage": {}},
            ],
            0,
            "permission",
            "was denied command_execution",
        ),
    ],
)
def test_codex(lines: list[Any], code: int, error_class: str | None, words: str) -> None:
    found, reason = verdict(report(CODEX, *lines), code)
    assert found == error_class
    assert words in reason


def test_codex_counts_answers_and_not_items() -> None:
    def item(kind: str, state: str = "completed") -> dict[str, Any]:
        return {"type": f"item.{state}", "item": {"type": kind, "text": kind}}

    story = report(CODEX, item("error"), item("reasoning"), item("agent_message"))
    assert story.turns == 1
    for _ in range(2):
        story.read(json.dumps(item("command_execution", "started")))
        story.read(json.dumps(item("command_execution")))
    assert story.turns == 2, "the first one belongs to what was said before it"
    story.read(json.dumps(item("agent_message")))
    assert (story.turns, story.final_text) == (3, "agent_message")


def test_codex_tells_of_a_refused_command_on_standard_error() -> None:
    said = "2026-11-15T20:40:58Z ERROR codex_core::tools::router: error=approval policy is Never; "
    story = report(CODEX, {"type": "turn.completed", "usage": {}}, said=f"{said}reject command")
    assert verdict(story)[0] == "permission"


@pytest.mark.parametrize(
    ("lines", "code", "error_class", "words"),
    [
        ([{"type": "result", "status": "success", "stats": {}}], 0, None, ""),
        (
            [
                {
                    "type": "result",
                    "status": "error",
                    "error": {"message": '[API Error: {"error":{"code":401,"message":"no"}}]'},
                }
            ],
            145,
            "auth",
            "401",
        ),
        ([], 41, "auth", "exit code 41"),
        ([], 42, "task", "exit code 42"),
        ([], 53, "limit", "exit code 53"),
        (
            [
                {"type": "tool_use", "tool_name": "write_file", "tool_id": "1"},
                {
                    "type": "tool_result",
                    "tool_id": "1",
                    "status": "error",
                    "error": {"type": "policy_violation", "message": "no"},
                },
                {"type": "result", "status": "success", "stats": {}},
            ],
            0,
            "permission",
            "was denied write_file",
        ),
        (
            [
                {"type": "error", "severity": "warning", "message": "Loop detected, stopping"},
                {"type": "result", "status": "success", "stats": {}},
            ],
            0,
            "limit",
            "Loop detected",
        ),
        (
            [
                {"type": "error", "severity": "warning", "message": "something small"},
                {"type": "result", "status": "success", "stats": {}},
            ],
            0,
            None,
            "",
        ),
        ([{"type": "init"}], 0, "task", "without telling a result"),
    ],
)
def test_gemini(lines: list[Any], code: int, error_class: str | None, words: str) -> None:
    found, reason = verdict(report(GEMINI, *lines), code)
    assert found == error_class
    assert words in reason


def test_gemini_puts_the_parts_of_an_answer_together() -> None:
    def part(text: str) -> dict[str, Any]:
        return {"type": "message", "role": "assistant", "content": text, "delta": True}

    tool = {"type": "tool_use", "tool_name": "read_file", "tool_id": "1"}
    answer = {"type": "tool_result", "tool_id": "1", "status": "success"}
    story = report(GEMINI, part("let me "), part("see"), tool, answer, part("all "), part("well"))
    assert (story.turns, story.final_text) == (2, "all well")


@pytest.mark.parametrize(
    ("lines", "code", "error_class", "text"),
    [
        (["plain\n", "text\n"], 0, None, "plain\ntext\n"),
        (["plain\n"], 2, "task", "plain\n"),
        ([{"type": "result", "text": "done", "turns": 2}], 0, None, "done"),
        ([{"type": "result", "ok": False}], 0, "task", ""),
        ([{"type": "result", "error": "no", "class": "limit"}], 0, "limit", ""),
        ([{"type": "result", "error": "no", "class": "nonsense"}], 0, "task", ""),
        ([{"type": "error", "message": "HTTP status 503"}], 1, "transient", ""),
        ([{"type": "error", "message": "no"}, {"type": "result", "text": "ok"}], 0, None, "ok"),
        ([{"type": "result", "denials": ["Bash"]}], 0, "permission", ""),
    ],
)
def test_lines_of_any_program(lines: list[Any], code: int, error_class: str, text: str) -> None:
    story = report("jsonl", *lines)
    assert verdict(story, code)[0] == error_class
    assert story.final_text == text


CODEX_DONE = {"type": "turn.completed", "usage": {}}
CODEX_FAILED = {"type": "turn.failed", "error": {"message": "no"}}
GEMINI_DONE = {"type": "result", "status": "success", "stats": {}}
GEMINI_FAILED = {"type": "result", "status": "error", "error": {"message": "no"}}
LINES_DONE = {"type": "result", "ok": True, "text": "ok"}
LINES_FAILED = {"type": "result", "ok": False, "error": "no"}
CLAUDE_FAILED = result(is_error=True, result="no")
ENDS = [
    (CLAUDE, result(), CLAUDE_FAILED),
    (CLAUDE, result(), result(subtype="error_during_execution", result="no")),
    (CODEX, CODEX_DONE, CODEX_FAILED),
    (GEMINI, GEMINI_DONE, GEMINI_FAILED),
    ("jsonl", LINES_DONE, LINES_FAILED),
]


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(("parser", "done", "failed"), ENDS)
def test_a_result_that_tells_of_a_failure_is_final(
    parser: str, done: Any, failed: Any, code: int
) -> None:
    """However often, and in which order, results come."""
    for lines in ([failed], [failed, done], [done, failed], [failed, done, done]):
        error_class, reason = verdict(report(parser, *lines), code)
        assert error_class == "task" and reason.endswith("no"), lines


@pytest.mark.parametrize(("parser", "done", "failed"), ENDS)
def test_success_told_twice_is_success_unless_the_exit_code_says_otherwise(
    parser: str, done: Any, failed: Any
) -> None:
    assert verdict(report(parser, done, done)) == (None, "")
    assert verdict(report(parser, done, done), 3)[0] == "task"
    assert verdict(report(parser, done), signal="SIGKILL") == ("task", "r was killed by SIGKILL")


@pytest.mark.parametrize(
    ("parser", "lines", "error_class"),
    [
        (CLAUDE, [result(subtype="error_max_turns"), result()], "limit"),
        (CLAUDE, [result(is_error="true", result="no")], "task"),
        (CLAUDE, [result(permission_denials=[{"tool_name": "Bash"}]), result()], "permission"),
        (
            CLAUDE,
            [result(permission_denials=[{"tool_name": "Bash"}]), result(permission_denials=[])],
            "permission",
        ),
        (CODEX, [{"type": "error", "message": "no"}, CODEX_DONE], None),
        (CODEX, [CODEX_DONE, {"type": "turn.started"}], "task"),
        (CODEX, [{"type": "turn.started"}, CODEX_DONE], None),
        (GEMINI, [{"type": "error", "severity": "error", "message": "no"}, GEMINI_DONE], "task"),
        ("jsonl", [{"type": "error", "message": "no"}, LINES_DONE], None),
        ("jsonl", [LINES_DONE, {"type": "error", "message": "no"}], "task"),
        ("jsonl", [LINES_FAILED, {"type": "error", "message": "no"}, LINES_DONE], "task"),
        ("jsonl", [{"type": "result", "ok": 0}], "task"),
        ("jsonl", [{"type": "result", "ok": "false"}], "task"),
        ("jsonl", [{"type": "result", "ok": None, "text": "ok"}], None),
    ],
)
def test_who_contradicts_itself_has_not_succeeded(
    parser: str, lines: list[Any], error_class: str | None
) -> None:
    assert verdict(report(parser, *lines))[0] == error_class


@pytest.mark.parametrize(("parser", "done", "failed"), ENDS)
def test_a_second_result_that_cannot_be_read_is_no_success(
    parser: str, done: Any, failed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = report(parser, done)
    with monkeypatch.context() as patch:
        patch.setattr(type(story), "spent", lambda *_, **__: 1 / 0)
        patch.setattr(type(story), "answer", lambda *_: 1 / 0)
        story.read(json.dumps(done))
    assert verdict(story) == ("task", "r: its result cannot be read")


def test_text_is_an_answer_and_json_in_it_means_nothing() -> None:
    story = report("text", '{"type": "result", "error": "no"}\n')
    assert verdict(story) == (None, "")
    assert "error" in story.final_text


def test_what_is_kept_is_bounded() -> None:
    denied = [{"tool_name": "x" * 10_000, "tool_input": "y" * 10_000}] * 1000
    story = report(CLAUDE, result(permission_denials=denied, result="z" * (1 << 20)))
    assert len(story.final_text) == LONGEST_TEXT
    assert len(story.denials) == MOST_DENIALS
    assert all(len(each["tool"]) <= 200 for each in story.denials)
    assert len(verdict(story)[1]) <= 500


@pytest.mark.parametrize("parser", ["text", "jsonl"])
def test_of_much_text_the_end_is_kept(parser: str) -> None:
    story = report(parser, *(f"{number}\n" for number in range(40_000)))
    assert len(story.final_text) == LONGEST_TEXT
    assert story.final_text.endswith("39998\n39999\n")


class Counting(Tail):
    def __init__(self) -> None:
        super().__init__()
        self.copied = 0

    def text(self) -> str:
        self.copied += self._length
        return super().text()


@pytest.mark.parametrize("parser", ["text", "jsonl", GEMINI])
def test_short_pieces_cost_no_more_than_long_ones(parser: str) -> None:
    """What is copied, in characters, for a mebibyte that comes in pieces of four."""
    part = {"type": "message", "role": "assistant", "content": "abc\n", "delta": True}
    line = json.dumps(part) if parser == GEMINI else "abc\n"
    story = report_of(parser)
    story._answer = counting = Counting()
    for _ in range(1 << 18):
        story.read(line)
    assert counting.copied <= 3 << 20
    assert story.final_text == "abc\n" * (LONGEST_TEXT // 4)


def test_lines_are_found_in_pieces_and_long_ones_left_out() -> None:
    lines = Lines(longest=8)
    assert list(lines.feed(b"ab")) == []
    assert list(lines.feed(b"c\nd\n0123")) == ["abc\n", "d\n"]
    assert list(lines.feed(b"456789")) == []
    assert list(lines.feed(b"more\nend")) == []
    assert lines.too_long == 1
    assert list(lines.end()) == ["end"]
    assert list(lines.end()) == []


@pytest.mark.parametrize(
    ("words", "error_class"),
    [
        ("unexpected status 401 Unauthorized", "auth"),
        ("API key not valid. Please pass a valid API key.", "auth"),
        ("Invalid auth method selected.", "auth"),
        ("Missing environment variable: `OPENAI_API_KEY`.", "auth"),
        ("unexpected status 502 Bad Gateway", "transient"),
        ("connect ECONNREFUSED 127.0.0.1:1", "transient"),
        ("exception TypeError: fetch failed sending request", "transient"),
        ("You've hit your usage limit", "limit"),
        ("wrote 401 lines", "task"),
        ("it went wrong", "task"),
    ],
)
def test_a_class_is_found_in_words(words: str, error_class: str) -> None:
    assert class_of(words) == error_class


def test_who_was_stopped_in_time_is_heard_as_a_timeout_too() -> None:
    ending = ProcessEnd(None, "SIGTERM", Stopped("stalled", "no output for 3 s", timeout=True))
    judged = judge("r", report(CLAUDE, result()), ending, denials="fail")
    assert (judged.error_class, judged.reason) == ("stalled", "r: no output for 3 s")
    assert classes(judged, ending) == ["stalled", "timeout"]
    assert exit_code(judged, ending) == 124


@pytest.mark.parametrize(
    ("story", "ending", "words"),
    [
        (report("jsonl"), ProcessEnd(77, None, None), ["task", "77"]),
        (report(GEMINI), ProcessEnd(41, None, None), ["auth", "41"]),
        (report("jsonl", {"type": "error", "message": "no"}), ProcessEnd(77, None, None), ["task"]),
        (report("jsonl", {"type": "error", "message": "no"}), ProcessEnd(0, None, None), ["task"]),
        (report("jsonl"), ProcessEnd(77, None, Stopped("task", "it was stopped")), ["task"]),
        (report("jsonl"), ProcessEnd(None, "SIGSEGV", None), ["task"]),
        (report(CLAUDE), ProcessEnd(0, None, None), ["task"]),
    ],
)
def test_an_exit_code_is_told_as_the_cause_only_if_nothing_else_is(
    story: AgentReport, ending: ProcessEnd, words: list[str]
) -> None:
    assert classes(judge("r", story, ending, denials="fail"), ending) == words


def test_what_an_agent_adds_is_taken_only_in_its_form() -> None:
    assert added_by_agent("text") == {}
    assert added_by_agent({"summary": 3, "artifacts": "x", "ok": True}) == {}
    added = added_by_agent({"summary": "s" * 9000, "artifacts": list(range(500))})
    assert (len(added["summary"]), len(added["artifacts"])) == (4000, 100)


def test_the_summary_is_one_line_that_a_terminal_can_bear() -> None:
    document = {
        "runner": "r",
        "ok": True,
        "turns": None,
        "usage": None,
        "cost_usd": None,
        "model": None,
        "session_id": None,
        "summary": None,
        "final_text": "a\n\x1b[2Jb",
        "reason": None,
        "error_class": None,
    }
    assert summary_line(document) == "headway: r done: a [2Jb"
