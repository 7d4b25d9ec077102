"""Texts of strangers in a page: escaped, with invisible characters made visible. Pure.

Control characters, overrides of the direction of writing and the like are shown as their escapes,
so a command looks as it is. `ansi` does the same for what jobs write, and keeps its colours.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple
from unicodedata import category

from markupsafe import Markup, escape

_SEQUENCE = re.compile(
    r"\x1b\[([0-9;:]*)m"  # colours and the like (SGR), which are kept
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # other control sequences
    r"|\x1b[\]P^_X].*?(?:\x07|\x1b\\)"  # links, titles, clipboards (OSC, DCS, ...)
    r"|\x1b[@-Z\\-_]?",
    re.DOTALL,
)
# Characters that count as printable and show nothing.
_EMPTY = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u3164\ufe00-\ufe0d\uffa0]")
LONGEST_SEQUENCE = 4096  # an unfinished one that is longer is text
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def visible(text: str) -> Markup:
    """The text, escaped, with each hidden character as a marked escape."""
    if text.isprintable() and not _EMPTY.search(text):
        return escape(text)
    return Markup("").join(_pieces(text))


def _pieces(text: str) -> Iterator[Markup]:
    for hidden, some in groupby(text, _is_hidden):
        part = "".join(some)
        if hidden:
            yield Markup('<b class="esc">{}</b>').format(_named(part))
        else:
            yield escape(part)


def _is_hidden(char: str) -> bool:
    if char.isprintable():
        return _EMPTY.match(char) is not None
    return char not in "\n\t" and category(char) != "Zs"


def _named(text: str) -> str:
    return text.encode("unicode_escape", "surrogatepass").decode("ascii")


def finalize(value: Any) -> Any:
    """What every `{{ }}` of a template passes through, so that none can forget it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


class Style(NamedTuple):
    """How a terminal would draw the next character."""

    bold: bool = False
    faint: bool = False
    italic: bool = False
    underlined: bool = False
    colour: str | None = None

    @property
    def classes(self) -> str:
        words = [name for name in ("bold", "faint", "italic", "underlined") if getattr(self, name)]
        return " ".join([*words, *([f"fg-{self.colour}"] if self.colour else [])])


PLAIN = Style()


class AnsiReader:
    """Makes HTML of what a job writes, piece by piece. A colour goes on in the next piece; a
    sequence that a piece cuts is read with the next one."""

    def __init__(self) -> None:
        self._style = PLAIN
        self._cut = ""

    def read(self, text: str) -> Markup:
        text = self._cut + text.replace("\r\n", "\n")
        self._cut = ""
        begun = text.rfind("\x1b")
        if begun >= 0 and _is_unfinished(text[begun:]):
            text, self._cut = text[:begun], text[begun:]
        made: list[Markup] = []
        end = 0
        for found in _SEQUENCE.finditer(text):
            made.append(self._styled(text[end : found.start()]))
            if found[1] is not None:
                self._style = styled(self._style, found[1])
            end = found.end()
        made.append(self._styled(text[end:]))
        return Markup("").join(made)

    def _styled(self, text: str) -> Markup:
        if not text or self._style == PLAIN:
            return Markup("").join(_pieces(text))
        inner = Markup("").join(_pieces(text))
        return Markup('<span class="{}">{}</span>').format(self._style.classes, inner)


def _is_unfinished(rest: str) -> bool:
    """Whether what begins with an escape may go on in the next piece."""
    if len(rest) > LONGEST_SEQUENCE:
        return False
    if len(rest) == 1:
        return True
    if rest[1] == "[":
        return re.fullmatch(r"\x1b\[[0-?]*[ -/]*", rest) is not None
    if rest[1] in "]P^_X":
        return "\x07" not in rest and "\x1b\\" not in rest
    return False


def styled(style: Style, codes: str) -> Style:
    """The style after a sequence of SGR; what it does not know it passes over."""
    numbers = [int(each) if each.isdecimal() else 0 for each in codes.replace(":", ";").split(";")]
    at = 0
    while at < len(numbers):
        code = numbers[at]
        at += 1
        if code == 0:
            style = PLAIN
        elif code in (38, 48):  # 256 colours, or all of them: only the ground tone is kept
            kind = numbers[at] if at < len(numbers) else 0
            chosen = numbers[at + 1] if kind == 5 and at + 1 < len(numbers) else None
            at += 2 if kind == 5 else 4
            if code == 38 and chosen is not None and chosen < 16:
                style = style._replace(colour=_COLOURS[chosen % 8])
        elif code == 39:
            style = style._replace(colour=None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = style._replace(colour=_COLOURS[code % 10])
        elif code in _CHANGES:
            style = style._replace(**_CHANGES[code])
    return style


_CHANGES: dict[int, dict[str, Any]] = {
    1: {"bold": True},
    2: {"faint": True},
    3: {"italic": True},
    4: {"underlined": True},
    22: {"bold": False, "faint": False},
    23: {"italic": False},
    24: {"underlined": False},
}


def ansi(text: str) -> Markup:
    """The whole of a text that a terminal would draw, as HTML."""
    return AnsiReader().read(text)
