"""The last that a job wrote, from a bounded read of the end of its logs."""

import os
from contextlib import suppress
from typing import NamedTuple

from headway.supervise.logs import read_log

TAIL_BYTES = 4 << 10  # of each stream of a workflow's node, for the nodes that ask for it


class LogEnd(NamedTuple):
    """The newest file of a stream."""

    modified_at: int
    stream: str
    begin: int  # the offset of its first byte
    size: int

    def read(self, folder: str, most: int) -> bytes:
        """The last bytes of the stream; nothing if they cannot be read: a job may do to its logs
        what it likes."""
        with suppress(OSError):
            return read_log(folder, self.stream, self.begin + max(0, self.size - most), most)[0]
        return b""


def log_ends(folder: str) -> list[LogEnd]:
    """The newest file of each stream that has any output, the one last written to at the end."""
    ends: dict[str, LogEnd] = {}
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
                found = LogEnd(status.st_mtime_ns, stream, begin, status.st_size)
                if found.size and (stream not in ends or begin > ends[stream].begin):
                    ends[stream] = found
    return sorted(ends.values())


def tail_of(folder: str) -> str:
    """The last lines of both streams, as text; whole lines where there are several."""
    texts = []
    for end in log_ends(folder):
        data = end.read(folder, TAIL_BYTES)
        if end.begin or end.size > TAIL_BYTES:
            data = data.partition(b"\n")[2] or data
        texts.append(data.decode("utf-8", errors="replace").replace("\0", "\ufffd").rstrip("\n"))
    return "\n".join(text for text in texts if text)
