"""A pooler in transaction mode: each transaction gets another connection to the server.

As PgBouncer does, but always another one in turn, so that whatever is left on a connection is
missed at once.
"""

import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from servers import connect, exactly, read_message, shut, through

SERVERS = 3


class Pooler:
    def __init__(self, url: str) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._place, self.url = through(url, self._listening)
        self._free: dict[bytes, queue.SimpleQueue[socket.socket]] = {}
        self._greeting = b""
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        shut(self._listening)
        self._threads[0].join()
        self._listening.close()
        for end in self._ends:
            shut(end)
        for thread in self._threads:
            thread.join()
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                store, _ = self._listening.accept()
                self._ends.append(store)
                startup = read_message(store, letter=b"")
                if startup not in self._free:
                    self._free[startup] = queue.SimpleQueue()
                    for _ in range(SERVERS):
                        self._free[startup].put(self._connected(startup))
                store.sendall(self._greeting)
                self._threads.append(
                    threading.Thread(target=self._serve, args=(store, self._free[startup]))
                )
                self._threads[-1].start()

    def _connected(self, startup: bytes) -> socket.socket:
        server = connect(self._place)
        assert server is not None
        self._ends.append(server)
        server.sendall(startup)
        self._greeting = b""
        while not self._greeting.endswith(b"Z\0\0\0\5I"):
            self._greeting += read_message(server, letter=exactly(server, 1))
        return server

    def _serve(self, store: socket.socket, free: "queue.SimpleQueue[socket.socket]") -> None:
        server: socket.socket | None = None
        with suppress(OSError):
            while letter := store.recv(1):
                message = read_message(store, letter=letter)
                if letter == b"X" or (letter == b"H" and server is None):
                    continue  # it ends, or wants to hear at once what it was told already
                if server is None:
                    server = free.get(timeout=30)
                server.sendall(message)
                if letter in b"QSc" and _answer(server, store) == b"I":
                    free.put(server)
                    server = None
        if server is not None:
            shut(server)
        shut(store)


def _answer(server: socket.socket, store: socket.socket) -> bytes:
    """Pass on until the server is ready for more; the state of the transaction that it tells."""
    while True:
        letter = exactly(server, 1)
        message = read_message(server, letter=letter)
        store.sendall(message)
        if letter == b"Z":
            return message[-1:]
        if letter == b"G":
            return b"T"  # it waits for the rows of a COPY


@contextmanager
def pooler_to(url: str) -> Iterator[Pooler]:
    pooler = Pooler(url)
    try:
        yield pooler
    finally:
        pooler.close()
