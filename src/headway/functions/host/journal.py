"""The journal of one function host: what it started and how that ended. docs/protocols.md, 10.

One file that is only ever appended to, a line an entry. For each token the first entry wins: the
host appends `start` and calls the function only if no `void` stands before it; recovery appends
`void` and takes the claim back only if no `start` stands before it. So a call that was taken back
is never made, and one that was made is never taken back.

    s TOKEN                    started
    t TOKEN DEADLINE           started, to be ended at this instant of the monotonic clock
    v TOKEN                    will never be started
    p TOKEN JSON               progress
    c TOKEN JSON               a step: [key, value]. It is synced, for a retry must not repeat it.
    e TOKEN WHEN TOOK JSON     ended: [exit code, result, error, what to do next or the classes of
                               what it raised, logs], or `.` if it only returned nothing. A success
                               that lacks files which it was to make has their paths behind the
                               logs. Times are microseconds.

Every writer begins with the end of a line, so one that was torn by a full disk stands alone.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

NAME = "journal"
STARTS = ("s", "t")
WELL = "."  # the end of a call that returned nothing; without a word a line may be torn
RETRY_SECONDS = 1.0
LITTLE = 1 << 14  # bytes, that are read without asking how many there are
FULL = (errno.ENOSPC, errno.EDQUOT)


class Journal:
    """The writing side, for the threads of one process.

    A `patient` one waits until a full disk has room again: the end of a call must not be lost.
    """

    def __init__(self, path: str, *, patient: bool = False) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        self._patient = patient
        self._turn = threading.Lock()
        self._seen = os.fstat(self._fd).st_size  # up to here all voids are known
        self._expected = self._seen  # where the last line ended, if nobody else wrote
        self._voided: set[str] = set()
        self._read_voids(0, self._seen)

    def start(self, token: str, deadline: float | None, before: str = "") -> bool:
        """Record that this token starts; False if it was taken back before. `before` are finished
        lines to be written with it.

        Appending puts the file's position behind what was written. If that is where it was
        expected, nobody wrote in between, and so no void stands before this start.
        """
        line = f"s {token}" if deadline is None else f"t {token} {deadline:.6f}"
        entry = f"\n{before}{line}\n".encode()
        with self._turn:
            self._write(entry)
            here = os.lseek(self._fd, 0, os.SEEK_CUR)
            if here != self._expected:
                self._read_voids(self._seen, here)
                self._expected = here
            self._seen = here
            return token not in self._voided

    def void(self, tokens: Iterable[str]) -> set[str]:
        """Take claims back, for recovery; those of them that had not been started."""
        wanted = set(tokens)
        with self._turn:
            self._write(("\n" + "".join(f"v {token}\n" for token in sorted(wanted))).encode())
            first: dict[str, str] = {}
            for kind, token, _ in parse(self._all()):
                if token in wanted:
                    first.setdefault(token, kind)
        return {token for token, kind in first.items() if kind == "v"}

    def add(self, lines: str) -> None:
        entry = f"\n{lines}".encode()
        with self._turn:
            self._write(entry)

    def sync(self) -> None:
        """What was added outlives the machine."""
        os.fdatasync(self._fd)

    def _write(self, entry: bytes) -> None:
        """Write it whole. A patient one waits for room, and writes what was torn once more."""
        while True:
            try:
                written = os.write(self._fd, entry)
            except OSError as error:
                if not self._patient or error.errno not in FULL:
                    raise
                written = 0
            self._expected += written
            if written == len(entry):
                return
            if not self._patient:
                raise OSError(errno.ENOSPC, "no space for the journal")
            time.sleep(RETRY_SECONDS)

    def _read_voids(self, since: int, end: int) -> None:
        started = set()
        for kind, token, _ in parse(os.pread(self._fd, end - since, since)):
            if kind in STARTS:
                started.add(token)
            elif kind == "v" and token not in started:
                self._voided.add(token)

    def _all(self) -> bytes:
        return os.pread(self._fd, os.fstat(self._fd).st_size, 0)

    def close(self) -> None:
        os.close(self._fd)


class Reader:
    """The reading side: complete entries since the last read."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._offset = 0

    @property
    def offset(self) -> int:
        return self._offset

    def rewind(self) -> None:
        """The entries read last were not used: read them again."""
        self._offset = 0

    def read(self) -> bytes:
        """Whole lines that were added."""
        content = self.peek()
        self.skip(content)
        return content

    def peek(self) -> bytes:
        """The same, which the next one reads again."""
        content = os.pread(self._fd, LITTLE, self._offset)
        if len(content) == LITTLE:
            size = os.fstat(self._fd).st_size
            content = os.pread(self._fd, size - self._offset, self._offset)
        return content[: content.rfind(b"\n") + 1]

    def skip(self, content: bytes) -> None:
        """The entries peeked at were used."""
        self._offset += len(content)

    def close(self) -> None:
        os.close(self._fd)


def parse(content: bytes) -> Iterator[tuple[str, str, str]]:
    """Kind, token and content of each entry; a torn or foreign line is none."""
    for line in content.decode("utf-8", "replace").split("\n"):
        if len(line) >= 34 and line[1] == " ":
            yield line[0], line[2:34], line[35:]


def line(kind: str, token: str, document: Any) -> str:
    return f"{kind} {token} {compact(document)}\n"


def compact(document: Any) -> str:
    return json.dumps(document, separators=(",", ":"))
