"""Coding agents as jobs: how each agent program is called, watched and understood.

A runner is data (`files`), a job of type `agent` names one and has a prompt (`asking`), `filling`
makes the command line of both, `wrapper` is the job's main process, and `streams` read what the
agent programs print. The wrapper needs neither store nor settings and weighs little.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.submission import Request


def agent_request(
    prompt: str,
    *,
    runner: str | None = None,
    model: str | None = None,
    max_turns: int | None = None,
    allowed_tools: Sequence[str] | None = None,
    budget_usd: float | None = None,
    **options: Any,
) -> "Request":
    """The request for an agent job. What is None is left to the settings and to the runner's file;
    `options` are the other fields of a request, as `name=...` or `timeout=...`."""
    from headway.submission import Request

    given = {
        "runner": runner,
        "prompt": prompt,
        "model": model,
        "max_turns": max_turns,
        "allowed_tools": allowed_tools,
        "budget_usd": budget_usd,
    }
    agent = {word: value for word, value in given.items() if value is not None}
    return Request(agent=agent, **options)
