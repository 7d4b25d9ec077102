"""The outputs of a workflow's node: lines `name=text` or `name:=JSON` that its command wrote."""

import json
import re
from collections.abc import Sequence
from typing import Any

LARGEST = 1 << 20
_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_-]{0,63})(:?=)(.*)", re.DOTALL)


class OutputsError(ValueError):
    """What is wrong with them, in words for people."""


def parse_outputs(content: bytes | None, declared: Sequence[str]) -> dict[str, Any]:
    """The outputs by their names; the last line of a name counts. Raises OutputsError if they are
    lost, too large or not of the form, or if one that is declared is missing."""
    if content is None:
        raise OutputsError("its outputs are missing")
    if len(content) > LARGEST:
        raise OutputsError("its outputs are larger than 1 MiB")
    found: dict[str, Any] = {}
    for number, line in enumerate(_lines(content), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise OutputsError(f"line {number} of its outputs is not name=text or name:=JSON")
        found[match[1]] = _value(match[2], match[3], number)
    for name in declared:
        if name not in found:
            raise OutputsError(f"it did not set output '{name}'")
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
