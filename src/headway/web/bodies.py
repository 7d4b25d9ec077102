"""What is read from the body of a request, a form or JSON, and what is refused of it. Pure."""

import json
import re
from math import isinf
from typing import Any
from urllib.parse import parse_qsl

from headway.base.shapes import Schema, check_texts, read_body
from headway.web.problems import HttpProblem
from headway.web.shapes import read_query

DEEPEST = 32


def form_fields(content: bytes) -> list[tuple[str, str]]:
    """The fields of a page's form that say something."""
    try:
        return parse_qsl(content.decode("utf-8"), max_num_fields=1200, errors="strict")
    except ValueError:
        raise HttpProblem(400, "bad-request", "the form is not UTF-8, or too long") from None


def read_form(given: list[tuple[str, str]], shape: Schema) -> Any:
    """In the words of the query of a URL."""
    return read_body(read_query(given, shape["properties"]), shape)


def read_json(content: bytes, shape: Schema) -> Any:
    return read_body(_json(content) if content else {}, shape)


def _json(content: bytes) -> Any:
    """A JSON value: UTF-8, no key twice, no number that JSON does not have, not too deep, and in
    its texts nothing that no store keeps."""
    if _depth(content) > DEEPEST:
        raise HttpProblem(400, "bad-json", f"it is nested deeper than {DEEPEST}")
    try:
        made = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_once,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
        if b"\\u" in content:
            check_texts(made)
    except (ValueError, RecursionError) as error:
        raise HttpProblem(400, "bad-json", f"the body is not JSON: {error}") from None
    return made


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return made


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise ValueError(f"{digits[:40]} is too large for a number")
    return number


_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


def _depth(content: bytes) -> int:
    """How deep brackets go, without those that stand in texts."""
    deepest = depth = 0
    for byte in _TEXTS.sub(b"", content).translate(None, _NO_BRACKETS):
        depth += 1 if byte in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
