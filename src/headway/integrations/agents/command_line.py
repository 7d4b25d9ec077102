"""The command line of a runner for one job. Pure.

A place `{name}` in a word is filled in with a value; a value is one argument or a part of one, and
never split or read by a shell. A word, or a list of words in place of one, whose value is missing
is left out as a whole. A value that could be taken for an option is refused.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway.base.errors import InvalidInputError
from headway.integrations.agents.files import PLACE
from headway.integrations.agents.model import USUAL_TOOLS, Runner

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
LONGEST_ARGUMENT = (128 << 10) - 1024  # the kernel's, less what stands around it


def command_line(runner: Runner, agent: Mapping[str, Any], *, prompt_file: str) -> list[str]:
    """The words to execute for an agent's parameters."""
    values = _values(runner, agent, prompt_file)
    line: list[str] = []
    for each in runner.argv:
        words = (each,) if isinstance(each, str) else each
        if words == ("{argv}",):
            line += agent.get("argv", ())
        elif all(name in values for word in words for name in PLACE.findall(word)):
            line += [_filled(word, values, after_options="--" in line) for word in words]
    return line


def program_of(runner: Runner, argv: Sequence[str]) -> str:
    """What is executed; `argv` are the words given with the job."""
    first = runner.words[0]
    return (argv[0] if argv else "") if first == "{argv}" else first


def _values(runner: Runner, agent: Mapping[str, Any], prompt_file: str) -> dict[str, str]:
    values: dict[str, str] = {"prompt": agent["prompt"], "prompt_file": prompt_file}
    for name in ("model", "max_turns", "budget_usd"):
        if agent.get(name) is not None:
            values[name] = f"{agent[name]:g}" if name == "budget_usd" else str(agent[name])
    if _SESSION.fullmatch(agent.get("session_id") or ""):
        values["session_id"] = agent["session_id"]
    tools = agent.get("allowed_tools")
    if tools:
        values["allowed_tools"] = ",".join(tools)
    if runner.access:
        looks_only = set(tools or ()) <= set(USUAL_TOOLS)
        values["access"] = runner.access["read" if looks_only else "write"]
    return values


def _filled(word: str, values: Mapping[str, str], *, after_options: bool) -> str:
    filled = PLACE.sub(lambda found: values[found[1]], word)
    if filled.startswith("-") and not word.startswith("-") and not after_options:
        raise InvalidInputError(
            f"{filled[:40]!r} would be taken for an option; let it begin with something else"
        )
    if len(filled.encode()) > LONGEST_ARGUMENT:
        raise InvalidInputError("the prompt is too long for an argument; use a runner with a file")
    return filled
