"""TOML that others may have written: read within bounds, refused with one clear error.

The parser of the standard library takes time that grows with the square of a dotted key's length,
and recurses with the depth of values. So a file is looked through once, in linear time, before
it is parsed: how large it is, how many keys it has, and how deeply they go.
"""

import errno
import os
import re
import stat
from typing import Any

from headway.base.errors import InvalidInputError

LARGEST_FILE = 64 << 10
MOST_KEYS = 4000
DEEPEST = 16  # parts of a dotted key, and brackets within brackets
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
_WITHOUT_END = ('"""', "'''", '"', "'")
_TOKEN = re.compile(
    r'"""(?:(?:[^"\\]|\\.|"(?!""))*+"{3,5})?'
    r"|'''(?:(?:[^']|'(?!''))*+'{3,5})?"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|#[^\n]*+"
    r"|[\n\[\]{}.=,\"']"
    r"|[^\n\[\]{}.=,\"'#]++",
    re.DOTALL,
)


def read_content(path: str, *, largest: int = LARGEST_FILE) -> bytes | None:
    """What stands in a file; None if there is none. A link that leads nowhere is an error, so that
    nothing else takes the place of what someone meant to be there."""
    try:
        # O_NONBLOCK: a FIFO must not hold up whoever starts jobs; fstat then tells it from a file.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in _NOT_THERE and not os.path.islink(path):
            return None
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidInputError(f"{path} is not a file")
        content = b""
        while len(content) <= largest and (more := os.read(descriptor, largest + 1)):
            content += more
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if len(content) > largest:
        raise InvalidInputError(f"{path} is larger than {largest >> 10} KiB")
    return content


def parse(path: str, content: bytes) -> dict[str, Any]:
    """The document; `path` is only named in the error."""
    import tomllib

    try:
        text = content.decode("utf-8")
        refuse_excess(path, text)
        return tomllib.loads(text)
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise InvalidInputError(f"{path}: {error}") from None
    except RecursionError:
        raise InvalidInputError(f"{path}: its values nest too deeply") from None


def refuse_excess(path: str, text: str, *, most_keys: int = MOST_KEYS) -> None:
    """Look through a text before the parser does."""
    keys = dots = brackets = at = 0
    while match := _TOKEN.match(text, at):
        at = match.end()
        piece = match[0]
        if piece in _WITHOUT_END:  # here the parser stops, too
            return
        if piece == ".":
            dots += 1
        elif piece in "[{":
            dots, brackets = 0, brackets + 1
        elif piece in "]}":
            brackets = max(0, brackets - 1)
        elif piece in "\n=,":
            dots = 0
            keys += piece == "="
        if dots >= DEEPEST or brackets > DEEPEST:
            line = text.count("\n", 0, at) + 1
            raise InvalidInputError(
                f"{path}: line {line}: its values nest too deeply; {DEEPEST} levels are allowed"
            )
    if keys > most_keys:
        raise InvalidInputError(f"{path} has more than {most_keys} keys")
