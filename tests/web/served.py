"""A home with a server in the test's own process: real sockets, real store, no start of an
interpreter."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from wire import Headers, Heard, Wire

from harness import DEADLINE, Bench
from headway.base.clock import SECOND, SystemClock
from headway.client import Client
from headway.jobs.context import Context
from headway.web.application import Application
from headway.web.server import Listen, Server
from ready import open_ready

API = "/api/v1"
ANY_PORT = Listen(port=0)
on_both_stores = pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)
LOGGERS = ("headway.web", "uvicorn.error", "asyncio")


class ShiftedClock(SystemClock):
    """The time of day, as far from the true one as a test says."""

    shift = 0

    def now(self) -> int:
        return super().now() + self.shift

    def pass_by(self, seconds: float) -> None:
        self.shift += int(seconds * SECOND)


class Served:
    """What the server logs, from a level on, is kept. At the end no error that nobody expected may
    be among it."""

    def __init__(
        self,
        bench: Bench,
        listen: Listen = ANY_PORT,
        *,
        level: int = logging.WARNING,
        **settings: Any,
    ) -> None:
        self.bench = bench
        self.clock = ShiftedClock()
        self._config = bench.config.changed(settings)
        self._secrets: dict[Any, str] = {}
        self._up = threading.Event()
        self._trouble: BaseException | None = None
        self.log = _KeptLog()
        self._client = self._open()
        self.server = Server(self._client, self._open, listen)
        self._thread = threading.Thread(target=self._run, name="serve", daemon=True)
        for each in LOGGERS:
            logging.getLogger(each).addHandler(self.log)
            logging.getLogger(each).setLevel(level)
        self._thread.start()
        assert self._up.wait(DEADLINE)
        if self._trouble is not None:
            raise self._trouble

    def _open(self) -> Client:
        bench = self.bench
        url = bench.home.store_url or f"sqlite://{bench.home.database}"
        environ = bench.client.context.environ
        store = open_ready(url, bench.clock)
        made = Context(bench.home, self._config, store, self.clock, environ=environ, actor="owner")
        return Client(made)

    def _run(self) -> None:
        self.log.thread = threading.get_ident()
        try:
            self.server.run(lambda server: self._up.set())
        except BaseException as error:
            self._trouble = error
        finally:
            self._up.set()

    def close(self) -> None:
        self.stop()
        for each in LOGGERS:
            logging.getLogger(each).removeHandler(self.log)
        assert not self.log.errors, self.log.errors

    def stop(self) -> None:
        """End it, as SIGTERM does."""
        self.server.stop()
        self._thread.join(DEADLINE)
        assert not self._thread.is_alive()
        with suppress(Exception):
            self._client.close()

    # -- who -----------------------------------------------------------------------------------

    def token(self, role: str, *, name: str = "", **options: Any) -> str:
        """A token of this role; the same one the next time."""
        key = (role, name, *sorted(options.items()))
        if key not in self._secrets:
            named = name or f"{role}-{len(self._secrets)}"
            added = self._client.tokens.add(named, role=role, **options)
            self._secrets[key] = added
        return self._secrets[key]

    # -- asking --------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        assert self.server.place is not None and self.server.place.port is not None
        return self.server.place.port

    @property
    def name(self) -> str:
        """The host name of the home."""
        assert self.server.place is not None
        return self.server.place.name

    def wire(self, *, host: str = "127.0.0.1", room: int = 0) -> Wire:
        place = self.server.place
        assert place is not None
        return Wire(place.socket or ("127.0.0.1", self.port), host=host, room=room)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        role: str | None = "admin",
        **headers: str,
    ) -> Heard:
        """Ask once, with a token of this role. `if_match` is the header If-Match."""
        given = [(name.replace("_", "-"), value) for name, value in headers.items()]
        return self.ask_as(None if role is None else self.token(role), method, path, body, given)

    def ask_as(
        self, token: str | None, method: str, path: str, body: Any = None, headers: Headers = ()
    ) -> Heard:
        if token is not None:
            headers = [*headers, *bearer(token)]
        with self.wire() as wire:
            return wire.ask(
                method, path if path.startswith("/") else f"{API}/{path}", headers, body
            )

    def get(self, path: str, **options: Any) -> Any:
        """The document of a GET that succeeds."""
        heard = self.ask("GET", path, **options)
        assert heard.status == 200, (path, heard)
        return heard.json

    def post(self, path: str, body: Any = None, **options: Any) -> Heard:
        return self.ask("POST", path, body, **options)

    def submit(self, *argv: str, **entry: Any) -> int:
        """The number of a new job."""
        heard = self.post("jobs", {"argv": list(argv or ("true",)), **entry})
        assert heard.status == 201, heard
        return int(heard.json["job"]["id"].removeprefix("job-"))

    def stream(self, path: str, headers: Headers = (), *, token: str | None = None) -> "Following":
        return Following(self, path, [*headers, *bearer(token or self.token("read"))])

    @cached_property
    def application(self) -> Application:
        """The one of the server, for what only it knows."""
        config = self.server._uvicorn and self.server._uvicorn.config
        assert config is not None
        app: Any = config.app
        assert isinstance(app, Application)
        return app


@contextmanager
def serving(bench: Bench, *args: Any, **options: Any) -> Iterator[Served]:
    """A server of this home."""
    served = Served(bench, *args, **options)
    try:
        yield served
    finally:
        served.close()


@contextmanager
def serving_new_home(folder: Path, **options: Any) -> Iterator[Served]:
    """A new home with a server, for several tests."""
    bench = Bench(folder, max_active=8)
    try:
        with serving(bench, **options) as served:
            yield served
    finally:
        bench.close()


class Following:
    """A stream that goes on. Its first bytes have come when this is made."""

    def __init__(self, served: Served, path: str, headers: Headers) -> None:
        self.wire = served.wire()
        asked = [("Accept", "text/event-stream"), *headers]
        path = path if path.startswith("/") else f"{API}/{path}"
        self.wire.put(self.wire.request("GET", path, asked))
        self.status, self.headers = self.wire.hear_head()
        self.frames = self.wire.frames()

    def __enter__(self) -> "Following":
        assert self.status == 200, self.status
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    def until(self, event: str) -> Any:
        """The frames up to the first of this event, which is the last."""
        seen = []
        for each in self.frames:
            seen.append(each)
            if each.event == event:
                return seen
        raise AssertionError(f"the stream ended without {event}: {seen}")


def bearer(token: str) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {token}")]


class _KeptLog(logging.Handler):
    """Of one server: another one of the same process has another thread."""

    def __init__(self) -> None:
        super().__init__()
        self.thread: int | None = None
        self.lines: list[str] = []
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread != self.thread:
            return
        self.lines.append(record.getMessage())
        if record.levelno >= logging.ERROR:
            self.errors.append(self.format(record))
