"""What people read of an agent's stream."""

import json
from typing import Any

import pytest

from headway.integrations.agents.model import PARSERS
from headway.integrations.agents.transcript import FORMATS, Transcript

CLAUDE, CODEX, GEMINI, LINES = PARSERS[:4]


def told(parser: str, *documents: Any, room: int = 40) -> list[str]:
    transcript = Transcript(parser, room)
    lines = [each if isinstance(each, str) else json.dumps(each) for each in documents]
    shown = transcript.feed("".join(f"{line}\n" for line in lines).encode()) + transcript.end()
    return shown.decode().splitlines()


def claude(*content: Any, kind: str = "assistant") -> dict[str, Any]:
    return {"type": kind, "message": {"id": "m", "content": list(content)}}


def item(kind: str, stage: str = "completed", **more: Any) -> dict[str, Any]:
    return {"type": f"item.{stage}", "item": {"type": kind, **more}}


def delta(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


@pytest.mark.parametrize(
    ("parser", "documents", "lines"),
    [
        (
            CLAUDE,
            [
                {"type": "system", "subtype": "init", "session_id": "s"},
                claude(
                    {"type": "text", "text": "Let me look.\nFirst this:"},
                    {"type": "tool_use", "name": "Bash", "input": {"command": "npm test"}},
                ),
                claude({"type": "tool_result", "content": "ok"}, kind="user"),
                claude({"type": "tool_use", "name": "Odd", "input": {"depth": 2}}),
                claude(
                    {"type": "tool_result", "is_error": True, "content": "no\nfile"}, kind="user"
                ),
                {"type": "system", "subtype": "permission_denied", "tool_name": "Write"},
                claude({"type": "text", "text": "Done."}),
                {"type": "result", "is_error": False, "result": "Done."},
            ],
            [
                *("Let me look.", "First this:", "> Bash npm test", '> Odd {"depth": 2}'),
                *("! no file", "! denied Write", "Done."),
            ],
        ),
        (CLAUDE, [{"type": "result", "is_error": False, "result": "alone"}], ["alone"]),
        (CLAUDE, [{"type": "result", "is_error": True, "result": "Overloaded"}], []),
        (
            CODEX,
            [
                {"type": "thread.started", "thread_id": "t"},
                item("reasoning", text="hm"),
                item("command_execution", "started", command="ls -l"),
                item("command_execution", command="ls -l", status="completed", exit_code=0),
                item("command_execution", "started", command="false"),
                item("command_execution", command="false", status="failed", exit_code=1),
                item("file_change", changes=[{"path": "a.py"}, {"path": "b.py"}]),
                item("mcp_tool_call", "started", server="db", tool="ask", arguments={"query": "q"}),
                {"type": "error", "message": "Reconnecting... 1/5"},
                item("agent_message", text="Done."),
            ],
            [
                *("> command ls -l", "> command false", "! command_execution failed (exit 1)"),
                *("> file_change a.py, b.py", "> db.ask q", "! Reconnecting... 1/5", "Done."),
            ],
        ),
        (
            GEMINI,
            [
                {"type": "message", "role": "user", "content": "do it"},
                delta("One "),
                delta("line"),
                {"type": "tool_use", "tool_name": "read_file", "parameters": {"path": "x"}},
                {"type": "tool_result", "status": "error", "error": {"message": "denied"}},
                delta("Two\nlines"),
                {"type": "result", "status": "success", "stats": {}},
            ],
            ["One line", "> read_file x", "! denied", "Two", "lines"],
        ),
        (
            LINES,
            [
                *("hello", {"type": "turn"}, {"type": "denied", "tool": "Bash"}),
                *({"type": "progress", "at": 1}, {"type": "result", "text": "all is well"}),
            ],
            ["hello", "! denied Bash", '{"type": "progress", "at": 1}', "all is well"],
        ),
    ],
)
def test_a_stream_is_told_in_lines(parser: str, documents: list[Any], lines: list[str]) -> None:
    assert told(parser, *documents) == lines


def test_the_same_words_said_twice_are_told_twice() -> None:
    said = claude({"type": "text", "text": "ok"})
    result = {"type": "result", "result": "ok"}
    assert told(CLAUDE, said, said, result) == ["ok", "ok"]


def test_a_tool_is_cut_to_its_room_and_a_text_is_not() -> None:
    long = "x" * 90
    used = {"type": "tool_use", "name": "Bash", "input": {"command": long}}
    assert told(CLAUDE, claude({"type": "text", "text": long}, used), room=20) == [
        long,
        "> Bash xxxxxxxxxx...",
    ]


def test_nothing_that_a_terminal_obeys_comes_out_of_its_escape() -> None:
    text = "a\x1b[2J\x07b\tc\r\nd"
    assert told(CLAUDE, claude({"type": "text", "text": text})) == [r"a\x1b[2J\x07b c", "d"]
    assert told(GEMINI, delta(text)) == [r"a\x1b[2J\x07b c", "d"]
    assert told(CODEX, "\x1b]0;title\x07 text") == [r"\x1b]0;title\x07 text"]


@pytest.mark.parametrize("parser", FORMATS)
@pytest.mark.parametrize(
    "line",
    ["no document", "[1, 2]", '{"type": ', '{"type": "x' + "{" * 9, '{"a":' * 5000],
)
def test_what_is_no_document_passes_as_it_is(parser: str, line: str) -> None:
    assert told(parser, line) == [line]


@pytest.mark.parametrize("parser", FORMATS)
def test_strange_documents_end_nothing(parser: str) -> None:
    kinds = ("assistant", "result", "item.completed", "message", "tool_use", "error", "system")
    for kind in kinds:
        for value in (None, 1, [1], {"type": []}, "x"):
            fields = ("message", "item", "content", "result", "role", "parameters", "text")
            told(parser, {"type": kind, **dict.fromkeys(fields, value)})


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_it_does_not_matter_how_the_bytes_come(size: int) -> None:
    documents = [claude({"type": "text", "text": "schön\n漢字"}), "text"]
    data = "\n".join([json.dumps(documents[0], ensure_ascii=False), "text"]).encode()
    transcript = Transcript(CLAUDE, 40)
    pieces = [transcript.feed(data[at : at + size]) for at in range(0, len(data), size)]
    shown = b"".join([*pieces, transcript.end()]).decode()
    assert shown == "schön\n漢字\ntext\n"
