"""How the words of a request are written: JSON Schemas, and the one check by them. Pure.

A route of HTTP and a tool of MCP name the shape of what they take. The check reads the same
schemas that callers are shown, so what it allows is what those say. Only the words of JSON Schema
that stand in `mistakes` are used.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from headway.base.errors import InvalidInputError

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string", "maxLength": 4096}
LONG_TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
WORD: Schema = {**TEXT, "minLength": 1}
TEXTS: Schema = {"type": "array", "items": WORD, "maxItems": 10_000}
OBJECT: Schema = {"type": "object"}
ANYTHING: Schema = {}


FEW = 20  # words that a message lists


def one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def whole(least: int, most: int, default: int | None = None) -> Schema:
    bounds = {"type": "integer", "minimum": least, "maximum": most}
    return bounds if default is None else {**bounds, "default": default}


def texts_by_name(describe: str) -> Schema:
    return {
        "type": "object",
        "additionalProperties": {"type": ["string", "null"]},
        "description": describe,
    }


def keys(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """An object of these keys and no others."""
    made = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**made, "required": list(required)} if required else made


class ShapeMistake(NamedTuple):
    """Where a value is wrong, as a JSON pointer, and how."""

    pointer: str
    detail: str


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_SAID = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def mistakes(value: Any, schema: Schema, pointer: str = "") -> Iterator[ShapeMistake]:
    """All that is wrong with a value."""
    wanted = schema.get("type")
    if wanted is not None:
        words = [wanted] if isinstance(wanted, str) else wanted
        if not any(_is_a(value, word) for word in words):
            said = " or ".join(_SAID[word] for word in words)
            yield ShapeMistake(pointer, f"{_short(value)} is not {said}")
            return
    if "enum" in schema and value not in schema["enum"]:
        allowed = [str(each) for each in schema["enum"]]
        few = f"is not one of {', '.join(allowed)}"
        said = few if len(allowed) <= FEW else f"is not known{perhaps(str(value), allowed)}"
        yield ShapeMistake(pointer, f"{_short(value)} {said}")
    if isinstance(value, str):
        yield from _of_text(value, schema, pointer)
    elif isinstance(value, dict):
        yield from _of_object(value, schema, pointer)
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            yield ShapeMistake(pointer, f"it has more than {schema['maxItems']} entries")
        for index, each in enumerate(value if "items" in schema else ()):
            yield from mistakes(each, schema["items"], f"{pointer}/{index}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield ShapeMistake(pointer, f"{value} is too small; the least is {schema['minimum']}")
        if value > schema.get("maximum", value):
            yield ShapeMistake(pointer, f"{value} is too large; the most is {schema['maximum']}")


def _is_a(value: Any, word: str) -> bool:
    if isinstance(value, bool):
        return word == "boolean"
    return isinstance(value, _TYPES[word])


def _of_text(value: str, schema: Schema, pointer: str) -> Iterator[ShapeMistake]:
    if len(value) > schema.get("maxLength", len(value)):
        yield ShapeMistake(pointer, f"it is longer than {schema['maxLength']} characters")
    if len(value) < schema.get("minLength", 0):
        yield ShapeMistake(pointer, "it is empty")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield ShapeMistake(pointer, f"{_short(value)} is not of the form {schema['pattern']}")


def _of_object(value: Mapping[str, Any], schema: Schema, pointer: str) -> Iterator[ShapeMistake]:
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for key in schema.get("required", ()):
        if key not in value:
            yield ShapeMistake(f"{pointer}/{key}", f"{key} is missing")
    for key, each in value.items():
        place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
        if key in known:
            yield from mistakes(each, known[key], place)
        elif others is False:
            yield ShapeMistake(place, f"unknown key {key!r}{perhaps(key, known)}")
        elif isinstance(others, Mapping):
            yield from mistakes(each, others, place)


def perhaps(word: str, known: Collection[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word[:64], known, 1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are {', '.join(known)}" if known else "; it takes none"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class WrongRequestError(InvalidInputError):
    """All that is wrong with the words of a request."""

    def __init__(self, found: list[ShapeMistake]) -> None:
        named = "; ".join(f"{each.pointer or 'the body'}: {each.detail}" for each in found[:20])
        super().__init__(named)
        self.mistakes = found[:20]


def read_body(value: Any, schema: Schema) -> Any:
    found = list(mistakes(value, schema))
    if found:
        raise WrongRequestError(found)
    return value


def check_texts(value: Any) -> None:
    """Refuse what only an escape can write: NUL, and half of a pair of surrogates."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            if "\0" in each or any("\ud800" <= char <= "\udfff" for char in each):
                raise ValueError("a text has a NUL, or half of a character")
        elif isinstance(each, dict):
            left += [*each, *each.values()]
        elif isinstance(each, list):
            left += each
