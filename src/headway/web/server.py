"""`headway serve`: where it listens, how it begins and how it ends. Its only state is the tokens
file, so a `kill -9` loses nothing.

It listens on the same port of 127.0.0.1 and ::1, because a stranger on one of them would get what
browsers send to `localhost`. Each home has a host name of its own, because cookies ignore ports.
"""

import asyncio
import errno
import json
import logging
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any, NamedTuple

import uvicorn

from headway.base.errors import ConflictError, HeadwayError, InvalidInputError
from headway.base.verb_threads import VerbThreads
from headway.client import Client
from headway.core.principals import Principal
from headway.jobs.settings import load_config
from headway.web.application import Application
from headway.web.guard import Guard
from headway.web.metrics import Metrics
from headway.web.place import (
    SERVES,
    ServerPlace,
    host_name_of,
    place_of,
    place_path,
    server_lock,
)
from headway.web.protocol import BoundedProtocol
from headway.web.routes import ROUTES
from headway.web.tail import EventTail

log = logging.getLogger("headway.web")

FIRST_PORT, PORTS = 7433, 20
OPEN_FILES = 4096
UMASK = 0o077
ENDS_WITHIN = 2  # seconds for requests that go on when it has to end
LOOPBACK = ("127.0.0.1", "::1")
NO_SETTINGS: Mapping[str, Any] = {}
LINES_OF_NOBODY, MINUTE = 60, 60.0  # lines of the log in so many seconds


class Listen(NamedTuple):
    """Where to listen; `port` None is the next that is free."""

    hosts: tuple[str, ...] = LOOPBACK
    port: int | None = None
    unix: bool = False


class Server:
    """One server of one home. `open_client` opens a client for a thread; `settled` are settings
    that stay as they are, whatever `config.toml` says."""

    def __init__(
        self,
        client: Client,
        open_client: Callable[[], Client],
        listen: Listen,
        settled: Mapping[str, Any] = NO_SETTINGS,
    ) -> None:
        self._client = client
        self._open_client = open_client
        self._settled = settled
        self._thread = threading.local()  # what each has read of the file of settings
        self._listen = listen
        self._lock = server_lock(client.home)
        self._uvicorn: _Uvicorn | None = None
        self.metrics = Metrics(client.now())
        self.place: ServerPlace | None = None

    def _open(self) -> Client:
        stamp = _stamp(self._client.home.config)
        opened = self._open_client()
        opened.context.config = opened.config.changed(self._settled)
        self._thread.stamp = stamp
        return opened

    def _read_settings(self, client: Client) -> None:
        """As they stand in the file now, if that was changed; what is wrong there counts not."""
        stamp = _stamp(client.home.config)
        if stamp == self._thread.stamp:
            return
        self._thread.stamp = stamp
        try:
            present = load_config(client.home, client.context.environ)
        except HeadwayError as error:
            log.warning("the settings of before count on: %s", error)
        else:
            client.context.config = present.changed(self._settled)

    # -- life ----------------------------------------------------------------------------------

    def run(self, ready: Callable[["Server"], None] = lambda server: None) -> None:
        """Serve until a signal says to end. `ready` is called when it listens."""
        self._take_lock()
        raise_file_limit()
        sockets: list[socket.socket] = []
        try:
            sockets += self._bind()
            self._write_place(sockets)
            asyncio.run(self._serve(sockets, ready))
        finally:
            for each in sockets:
                each.close()
            with suppress(FileNotFoundError):
                os.unlink(place_path(self._client.home))
            self._lock.close()

    def stop(self) -> None:
        """End as a signal lets it end. For any thread."""
        if self._uvicorn is not None:
            self._uvicorn.end()

    async def _serve(
        self, sockets: Sequence[socket.socket], ready: Callable[["Server"], None]
    ) -> None:
        threads = VerbThreads(self._open)
        tail = EventTail(self._open, watch=self.metrics.happened, on_restore=threads.open_anew)
        application = self._application(tail, threads)
        config = uvicorn.Config(
            application,
            http=BoundedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=16384,
            limit_concurrency=2000,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=ENDS_WITHIN,
        )
        tail.start()
        self._uvicorn = _Uvicorn(config, on_end=tail.stop, on_begin=lambda: ready(self))
        try:
            await self._uvicorn.serve(sockets=list(sockets))
        finally:
            tail.stop()
            await asyncio.to_thread(threads.close)

    def _application(self, tail: EventTail, threads: VerbThreads[Client]) -> Application:
        client = self._client
        tokens = client.tokens.file
        guard = Guard(
            tokens,
            name=host_name_of(client.home),
            origins=client.config["web.origins"],
            public={route.path for route in ROUTES if route.right.public},
            owner=os.geteuid(),
            owner_name=client.context.actor,
            socket_role=client.config["web.socket_role"],
        )
        return Application(
            guard,
            threads,
            tail,
            client.clock,
            acting=self._acting,
            used=tokens.used,
            metrics=self.metrics,
            legacy=client.config["web.legacy"],
        )

    def _acting(self, client: Client, principal: Principal, pid: int | None) -> Client:
        """For a caller of whom only this is known; nothing of this process becomes a job's."""
        self._read_settings(client)
        return client.acting(principal.actor, principal.kind, umask=UMASK, pid=pid)

    # -- the place -----------------------------------------------------------------------------

    def _take_lock(self) -> None:
        if not self._lock.take(SERVES):
            self._lock.close()
            found = place_of(self._client.home)
            where = f" at {found.url or found.socket}" if found is not None else ""
            raise ConflictError(f"this home is served already{where}")

    def _bind(self) -> list[socket.socket]:
        if self._listen.unix:
            return [_unix_socket(os.path.join(self._client.home.run, "web.sock"))]
        if self._listen.port is not None:
            return _tcp_sockets(self._listen.hosts, self._listen.port)
        for port in range(FIRST_PORT, FIRST_PORT + PORTS):
            with suppress(ConflictError):
                return _tcp_sockets(self._listen.hosts, port)
        raise ConflictError(
            f"no port from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} is free; give --port N"
        )

    def _write_place(self, sockets: Sequence[socket.socket]) -> None:
        home = self._client.home
        first = sockets[0].getsockname()
        port = None if self._listen.unix else first[1]
        path = first if self._listen.unix else None
        self.place = ServerPlace(os.getpid(), port, path, host_name_of(home))
        target = place_path(home)
        with open(f"{target}.new", "w", encoding="utf-8", opener=_private) as file:
            json.dump(self.place._asdict(), file)
        os.rename(f"{target}.new", target)


class _Uvicorn(uvicorn.Server):
    """Says when it listens, and ends the streams before it waits for what goes on."""

    def __init__(
        self, config: uvicorn.Config, *, on_begin: Callable[[], None], on_end: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._on_begin = on_begin
        self._on_end = on_end
        self._awake: Callable[[], object] = _nothing

    async def main_loop(self) -> None:
        """Until a signal, or `end`, says so. uvicorn's own looks for that ten times a second."""
        said = asyncio.Event()
        self._awake = partial(asyncio.get_running_loop().call_soon_threadsafe, said.set)
        if not await self.on_tick(0):
            await said.wait()
        self._awake = _nothing

    def end(self) -> None:
        self.should_exit = True
        self._awake()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal asks it to end, and that is no failure: uvicorn would raise it once more."""
        self.end()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_begin()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._on_end()
        await super().shutdown(sockets)


def _nothing() -> None:
    """Nobody waits."""


def _stamp(path: str) -> tuple[int, int] | None:
    with suppress(OSError):
        found = os.stat(path)
        return found.st_mtime_ns, found.st_ino
    return None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _tcp_sockets(hosts: Sequence[str], port: int) -> list[socket.socket]:
    """One for each address, all with the same port; a host without IPv6 has one."""
    made: list[socket.socket] = []
    try:
        for host in hosts:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                # With its protocol named, asyncio sends at once; else an answer waits for the ACK
                # of its own head.
                each = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            except OSError:
                continue  # there is no IPv6
            made.append(each)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                each.bind((host, port if port or len(made) == 1 else made[0].getsockname()[1]))
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL and len(made) > 1:
                    made.pop().close()
                    continue
                raise
            each.listen(1024)
            each.setblocking(False)
    except OSError as error:
        for each in made:
            each.close()
        if error.errno == errno.EADDRINUSE:
            raise ConflictError(f"port {port} is taken; give another one with --port") from None
        raise InvalidInputError(f"{host}: {error.strerror}") from None
    return made


def _unix_socket(path: str) -> socket.socket:
    with suppress(FileNotFoundError):
        os.unlink(path)  # the lock says that it is of nobody
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        made.bind(path)
    finally:
        os.umask(before)
    made.listen(1024)
    made.setblocking(False)
    return made


def raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class FewOfNobody(logging.Filter):
    """A bound on the lines about requests of nobody and about what is no HTTP, which any process of
    this machine can send for ever. The first line after a minute says how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._began = 0.0
        self._written = self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        of_the_parser = record.name == "uvicorn.error" and record.levelno <= logging.WARNING
        if not getattr(record, "of_nobody", of_the_parser):
            return True
        if not 0 <= record.created - self._began < MINUTE:
            self._began, self._written = record.created, 0
        if self._written >= LINES_OF_NOBODY:
            self._left_out += 1
            return False
        self._written += 1
        record.left_out, self._left_out = self._left_out, 0
        return True


class JsonLines(logging.Formatter):
    """One JSON object a line; what a request says of itself is one already."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        said: dict[str, Any] = {"level": record.levelname.lower()}
        if record.name == "headway.web" and text.startswith("{"):
            said |= json.loads(text)
        else:
            said["message"] = text
        if left_out := getattr(record, "left_out", 0):
            said["left_out"] = left_out
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps({"time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"), **said})


def log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(FewOfNobody())
    for name in ("headway.web", "uvicorn.error", "asyncio"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if name == "headway.web" else logging.WARNING)
        logger.propagate = False
