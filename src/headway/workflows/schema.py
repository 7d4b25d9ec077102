"""The JSON Schema of a workflow file, for editors, from the tables that the reader reads. Pure.

It allows no key that the reader refuses. A value that it allows may still be refused: what nodes
say about each other, and what a reference names, is beyond a schema.
"""

from collections.abc import Mapping
from typing import Any

from headway.core.artifacts import SLUG
from headway.core.routes import ANY, OUTCOME_WORDS, Join
from headway.integrations.agents.forms import MOST_TOKENS, MOST_TURNS
from headway.jobs.specification import MOST_PRIORITY, MOST_RETRIES
from headway.workflows.labels import (
    AGENT_INVOKE,
    COMMAND_RUN,
    FUNCTION_CALL,
    LABELS,
    Label,
    RunsCommand,
)
from headway.workflows.matrices import MOST_COMBINATIONS
from headway.workflows.reader import (
    AFTER_KEYS,
    ARGUMENTS,
    BUDGET_KEYS,
    CONTRACT_KEYS,
    DEFAULT_KEYS,
    EACH_KEYS,
    IMPORT_KEYS,
    JOB_KEYS,
    LOOP_KEYS,
    LOOP_ON,
    MOST_APPROVERS,
    MOST_AT_THE_END,
    MOST_ELEMENTS,
    MOST_TIMES,
    NAME,
    NODE_ID,
    NODE_KEYS,
    OF_HEADWAY,
    OUTPUT_NAME,
    PARAM_KEYS,
    PARAM_TYPES,
    SCOPES,
    SLUGS,
    TOLERABLE,
    TOP_KEYS,
    WHAT_IT_DOES,
    ValueForm,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_FLAG: Schema = {"type": "boolean"}
_TABLE: Schema = {"type": "object"}
_WHOLE: Schema = {"type": "integer"}

# By the words with which the reader says how a value is written.
_BY_WORDS: Mapping[str, Schema] = {
    "a text": _TEXT,
    "a list of texts": _TEXTS,
    "a list of texts, not empty": {**_TEXTS, "minItems": 1},
    "true or false": _FLAG,
    "a table": _TABLE,
    "an object of texts": {"type": "object", "additionalProperties": _TEXT},
    "a whole number": _WHOLE,
    "a whole number above 0": {**_WHOLE, "minimum": 1},
    "a number above 0": {"type": "number", "exclusiveMinimum": 0},
    "a number from 0 to 1": {"type": "number", "minimum": 0, "maximum": 1},
    "a list of whole numbers": {"type": "array", "items": _WHOLE},
    "a branch or true": {"type": ["string", "boolean"]},
    'a duration like "5m"': _TEXT,
    "a list": {"type": "array"},
    "a list of tables": {"type": "array", "items": _TABLE},
    "a regular expression": _TEXT,
    "a value of its type": {},
    "a table of lists that are not empty": {
        "type": "object",
        "additionalProperties": {"type": "array", "minItems": 1, "maxItems": MOST_COMBINATIONS},
    },
}
# The same for arguments of labels.
_OF_ARGUMENTS: Mapping[str, Schema] = {
    "a text or a number": {"type": ["string", "number"]},
    "a path, or a list of paths": {"anyOf": [_TEXT, {**_TEXTS, "minItems": 1}]},
    "a list of names": {"anyOf": [_TEXT, _TEXTS]},
    "a number": {"type": "number"},
    f"a whole number from 1 to {MOST_APPROVERS}": {
        **_WHOLE,
        "minimum": 1,
        "maximum": MOST_APPROVERS,
    },
}


def _whole(pattern: str) -> str:
    """Where `$` is also before a last line end, as in Python, that must not be one."""
    return f"^(?:{pattern})$(?!\\n)"


_OF_SLUG: Schema = {
    "anyOf": [{**_TEXT, "pattern": _whole(f"(?:{SLUG.pattern})?")}, {"type": "number"}]
}
# Arguments with bounds beside their form.
_BOUNDED: Mapping[str, Schema] = {
    "max_turns": {**_WHOLE, "minimum": 1, "maximum": MOST_TURNS},
    "max_tokens": {**_WHOLE, "minimum": 1, "maximum": MOST_TOKENS},
    "budget_usd": {"type": "number", "exclusiveMinimum": 0},
    "allowed_tools": {**_TEXTS, "minItems": 1},
    **dict.fromkeys(SLUGS, _OF_SLUG),
}


def schema_document() -> Schema:
    """For the whole file."""
    return {
        "$schema": DIALECT,
        "title": "Headway workflow",
        "description": "A file of steps: .headway/workflows/NAME.toml",
        "type": "object",
        "anyOf": [
            {"required": [key], "properties": {key: {"minProperties": 1}}}
            for key in ("nodes", "imports")
        ],
        "additionalProperties": False,
        "properties": _properties(TOP_KEYS, _TOP),
        "$defs": {"node": _node()},
    }


def _properties(forms: Mapping[str, ValueForm], own: Mapping[str, Schema]) -> dict[str, Schema]:
    """Each key by what is said of it here, else by the words of the reader."""
    return {
        key: {"description": ABOUT[key], **(own.get(key) or _BY_WORDS[form.says])}
        for key, form in forms.items()
    }


def _closed(forms: Mapping[str, ValueForm], own: Mapping[str, Schema] | None = None) -> Schema:
    keys = {key: (own or {}).get(key) or _BY_WORDS[form.says] for key, form in forms.items()}
    return {"type": "object", "additionalProperties": False, "properties": keys}


def _outcomes(words: Any) -> Schema:
    return {"type": "array", "items": {"enum": [str(each) for each in words]}}


_PRODUCTS = [word for word in OUTCOME_WORDS if word != ANY]
_OWN: Mapping[str, Schema] = {
    "uses": {"enum": list(LABELS)},
    "after": {
        "type": "array",
        "items": {
            "anyOf": [
                _TEXT,
                {**_closed(AFTER_KEYS, {"on": _outcomes(OUTCOME_WORDS)}), "required": ["node"]},
            ]
        },
    },
    "on": {
        "type": "object",
        "additionalProperties": False,
        "properties": {word: {**_TEXTS, "uniqueItems": True} for word in OUTCOME_WORDS},
    },
    "join": {"enum": [each.value for each in Join]},
    "loop": {
        **_closed(
            LOOP_KEYS,
            {
                "on": _outcomes(LOOP_ON),
                "times": {"type": "integer", "minimum": 1, "maximum": MOST_TIMES},
            },
        ),
        "required": ["to", "times"],
    },
    "tolerate": _outcomes(TOLERABLE),
    "each": {
        **_closed(EACH_KEYS, {"max": {"type": "integer", "minimum": 1, "maximum": MOST_ELEMENTS}}),
        "required": ["in"],
    },
    "produces": {
        "anyOf": [
            _TEXTS,
            {
                "type": "object",
                "additionalProperties": False,
                "properties": dict.fromkeys(_PRODUCTS, _TEXTS),
            },
        ]
    },
    "outputs": {
        "type": "array",
        "items": {"type": "string", "pattern": _whole(OUTPUT_NAME.pattern)},
    },
    "priority": {**_WHOLE, "minimum": -MOST_PRIORITY, "maximum": MOST_PRIORITY},
    "retries": {**_WHOLE, "minimum": 0, "maximum": MOST_RETRIES},
    "skip_exit_codes": {"type": "array", "items": {**_WHOLE, "minimum": 1, "maximum": 255}},
    "cwd": {**_TEXT, "pattern": "."},
}
_TOP: Mapping[str, Schema] = {
    "inputs": {**_TEXTS, "uniqueItems": True},
    "params": {
        "type": "object",
        "propertyNames": {"pattern": _whole(NAME.pattern)},
        "additionalProperties": {
            "if": {"type": "object"},
            "then": _closed(PARAM_KEYS, {"type": {"enum": list(PARAM_TYPES)}}),
        },
    },
    "artifacts": {
        "type": "object",
        "propertyNames": {"not": {"enum": list(OF_HEADWAY)}},
        "additionalProperties": _closed(CONTRACT_KEYS, {"scope": {"enum": list(SCOPES)}}),
    },
    "budget": _closed(BUDGET_KEYS),
    "finally": {**_TEXTS, "uniqueItems": True, "maxItems": MOST_AT_THE_END},
    "defaults": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            key: _OWN.get(key) or _BY_WORDS[NODE_KEYS[key].says] for key in DEFAULT_KEYS
        },
    },
    "imports": {
        "type": "object",
        "propertyNames": {"pattern": _whole(NODE_ID.pattern)},
        "additionalProperties": {**_closed(IMPORT_KEYS), "required": ["workflow"]},
    },
    "nodes": {
        "type": "object",
        "propertyNames": {"pattern": _whole(NODE_ID.pattern)},
        "additionalProperties": {"$ref": "#/$defs/node"},
    },
}


def _node() -> Schema:
    """An editor learns the label first, and then offers its arguments."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": _properties(NODE_KEYS, _OWN),
        "anyOf": [{"required": [key]} for key in WHAT_IT_DOES],
        "allOf": [
            {"not": {"required": ["matrix", "each"]}},
            {"not": {"required": ["argv", "shell"]}},
            {"not": {"required": ["prompt", "prompt_file"]}},
            *(
                {
                    "if": {"properties": {"uses": {"const": name}}, "required": ["uses"]},
                    "then": _of_label(label),
                }
                for name, label in LABELS.items()
            ),
            *(
                {
                    "if": {"required": [key], "not": {"required": ["uses"]}},
                    "then": _of_short_form(LABELS[name], keys),
                }
                for keys, name in _SHORT_FORMS.items()
                for key in keys
            ),
        ],
    }


# Keys that say what a node does without a label, and the label that they stand for.
_SHORT_FORMS = {
    ("task",): FUNCTION_CALL,
    ("prompt", "prompt_file"): AGENT_INVOKE,
    ("argv", "shell"): COMMAND_RUN,
}


def _of_short_form(label: Label, takes: tuple[str, ...]) -> Schema:
    return {"properties": {**_refused(takes), "args": _arguments(label)}}


def _of_label(label: Label) -> Schema:
    takes = ("argv", "shell") if label.command is not RunsCommand.NEVER else ()
    properties = {**_refused(takes), "args": _arguments(label)}
    found: Schema = {"description": label.about, "properties": properties}
    if label.command is RunsCommand.MUST:
        found["anyOf"] = [{"required": ["argv"]}, {"required": ["shell"]}]
    if label.one_of:
        one = [{"required": [key]} for key in label.one_of]
        found["required"] = ["args"]
        found["allOf"] = [{"properties": {"args": {"anyOf": one}}}]
    return found


def _refused(takes: tuple[str, ...]) -> dict[str, Any]:
    return {key: False for key in WHAT_IT_DOES[1:] if key not in takes}


def _arguments(label: Label) -> Schema:
    return {
        "type": "object",
        "additionalProperties": label.free,
        "properties": {key: _argument(key) for key in label.arguments},
    }


def _argument(key: str) -> Schema:
    """What has a reference is a text in the file, whatever it comes to."""
    form = ARGUMENTS.get(key)
    if form is None:
        return {}
    found = _BOUNDED.get(key) or _OF_ARGUMENTS.get(form.says) or _BY_WORDS[form.says]
    return found if found == _TEXT else {"anyOf": [found, {**_TEXT, "pattern": r"\$\{\{"}]}


# What an editor shows beside a key; the page has the same words.
ABOUT: Mapping[str, str] = {
    "version": "a text of your own, kept with each run",
    "description": "what it is for, in a line",
    "inputs": "parameters that may be given by position",
    "params": "a default, or a table: type, default, choices, pattern, help",
    "artifacts": "the contract of a custom type of artifact: version, scope",
    "budget": "of all agents of a run together: usd, tokens",
    "finally": "nodes that run when all others have ended, however",
    "defaults": "keys of all nodes that say nothing else",
    "imports": "other workflows whose nodes become NAME.node: workflow, params, after",
    "nodes": "the steps, by name; their order is that of dispatch",
    "uses": "the label: what the node does",
    "args": "the arguments of the label",
    "argv": "a command, word by word",
    "shell": "a command for sh -c; values come by env",
    "prompt": "an agent with this prompt",
    "prompt_file": "an agent with the prompt of this file",
    "task": "a Python function, as module:function",
    "after": "nodes that it waits for, or { node, on = [OUTCOME] }",
    "on": "by outcome: the nodes that follow",
    "join": "all of the edges, or any",
    "loop": "the way back: { to, on, times, delay }",
    "tolerate": "outcomes that count as good",
    "when": "conditions LEFT OP RIGHT, else it is skipped",
    "matrix": "one job for each combination of values",
    "exclude": "combinations that are left out",
    "each": "one job for each element of a list: { in, max }",
    "needs": "artifacts that must be there before it starts",
    "produces": "artifacts that it makes, or a table of them by outcome",
    "outputs": "names that it sets",
    "root": 'the worktree.prepare node in whose checkout it works; "." is the repository itself',
    "approval": "true: it waits for a person",
    "timeout": "how long it may take",
    **{key: "as of a job" for key in JOB_KEYS if key != "timeout"},
}
