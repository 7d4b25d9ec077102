"""What a terminal sends, as names of keys. Pure.

A sequence may come in pieces: what may still be one is kept until it goes on, or nothing comes.
"""

import codecs
import re
from typing import NamedTuple

_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])")
_BEGUN = re.compile(r"\x1b(?:\[[0-9;]*|O)?")
_NAMES = {
    **{
        f"\x1b[{letter}": name
        for letter, name in zip("ABCD", ("up", "down", "right", "left"), strict=True)
    },
    **{
        f"\x1bO{letter}": name
        for letter, name in zip("ABCD", ("up", "down", "right", "left"), strict=True)
    },
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~"), "home"),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~"), "end"),
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    **dict.fromkeys("\r\n", "enter"),
    **dict.fromkeys("\x7f\b", "backspace"),
    "\t": "tab",
    "\x0c": "redraw",
}


class ReadKeys(NamedTuple):
    keys: list[str]
    rest: str  # what may go on


class KeyReader:
    """Feed it the bytes of a terminal, in order."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def waits(self) -> bool:
        """Whether something has begun that may go on."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[str]:
        """The keys that are complete. Without data nothing more comes of what has begun."""
        read = read_keys(self._rest + self._decoder.decode(data), complete=not data)
        self._rest = read.rest
        return read.keys


def read_keys(text: str, *, complete: bool) -> ReadKeys:
    """With `complete`, an escape at the end is a key of its own."""
    keys: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\x1b":
            name = _NAMES.get(text[at], text[at])
            if len(name) > 1 or name.isprintable():
                keys.append(name)
            at += 1
            continue
        found = _SEQUENCE.match(text, at)
        if found is not None:
            keys += [_NAMES[found[0]]] if found[0] in _NAMES else []  # others do nothing
            at = found.end()
            continue
        begun = _BEGUN.match(text, at)
        if begun is not None and begun.end() == len(text) and not complete:
            return ReadKeys(keys, text[at:])
        keys.append("escape")
        at += 1 if begun is None or not complete else len(begun[0])
    return ReadKeys(keys, "")
