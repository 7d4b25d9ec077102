"""The last line that a job wrote, from a bounded look at the end of its logs."""

import re
from typing import NamedTuple

from headway.base.text import plain
from headway.cli.terminal import Sanitiser
from headway.jobs.log_tail import log_ends

MOST_BYTES = 8 << 10  # read of each stream
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


class LastLine(NamedTuple):
    stream: str
    text: str


def last_line(folder: str) -> LastLine | None:
    """Of the stream that was written to last; None if there is nothing."""
    for end in reversed(log_ends(folder)):
        text = _last(end.read(folder, MOST_BYTES))
        if text:
            return LastLine(end.stream, text)
    return None


def _last(data: bytes) -> str:
    """The last line that says something, as harmless text; of a line that was written over, the
    last writing."""
    clean = Sanitiser().feed(data).decode("utf-8", "replace")
    for writing in reversed(COLOUR.sub("", clean).splitlines()):  # a return begins a new one, too
        text = " ".join(writing.split())
        if text:
            return plain(text)
    return ""
