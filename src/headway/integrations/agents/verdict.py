"""The verdict on an agent's work, and the document that is kept. Pure."""

from __future__ import annotations

import re

from headway.integrations.agents.budget import USED_UP, cost_of, in_dollars
from headway.integrations.agents.streams.base import LONGEST_REASON, class_of, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headway.integrations.agents.streams.base import AgentReport

VERSION = 1
TIMED_OUT_EXIT = 124
LARGEST_ADDED = 64 << 10
LONGEST_SUMMARY = 4000
MOST_ARTIFACTS = 100
MOST_LEVELS = 100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class Stopped:
    """Why the wrapper ended the agent: an error class, words, and what else --retry-on matches."""

    __slots__ = ("error_class", "timeout", "words")

    def __init__(self, error_class: str, words: str, *, timeout: bool = False) -> None:
        self.error_class = error_class
        self.words = words
        self.timeout = timeout


class ProcessEnd:
    """How the agent's process ended."""

    __slots__ = ("code", "signal", "stopped")

    def __init__(self, code: int | None, signal: str | None, stopped: Stopped | None) -> None:
        self.code = code
        self.signal = signal
        self.stopped = stopped


class AgentVerdict:
    """The verdict: whether the work was done, else why not, and the exit code if that says it."""

    __slots__ = ("code", "error_class", "ok", "reason")

    def __init__(
        self, error_class: str | None = None, reason: str | None = None, code: int | None = None
    ) -> None:
        self.ok = error_class is None
        self.error_class = error_class
        self.reason = reason
        self.code = code


def judge(
    runner: str,
    report: AgentReport,
    ending: ProcessEnd,
    *,
    denials: str,
    allowed_usd: float | None = None,
) -> AgentVerdict:
    """Exit code 0 alone is no success: what the stream says counts first. `allowed_usd` is what a
    program that keeps to it itself might spend."""
    if ending.stopped is not None:
        return AgentVerdict(ending.stopped.error_class, f"{runner}: {ending.stopped.words}")
    if report.error is not None:
        error_class, words = report.error
        if words == USED_UP and report.cost_usd is not None and allowed_usd is not None:
            words = in_dollars(report.cost_usd, allowed_usd)
        return AgentVerdict(error_class, f"{runner}: {words}"[:LONGEST_REASON])
    if ending.signal is not None:
        return AgentVerdict("task", f"{runner} was killed by {ending.signal}")
    if ending.code:
        said = f": {report.last_said}" if report.last_said else ""
        error_class = report.exit_class(ending.code) or class_of(report.last_said)
        words = one_line(f"{runner} ended with exit code {ending.code}{said}")
        return AgentVerdict(error_class, words, ending.code)
    if report.needs_a_result and not report.finished:
        return AgentVerdict("task", f"{runner} ended without telling a result")
    if report.denials and denials == "fail":
        tools = ", ".join(dict.fromkeys(each["tool"] for each in report.denials))
        return AgentVerdict("permission", one_line(f"{runner} was denied {tools}"))
    return AgentVerdict()


def exit_code(judged: AgentVerdict, ending: ProcessEnd) -> int:
    """The wrapper's exit code: the agent's own code where that is a failure."""
    if judged.ok:
        return 0
    if ending.stopped is not None:
        return TIMED_OUT_EXIT if ending.stopped.timeout else 1
    return ending.code or 1


def classes(judged: AgentVerdict, ending: ProcessEnd) -> list[str]:
    """The words of --retry-on that it answers to. An exit code is among them where it is the
    program's own and nothing else says why it failed: only then can it mean skipped."""
    named = [judged.error_class] if judged.error_class else []
    if judged.code is not None:
        named.append(str(judged.code))
    return [*named, "timeout"] if ending.stopped is not None and ending.stopped.timeout else named


def result_document(
    wanted: dict[str, Any],
    report: AgentReport,
    ending: ProcessEnd,
    judged: AgentVerdict,
    added: dict[str, Any],
    **more: Any,
) -> dict[str, Any]:
    """What `result.json` holds; every field is always there."""
    cost, source = cost_of(report, wanted)
    return {
        "version": VERSION,
        "runner": wanted["runner"],
        "runner_version": report.version,
        "session_id": report.session_id,
        "model": report.model or wanted["model"],
        "ok": judged.ok,
        "error_class": judged.error_class,
        "reason": judged.reason,
        "exit_code": ending.code,
        "signal": ending.signal,
        "turns": report.turns,
        "usage": report.usage,
        "tokens": report.tokens,
        "cost_usd": cost,
        "cost_source": source,
        "denials": report.denials,
        "final_text": report.final_text,
        "summary": added.get("summary"),
        "artifacts": added.get("artifacts", []),
        "structured": added.get("structured"),
        "unreadable_lines": report.unreadable,
        **more,
    }


def outputs_of(result: dict[str, Any]) -> dict[str, Any]:
    """What a node of a workflow sets: the fields that the agent left as `structured`, and those
    that every agent has, which go before."""
    structured = result["structured"]
    own = structured if isinstance(structured, dict) else {}
    return {
        **{name: value for name, value in own.items() if _NAME.fullmatch(name)},
        "text": result["final_text"],
        "session_id": result["session_id"],
        "turns": result["turns"],
        "tokens": result["tokens"],
        "cost_usd": result["cost_usd"],
    }


def added_by_agent(document: object) -> dict[str, Any]:
    """The document that the agent itself wrote, as far as it has a known form."""
    if not isinstance(document, dict):
        return {}
    added: dict[str, Any] = {}
    if isinstance(document.get("summary"), str):
        added["summary"] = document["summary"][:LONGEST_SUMMARY]
    artifacts = document.get("artifacts")
    if isinstance(artifacts, list) and _is_shallow(artifacts):
        added["artifacts"] = artifacts[:MOST_ARTIFACTS]
    if "structured" in document and _is_shallow(document["structured"]):
        added["structured"] = document["structured"]
    return added


def _is_shallow(value: object) -> bool:
    """Whether it is shallow enough for every reader; a recursive one fails at great depth."""
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return True
    return False


def summary_line(result: dict[str, Any]) -> str:
    """The last line of the log: how it went, and what it took."""
    failed = f"{result['reason']} ({result['error_class']})"
    state = f"{result['runner']} done" if result["ok"] else failed
    usage = result["usage"] or {}
    parts = [
        None if result["turns"] is None else f"{result['turns']} turns",
        f"{usage['input']} tokens in, {usage['output']} out" if usage else None,
        None if result["cost_usd"] is None else f"${result['cost_usd']:.4f}",
        result["model"] and f"model {result['model']}",
        result["session_id"] and f"session {result['session_id']}",
    ]
    report = ", ".join(part for part in parts if part)
    words = one_line(result["summary"] or result["final_text"])[:200] if result["ok"] else ""
    return f"headway: {state}" + (f"; {report}" if report else "") + (f": {words}" if words else "")
