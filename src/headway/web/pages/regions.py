"""Regions that were rendered a moment ago, for the next reader of the same role.

Five hundred open pages then cost one reading of the store for each change. An entry is valid until
listeners get another event, and for a second at most: time, the worker and logs change without one.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.core.principals import Principal, Role
from headway.web.calls import Reply

MOST = 512
MOST_BYTES = 32 << 20
LASTS = 1.0  # seconds


class RegionKey(NamedTuple):
    path: str
    query: tuple[tuple[str, str], ...]
    reader: str  # the role, and where it matters who reads, the principal
    position: int

    @staticmethod
    def of(path: str, query: Mapping[str, Any], reader: Principal, position: int) -> "RegionKey":
        words = tuple(sorted((name, str(value)) for name, value in query.items()))
        own = f" {reader.actor}" if reader.role is Role.SUBMIT else ""
        return RegionKey(path, words, f"{reader.role.word} {reader.kind}{own}", position)


class RegionCache:
    """For all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[RegionKey, tuple[float, Reply]] = OrderedDict()
        self._bytes = 0

    def find(self, key: RegionKey, now: float) -> Reply | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None or now - found[0] > LASTS:
                return None
            self._kept.move_to_end(key)
            return found[1]

    def keep(self, key: RegionKey, now: float, reply: Reply) -> None:
        size = len(reply.content())
        with self._lock:
            self._drop(key)
            self._kept[key] = (now, reply)
            self._bytes += size
            while len(self._kept) > MOST or self._bytes > MOST_BYTES:
                self._drop(next(iter(self._kept)))

    def _drop(self, key: RegionKey) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._bytes -= len(found[1].content())
