"""Agents on the command line: the options of `submit` and `exec`, and what `jobs show` tells."""

import shlex
from collections.abc import Mapping
from typing import Any

from headway.base.errors import InvalidInputError
from headway.base.text import plain
from headway.jobs.prompts import read_prompt

LONGEST_SHOWN = 300


def agent_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of the agent, in the words of `headway.integrations.agents`."""
    given = agent_words(options)
    if "prompt_file" in given:
        if "prompt" in given:
            raise InvalidInputError("give --prompt or --prompt-file, not both")
        given["prompt"] = read_prompt(given.pop("prompt_file"))
    return given


def agent_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given, in the words of a graph file."""
    names = ("runner", "prompt", "prompt_file", "model", "max_turns", "max_tokens")
    words = {name: options[name] for name in names if options.get(name) is not None}
    if options.get("allowed_tool"):
        words["allowed_tools"] = list(options["allowed_tool"])
    if options.get("budget") is not None:
        words["budget_usd"] = budget(options["budget"])
    return words


def budget(text: str) -> float:
    try:
        return float(text.removeprefix("$"))
    except ValueError:
        raise InvalidInputError(f"--budget {text!r} is not a sum in dollars") from None


def about_agent(agent: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """What it was asked, for people."""
    tools, turns = agent.get("allowed_tools"), agent.get("max_turns")
    budget_usd = agent.get("budget_usd")
    return [
        ("runner", agent.get("runner")),
        ("command", shlex.join(agent["argv"]) if agent.get("argv") else None),
        ("prompt", _short(agent.get("prompt"))),
        ("model", agent.get("model")),
        ("turns", f"at most {turns}" if turns else None),
        ("tools", ", ".join(tools) if tools else None),
        ("budget", f"${budget_usd:g}" if budget_usd else None),
        ("tokens", f"at most {most:,}" if (most := agent.get("max_tokens")) else None),
    ]


def about_work(result: Mapping[str, Any] | None) -> list[tuple[str, str | None]]:
    """What became of it, for people."""
    if result is None:
        return []
    usage, cost = result.get("usage") or {}, result.get("cost_usd")
    denials = [str(each.get("tool")) for each in result.get("denials") or ()]
    version = f" {result['runner_version']}" if result.get("runner_version") else ""
    return [
        ("agent", f"{result.get('runner')}{version}, model {result.get('model') or 'unknown'}"),
        ("session", result.get("session_id")),
        ("turns", str(result["turns"]) if result.get("turns") is not None else None),
        ("tokens", f"{usage.get('input')} in, {usage.get('output')} out" if usage else None),
        ("cost", f"${cost:.4f}" if isinstance(cost, int | float) else None),
        ("failed for", result.get("error_class")),
        ("denied", ", ".join(dict.fromkeys(denials)) or None),
        ("summary", _short(result.get("summary") or result.get("final_text"))),
    ]


def _short(text: Any) -> str | None:
    if not isinstance(text, str) or not text.strip():
        return None
    line = plain(" ".join(text.split()))
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]}... (all: --json)"
