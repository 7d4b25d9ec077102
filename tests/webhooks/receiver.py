"""A server that takes webhooks, writes down each request, and answers as a test says."""

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Received(NamedTuple):
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def type(self) -> str:
        return str(self.document["type"])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "_Server"

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        body = self.rfile.read(length)
        if len(body) < length:  # a courier was killed in the midst of it
            self.close_connection = True
            return
        received = Received(self.path, dict(self.headers.items()), body)
        self.server.receiver.take(received)
        self.server.receiver.answer(received, self)

    def reply(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    receiver: "Receiver"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A courier that was killed, or had enough, is no news."""


Answer = Callable[[Received, Handler], None]


def status(number: int, **headers: str) -> Answer:
    """`retry_after` is written `Retry-After`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda received, handler: handler.reply(number, named)


class Receiver:
    """What came is in `got`, in its order. `answers` are used up first, then `answer` counts."""

    def __init__(self) -> None:
        self.got: list[Received] = []
        self.usual: Answer = status(204)
        self.answers: list[Answer] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.receiver = self
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def wrap(self, context: ssl.SSLContext) -> None:
        """From now on with TLS."""
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=True
        )

    def __enter__(self) -> "Receiver":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def take(self, received: Received) -> None:
        with self._lock:
            self.got.append(received)

    def answer(self, received: Received, handler: Handler) -> None:
        with self._lock:
            answer = self.answers.pop(0) if self.answers else self.usual
        answer(received, handler)

    @property
    def types(self) -> list[str]:
        return sorted(each.type for each in list(self.got))

    @property
    def ids(self) -> list[str]:
        return [each.id for each in list(self.got)]
