"""Connections to a server that outlive a test, each for the store that it was made for.

To connect takes a server and a test longer than most tests ask of them afterwards: the server knows
nothing of the tables at first, and reads and plans each statement anew. So the first connection of
a store that was opened by `ready.open_ready` is left to the next store in the same schema, if
nothing is under way on it. Stores that tests open by other means, and whatever runs in other
processes, connect anew.
"""

import select
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg import pq

from headway.store.postgres import database
from headway.store.postgres.address import Address, Connection
from headway.store.postgres.pool import Connections

MOST = 3  # for one store

_idle: dict[str, list[Connection]] = {}  # by the URLs of stores that others will use


@contextmanager
def kept_lines() -> Iterator[None]:
    """A store on a server that is opened meanwhile takes a connection that is idle."""
    usual = database.Connections
    database.Connections = KeptConnections  # type: ignore[misc]
    try:
        yield
    finally:
        database.Connections = usual  # type: ignore[misc]


def keep(url: str) -> None:
    """From now on."""
    _idle.setdefault(url, [])


def idle_pids(url: str) -> list[int]:
    """The server's processes for what is kept."""
    return [line.server_pid for line in _idle.get(url, ())]


def drop(url: str) -> None:
    """The store is no longer what it was."""
    for line in _idle.pop(url, ()):
        line.close()


def drop_all() -> None:
    for url in list(_idle):
        drop(url)


class KeptConnections(Connections):
    def __init__(self, address: Address) -> None:
        super().__init__(_Lender(address))
        self._address = address  # one that is lost is replaced in the usual way

    def close(self) -> None:
        line, others = self.first, _idle.get(self._address.url)
        if (
            others is None
            or self._address.poll_only
            or len(others) >= MOST
            or self._first_in_use.locked()
            or not _is_idle(line)
        ):
            super().close()
            return
        if self._pool is not None:
            self._pool.close()
        others.append(line)


class _Lender(Address):
    """Gives one that is idle, as if it were new."""

    def __init__(self, given: Address) -> None:
        super().__init__(given.url, poll_only=given.poll_only)
        self._given = given

    def connect(self) -> Connection:
        lines = [] if self.poll_only else _idle.get(self.url, [])
        while lines:
            line = lines.pop()
            if _is_idle(line):
                return self._as_new(line)
            line.close()
        return self._given.connect()

    def _as_new(self, line: Connection) -> Connection:
        line.patience = self._given.patience
        line.at_work = lambda: self._given.is_at_work(line.server_pid)
        return line


def _is_idle(line: Connection) -> bool:
    """Nothing is under way, nothing has come that nobody asked for, and it is not at its end."""
    if line.closed or line.pgconn.transaction_status != pq.TransactionStatus.IDLE:
        return False
    if line.pgconn.pipeline_status != pq.PipelineStatus.OFF or line.on_close is not None:
        return False
    return not select.select([line], [], [], 0)[0]
