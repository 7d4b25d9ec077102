"""What a worker waits for: descriptors, each put on the list and taken off it by its owner.

A number means nothing once its descriptor is closed: the next file that anybody opens gets it. So
the owner of a descriptor ends its watching before it is closed. Should a
number have been left behind all the same, the descriptor that has it now takes its place.
"""

import os
import selectors
from collections.abc import Callable
from typing import Any

Ready = Callable[[], object]
Source = Any  # a number, or what has a fileno()


class Watching:
    """One descriptor on the list, until its end; it may be ended more than once."""

    def __init__(self, watchlist: "Watchlist", source: Source, ready: Ready) -> None:
        self.source = source
        self._watchlist = watchlist
        self._ready = ready
        self._key: selectors.SelectorKey | None = watchlist.register(
            source, selectors.EVENT_READ, self
        )

    def __call__(self) -> object:
        """It can be read, or there is room again. False: it is of no interest any more."""
        return self._ready() if self._key is not None else False

    def also_for_room(self, wanted: bool) -> None:
        """Wait until something can be written to it, too."""
        key = self._key
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if wanted else 0)
        if key is not None and key.events != events:
            self._key = key._replace(events=events)
            if self._watchlist.has(key):
                self._key = self._watchlist.modify(key.fd, events, self)

    @property
    def is_over(self) -> bool:
        return self._key is None

    def rest(self) -> None:
        """Its owner could not read it: it is left alone until it goes on."""
        if self._key is not None:
            self._watchlist.forget(self._key)

    def go_on(self) -> None:
        key = self._key
        if key is not None and not self._watchlist.has(key):
            self._key = self._watchlist.register(key.fd, key.events, self)

    def end(self) -> None:
        key, self._key = self._key, None
        if key is not None:
            self._watchlist.forget(key)

    def close(self) -> None:
        """For the owner of the descriptor: it is closed, too."""
        self.end()
        if isinstance(self.source, int):
            os.close(self.source)
        else:
            self.source.close()


class Watchlist(selectors.EpollSelector):
    """With one entry for each living descriptor."""

    def __init__(self) -> None:
        super().__init__()
        self._entries = self.get_map()
        self._is_open = True

    def watch(self, source: Source, ready: Ready) -> Watching:
        return Watching(self, source, ready)

    def register(self, fileobj: Source, events: int, data: Any = None) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        left_behind = self._entries.get(number)
        if left_behind is not None:
            self.forget(left_behind)
        return super().register(number, events, data)

    def has(self, key: selectors.SelectorKey) -> bool:
        return self._is_open and self._entries.get(key.fd) is key

    def forget(self, key: selectors.SelectorKey) -> None:
        """This entry, and none that has its number by now."""
        if self.has(key):
            self.unregister(key.fd)

    def close(self) -> None:
        self._is_open = False
        super().close()

    def dead(self) -> list[int]:
        """The numbers on it that no descriptor has. None, if every owner does its part."""
        keys = list(self._entries.values()) if self._is_open else []
        return [key.fd for key in keys if not _lives(key.fd)]


def _lives(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
