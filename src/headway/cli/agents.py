"""The options of `submit` and `exec` that are about agents."""

from collections.abc import Mapping
from typing import Any

from headway.errors import InvalidInputError
from headway.graphs import read_prompt


def agent_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of the agent, in the words of `headway.runners`."""
    given = agent_words(options)
    if "prompt_file" in given:
        if "prompt" in given:
            raise InvalidInputError("give --prompt or --prompt-file, not both")
        given["prompt"] = read_prompt(given.pop("prompt_file"))
    return given


def agent_words(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were given, in the words of a graph file."""
    names = ("runner", "prompt", "prompt_file", "model", "max_turns")
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
