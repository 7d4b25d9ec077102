"""The conditions of `when`, as they are written: `LEFT OP RIGHT`. `core.conditions` compares."""

import json
import re
from typing import Any, NamedTuple

from headway.workflows.references import CLOSE, OPEN

OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "in")
LONGEST = 4096
_OPERATOR = re.compile(r"==|!=|<=|>=|<|>|\sin\s")
_WORD = re.compile(r"[^\s\"'\[\]{}<>=!]+")


class Condition(NamedTuple):
    """A comparison; a side is a value, or a text with one reference."""

    left: Any
    operator: str
    right: Any


def parse_condition(text: str) -> Condition | None:
    """None: it is not of the form. An operator may also stand within the text of a side."""
    if len(text) > LONGEST:
        return None
    for found in _OPERATOR.finditer(text):
        left, right = _side(text[: found.start()].strip()), _side(text[found.end() :].strip())
        if left is not _NONE and right is not _NONE:
            return Condition(left, found[0].strip(), right)
    return None


_NONE = object()


def _side(text: str) -> Any:
    """A reference as it is written, JSON, or a bare word."""
    if text.startswith(OPEN) and text.find(CLOSE) == len(text) - len(CLOSE):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text if _WORD.fullmatch(text) else _NONE
