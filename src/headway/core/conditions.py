"""Comparisons of values: what `when` of a workflow's node says. Nothing is evaluated."""

import json
from typing import Any


class NotComparableError(ValueError):
    """An order was asked for of what has none."""


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


def as_text(value: Any) -> str:
    """A value among other text: texts as they are, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
