"""What jobs write, by logical offsets: parts of it, and where its last lines begin."""

import os
from contextlib import suppress
from typing import NamedTuple

from headway.base.errors import NotFoundError
from headway.core.model import JobId, shown
from headway.core.states import TERMINAL
from headway.jobs.context import Context
from headway.jobs.lookup import find_job
from headway.jobs.views.hosts import where_it_ran
from headway.supervise.logs import read_log

STREAMS = ("stdout", "stderr")
TAIL_CHUNK = 64 << 10


class LogPart(NamedTuple):
    """Bytes of one stream. `skipped` were dropped before them; `ended`: no more will come."""

    data: bytes
    next: int  # the offset after them
    skipped: int
    ended: bool


def log_part(context: Context, job_id: JobId, stream: str, offset: int, limit: int) -> LogPart:
    """What a job wrote from an offset on. Its state is read first: what was written before an end
    is then there."""
    folder, ended = _folder(context, job_id, stream)
    data, after, skipped = read_log(folder, stream, offset, limit)
    return LogPart(data, after, skipped, ended and not data)


def tail_offset(context: Context, job_id: JobId, stream: str, lines: int) -> int:
    """Where the last lines of a stream begin."""
    folder, _ = _folder(context, job_id, stream)
    return last_lines(folder, stream, lines)


def _folder(context: Context, job_id: JobId, stream: str) -> tuple[str, bool]:
    if stream not in STREAMS:
        raise NotFoundError(f"a job has {' and '.join(STREAMS)}, and no {stream[:40]!r}")
    job = find_job(context, job_id)
    elsewhere = where_it_ran(context, job_id)
    if elsewhere is not None:
        raise NotFoundError(f"what {shown(job_id)} wrote is on {elsewhere.host}; ask there")
    return context.home.job(job_id), job.status in TERMINAL


def last_lines(folder: str, stream: str, lines: int) -> int:
    """The offset at which the last `lines` lines of the stream begin."""
    pieces = _pieces(folder, stream)
    end = sum(pieces[-1]) if pieces else 0
    if lines <= 0:
        return end
    for start, size in reversed(pieces):
        at = start + size
        while at > start:
            begin = max(start, at - TAIL_CHUNK)
            data, _, skipped = read_log(folder, stream, begin, at - begin)
            if skipped or not data:
                return at  # dropped since it was listed
            position = len(data) - (at == end)  # a newline at the very end closes the last line
            while (position := data.rfind(b"\n", 0, position)) >= 0:
                lines -= 1
                if lines == 0:
                    return begin + position + 1
            at = begin
    return pieces[0][0] if pieces else 0


def _pieces(folder: str, stream: str) -> list[tuple[int, int]]:
    """The files of a stream: the offset of the first byte and the size of each, in order."""
    pieces = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            head, dot_log, offset = entry.name.partition(".log")
            if head == stream and dot_log and (not offset or offset[1:].isdigit()):
                with suppress(FileNotFoundError):
                    size = entry.stat(follow_symlinks=False).st_size
                    pieces.append((int(offset[1:] or 0), size))
    return sorted(pieces)
