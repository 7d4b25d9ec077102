"""The outputs of a workflow's node: lines `name=text` or `name:=JSON` that its command wrote, or
the object that its function returned."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.model import NOTHING

LARGEST = 1 << 20
CHECKS = "cicd.run"  # the operation whose output `passed` says how its command ended
_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,63})(:?=)(.*)", re.DOTALL)


class OutputsError(ValueError):
    """What is wrong with them, in words for people."""


Left = bytes | Mapping[str, Any] | None  # by a node; None: that is lost


def parse_outputs(
    left: Left, declared: Sequence[str], own: Mapping[str, Any] = NOTHING
) -> dict[str, Any]:
    """The outputs by their names; those of the operation itself, `own`, go before. Raises
    OutputsError if they are lost, too large or not of the form, or if one that is declared is
    missing."""
    if left is None:
        raise OutputsError("its outputs are missing")
    found = {**(left if isinstance(left, Mapping) else _written(left)), **own}
    for name in declared:
        if name not in found:
            raise OutputsError(f"it did not set output '{name}'")
    return found


def outputs_of_checks(operation: str, passed: bool) -> Mapping[str, Any]:
    """What the checks of a change set by their end; nothing of other operations."""
    return {"passed": passed} if operation == CHECKS else NOTHING


def returned_outputs(result: Any) -> Mapping[str, Any]:
    """The outputs of a function: the object that it returned, or else that under one name."""
    if result is None:
        return {}
    return result if isinstance(result, dict) else {"result": result}


def _written(content: bytes) -> dict[str, Any]:
    """The lines that a command wrote; the last of a name counts."""
    if len(content) > LARGEST:
        raise OutputsError("its outputs are larger than 1 MiB")
    found: dict[str, Any] = {}
    for number, line in enumerate(_lines(content), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise OutputsError(f"line {number} of its outputs is not name=text or name:=JSON")
        found[match[1]] = _value(match[2], match[3], number)
    return found


def _lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", errors="replace")
    return [line.removesuffix("\r") for line in text.split("\n") if line.strip()]


def _value(sign: str, text: str, number: int) -> Any:
    if sign == "=":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise OutputsError(f"line {number} of its outputs has no JSON after :=") from None


def product_data(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is published with the products of a node: the text that it has set, if any."""
    outputs = report.get("outputs", {})
    return {"text": outputs["text"]} if "text" in outputs else None
