"""The last line that a job wrote, from a bounded look at the end of its logs."""

import os
import re
from contextlib import suppress
from typing import NamedTuple

from headway.base.text import plain
from headway.cli.terminal import Sanitiser
from headway.supervise.logs import read_log

MOST_BYTES = 8 << 10  # read of each stream
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


class LastLine(NamedTuple):
    stream: str
    text: str


class _NewestFile(NamedTuple):
    """The newest file of a stream."""

    modified_at: int
    stream: str
    begin: int  # the offset of its first byte
    size: int


def last_line(folder: str) -> LastLine | None:
    """Of the stream that was written to last; None if there is nothing."""
    for end in sorted(_ends(folder), reverse=True):
        offset = end.begin + max(0, end.size - MOST_BYTES)
        with suppress(OSError):  # the job may do to its logs what it likes
            text = _last(read_log(folder, end.stream, offset, MOST_BYTES)[0])
            if text:
                return LastLine(end.stream, text)
    return None


def _ends(folder: str) -> list[_NewestFile]:
    ends: dict[str, _NewestFile] = {}
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            stream, dot_log, offset = entry.name.partition(".log")
            if stream not in ("stdout", "stderr") or not dot_log:
                continue
            if offset and not offset[1:].isdigit():
                continue
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                begin = int(offset[1:] or 0)
                found = _NewestFile(status.st_mtime_ns, stream, begin, status.st_size)
                if found.size and (stream not in ends or begin > ends[stream].begin):
                    ends[stream] = found
    return list(ends.values())


def _last(data: bytes) -> str:
    """The last line that says something, as harmless text; of a line that was written over, the
    last writing."""
    clean = Sanitiser().feed(data).decode("utf-8", "replace")
    for writing in reversed(_COLOUR.sub("", clean).splitlines()):  # a return begins a new one, too
        text = " ".join(writing.split())
        if text:
            return plain(text)
    return ""
