"""The connections of one process: one that is always there, and a pool for when that is in use.

Most processes have one thread and need no more than the first, which costs no thread and no import;
psycopg's pool is opened when a second thread comes before the first is done.
"""

import logging
import threading
from typing import TYPE_CHECKING

from headway.store.postgres.address import Address, Connection

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

MORE = 3  # beside the first
WAIT_SECONDS = 10.0
CLOSE_SECONDS = 5.0


class Connections:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._opening = threading.Lock()
        self._first_in_use = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None
        # Our own errors report a lost connection; the library must not do so on stderr as well.
        log = logging.getLogger("psycopg")
        if not log.handlers:
            log.addHandler(logging.NullHandler())
        self.first = address.connect()

    def take(self) -> Connection:
        """One that nobody else uses. Whether its server still lives is seen when it is used."""
        if not self._first_in_use.acquire(blocking=False):
            within = min(WAIT_SECONDS, self._address.patience.again)
            return self._more().getconn(timeout=within)
        try:
            if self.first.closed:
                self.first = self._address.connect()
        except BaseException:
            self._first_in_use.release()
            raise
        return self.first

    def give_back(self, connection: Connection) -> None:
        if connection is self.first:
            self._first_in_use.release()
        else:
            self._more().putconn(connection)

    def _more(self) -> "ConnectionPool[Connection]":
        with self._opening:
            if self._pool is None:
                from psycopg_pool import ConnectionPool

                self._pool = ConnectionPool(
                    self._address.url,
                    connection_class=Connection,
                    kwargs=self._address.options(),
                    configure=self._address.prepare,
                    min_size=0,
                    max_size=MORE,
                    timeout=WAIT_SECONDS,
                    name="headway",
                    open=True,
                )
            return self._pool

    def close(self) -> None:
        self.first.close()
        if self._pool is not None:
            self._pool.close(timeout=min(CLOSE_SECONDS, self._address.patience.again))
