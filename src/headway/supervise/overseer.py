"""Deadlines of the functions that a host runs, kept by its supervisor.

The host itself cannot: a function may hold the interpreter. The journal says what was started with
a deadline (docs/protocols.md, section 10), so the supervisor reads it, once a second and at the
nearest deadline; entries without one cost it nothing.
"""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_SECONDS = 1.0
_NEVER = float("inf")


class Overseer:
    """Watches one journal. `culprit` is the token whose deadline has passed."""

    __slots__ = ("_deadlines", "_fd", "_path", "_rest", "_voided", "culprit", "look_at")

    def __init__(self, path: str, now: float) -> None:
        self._path = path
        self._fd = -1
        self._rest = b"\n"
        self._deadlines: dict[bytes, float] = {}
        self._voided: set[bytes] = set()
        self.culprit: str | None = None
        self.look_at = now + LOOK_SECONDS

    def look(self, now: float) -> bool:
        """Read what was added; True if a function is past its deadline."""
        self._read()
        self.look_at = min([now + LOOK_SECONDS, *self._deadlines.values()])
        for token, deadline in self._deadlines.items():
            if deadline <= now:
                self.culprit = token.decode("ascii")
                self.look_at = _NEVER
                return True
        return False

    def _read(self) -> None:
        try:
            if self._fd < 0:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            while added := os.read(self._fd, 1 << 20):
                self._take(self._rest + added)
        except OSError:  # no journal, no deadlines
            return

    def _take(self, content: bytes) -> None:
        """Remember starts with a deadline and forget what has ended; the rest is skipped at the
        speed of a search."""
        end = content.rfind(b"\n")
        self._rest = content[end:]
        for at in _lines(content, b"v", end):
            token = content[at + 3 : at + 35]
            if token not in self._deadlines and content.find(b"\nt " + token, 0, at) < 0:
                self._voided.add(token)  # what starts after this is not called
        for at in _lines(content, b"t", end):
            token, _, deadline = content[at + 3 : content.index(b"\n", at + 1)].partition(b" ")
            if token not in self._voided and deadline[-7:-6] == b".":  # else it is a torn line
                with suppress(ValueError):
                    self._deadlines[token] = float(deadline)
        for token in list(self._deadlines):
            if b"\ne " + token in content:
                del self._deadlines[token]


def _lines(content: bytes, kind: bytes, end: int) -> Iterator[int]:
    """Where the whole lines of this kind begin, with the end of the line before."""
    start = b"\n" + kind + b" "
    at = content.find(start)
    while 0 <= at < end:
        yield at
        at = content.find(start, at + 1)
