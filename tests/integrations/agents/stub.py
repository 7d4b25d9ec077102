"""A model API on the loopback interface, enough of three of them to drive the real agent programs.

The first part of the path says how it behaves: `/says`, `/overloaded`, `/refuses`, `/writes` (asks
for a tool that writes a file, and is content with whatever comes of it), `/loops` (asks for a tool
again and again), `/stages` (does what the prompts of `three_stages` ask for), `/tools` (calls the
tools of an MCP server that `TOOL_CALLS` names) or `/hangs`. So one server serves all tests, and a
test chooses by its base URL.
"""

import json
import shlex
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, NamedTuple

from three_stages import answer_to

ANSWER = "all is well"
Events = list[tuple[str, dict[str, Any]]]


class WriteFile(NamedTuple):
    """The model asks for a tool that writes this file."""

    name: str
    text: str


class UseTool(NamedTuple):
    """The model calls this tool of an MCP server."""

    name: str
    given: dict[str, Any]

    def offered(self, names: Iterable[str]) -> str:
        """Under which name the program has it."""
        return next((each for each in names if each.endswith(self.name)), self.name)


MADE = WriteFile("made-by-agent.txt", "made\n")
# What an agent does with the tools of Headway, in a new home.
TOOL_CALLS = (
    UseTool("list_jobs", {}),
    UseTool("submit_job", {"shell": "echo said-by-the-job; exit 3", "key": "of-the-agent"}),
    UseTool("wait_for_job", {"job": "job-1"}),
    UseTool("why", {"job": "job-1"}),
    UseTool("tail_log", {"job": "job-1"}),
)


def next_step(way: str, prompt: str, done: int) -> str | WriteFile | UseTool:
    """What the model does when so much of what it asked for is done: it answers, or writes."""
    if way == "tools":
        return TOOL_CALLS[done] if done < len(TOOL_CALLS) else ANSWER
    if way == "loops" or (way == "writes" and not done):
        return MADE
    if way != "stages":
        return ANSWER
    answer = answer_to(prompt)
    files = [WriteFile(*each) for each in answer.files.items()]
    return files[done] if done < len(files) else answer.text


class Stub(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.last: dict[str, dict[str, Any]] = {}  # of each way: what was sent with it last
        self.numbers = count(1)
        self.over = threading.Event()

    def url(self, way: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{way}"


@contextmanager
def serving() -> Iterator[Stub]:
    stub = Stub()
    thread = threading.Thread(target=stub.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield stub
    finally:
        stub.over.set()
        stub.shutdown()
        thread.join()
        stub.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Stub

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_HEAD(self) -> None:
        self._reply(200, b"")

    def do_GET(self) -> None:
        self._json(200, {"data": [], "models": []})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            asked = json.loads(body)
        except ValueError:
            asked = {}
        self.server.asked.append(self.path)
        way, _, path = self.path.lstrip("/").partition("/")
        if asked.get("tools"):
            self.server.last[way] = asked
        if "count_tokens" in path or "countTokens" in path:
            self._json(200, {"input_tokens": 10, "totalTokens": 10})
        elif way == "hangs":
            self.server.over.wait(60)
            self.close_connection = True
        elif way in ("overloaded", "refuses"):
            self._error(way, path)
        elif "messages" in path:
            self._stream(_anthropic(way, asked, next(self.server.numbers)))
        elif path.endswith("responses"):
            self._stream(_openai(way, asked, next(self.server.numbers)))
        elif "enerateContent" in path:
            self._gemini(way, path, asked)
        else:
            self._reply(404, b"")

    def _error(self, way: str, path: str) -> None:
        if "enerateContent" in path:
            code, state = (503, "UNAVAILABLE") if way == "overloaded" else (401, "UNAUTHENTICATED")
            self._json(code, {"error": {"code": code, "message": way, "status": state}})
            return
        code = (529 if "messages" in path else 503) if way == "overloaded" else 401
        kind = "overloaded_error" if way == "overloaded" else "authentication_error"
        self._json(code, {"type": "error", "error": {"type": kind, "message": way}})

    def _gemini(self, way: str, path: str, asked: dict[str, Any]) -> None:
        parts = [part for each in asked.get("contents") or () for part in each["parts"]]
        prompt = "\n".join(part.get("text", "") for part in parts)
        done = sum("functionResponse" in part for part in parts)
        step = next_step(way, prompt, done)
        if "responseMimeType" in (asked.get("generationConfig") or {}):  # which model is to do it
            step = json.dumps({"complexity_reasoning": "it is simple", "complexity_score": 1})
        part: dict[str, Any] = {"text": step}
        if isinstance(step, WriteFile):
            call = {"file_path": step.name, "content": step.text}
            part = {"functionCall": {"name": "write_file", "args": call}}
        if isinstance(step, UseTool):
            declared = [one for each in asked.get("tools", ()) for one in _declared(each)]
            part = {"functionCall": {"name": step.offered(declared), "args": step.given}}
        document = {
            "candidates": [
                {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {
                "promptTokenCount": 1200,
                "candidatesTokenCount": 7,
                "totalTokenCount": 1207,
            },
            "modelVersion": "stub",
        }
        if "stream" in path:
            self._head("text/event-stream")
            self.wfile.write(b"data: " + json.dumps(document).encode() + b"\r\n\r\n")
        else:
            self._json(200, document)

    def _stream(self, events: Events) -> None:
        self._head("text/event-stream")
        for name, data in events:
            self.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())

    def _head(self, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def _json(self, code: int, document: object) -> None:
        self._reply(code, json.dumps(document).encode())

    def _reply(self, code: int, content: bytes) -> None:
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _anthropic(way: str, asked: dict[str, Any], number: int) -> Events:
    contents = [each["content"] for each in asked.get("messages", ())]
    parts = [part for each in contents if isinstance(each, list) for part in each]
    texts = [each for each in contents if isinstance(each, str)]
    prompt = "\n".join([*texts, *(part.get("text", "") for part in parts)])
    done = sum(part.get("type") == "tool_result" for part in parts)
    step = next_step(way, prompt, done // 2 if way == "stages" else done)
    calls = not isinstance(step, str) and bool(asked.get("tools"))
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta: dict[str, Any] = {"type": "text_delta", "text": step if isinstance(step, str) else ""}
    if isinstance(step, UseTool) and calls:
        name = step.offered(each["name"] for each in asked["tools"])
        block = {"type": "tool_use", "id": f"toolu_{number:08}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step.given)}
    if isinstance(step, WriteFile) and calls:
        tool: str
        tool, call = "Bash", {"command": f"echo made > {step.name}", "description": "make a file"}
        if way == "stages":  # it must have read what it writes
            tool, call = "Read", {"file_path": step.name}
            if done % 2:
                tool, call = "Write", {**call, "content": step.text}
        block = {"type": "tool_use", "id": f"toolu_{number:08}", "name": tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(call)}
    usage = {"input_tokens": 1200, "output_tokens": 1}
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": asked.get("model", "stub"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    return [
        ("message_start", {"type": "message_start", "message": message}),
        (
            "content_block_start",
            {"type": "content_block_start", "index": 0, "content_block": block},
        ),
        ("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}),
        ("content_block_stop", {"type": "content_block_stop", "index": 0}),
        ("message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": 7}}),
        ("message_stop", {"type": "message_stop"}),
    ]


def _openai(way: str, asked: dict[str, Any], number: int) -> Events:
    items = asked.get("input", ())
    parts = [part for each in items for part in each.get("content") or ()]
    done = sum(str(each.get("type")).endswith("_output") for each in items)
    step = next_step(way, "\n".join(part.get("text", "") for part in parts), done)
    item: dict[str, Any] = {
        "type": "message",
        "id": f"m{number}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": step, "annotations": []}],
    }
    tools = [each.get("name") for each in asked.get("tools", ())]
    if tools and isinstance(step, UseTool):
        item = _tool_call(step, asked["tools"], number)
    if tools and isinstance(step, WriteFile):
        item = _shell_call(way, step, tools, number)
    usage = {
        "input_tokens": 1200,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 1207,
    }
    answer = {"id": f"r{number}", "usage": usage}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    return [
        ("response.created", {"type": "response.created", "response": {"id": f"r{number}"}}),
        ("response.output_item.done", done),
        ("response.completed", {"type": "response.completed", "response": answer}),
    ]


def _declared(tool: dict[str, Any]) -> list[str]:
    return [each["name"] for each in tool.get("functionDeclarations", ())]


def _tool_call(step: UseTool, tools: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """A server's tools stand in a list of their own, whose name goes with the call."""
    item: dict[str, Any] = {
        "type": "function_call",
        "id": f"fc{number}",
        "call_id": f"call_{number}",
        "name": step.name,
        "arguments": json.dumps(step.given),
    }
    for each in tools:
        inside = [one.get("name", "") for one in each.get("tools", ())]
        if step.offered(inside) in inside:
            return {**item, "name": step.offered(inside), "namespace": each["name"]}
    return {**item, "name": step.offered(str(each.get("name")) for each in tools)}


def _shell_call(way: str, step: WriteFile, tools: list[Any], number: int) -> dict[str, Any]:
    line = f"printf %s {shlex.quote(step.text)} > {step.name}"
    if way == "loops":  # a command that ends at once is not told in its stream
        line = "sleep 0.3; echo again"
    name = next((each for each in tools if each in ("exec_command", "shell", "shell_command")), "")
    # It asks for more than its sandbox, which nobody is there to grant.
    more = {"sandbox_permissions": "require_escalated"} if way == "writes" else {}
    arguments: dict[str, Any] = {"cmd": line, **more}
    if name == "shell":
        arguments = {"command": ["sh", "-c", line]}
    elif name == "shell_command":
        arguments = {"command": line}
    return {
        "type": "function_call",
        "id": f"fc{number}",
        "call_id": f"call_{number}",
        "name": name or "exec_command",
        "arguments": json.dumps(arguments),
    }
