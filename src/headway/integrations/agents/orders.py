"""What whoever watches an agent has to know of it: its wrapper, or the process of a gate. Pure."""

from collections.abc import Mapping
from typing import Any

from headway.integrations.agents.model import Runner

PROMPT_FILE = "prompt.txt"


def orders(runner: Runner, agent: Mapping[str, Any]) -> dict[str, Any]:
    """What a runner's file and the job say, besides the command line."""
    return {
        "runner": runner.name,
        "prompt": agent["prompt"],
        "prompt_by": runner.prompt,
        "prompt_file": PROMPT_FILE,
        "parser": runner.parser,
        "denials": runner.denials,
        "model": agent.get("model"),
        # Where the program keeps to it itself, nobody has to count.
        "max_turns": None if runner.takes("max_turns") else agent.get("max_turns"),
        "budget_usd": None if runner.takes("budget_usd") else agent.get("budget_usd"),
        "allowed_usd": agent.get("budget_usd"),
        "max_tokens": agent.get("max_tokens"),
        "limits": list(runner.limits),
        "auth": runner.auth,
        "prices": {model: dict(row) for model, row in runner.prices.items()},
        **{f"{name}_seconds": _seconds(time) for name, time in runner.timeouts._asdict().items()},
    }


def _seconds(micros: int | None) -> float | None:
    return None if micros is None else micros / 1e6
