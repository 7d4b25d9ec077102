"""Where the keys of a TOML file stand: line and column of each, for messages. Pure.

The parser of the standard library forgets places. This reads the same text once more, as far as
headers and keys go. A key within an inline table has the place of the key that the table is of.
"""

import re
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

Path = tuple[str, ...]

_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|#[^\n]*+"
    r"|[\n\[\]{}.=,]"
    r"|[ \t\r]++"
    r"|[^\n\[\]{}.=,\"'# \t\r]++"
    r"|.",
    re.DOTALL,
)
_OPENING, _CLOSING = ("[", "{"), ("]", "}")


class TextPlace(NamedTuple):
    line: int
    column: int


class TextPlaces:
    """The places of the keys of one file. It is read when a place is first asked for: most files
    have no mistake."""

    def __init__(self, text: str = "") -> None:
        self._text = text

    @cached_property
    def _found(self) -> Mapping[Path, TextPlace]:
        return _read(self._text)

    def of(self, path: Path) -> TextPlace | None:
        """Where the key is, or the nearest one that it is in."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._found:
                return self._found[path[:length]]
        return None


def _read(text: str) -> Mapping[Path, TextPlace]:
    """The places of all headers and keys of a text that is right TOML."""
    found: dict[Path, TextPlace] = {}
    reader = _Reader(found)
    line, start = 1, 0
    for match in _TOKEN.finditer(text):
        piece = match[0]
        reader.take(piece, TextPlace(line, match.start() - start + 1))
        newlines = piece.count("\n")
        if newlines:
            line += newlines
            start = match.start() + piece.rindex("\n") + 1
    return found


class _Reader:
    """Follows the tokens of a file; it knows only headers, keys, and how deep in a value it is."""

    def __init__(self, found: dict[Path, TextPlace]) -> None:
        self._found = found
        self._table: Path = ()
        self._key: list[str] = []
        self._at: TextPlace | None = None
        self._header = 0  # brackets of a header that are open
        self._depth = 0  # brackets of a value that are open
        self._in_value = False

    def take(self, piece: str, place: TextPlace) -> None:
        if self._in_value:
            self._depth += (piece in _OPENING) - (piece in _CLOSING)
            if piece == "\n" and self._depth <= 0:
                self._begin_line()
        elif piece == "\n":
            self._begin_line()
        elif piece == "[" and self._at is None:
            self._header += 1
        elif piece == "]" and self._header:
            self._end_header()
        elif piece == "=":
            self._note((*self._table, *self._key))
            self._in_value, self._depth = True, 0
        elif piece != "." and not piece.isspace() and not piece.startswith("#"):
            self._at = self._at or place
            self._key.append(_unquoted(piece))

    def _begin_line(self) -> None:
        self._key, self._at, self._header, self._in_value = [], None, 0, False

    def _end_header(self) -> None:
        self._header -= 1
        if not self._header:
            self._table = tuple(self._key)
            self._note(self._table)

    def _note(self, path: Path) -> None:
        if self._at is None:
            return
        for length in range(1, len(path) + 1):
            self._found.setdefault(path[:length], self._at)


def _unquoted(piece: str) -> str:
    return piece[1:-1] if piece[:1] in "\"'" and len(piece) > 1 else piece
