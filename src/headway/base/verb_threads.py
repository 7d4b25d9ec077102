"""The threads in which a server calls verbs: each has a client, and so a connection, of its own.

A verb may wait for a file or a database, so none runs in the event loop. A thread that cannot open
the store says so to the one who asked, and tries again with the next request. Once the file of the
store is another one, as after a restore, each thread opens that with its next request.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

from headway.base.errors import StoreReplacedError

COUNT = 4


class HasClose(Protocol):
    """What a thread has of its own, until it ends."""

    def close(self) -> None: ...


C = TypeVar("C", bound=HasClose)
T = TypeVar("T")


class VerbThreads(Generic[C]):
    def __init__(self, open_client: Callable[[], C], count: int = COUNT) -> None:
        self._open = open_client
        self._own = threading.local()
        self._opening = 0  # how often all had to open anew
        self._clients: list[C] = []
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="verb")

    async def run(self, act: Callable[[C], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._act, act)

    def open_anew(self) -> None:
        """Let each thread open a client again, with its next request. For any thread."""
        self._opening += 1

    def _act(self, act: Callable[[C], T]) -> T:
        opening = self._opening
        try:
            return act(self._client(opening))
        except StoreReplacedError:
            if opening == self._opening:  # else somebody has seen it before
                self.open_anew()
            raise

    def _client(self, opening: int) -> C:
        client: C | None = getattr(self._own, "client", None)
        if client is not None and self._own.opening != opening:
            self._own.client = None
            self._clients.remove(client)
            client.close()
            client = None
        if client is None:
            client = self._open()
            self._own.client, self._own.opening = client, opening
            self._clients.append(client)
        return client

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for client in self._clients:
            client.close()
