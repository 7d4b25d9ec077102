"""Servers that hang: one whose processes are stopped, and a way to one that goes silent."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote

import psycopg

from postgres import own_server


class Stoppable:
    """A real server of a test's own."""

    def __init__(self, url: str, pid: int) -> None:
        self.url = url
        self._pid = pid
        self._stopped: list[int] = []

    @contextmanager
    def hung(self) -> Iterator[None]:
        """It answers nobody within the block; the kernel still takes connections for it."""
        self.stop()
        try:
            yield
        finally:
            self.go_on()

    def stop(self) -> None:
        for pid in (self._pid, *_children(self._pid)):  # the first starts all others
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                self._stopped.append(pid)

    def go_on(self) -> None:
        while self._stopped:
            with suppress(ProcessLookupError):
                os.kill(self._stopped.pop(), signal.SIGCONT)


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(each) for each in file.read().split()]


@contextmanager
def stoppable_server() -> Iterator[Stoppable]:
    with own_server() as (url, pid):
        server = Stoppable(url, pid)
        try:
            yield server
        finally:
            server.go_on()


class Way:
    """Passes bytes to and from a server, until it is told to drop them without a word."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            info = connection.info
            self._host, self._port = info.hostaddr or info.host, info.port
            given = info.get_parameters()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = (
            f"postgresql://{given['user']}@127.0.0.1:{self._listening.getsockname()[1]}"
            f"/{given['dbname']}?sslmode=disable&gssencmode=disable"
            f"&options={quote(given.get('options', ''))}"
        )
        self.silent = False
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def refuse(self) -> None:
        """As if there were no server at all, and never had been."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.refuse()
        for thread in self._threads:
            thread.join(30)
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.socket(socket.AF_UNIX if self._is_local else socket.AF_INET)
                self._ends += [near, far]
                place = f"{self._host}/.s.PGSQL.{self._port}"
                far.connect(place if self._is_local else (self._host, self._port))
                for pair in ((near, far), (far, near)):
                    self._threads.append(
                        threading.Thread(target=self._pass_on, args=pair, daemon=True)
                    )
                    self._threads[-1].start()

    @property
    def _is_local(self) -> bool:
        return self._host.startswith("/")

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if not self.silent:
                    target.sendall(data)
        with suppress(OSError):
            if not self.silent:
                target.shutdown(socket.SHUT_RDWR)


@contextmanager
def way_to(url: str) -> Iterator[Way]:
    way = Way(url)
    try:
        yield way
    finally:
        way.close()
