"""One request to a stranger's server: resolved once, bounded in time and size, never redirected.

`http.client` follows no redirects, uses no proxies, decompresses nothing and repeats nothing. The
address that was checked is the one that is connected to; the certificate and the header `Host` go
by the name.
"""

import io
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any, NamedTuple

from headway.base.clock import SECOND, Clock
from headway.base.errors import InvalidInputError
from headway.core.destinations import AllowedTarget, Destination
from headway.core.webhooks import HookReply
from headway.jobs.webhook_urls import checked, refuse

NAME_SECONDS = 5.0
CONNECT_SECONDS = 5.0
TRY_SECONDS = 15.0
LOOK_EVERY = 0.2
MOST_OF_ANSWER = 64 << 10
LONGEST_ERROR = 300

Resolve = Callable[[str, int], Sequence[str]]


def resolve_by_system(name: str, port: int) -> Sequence[str]:
    """All addresses of a name, without the same one twice."""
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def addresses_of(destination: Destination, resolve: Resolve = resolve_by_system) -> Sequence[str]:
    """What its name stands for. In a thread, because the system's resolver cannot be interrupted;
    raises OSError."""
    if destination.address is not None:
        return [str(destination.address)]
    found: list[Sequence[str]] = []
    wrong: list[Exception] = []

    def look_up() -> None:
        try:
            found.append(resolve(destination.host, destination.port))
        except Exception as error:
            wrong.append(error)

    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(NAME_SECONDS)
    if wrong:
        raise OSError(f"{destination.host} cannot be resolved: {_words(wrong[0])}")
    if not found:
        raise OSError(f"{destination.host} was not resolved within {NAME_SECONDS:g} s")
    if not found[0]:
        raise OSError(f"{destination.host} has no address")
    return found[0]


class HttpRequest(NamedTuple):
    url: str
    headers: Mapping[str, str]
    body: bytes


class Sending:
    """One try. It is made in a thread of its own; `end_if_late` is for the thread that watches all
    of them: a server that sends a byte now and then never keeps a socket waiting for long."""

    def __init__(
        self,
        request: HttpRequest,
        allowed: Sequence[AllowedTarget],
        clock: Clock,
        *,
        resolve: Resolve = resolve_by_system,
    ) -> None:
        self._request = request
        self._allowed = allowed
        self._clock = clock
        self._resolve = resolve
        self._end_at = clock.monotonic() + TRY_SECONDS
        self._socket: socket.socket | None = None
        self._is_late = False

    def make(self) -> HookReply:
        """Send it and read the reply. Whatever goes wrong is a reply, too."""
        try:
            return self._made()
        except InvalidInputError as error:  # it may not be sent there
            return HookReply(None, str(error))
        except TimeoutError:
            return HookReply(None, "it took too long")
        except (OSError, HTTPException, ValueError) as error:
            late = "it took too long" if self._is_late else _words(error)
            return HookReply(None, late)

    def make_in_time(self) -> HookReply:
        """The same for one who has nothing else to do: it is ended when its time is over."""
        done = threading.Event()

        def watch() -> None:
            while not done.wait(LOOK_EVERY):
                self.end_if_late()

        threading.Thread(target=watch, daemon=True).start()
        try:
            return self.make()
        finally:
            done.set()

    def end_if_late(self) -> None:
        """To be called again and again: its socket may be another one a moment later."""
        if self._clock.monotonic() < self._end_at:
            return
        self._is_late = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _made(self) -> HookReply:
        destination = checked(self._request.url)
        addresses = addresses_of(destination, self._resolve)
        refuse(destination, addresses, self._allowed)
        connection = _Connection(destination.host, destination.port, timeout=TRY_SECONDS)
        try:
            self._socket = connection.sock = self._connected(destination, addresses)
            headers = {"Host": destination.authority, **self._request.headers}
            connection.request("POST", destination.target, self._request.body, headers)
            return self._read(connection.getresponse())
        finally:
            connection.close()

    def _connected(self, destination: Destination, addresses: Sequence[str]) -> socket.socket:
        """To the first address that answers; all of them were checked. Each has its share of the
        time: one that swallows everything must not use up that of the others."""
        end_at = self._clock.monotonic() + CONNECT_SECONDS
        failure: OSError | None = None
        for number, address in enumerate(addresses):
            share = (end_at - self._clock.monotonic()) / (len(addresses) - number)
            try:
                plain = socket.create_connection((address, destination.port), max(0.1, share))
            except OSError as error:
                failure = error
                continue
            plain.settimeout(TRY_SECONDS)
            if destination.scheme == "http":
                return plain
            return self._encrypted(plain, destination)
        raise failure or OSError("it has no address")

    def _encrypted(self, plain: socket.socket, destination: Destination) -> socket.socket:
        self._socket = plain
        try:
            made = _tls().wrap_socket(
                plain, server_hostname=destination.host, do_handshake_on_connect=False
            )
        except BaseException:
            plain.close()
            raise
        self._socket = made
        try:
            made.do_handshake()
        except BaseException:
            made.close()
            raise
        return made

    def _read(self, response: HTTPResponse) -> HookReply:
        """Read the status, which decides. The rest is read up to a bound, so that the server can
        finish; if it does not, that changes nothing."""
        status = response.status
        later = _retry_after(response.getheader("Retry-After"), self._clock.now())
        with suppress(OSError, HTTPException, ValueError):
            while response.read(MOST_OF_ANSWER):
                pass
        if 200 <= status < 300:
            return HookReply(status)
        reason = f" {response.reason}" if response.reason else ""
        followed = ", which is not followed" if 300 <= status < 400 else ""
        return HookReply(status, _cut(f"{status}{reason}{followed}"), later)


@cache
def _tls() -> ssl.SSLContext:
    """To read all certificates takes longer than a request."""
    return ssl.create_default_context()


class _Connection(HTTPConnection):
    """Its socket is put in from outside."""

    auto_open = 0

    class _ShortResponse(HTTPResponse):
        def __init__(self, sock: socket.socket, *arguments: Any, **named: Any) -> None:
            super().__init__(sock, *arguments, **named)
            self._first_bytes = _FirstBytes(self.fp)
            self.fp = io.BufferedReader(self._first_bytes)

        def begin(self) -> None:
            super().begin()
            self._first_bytes.may_end = True

    response_class = _ShortResponse


class _FirstBytes(io.RawIOBase):
    """The first bytes of an answer, up to a bound; then it reads as if the server had ended. An end
    within the headers is an error, because `http.client` would take the part for all of them."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self._left = MOST_OF_ANSWER
        self.may_end = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        room = memoryview(buffer)[: self._left]
        received = self._file.readinto1(room) if len(room) else 0
        if not received and not self.may_end:
            how = "ended in the midst of" if len(room) else "has too much for"
            raise HTTPException(f"the answer {how} its headers")
        self._left -= received
        return received

    def close(self) -> None:
        self._file.close()
        super().close()


def _retry_after(text: str | None, now: int) -> int | None:
    """In microseconds from now: seconds, or a date."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text) * SECOND
    try:
        then = parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0, round(then * SECOND) - now)


def _words(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _cut(f"its certificate is not accepted: {error.verify_message}")
    if isinstance(error, OSError) and error.strerror:
        return _cut(error.strerror)
    return _cut(str(error) or type(error).__name__)


def _cut(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)[:LONGEST_ERROR]
