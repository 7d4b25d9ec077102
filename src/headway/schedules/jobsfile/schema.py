"""The JSON Schema of a jobs file, for editors, from the one description of its keys. Pure.

It allows no key that the reader refuses. A value that it allows may still be refused: that a zone
exists or a cron expression has a meaning is beyond a schema.
"""

from typing import Any

from headway.schedules.jobsfile.keys import (
    KEYS,
    MOST_ENTRIES,
    NEEDS,
    TYPES,
    Key,
    KeyForm,
    default_of,
)
from headway.schedules.jobsfile.model import NAME

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_document() -> dict[str, Any]:
    """For the whole file."""
    return {
        "$schema": DIALECT,
        "title": "Headway jobs file",
        "description": "Periodic jobs, by their names: .headway/jobs.yaml",
        "type": "object",
        "required": ["jobs"],
        "additionalProperties": False,
        "properties": {
            "jobs": {
                "type": "object",
                "maxProperties": MOST_ENTRIES,
                "propertyNames": {"pattern": _whole_text(NAME)},
                "additionalProperties": {"$ref": "#/$defs/entry"},
            }
        },
        "$defs": {"entry": _entry(), **{kind: _of_type(kind) for kind in TYPES}},
    }


def _entry() -> dict[str, Any]:
    """An editor learns the type first, and then offers what belongs to it."""
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": list(TYPES)}},
        "allOf": [
            {
                "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
                "then": {"$ref": f"#/$defs/{kind}"},
            }
            for kind in TYPES
        ],
    }


def _of_type(kind: str) -> dict[str, Any]:
    own = {name: key for name, key in KEYS.items() if kind in key.forms}
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [name for name, key in own.items() if key.required],
        "oneOf": [{"required": ["interval"]}, {"required": ["cron"]}],
        "dependentRequired": {key: [needed] for key, needed in NEEDS.items()},
        "properties": {name: _property(name, key, key.forms[kind]) for name, key in own.items()},
    }


def _property(name: str, key: Key, form: KeyForm) -> dict[str, Any]:
    described = {"description": key.about.replace("`", ""), **_anchored(form.schema)}
    default = default_of(name)
    return described if default is None else {**described, "default": default}


def _anchored(schema: Any) -> Any:
    """Our patterns are for the whole text; those of JSON Schema for any part of it."""
    if isinstance(schema, list):
        return [_anchored(each) for each in schema]
    if not hasattr(schema, "items"):
        return schema
    return {
        word: _whole_text(value) if word == "pattern" else _anchored(value)
        for word, value in schema.items()
    }


def _whole_text(pattern: str) -> str:
    """Where `$` is also before a last line end, as in Python, that must not be one."""
    return f"^(?:{pattern})$(?!\\n)"
