"""Requests to agents, checked against the runner that is to do the work.

Missing values come from the settings, the runner's file and the usual limits, in this order. They
are stored with the job, so a changed setting changes no job.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.integrations.agents.command_line import command_line, program_of
from headway.integrations.agents.files import load_runner
from headway.integrations.agents.forms import (
    MOST_TURNS,
    are_words,
    is_number_of_tokens,
    is_number_of_turns,
    is_sum,
    is_word,
    shortly,
)
from headway.integrations.agents.model import (
    ASKED,
    LARGEST_PROMPT,
    USUAL_TOOLS,
    USUAL_TURNS,
    Runner,
)
from headway.jobs.prompts import read_prompt
from headway.jobs.request import Request, find_program
from headway.jobs.settings import Config

Place = tuple[Home, Config]


class AgentJob(NamedTuple):
    """The parameters of an agent job, and the request without what they say."""

    params: dict[str, Any]
    request: Request


def ask(
    request: Request,
    environ: Mapping[str, str],
    working_directory: str,
    place: Place | None,
    remedies: str,
) -> AgentJob:
    """Check all that is asked. Without a place there are only the shipped runners."""
    agent = _with_prompt(request.agent or {}, working_directory)
    wrong = list(_wrong_words(agent)) or list(_wrong_request(request))
    if wrong:
        raise InvalidInputError("; ".join(wrong))
    home = place[0].path if place else None
    config = place[1] if place else Config()
    try:
        runner = load_runner(agent.get("runner") or config["agent.runner"], home)
    except NotFoundError as error:
        raise InvalidInputError(str(error)) from None
    params = _completed(agent, request.argv, runner, config["agent.model"])
    wrong = list(_wrong_for(runner, params, agent))
    if wrong:
        raise InvalidInputError("; ".join(wrong))
    command_line(runner, params, prompt_file="/")  # refuses what could be taken for an option
    cwd = request.cwd or (os.path.dirname(home) if home is not None else None)
    if request.check:
        usual = environ.get("PATH", os.defpath)
        path = request.env.get("PATH") or runner.env.get("PATH") or usual
        where = os.path.join(working_directory, cwd or "")
        more = f"; {remedies}" if remedies else ""
        refuse_missing(runner, params.get("argv", ()), where, path, more)
    name = request.name or request.local or _name(params)
    plain = request._replace(argv=(), cwd=cwd, name=name, type=None)
    return AgentJob(params, plain)


def _with_prompt(agent: Mapping[str, Any], folder: str) -> Mapping[str, Any]:
    """With the text of the file that has the prompt."""
    if agent.get("prompt_file") is None:
        return agent
    others = {word: value for word, value in agent.items() if word != "prompt_file"}
    return {**others, "prompt": read_prompt(agent["prompt_file"], folder)}


def refuse_missing(
    runner: Runner, argv: Sequence[str], cwd: str, path: str, more: str = ""
) -> None:
    """Raises InvalidInputError if the runner's program is not there."""
    program = program_of(runner, argv)
    if find_program([program], cwd, path):
        return
    where = "" if "/" in program else " on PATH"
    lacks = f"no program {program!r}{where}"
    is_named_by_job = runner.words[0] == "{argv}"
    lack = f"there is {lacks}" if is_named_by_job else f"{runner.name} is not installed: {lacks}"
    raise InvalidInputError(
        f"{lack}; install it, or set PATH in [env] of config.toml for jobs that nobody submits"
        f"{more}"
    )


def _completed(
    agent: Mapping[str, Any], argv: tuple[str, ...], runner: Runner, model: str
) -> dict[str, Any]:
    """With everything that nobody said."""
    usual: dict[str, Any] = {"max_turns": USUAL_TURNS, "allowed_tools": list(USUAL_TOOLS)}
    usual = {limit: value for limit, value in usual.items() if runner.keeps(limit)}
    if model:
        usual["model"] = model
    given = {word: value for word, value in agent.items() if value is not None}
    for limit in ("max_turns", "allowed_tools"):
        if not runner.keeps(limit) and _is_usual(limit, given.get(limit)):
            given.pop(limit)
    if argv:
        given["argv"] = list(argv)
    for word in ("allowed_tools", "argv"):
        if word in given:
            given[word] = list(given[word])
    return {**usual, **runner.defaults, **given, "runner": runner.name}


def _is_usual(limit: str, value: Any) -> bool:
    if value is None:
        return False
    return value == USUAL_TURNS if limit == "max_turns" else tuple(value) == USUAL_TOOLS


def unkept_limits(runner: Runner, asked: Mapping[str, Any]) -> list[str]:
    """The limits that are asked for, and that this runner cannot keep to."""
    return [
        f"runner {runner.name} cannot keep to {limit}; leave it out, or use another"
        for limit in ("max_turns", "allowed_tools", "budget_usd", "max_tokens")
        if limit in asked and not runner.keeps(limit)
    ]


def _wrong_for(runner: Runner, params: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """What this runner cannot do."""
    wrong = unkept_limits(runner, params)
    if given.get("model") is not None and not runner.takes("model"):
        wrong.append(f"runner {runner.name} takes no model")
    takes, has = runner.takes("argv"), bool(params.get("argv"))
    if takes and not has:
        wrong.append(f"runner {runner.name} runs any program; give it after --")
    if has and not takes:
        wrong.append(f"runner {runner.name} has its own program; give no command after --")
    return wrong


def _wrong_request(request: Request) -> list[str]:
    wrong = []
    if request.shell is not None:
        wrong.append("an agent has a prompt instead of a line for a shell; give one of the two")
    if request.stdin is not None or request.input:
        wrong.append("an agent reads its prompt and nothing else; take --stdin out")
    if request.type not in (None, "agent"):
        wrong.append(f"the type of an agent job is agent, not {request.type!r}")
    return wrong


def _wrong_words(agent: Mapping[str, Any]) -> list[str]:
    wrong = [f"unknown word {word!r} of an agent" for word in agent if word not in ASKED]
    if not isinstance(agent.get("prompt"), str) or not agent["prompt"].strip():
        wrong.append("an agent needs a prompt; give --prompt TEXT or --prompt-file FILE")
    given = (word for word in _FORMS if agent.get(word) is not None)
    return wrong + [said for word in given if (said := wrong_word(word, agent[word])) is not None]


def wrong_word(word: str, value: Any) -> str | None:
    """What is wrong with one of the words that say what an agent is to do."""
    check, says = _FORMS[word]
    return None if check(value) else f"{word} {shortly(value)} is not {says}"


def _is_prompt(value: Any) -> bool:
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        return len(value.encode()) <= LARGEST_PROMPT
    except UnicodeEncodeError:
        return False


_FORMS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "prompt": (_is_prompt, "a text of at most 512 KiB without NUL"),
    "runner": (is_word, "the name of a runner"),
    "model": (is_word, "a model; one line that does not begin with -"),
    "max_turns": (is_number_of_turns, f"a whole number from 1 to {MOST_TURNS:,}"),
    "allowed_tools": (
        lambda tools: bool(tools) and are_words(tools),
        "a list of at least one tool, each a line that does not begin with -",
    ),
    "budget_usd": (is_sum, "a sum in dollars above 0"),
    "max_tokens": (is_number_of_tokens, "a whole number of tokens above 0"),
}


def _name(params: Mapping[str, Any]) -> str:
    """The runner and the beginning of the prompt, on one line."""
    words = "".join(char if char.isprintable() else " " for char in params["prompt"][:400])
    name = f"{params['runner']}: {' '.join(words.split())}"
    return name if len(name) <= 60 else name[:57] + "..."


def agent_request(
    prompt: str,
    *,
    runner: str | None = None,
    model: str | None = None,
    max_turns: int | None = None,
    allowed_tools: Sequence[str] | None = None,
    budget_usd: float | None = None,
    max_tokens: int | None = None,
    **options: Any,
) -> Request:
    """The request for an agent job. What is None is left to the settings and to the runner's file;
    `options` are the other fields of a request, as `name=...` or `timeout=...`."""
    given = {
        "runner": runner,
        "prompt": prompt,
        "model": model,
        "max_turns": max_turns,
        "allowed_tools": allowed_tools,
        "budget_usd": budget_usd,
        "max_tokens": max_tokens,
    }
    agent = {word: value for word, value in given.items() if value is not None}
    return Request(agent=agent, **options)
