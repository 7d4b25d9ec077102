"""The keys of an entry: the one description that its check, the schema and the guide go by. Pure.

How a value is written is said in words of JSON Schema, few enough to be checked here (`fits`). What
no schema can say (a zone that exists, quotes that are closed) is left to `make`, which also gives
what an Entry has.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from headway.base.errors import InvalidInputError
from headway.base.units import LONGEST, MICROSECONDS, parse_duration
from headway.schedules.jobsfile.model import (
    AGENT,
    COMMAND,
    LOCAL,
    NAME,
    REMOTE,
    SCRIPT,
    WORKFLOW,
    Entry,
)

TYPES = (SCRIPT, AGENT, COMMAND, WORKFLOW)
MOST_ENTRIES = 1_000
LONGEST_PROMPT = 100_000  # characters; one argument of a program has 128 KiB
_FUNCTION = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*"
_DURATION = r"(?:[0-9]+(?:\.[0-9]+)?(?:us|ms|s|m|h|d|w))+"
_NOT_BLANK = r"\s*\S[\s\S]*"
_INSIDE = r"(?!/)(?!(?:.*/)?\.\.(?:/|$)).+"  # a path that does not leave its folder

Schema = Mapping[str, Any]


class KeyForm(NamedTuple):
    """How a value is written. Patterns are for the whole text."""

    says: str
    example: str
    schema: Schema
    make: Callable[[Any], Any] = lambda value: value


class Key(NamedTuple):
    about: str
    forms: Mapping[str, KeyForm]  # by the type of the entry
    required: bool = False

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(self.forms)


def fits(value: Any, schema: Schema) -> bool:
    """Whether a value is as these words of JSON Schema say."""
    if "anyOf" in schema:
        return any(fits(value, each) for each in schema["anyOf"])
    if "enum" in schema:
        return isinstance(value, str) and value in schema["enum"]
    match schema["type"]:
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            whole = isinstance(value, int) and not isinstance(value, bool)
            return whole and schema["minimum"] <= value <= schema["maximum"]
        case "string":
            return (
                isinstance(value, str)
                and len(value) <= schema["maxLength"]
                and re.fullmatch(schema["pattern"], value) is not None
            )
        case _:
            return (
                isinstance(value, list)
                and schema.get("minItems", 0) <= len(value) <= schema["maxItems"]
                and all(fits(each, schema["items"]) for each in value)
            )


# -- how values are written --------------------------------------------------------------------


def _text(pattern: str, most: int = 200) -> Schema:
    return {"type": "string", "pattern": pattern, "maxLength": most}


def _whole(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def _list(items: Schema, most: int, least: int = 0) -> Schema:
    schema = {"type": "array", "items": items, "maxItems": most}
    return {**schema, "minItems": least} if least else schema


def _microseconds(value: int | str) -> int:
    """Whole seconds, or a duration as everywhere else."""
    second = MICROSECONDS["s"]
    micros = value * second if isinstance(value, int) else parse_duration(value)
    if micros < second:
        raise InvalidInputError(f'"{value}" is less than a second; write e.g. 1')
    return micros


def _words(value: str | list[str]) -> tuple[str, ...]:
    """As a shell would split them; no shell ever sees them."""
    import shlex

    try:
        words = tuple(shlex.split(value)) if isinstance(value, str) else tuple(value)
    except ValueError as error:
        raise InvalidInputError(
            f"the words cannot be told apart: {str(error).lower()}; close it, or write a list"
        ) from None
    if not words or not words[0]:
        raise InvalidInputError("the program has no name; write e.g. [make, test]")
    return words


def _conditions(value: list[str]) -> tuple[str, ...]:
    for each in value:
        if each.startswith("command:"):
            _words(each.removeprefix("command:"))
    return tuple(value)


_SPAN: Schema = {"anyOf": [_whole(1, LONGEST // MICROSECONDS["s"]), _text(_DURATION, 40)]}
_INTERVAL = KeyForm("whole seconds (at least 1) or a duration", "300 or 5m", _SPAN, _microseconds)


def _runner(name: str) -> str:
    if name == "command":
        raise InvalidInputError("runner command needs a program; write type: command with its run")
    return name


_RUNNER = KeyForm(
    "a name of letters, digits, _ and -",
    "claude",
    _text("[A-Za-z0-9][A-Za-z0-9_-]{0,63}", 64),
    _runner,
)
_ONE_WORD = "[A-Za-z0-9][A-Za-z0-9._/-]{0,63}"  # that limits can be about
_ARGUMENT = _text(r"[\s\S]*", LONGEST_PROMPT)
_CONDITION: Schema = {
    "anyOf": [
        _text(NAME, 64),
        _text(r"command:\s*\S[\s\S]*", 2_000),
        _text(f"file_exists:{_INSIDE}", 1_000),
    ]
}
_CRON = KeyForm("a cron expression", '"30 0 * * *"', _text(_NOT_BLANK))
_ZONE = KeyForm("a time zone", "Europe/Berlin", _text("[A-Za-z0-9_+/-]+", 64))
_TOOL = _text(r"[^\s-](?:.*\S)?")
_MODEL = KeyForm("the name of a model", "haiku", _text(r"[A-Za-z0-9]\S*"))


def _params(value: list[str]) -> tuple[str, ...]:
    names = [each.partition("=")[0] for each in value]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise InvalidInputError(f"{twice} is given twice; take one out")
    return tuple(value)


def _choice(*words: str) -> KeyForm:
    says = f"{', '.join(words[:-1])} or {words[-1]}"
    return KeyForm(says, words[0], {"enum": list(words)})


def _all(form: KeyForm) -> dict[str, KeyForm]:
    return dict.fromkeys(TYPES, form)


def _of_one_job(form: KeyForm) -> dict[str, KeyForm]:
    """A workflow says it itself."""
    return dict.fromkeys((SCRIPT, AGENT, COMMAND), form)


KEYS: Mapping[str, Key] = {
    "type": Key(
        "What runs: a Python function, an agent, a command, or a workflow.",
        _all(_choice(*TYPES)),
        required=True,
    ),
    "interval": Key("From the end of one run to the next. This, or `cron`.", _all(_INTERVAL)),
    "interval_active": Key(
        "Instead of `interval`, while other work runs or waits.", _all(_INTERVAL)
    ),
    "interval_idle": Key("Instead of `interval`, while there is no other work.", _all(_INTERVAL)),
    "cron": Key("When it runs, as five fields or `@daily`; instead of `interval`.", _all(_CRON)),
    "timezone": Key("Where `cron` is to be understood.", _all(_ZONE)),
    "run": Key(
        "Of a script: a name registered by `@job`, or `module:function`. "
        "Of a command: its words; no shell sees them.",
        {
            SCRIPT: KeyForm(
                "a registered name or module:function",
                "tidy_up or housekeeping.jobs:tidy_up",
                {"anyOf": [_text(NAME, 64), _text(_FUNCTION)]},
            ),
            COMMAND: KeyForm(
                "a command",
                "[make, test] or make test",
                {"anyOf": [_list(_ARGUMENT, 1_000, 1), _text(_NOT_BLANK, LONGEST_PROMPT)]},
                _words,
            ),
        },
        required=True,
    ),
    "workflow": Key(
        "Which workflow is started: a name, or the path of a file inside of the project.",
        {
            WORKFLOW: KeyForm(
                "the name of a workflow, or the path of its file",
                "nightly",
                _text(_INSIDE, 1_000),
            )
        },
        required=True,
    ),
    "params": Key(
        "Values of its parameters.",
        {
            WORKFLOW: KeyForm(
                "a list of K=V",
                "[keep=14]",
                _list(_text(r"[^=\s]+=[\s\S]*", 100_000), 100),
                _params,
            )
        },
    ),
    "prompt": Key(
        "What the agent is to do. Plain text: nothing is put into it.",
        {
            AGENT: KeyForm(
                f"a text of at most {LONGEST_PROMPT:,} characters",
                "Review the open pull requests.",
                _text(_NOT_BLANK, LONGEST_PROMPT),
            )
        },
        required=True,
    ),
    "runner": Key("Which runner starts the agent.", {AGENT: _RUNNER}),
    "model": Key("Which model the agent uses.", {AGENT: _MODEL}),
    "max_turns": Key(
        "How many turns the agent may take.",
        {AGENT: KeyForm("a whole number from 1 to 100,000", "10", _whole(1, 100_000))},
    ),
    "allowed_tools": Key(
        "Which tools the agent may use.",
        {
            AGENT: KeyForm(
                "a list of tools",
                "[Read, Grep, Glob]",
                _list(_text(r"[^\s-](?:.*\S)?"), 200, least=1),
                tuple,
            )
        },
    ),
    "group": Key("`remote` jobs get the data of the poll.", _all(_choice(LOCAL, REMOTE))),
    "conditions": Key(
        "All must hold, or it stays due: names, `command:WORDS`, `file_exists:PATH`.",
        _all(
            KeyForm(
                "a list of names, command:WORDS and file_exists:PATH inside of the project",
                "[no_agents_running]",
                _list(_CONDITION, 20),
                _conditions,
            )
        ),
    ),
    "enabled": Key(
        "`false` takes it out of service without deleting it.",
        _all(KeyForm("true or false", "true", {"type": "boolean"})),
    ),
    "timeout": Key(
        "End a run after this time.", _of_one_job(_INTERVAL._replace(example="600 or 10m"))
    ),
    "priority": Key(
        "Higher first, among all jobs.",
        _all(
            KeyForm(
                "a whole number from -1,000,000 to 1,000,000", "5", _whole(-1_000_000, 1_000_000)
            )
        ),
    ),
    "resources": Key(
        "What it uses, for limits.",
        _of_one_job(
            KeyForm("a list of words", "[network]", _list(_text(_ONE_WORD, 64), 100), tuple)
        ),
    ),
}
NEEDS: Mapping[str, str] = {
    "interval_active": "interval",
    "interval_idle": "interval",
    "timezone": "cron",
}
_DEFAULTS = Entry._field_defaults


def default_of(key: str) -> Any:
    """The value of an entry that does not give one; None if there is none."""
    if KEYS[key].required or key in ("interval", "cron"):
        return None
    value = _DEFAULTS[key]
    return list(value) if isinstance(value, tuple) else value
