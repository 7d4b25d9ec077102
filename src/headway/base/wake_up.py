"""A wake-up for the worker's thread: another thread sends it, and the worker's selector sees it."""

import os

from headway.base.watchlist import Watching, Watchlist


class WakeUp:
    def __init__(self) -> None:
        self._fd: int | None = None  # made when it is watched
        self._watching: Watching | None = None

    def watch(self, watchlist: Watchlist) -> None:
        """Have it seen there."""
        self._watching = watchlist.watch(self.fileno(), self.clear)

    def fileno(self) -> int:
        if self._fd is None:
            self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return self._fd

    def wake(self) -> None:
        if self._fd is not None:
            os.eventfd_write(self._fd, 1)

    def clear(self) -> None:
        if self._fd is not None:
            os.eventfd_read(self._fd)

    def close(self) -> None:
        if self._watching is not None:
            self._watching.end()
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)
