"""How the words after the `?` of a request are read: all are texts. Pure."""

import re
from collections.abc import Mapping
from typing import Any

from headway.base.shapes import Schema, ShapeMistake, WrongRequestError, mistakes, perhaps

INSTANT: Schema = {
    "type": "string",
    "maxLength": 64,
    "description": "a time like 2026-11-15T22:30Z, or a span before now like 24h",
}


def read_query(given: list[tuple[str, str]], shapes: Mapping[str, Schema]) -> dict[str, Any]:
    """The words after the `?`, each once, but a list also in parts: `state=a,b` is
    `state=a&state=b`. Those with a default are always there."""
    found: list[ShapeMistake] = []
    read = {name: shape["default"] for name, shape in shapes.items() if "default" in shape}
    seen: set[str] = set()
    for name, text in given:
        shape = shapes.get(name)
        if shape is None:
            found.append(ShapeMistake(f"?{name}", f"unknown query word{perhaps(name, shapes)}"))
            continue
        value = _from_text(text, shape)
        if name in seen and not isinstance(value, list):
            found.append(ShapeMistake(f"?{name}", "it is given twice"))
            continue
        value = [*read.get(name, ()), *value] if isinstance(value, list) else value
        seen.add(name)
        if "\0" in text:
            found.append(ShapeMistake(f"?{name}", "it has a NUL"))
            continue
        wrong = list(mistakes(value, shape, f"?{name}"))
        found += wrong
        if not wrong:
            read[name] = value
    if found:
        raise WrongRequestError(found)
    return read


def _from_text(text: str, shape: Schema) -> Any:
    """What the text means, if it can mean that; else the text, which the check refuses."""
    match shape.get("type"):
        case "boolean" if text in ("true", "false"):
            return text == "true"
        case "integer" if re.fullmatch(r"-?[0-9]{1,18}", text):
            return int(text)
        case "array":
            return text.split(",")
    return text
