"""A job's output on disk: the first bytes, the last bytes, and a count of those between.

The output is one stream of bytes with logical offsets. The head is `stdout.log`; after it come
segments `stdout.log.<offset of the first byte>`, of which the oldest are deleted. What cannot be
written is counted and does not end the job. Nothing is decoded.
"""

from __future__ import annotations

import os

from headway.supervise.folder import Folder

# A disk that is full stays so for a while; each new try costs a file.
RETRY_SECONDS = 1.0
MOST_SEGMENTS = 64


# What a full log means: `drop` forgets the oldest segments, `block` lets the command wait, `kill`
# ends the job.


def forgets(full: str) -> bool:
    """Whether old segments make room for new ones."""
    return full != "block"


def most_to_take(full: str, room: int, chunk: int) -> int:
    """How much output to take now; nothing: the log is full, and the command is to wait."""
    return max(0, min(room, chunk)) if full == "block" else chunk


def ends_the_job(full: str, room: int, got: int) -> bool:
    """Whether so much output was too much for the room that there was."""
    return full == "kill" and got > room


class CappedLog:
    """Writes one stream. `offset` is its logical length, `dropped` how much of it is not kept."""

    __slots__ = (
        "_fd",
        "_folder",
        "_forgets",
        "_head_left",
        "_name",
        "_retry_at",
        "_room",
        "_segment_bytes",
        "_segments",
        "_tail_bytes",
        "dropped",
        "offset",
    )

    def __init__(
        self, folder: str, stream: str, *, head_bytes: int, tail_bytes: int, forgets: bool = True
    ) -> None:
        self._folder = folder
        self._forgets = forgets  # old segments make room for new ones
        self._name = f"{stream}.log"
        self._head_left = head_bytes
        self._tail_bytes = tail_bytes
        self._segment_bytes = max(1, tail_bytes // 4)
        self._segments: list[list[int]] = []  # [logical offset, bytes], oldest first
        self._fd = -1
        self._room = 0
        self._retry_at = 0.0
        self.offset = 0
        self.dropped = 0

    def begin(self) -> None:
        """Make the file, so that a stream on which nothing is written has one, too. It is not kept
        open: a supervisor has few descriptors, and most streams are silent."""
        if self._create(self._name, 0):
            self.close()

    def room(self) -> int:
        """Bytes that still fit without deleting any."""
        return self._head_left + self._tail_bytes - sum(size for _, size in self._segments)

    def append(self, data: bytes, now: float) -> None:
        """Keep the data, or count it. `now` is monotonic; a failed write is tried again later."""
        view = memoryview(data)
        while view:
            if now < self._retry_at or not self._open():
                self._drop(len(view), now)
                return
            try:
                done = os.write(self._fd, view[: self._room])
            except OSError:
                self.close()
                self._drop(len(view), now)
                return
            self._wrote(done)
            view = view[done:]

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._room = 0

    def _open(self) -> bool:
        """Have a file with room. After a failed write a new segment keeps the offsets true."""
        if self._room > 0:
            return True
        self.close()
        if self._head_left and self.offset == 0:
            return self._create(self._name, self._head_left)
        self._head_left = 0
        if not self._tail_bytes and self._forgets:
            return False
        if not self._create(f"{self._name}.{self.offset:020d}", self._segment_bytes):
            return False
        self._segments.append([self.offset, 0])
        if self._forgets:
            self._forget_oldest()
        return True

    def _create(self, name: str, room: int) -> bool:
        try:
            with Folder(self._folder) as folder:
                self._fd = folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        except OSError:
            return False
        self._room = room
        return True

    def _wrote(self, count: int) -> None:
        self.offset += count
        self._room -= count
        if self._segments:
            self._segments[-1][1] += count
        else:
            self._head_left -= count

    def _drop(self, count: int, now: float) -> None:
        self.offset += count
        self.dropped += count
        if self._head_left or self._tail_bytes:
            self._retry_at = now + RETRY_SECONDS

    def _forget_oldest(self) -> None:
        kept = sum(size for _, size in self._segments)
        while self._segments and (
            kept - self._segments[0][1] >= self._tail_bytes or len(self._segments) > MOST_SEGMENTS
        ):
            start, size = self._segments[0]
            try:
                with Folder(self._folder) as folder:
                    folder.remove(f"{self._name}.{start:020d}")
            except OSError:
                return
            del self._segments[0]
            kept -= size
            self.dropped += size


def read_log(folder: str, stream: str, offset: int, limit: int) -> tuple[bytes, int, int]:
    """Bytes of the stream from `offset` on: (data, offset after them, bytes skipped before them).

    Skipped are those that were dropped. At the end the data is empty and the offset unchanged.
    """
    try:
        with Folder(folder) as opened:
            while True:
                found = _file_at(opened, f"{stream}.log", offset)
                if found is None:
                    return b"", offset, 0
                name, start = found
                try:
                    fd = opened.open(name, os.O_RDONLY)
                except FileNotFoundError:  # deleted since it was listed: list again
                    continue
                begin = max(offset, start)
                try:
                    data = os.pread(fd, limit, begin - start)
                finally:
                    os.close(fd)
                return data, begin + len(data), begin - offset
    except FileNotFoundError:
        return b"", offset, 0


def _file_at(folder: Folder, head: str, offset: int) -> tuple[str, int] | None:
    """The first file with bytes at or after the offset, and the offset of its first byte."""
    best: tuple[str, int] | None = None
    for name in os.listdir(folder.fd):
        if name == head:
            start = 0
        elif name.startswith(head + ".") and name[len(head) + 1 :].isdigit():
            start = int(name[len(head) + 1 :])
        else:
            continue
        try:
            size = os.stat(name, dir_fd=folder.fd, follow_symlinks=False).st_size
        except FileNotFoundError:
            continue
        if start + size > offset and (best is None or start < best[1]):
            best = (name, start)
    return best
