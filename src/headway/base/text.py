"""Text of strangers on one line of a terminal: made harmless, measured, cut to fit. Pure."""

LEAST_PATH = 8
_VARIATION = str.maketrans("", "", "\ufe0e\ufe0f")  # terminals disagree about the width they give
_NO_WIDTH = ("Mn", "Me", "Cf")  # what is drawn onto the character before it, or not at all


def plain(text: str) -> str:
    """The text on one line, without anything that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def drawable(text: str) -> str:
    """The same, where all terminals agree how wide it is."""
    return plain(text).translate(_VARIATION)


def cells(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(char: str) -> int:
    from unicodedata import category, east_asian_width

    if category(char) in _NO_WIDTH:
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def shortened(text: str, room: int) -> str:
    """The text, or as much of its beginning as fits with three dots."""
    if cells(text) <= room:
        return text
    kept, taken = 0, 3
    for char in text:
        taken += 1 if char.isascii() else _width(char)
        if taken > room:
            break
        kept += 1
    return text[:kept].rstrip() + "..."


def ending(text: str, room: int) -> str:
    """The text, or as much of its end as fits behind three dots."""
    if cells(text) <= room:
        return text
    kept, taken = len(text), 3
    while kept and taken + _width(text[kept - 1]) <= room:
        kept -= 1
        taken += _width(text[kept])
    return "..." + text[kept:]


def fitted(text: str, room: int) -> str:
    """The text cut to the room: a path in front, because its end says which it is. Of a path at
    the end of a few words, as in `missing file:/srv/data.csv`, these stay."""
    words, path = _path_at_the_end(text)
    if path and room - cells(words) >= LEAST_PATH:
        return words + ending(path, room - cells(words))
    return shortened(text, room)


def _path_at_the_end(text: str) -> tuple[str, str]:
    """What stands before it, and the path; that is empty if there is none."""
    before, space, last = text.rpartition(" ")
    kind, colon, name = last.rpartition(":")
    path = name if colon else last
    if not path.startswith(("/", "~/", "./", "../")):
        return text, ""
    return before + space + kind + colon, path
