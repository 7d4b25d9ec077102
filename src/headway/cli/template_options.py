"""Options that stand on the command line, in the words of a stored job: for templates.

What was not given is left to the template, so it matters which options were written down and not
only which values there are.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from headway.base.errors import InvalidInputError
from headway.base.units import exact_duration
from headway.cli.options import parse_env, parse_labels
from headway.jobs.specification import split_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.client import Client
    from headway.jobs.request import Request


def _words(entries: Sequence[str]) -> list[str]:
    return [word for each in entries for word in each.split(",")]


def _named_or_present(text: str) -> str | bool:
    """`--pin-head` alone means what is checked out."""
    return text or True


def _content(path: str) -> str:
    from headway.jobs.prompts import read_prompt

    return read_prompt(path)


def _dollars(text: str) -> float:
    from headway.cli.agent_options import budget

    return budget(text)


# option: (the word, how its value is written there). Any other has the same word and value.
_WORDS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "argv": ("argv", list),
    "label": ("labels", parse_labels),
    "env": ("env", parse_env),
    "lock": ("locks", list),
    "resource": ("resources", list),
    "rate": ("rates", list),
    "webhook": ("webhooks", list),
    "type_": ("type", str),
    "front": ("position", int),
    "after": ("after", list),
    "needs": ("needs", list),
    "produces": ("produces", list),
    "require": ("require", list),
    "pin_head": ("pin_head", _named_or_present),
    "worktree": ("worktree", _named_or_present),
    "retry_on": ("retry_on", _words),
    "skip_exit_code": ("skip_exit_codes", list),
    "allowed_tool": ("allowed_tools", list),
    "prompt_file": ("prompt", _content),
    "budget": ("budget_usd", _dollars),
    "on_finish": ("on_finish", lambda text: list(split_command(text))),
    **{
        name: (name, exact_duration)
        for name in ("delay", "timeout", "idle_timeout", "grace", "retry_base", "retry_cap")
    },
}


def given_words(context: click.Context, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the job's options that were given."""
    words: dict[str, Any] = {}
    for name, value in options.items():
        source = context.get_parameter_source(name)
        if source is not click.core.ParameterSource.COMMANDLINE or value == ():
            continue
        word, write = _WORDS.get(name, (name, lambda same: same))
        if word in words:
            other = "--prompt or --prompt-file" if word == "prompt" else "--position or --front"
            raise InvalidInputError(f"give {other}, not both")
        words[word] = write(value)
    return words


def parse_params(entries: Sequence[str]) -> dict[str, str | None]:
    """`NAME=VALUE`; without a value it must be given later."""
    params: dict[str, str | None] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if name in params:
            raise InvalidInputError(f"--param {name} is given twice")
        params[name] = value if equals else None
    return params


def given_values(entries: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE`, with a value for each."""
    values: dict[str, str] = {}
    for name, value in parse_params(entries).items():
        if value is None:
            raise InvalidInputError(f"--param {name} has no value; write {name}=VALUE")
        values[name] = value
    return values


def request_from_template(
    client: "Client",
    context: click.Context,
    template: str,
    params: Sequence[str],
    options: Mapping[str, Any],
) -> "Request":
    values = given_values(params)
    return client.templates.request(template, params=values, **given_words(context, options))
