"""One request to a server that means no good: bounded in time and size, and never led elsewhere."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from receiver import Handler, Received, Receiver, status

from harness import wait_for
from headway.base.clock import Clock, SystemClock
from headway.core.destinations import AllowedTarget, parse_allowed
from headway.core.webhooks import HookReply
from headway.testing.clock import FakeClock
from headway.webhooks import transport
from headway.webhooks.transport import HttpRequest, Resolve, Sending

HERE = "127.0.0.1"


def allowed(*entries: str) -> list[AllowedTarget]:
    return [each for each in map(parse_allowed, entries) if each is not None]


def sending(
    url: str, *, clock: Clock | None = None, resolve: Resolve | None = None, allow: str = HERE
) -> Sending:
    request = HttpRequest(url, {"webhook-id": "1"}, b"{}")
    entries = allowed(allow) if allow else []
    more = {} if resolve is None else {"resolve": resolve}
    return Sending(request, entries, clock or SystemClock(), **more)


@contextmanager
def raw(answer: bytes | Iterator[bytes]) -> Iterator[int]:
    """A server that reads a request and sends these bytes, whatever they are; its port."""
    listener = socket.create_server((HERE, 0))
    stop = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            try:
                for part in [answer] if isinstance(answer, bytes) else answer:
                    connection.sendall(part)
            except OSError:
                return
            stop.wait(30)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        stop.set()
        listener.close()
        thread.join(30)


def test_a_request_has_the_name_the_path_and_the_query(receiver: Receiver) -> None:
    url = f"http://x.example:{receiver.port}/a/b?c=d&e"
    reply = sending(url, resolve=lambda name, port: [HERE]).make()
    assert reply == HookReply(204)
    (got,) = receiver.got
    assert got.path == "/a/b?c=d&e"
    assert got.headers["Host"] == f"x.example:{receiver.port}"


def test_a_name_that_changes_its_mind_is_asked_once(receiver: Receiver) -> None:
    """The address that was checked is the one that is connected to."""
    asked: list[str] = []  # fault F4

    def flips(name: str, port: int) -> Sequence[str]:
        asked.append(name)
        return [HERE] if len(asked) == 1 else ["169.254.169.254"]

    reply = sending(f"http://flips.example:{receiver.port}/", resolve=flips).make()
    assert reply == HookReply(204) and asked == ["flips.example"]

    def evil_first(name: str, port: int) -> Sequence[str]:
        return ["169.254.169.254"]

    refused = sending("http://flips.example/", resolve=evil_first).make()
    assert refused.status_code is None
    assert "169.254.169.254 is not an address of the public internet" in (refused.error or "")
    assert 'webhooks.allow = ["169.254.169.254:80"]' in (refused.error or "")


def test_one_private_address_among_public_ones_is_enough_to_refuse(receiver: Receiver) -> None:
    both = sending("http://x.example/", resolve=lambda name, port: ["8.8.8.8", "10.0.0.1"])
    assert "10.0.0.1 is not an address" in (both.make().error or "")


@pytest.mark.parametrize("number", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(receiver: Receiver, number: int) -> None:
    target = "http://169.254.169.254/latest/meta-data/"
    receiver.usual = status(number, Location=target)  # fault F3
    reply = sending(receiver.url()).make()
    assert reply.status_code == number and not reply.is_success
    assert "not followed" in (reply.error or "")
    assert len(receiver.got) == 1


def test_without_an_exception_this_machine_is_refused(receiver: Receiver) -> None:
    reply = sending(receiver.url(), allow="").make()
    assert reply.status_code is None and receiver.got == []
    assert f'webhooks.allow = ["127.0.0.1:{receiver.port}"]' in (reply.error or "")


def test_a_huge_answer_is_read_in_part_only() -> None:
    sent = [0]  # fault F5

    def huge() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n"
        for _ in range(10_000):
            sent[0] += 1
            yield b"x" * 65_536

    with raw(huge()) as port:
        assert sending(f"http://{HERE}:{port}/").make() == HookReply(200)
    assert sent[0] < 1_000, "it was cut off long before"


def test_a_compressed_answer_is_not_unpacked() -> None:
    import gzip

    bomb = gzip.compress(b"\0" * 50_000_000)  # fault F5
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    with raw(head + bomb) as port:
        assert sending(f"http://{HERE}:{port}/").make() == HookReply(200)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 999999 What\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000,
    ],
)
def test_an_answer_that_is_none_is_a_failure(answer: bytes) -> None:
    def ends() -> Iterator[bytes]:
        yield answer
        raise OSError  # the connection is closed

    with raw(ends()) as port:
        reply = sending(f"http://{HERE}:{port}/").make()
    assert reply.status_code is None and reply.error and reply.error.isprintable()


def test_a_server_that_sends_a_byte_now_and_then_is_left_in_time() -> None:
    """No read of it takes long; all together would never end."""
    released = threading.Event()  # fault F1

    def drips() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nX: "
        while not released.wait(0.01):
            yield b"y"

    clock = FakeClock()
    with raw(drips()) as port:
        one = sending(f"http://{HERE}:{port}/", clock=clock)
        replies: list[HookReply] = []
        thread = threading.Thread(target=lambda: replies.append(one.make()))
        thread.start()
        wait_for(lambda: one._socket is not None)
        one.end_if_late()
        clock.advance(14.9)
        one.end_if_late()
        assert thread.is_alive() and not replies
        clock.advance(0.1)
        one.end_if_late()
        thread.join(30)
        released.set()
    assert replies == [HookReply(None, "it took too long")]


def test_one_that_is_late_before_it_has_a_socket_is_left_all_the_same() -> None:
    released = threading.Event()  # fault F1

    def drips() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nX: "
        while not released.wait(0.01):
            yield b"y"

    clock = FakeClock()

    def slow(name: str, port: int) -> Sequence[str]:
        clock.advance(15)
        one.end_if_late()
        return [HERE]

    with raw(drips()) as port:
        one = sending(f"http://x.example:{port}/", clock=clock, resolve=slow)
        replies: list[HookReply] = []
        thread = threading.Thread(target=lambda: replies.append(one.make()))
        thread.start()

        def is_left() -> bool:
            one.end_if_late()
            return bool(replies)

        try:
            wait_for(is_left, what="the late one to be ended")
        finally:
            released.set()
            thread.join(30)
    assert replies == [HookReply(None, "it took too long")]


def test_a_name_server_that_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "NAME_SECONDS", 0.05)
    released = threading.Event()

    def silent(name: str, port: int) -> Sequence[str]:
        released.wait(30)
        return [HERE]

    reply = sending("http://slow.example/", resolve=silent).make()
    released.set()
    assert reply.error == "slow.example was not resolved within 0.05 s"


@pytest.mark.parametrize(
    ("resolve", "words"),
    [
        (lambda name, port: [], "x.example has no address"),
        (lambda name, port: 1 // 0, "x.example cannot be resolved: "),
    ],
)
def test_a_name_without_an_address(resolve: Resolve, words: str) -> None:
    assert (sending("http://x.example/", resolve=resolve).make().error or "").startswith(words)


def test_nobody_listens_there() -> None:
    with socket.create_server((HERE, 0)) as listener:
        port = listener.getsockname()[1]
    assert sending(f"http://{HERE}:{port}/").make() == HookReply(None, "Connection refused")


def test_the_next_address_is_tried_if_nobody_listens_at_the_first(receiver: Receiver) -> None:
    url = f"http://two.example:{receiver.port}/"
    found = sending(url, resolve=lambda n, p: ["127.0.0.2", HERE], allow="127.0.0.0/8")
    assert found.make() == HookReply(204)


@contextmanager
def full(address: str, port: int) -> Iterator[None]:
    """Somebody listens there and takes nobody more: who connects hears nothing."""
    with socket.create_server((address, port), backlog=0), socket.socket() as first:
        first.connect((address, port))
        yield


def test_an_address_that_swallows_everything_leaves_time_for_the_next(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "CONNECT_SECONDS", 0.4)  # fault F1
    with full("127.0.0.2", receiver.port):
        url = f"http://two.example:{receiver.port}/"
        alone = sending(url, resolve=lambda n, p: ["127.0.0.2"], allow="127.0.0.0/8")
        assert alone.make() == HookReply(None, "it took too long")
        both = sending(url, resolve=lambda n, p: ["127.0.0.2", HERE], allow="127.0.0.0/8")
        assert both.make() == HookReply(204)


@pytest.mark.parametrize(
    ("header", "micros"),
    [
        ("120", 120_000_000),
        ("0", 0),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60_000_000),
        ("Thu, 01 Jan 2020 00:00:00 GMT", 0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("9" * 40, None),
    ],
)
def test_when_a_server_wants_to_be_asked_again(
    receiver: Receiver, header: str, micros: int | None
) -> None:
    receiver.usual = status(503, Retry_After=header)  # fault F9
    reply = sending(receiver.url(), clock=FakeClock()).make()
    assert (reply.status_code, reply.retry_after) == (503, micros)


# -- TLS ---------------------------------------------------------------------------------------


CERTIFICATE = Path(__file__).with_name("good.example.pem")  # made for this, and for 100 years


@pytest.fixture
def secure(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver with a certificate for good.example, which this process accepts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    transport._tls.cache_clear()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with Receiver() as made:
        made.wrap(context)
        yield made
    transport._tls.cache_clear()


def test_tls_goes_by_the_name_and_not_by_the_address(secure: Receiver) -> None:
    here: Resolve = lambda name, port: [HERE]  # noqa: E731
    assert sending(f"https://good.example:{secure.port}/", resolve=here).make() == HookReply(204)
    other = sending(f"https://other.example:{secure.port}/", resolve=here).make()
    assert "its certificate is not accepted" in (other.error or "")
    bare = sending(f"https://{HERE}:{secure.port}/").make()
    assert "its certificate is not accepted" in (bare.error or "")
    assert len(secure.got) == 1


def test_a_handshake_that_never_comes_is_left_in_time() -> None:
    clock = FakeClock()
    with raw(b"") as port:
        one = sending(f"https://{HERE}:{port}/", clock=clock)
        replies: list[HookReply] = []
        thread = threading.Thread(target=lambda: replies.append(one.make()))
        thread.start()
        wait_for(lambda: one._socket is not None)
        clock.advance(15)
        give_up_at = time.monotonic() + 30
        while thread.is_alive() and time.monotonic() < give_up_at:
            one.end_if_late()
            thread.join(0.01)
    assert replies == [HookReply(None, "it took too long")]


def test_what_a_server_says_is_shown_without_control_characters(receiver: Receiver) -> None:
    def rude(received: Received, handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 500 \x1b[31mRed" + b"x" * 1_000 + b"\r\n\r\n")
        handler.close_connection = True

    receiver.usual = rude
    error = sending(receiver.url()).make().error or ""
    assert error.startswith("500 ?[31mRed") and len(error) == 300
