"""How an answer is put together: what others wrote stays in fields marked as data, and all of it is
bounded.

Names, labels, reasons, commands and logs are text of strangers, and an agent may take what it reads
for an instruction. So such text stands only below a key `data`; everything else in an answer is
Headway's own: ids, states, numbers, times. Characters that a terminal would obey or a reader would
not see (controls, escape sequences, bidirectional overrides, characters without width) are shown as
escapes. Pure.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headway.base.text import plain

DATA = "data"
MOST_ENTRIES = 200  # of a list or an object
LARGEST = 64 << 10  # bytes of an answer
IN_A_ROW = 300  # characters of a text in a list
LOG_BYTES = 16 << 10
_ROOMS = (20_000, 2000, 400, 80)  # characters of a text: the first with which an answer fits
_DEEPEST = 12


def data(*, room: int | None = None, **fields: Any) -> dict[str, Any]:
    """What others wrote, without what is not there; each text no longer than there is room."""
    there = {name: each for name, each in fields.items() if each not in _NOTHING}
    if room is None:
        return there
    return {name: visible(each, room) for name, each in there.items()}


_NOTHING: tuple[Any, ...] = (None, "", (), [], {})


def visible(value: Any, room: int, depth: int = 0) -> Any:
    """The same with every text on one line, harmless, and no longer than there is room."""
    if isinstance(value, str):
        return _cut(plain(value), room)
    if depth > _DEEPEST and isinstance(value, Mapping | list | tuple):
        return "..."
    if isinstance(value, Mapping):
        pairs = list(value.items())
        made = {
            _cut(plain(str(key)), room): visible(each, room, depth + 1)
            for key, each in pairs[:MOST_ENTRIES]
        }
        return made if len(pairs) <= MOST_ENTRIES else {**made, "...": _left_out(len(pairs))}
    if isinstance(value, Sequence):
        entries = [visible(each, room, depth + 1) for each in value[:MOST_ENTRIES]]
        return entries if len(value) <= MOST_ENTRIES else [*entries, _left_out(len(value))]
    return value


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[:room]}... ({len(text) - room} more)"


def _left_out(count: int) -> str:
    return f"... {count - MOST_ENTRIES} more"


def bounded(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer with its texts cut as much as it needs to be no larger than is allowed."""
    made: dict[str, Any] = {}
    for room in _ROOMS:
        made = visible(answer, room)
        if len(as_text(made).encode()) <= LARGEST:
            return made
    kept = {key: each for key, each in made.items() if not isinstance(each, list | dict)}
    return {**kept, "left_out": "the rest is too large for an answer"}


def as_text(answer: Mapping[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def last_lines(written: bytes, count: int) -> tuple[list[str], bool]:
    """The last lines as they are shown, at most so many and so many bytes, and whether something
    before them is left out. Of a line that is too long the end is kept."""
    lines = written.decode(errors="replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    kept: list[str] = []
    left = LOG_BYTES
    for line in reversed(lines[-count:]):
        text = plain(line.removesuffix("\r"))
        size = len(text.encode()) + 1
        if size > left:
            if not kept:
                kept.append("..." + text.encode()[-(left - 4) :].decode(errors="ignore"))
            return kept[::-1], True
        left -= size
        kept.append(text)
    return kept[::-1], len(lines) > count
