"""HTTP by hand: every byte that is sent is the test's own, and every byte that comes is seen."""

import json
import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from harness import DEADLINE

Headers = Sequence[tuple[str, str]]
Address = tuple[str, int] | str  # a host and a port, or the path of a socket


class Heard(NamedTuple):
    """An answer."""

    status: int
    headers: dict[str, str]  # by their names in small letters
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str:
        return self.headers[name.lower()]


class Frame(NamedTuple):
    """One event of a stream; a comment is an event without a name."""

    event: str
    id: str | None
    data: Any


class ClosedError(Exception):
    """The other end has closed the connection before an answer was whole."""


class Wire:
    """One connection."""

    def __init__(self, address: Address, *, host: str = "127.0.0.1", room: int = 0) -> None:
        """`room` is the size of the buffer for what comes, in bytes; 0 is as usual."""
        if isinstance(address, str):
            family, self.host = socket.AF_UNIX, host
        else:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self.host = f"{host}:{address[1]}"
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        if room:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.settimeout(DEADLINE)
        self.socket.connect(address)
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    # -- asking --------------------------------------------------------------------------------

    def put(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, method: str, path: str, headers: Headers = (), body: Any = None) -> Heard:
        self.put(self.request(method, path, headers, body))
        return self.hear(method)

    def request(
        self,
        method: str,
        path: str,
        headers: Headers = (),
        body: Any = None,
        *,
        hosts: Iterable[str] | None = None,
        version: str = "1.1",
    ) -> bytes:
        """The bytes of a request. A body that is not bytes is sent as JSON."""
        lines = [f"{method} {path} HTTP/{version}"]
        lines += [f"Host: {each}" for each in ([self.host] if hosts is None else hosts)]
        lines += [f"{name}: {value}" for name, value in headers]
        given = {name.lower() for name, _ in headers}
        if body is None:
            content = b""
        elif isinstance(body, bytes):
            content = body
        else:
            content = json.dumps(body).encode()
        if content and "content-type" not in given:
            lines.append("Content-Type: application/json")
        if content and not given & {"content-length", "transfer-encoding"}:
            lines.append(f"Content-Length: {len(content)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + content

    # -- what comes ----------------------------------------------------------------------------

    def hear(self, method: str = "GET") -> Heard:
        status, headers = self.hear_head()
        if method == "HEAD" or status in (204, 304):
            body = b""
        elif headers.get("transfer-encoding") == "chunked":
            body = b"".join(self._chunks())
        elif "content-length" in headers:
            body = self._exactly(int(headers["content-length"]))
        else:
            body = self._file.read()
        return Heard(status, headers, body)

    def hear_head(self) -> tuple[int, dict[str, str]]:
        try:
            first = self._file.readline()
        except ConnectionResetError:
            first = b""
        if not first:
            raise ClosedError
        headers = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return int(first.split()[1]), headers

    def _exactly(self, count: int) -> bytes:
        content = self._file.read(count)
        if len(content) < count:
            raise ClosedError
        return content

    def _chunks(self) -> Iterator[bytes]:
        while True:
            line = self._file.readline()
            if not line:
                raise ClosedError
            size = int(line, 16)
            content = self._exactly(size)
            self._file.readline()
            if not size:
                return
            yield content

    def frames(self) -> Iterator[Frame]:
        """The events of a stream whose head was heard."""
        left = b""
        for chunk in self._chunks():
            left += chunk
            while b"\n\n" in left:
                text, _, left = left.partition(b"\n\n")
                yield _frame(text.decode())

    def is_closed(self) -> bool:
        """Waits until the other end closes, and takes what still comes; False if it does not."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except ConnectionResetError:
            pass
        return True


def _frame(text: str) -> Frame:
    found: dict[str, str] = {}
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        assert name not in found, text
        found[name] = value.removeprefix(" ")
    data = json.loads(found["data"]) if "data" in found else None
    return Frame(found.get("event", ""), found.get("id"), data)
