"""The conditions of `when`: `LEFT OP RIGHT`, compared and never evaluated. Pure."""

import json
import re
from typing import Any, NamedTuple

from headway.workflows.references import CLOSE, OPEN, as_text

OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "in")
LONGEST = 4096
_OPERATOR = re.compile(r"==|!=|<=|>=|<|>|\sin\s")
_WORD = re.compile(r"[^\s\"'\[\]{}<>=!]+")


class Condition(NamedTuple):
    """A comparison; a side is a value, or a text with one reference."""

    left: Any
    operator: str
    right: Any


class NotComparableError(ValueError):
    """An order was asked for of what has none."""


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


def holds(operator: str, left: Any, right: Any) -> bool:
    """Compare two values. Where one side is a text, both are compared as texts; an order wants
    numbers."""
    if operator == "in":
        return _is_in(left, right)
    if operator in ("==", "!="):
        return _equal(left, right) == (operator == "==")
    if not _is_number(left) or not _is_number(right):
        raise NotComparableError(f"{as_text(left)} {operator} {as_text(right)} compares no numbers")
    match operator:
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return as_text(left) == as_text(right)
    return bool(left == right)


def _is_in(left: Any, right: Any) -> bool:
    if isinstance(right, list):
        return any(_equal(left, each) for each in right)
    if isinstance(right, dict):
        return as_text(left) in right
    return isinstance(right, str) and as_text(left) in right


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
