"""A small program that speaks the stream formats of agent programs: `speaker.py FORMAT [WORD ...]`.

It reads its prompt from standard input until that ends, or takes the last word for it, or the file
that is named there; the first word of the prompt says what it does. The lines are those that the
real programs printed, shortened.
"""

import json
import os
import signal
import subprocess
import sys
from typing import Any

SESSION = "0b8ff4e6-8d2f-4b42-9c07-3f3f2f6f3a10"


def say(document: dict[str, Any]) -> None:
    print(json.dumps(document), flush=True)


def claude(text: str, **more: Any) -> None:
    say(
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "num_turns": 2,
            "result": text,
            "session_id": SESSION,
            "total_cost_usd": 0.0125,
            "usage": {"input_tokens": 1200, "cache_read_input_tokens": 300, "output_tokens": 7},
            "permission_denials": [],
            "api_error_status": None,
            **more,
        }
    )


def claude_begins() -> None:
    say(
        {
            "type": "system",
            "subtype": "init",
            "session_id": SESSION,
            "model": "claude-opus-5-5",
            "claude_code_version": "2.1.325",
        }
    )


def claude_fails(words: str, status: int | None) -> None:
    claude(words, is_error=True, api_error_status=status, total_cost_usd=0)


def claude_denied() -> None:
    say({"type": "system", "subtype": "permission_denied", "tool_name": "Bash"})
    denied = {"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "touch x"}}
    claude("all is well", permission_denials=[denied])


def claude_turn(number: int) -> None:
    content = [{"type": "text", "text": f"answer {number}"}]
    say({"type": "assistant", "message": {"id": f"msg_{number}", "content": content}})


def codex(text: str) -> None:
    say({"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": text}})
    usage = {"input_tokens": 1200, "cached_input_tokens": 300, "output_tokens": 7}
    say({"type": "turn.completed", "usage": {**usage, "reasoning_output_tokens": 2}})


def codex_begins() -> None:
    say({"type": "thread.started", "thread_id": SESSION})
    say({"type": "item.completed", "item": {"id": "i0", "type": "error", "message": "a warning"}})
    say({"type": "turn.started"})


def codex_fails(words: str, status: int | None) -> None:
    message = words if status is None else f"unexpected status {status}: {words}"
    say({"type": "error", "message": f"Reconnecting... 1/5 ({message})"})
    say({"type": "turn.failed", "error": {"message": message}})


def codex_denied() -> None:
    reject = "approval policy is Never; reject command"
    print(f"ERROR codex_core::tools::router: error={reject}", file=sys.stderr, flush=True)
    codex("all is well")


def codex_turn(number: int) -> None:
    command = {"id": f"i{number}", "type": "command_execution", "status": "completed"}
    say({"type": "item.completed", "item": command})


def gemini(text: str, **more: Any) -> None:
    if text:
        say({"type": "message", "role": "assistant", "content": text, "delta": True})
    stats = {"input_tokens": 1200, "output_tokens": 7, "cached": 300, "models": {"gemini-3": {}}}
    say({"type": "result", "status": "success", "stats": stats, **more})


def gemini_begins() -> None:
    say({"type": "init", "session_id": SESSION, "model": "auto"})
    say({"type": "message", "role": "user", "content": "do it"})


def gemini_fails(words: str, status: int | None) -> None:
    report = words if status is None else f'[API Error: {{"error":{{"code":{status}}}}} {words}]'
    gemini("", status="error", error={"type": "unknown", "message": report})


def gemini_denied() -> None:
    say({"type": "tool_use", "tool_name": "write_file", "tool_id": "w1", "parameters": {}})
    error = {"type": "policy_violation", "message": "Tool execution denied by policy."}
    say({"type": "tool_result", "tool_id": "w1", "status": "error", "error": error})
    gemini("all is well")


def gemini_turn(number: int) -> None:
    say({"type": "tool_use", "tool_name": "read_file", "tool_id": f"r{number}", "parameters": {}})
    say({"type": "tool_result", "tool_id": f"r{number}", "status": "success"})


def lines(text: str, **more: Any) -> None:
    usage = {"input": 1200, "cached": 300, "output": 7}
    report = {"session_id": SESSION, "model": "own", "turns": 2, "usage": usage, "text": text}
    say({"type": "result", **report, **more})


def lines_fail(words: str, status: int | None) -> None:
    lines("", error=words if status is None else f"{words}, status {status}")


def lines_denied() -> None:
    say({"type": "denied", "tool": "Bash"})
    lines("all is well")


FORMATS = {
    "claude": (claude_begins, claude, claude_fails, claude_denied, claude_turn),
    "codex": (codex_begins, codex, codex_fails, codex_denied, codex_turn),
    "gemini": (gemini_begins, gemini, gemini_fails, gemini_denied, gemini_turn),
    "command": (
        lambda: print("hello", flush=True),
        lines,
        lines_fail,
        lines_denied,
        lambda number: say({"type": "turn"}),
    ),
}


def prompt() -> str:
    if len(sys.argv) > 2 and sys.argv[2] == "--file":
        with open(sys.argv[3]) as file:
            return file.read()
    return sys.argv[-1] if "--argument" in sys.argv else sys.stdin.read()


def hang() -> None:
    while True:
        signal.pause()


def main() -> int:
    begins, succeed, fail, deny, turn = FORMATS[sys.argv[1]]
    words = prompt().split()
    match words[0]:
        case "hang":
            hang()
        case "mute":
            return 0
    begins()
    match words[0]:
        case "overloaded":
            fail("Overloaded", 529)
            return 1
        case "refused":
            fail("bad key", 401)
            return 1
        case "quietly":  # exit 0 with an error in the stream
            fail("it went wrong", None)
        case "loudly":  # a good stream, and an exit code that says otherwise
            succeed("all is well")
            print("it went wrong after all", file=sys.stderr)
            return 3
        case "denied":
            deny()
        case "stall":
            hang()
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "garbage":
            print('{"type": "result"\n[1, 2]\n{"type": {"a": [')
            sys.stdout.buffer.write(b"\xff\xfe\x00 nonsense\n")
            sys.stdout.flush()
            succeed("all is well")
        case "huge":
            print(json.dumps({"type": "noise", "text": "x" * (5 << 20)}), flush=True)
            succeed("all is well")
        case "children":
            subprocess.Popen(["sleep", "600"], start_new_session=False)
            subprocess.Popen(["sleep", "600"], start_new_session=True)
            succeed("all is well")
        case "terminal":
            try:
                os.close(os.open("/dev/tty", os.O_RDWR))
                succeed("a terminal")
            except OSError:
                succeed(f"no terminal, stdin is at its end: {sys.stdin.read()!r}")
        case "turns":
            for number in range(int(words[1])):
                turn(number)
            hang()
        case "environment":
            succeed(" ".join(sorted(os.environ)))
        case "where":
            succeed(os.getcwd())
        case "words":
            succeed(json.dumps(sys.argv[2:]))
        case "writes":
            with open(os.environ["HEADWAY_RESULT_FILE"], "w") as file:
                json.dump({"summary": "I did it", "artifacts": ["file:app"], "more": 1}, file)
            succeed("all is well")
        case "ignores":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            hang()
        case "clings" | "leaves":  # with a child that holds its output open and heeds nothing
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            subprocess.Popen(["sleep", "600"], start_new_session=True)
            print(f"pid {os.getpid()}", file=sys.stderr, flush=True)
            if words[0] == "clings":
                hang()
            succeed("all is well")
        case _:
            succeed("all is well")
    return 0


if __name__ == "__main__":
    sys.exit(main())
