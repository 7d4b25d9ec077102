"""A bell that other threads ring to wake the worker's: readable in its selector until heard."""

import os

from headway.engine.watchlist import Watching, Watchlist


class Bell:
    def __init__(self) -> None:
        self._fd: int | None = None  # made when somebody listens
        self._watching: Watching | None = None

    def hang(self, watchlist: Watchlist) -> None:
        """Where it is to be heard."""
        self._watching = watchlist.watch(self.fileno(), self.heard)

    def fileno(self) -> int:
        if self._fd is None:
            self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return self._fd

    def ring(self) -> None:
        if self._fd is not None:
            os.eventfd_write(self._fd, 1)

    def heard(self) -> None:
        if self._fd is not None:
            os.eventfd_read(self._fd)

    def close(self) -> None:
        if self._watching is not None:
            self._watching.end()
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)
