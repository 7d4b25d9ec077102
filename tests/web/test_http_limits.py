"""What one client can take of the server: time, memory, requests and streams (faults G5, G6)."""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from served import API, Served, bearer
from wire import Wire

from harness import wait_for
from headway.web import application, protocol, server, streams, tail

SOON = 0.3  # seconds, in the place of ten or twenty


def connections(served: Served) -> int:
    running = served.server._uvicorn
    assert running is not None
    return len(running.server_state.connections)


def drip(wire: Wire, text: bytes) -> None:
    """Send a byte now and then until the other end has had enough of it."""
    left = iter(text)
    wire.socket.setblocking(False)

    def closed() -> bool:
        try:
            byte = next(left, None)
            assert byte is not None, "it was never closed"
            wire.socket.send(bytes([byte]))
            return wire.socket.recv(1 << 16) == b""
        except BlockingIOError:
            return False
        except (BrokenPipeError, ConnectionResetError):
            return True

    wait_for(closed, what="a dripped request to be closed")


HEAD = b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 10_000


@pytest.fixture
def hasty(serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> Served:
    monkeypatch.setattr(protocol, "WITHIN", SOON)
    return serve()


def test_a_dripped_head_is_closed(hasty: Served) -> None:  # fault G5
    with hasty.wire() as wire:
        drip(wire, HEAD)


def test_a_dripped_head_after_a_whole_request_is_closed(hasty: Served) -> None:  # fault G5
    """The first request of a kept connection must not buy time for the others."""
    with hasty.wire() as wire:
        assert wire.ask("GET", "/healthz").status == 200
        drip(wire, HEAD)


def test_a_dripped_body_is_closed(hasty: Served) -> None:  # fault G5
    given = [*bearer(hasty.token("submit")), ("Content-Length", "10000")]
    with hasty.wire() as wire:
        wire.put(wire.request("POST", f"{API}/jobs", given))
        drip(wire, b" " * 10_000)


def test_a_body_that_nobody_reads_does_not_last_either(hasty: Served) -> None:
    with hasty.wire() as wire:
        wire.put(wire.request("POST", f"{API}/jobs", [("Content-Length", "10000")]))
        assert wire.hear().status == 401
        drip(wire, b" " * 10_000)


@pytest.fixture
def patient(serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> Served:
    """What drips stays as long as a test lasts."""
    monkeypatch.setattr(protocol, "WITHIN", 1000.0)
    return serve()


def begin_graph(wire: Wire, token: str, size: int, sent: int) -> None:
    """The head of a request with a body of this size, and the first bytes of that."""
    given = [*bearer(token), ("Content-Type", "application/json"), ("Content-Length", str(size))]
    wire.put(wire.request("POST", f"{API}/graphs", given) + b" " * sent)


GRAPH = {"jobs": [{"id": "a", "argv": ["true"]}]}
MIB = 1 << 20


def test_a_slow_graph_holds_up_no_other(patient: Served) -> None:  # fault G5
    with patient.wire() as slow:
        begin_graph(slow, patient.token("submit"), 2 * MIB, 1000)
        wait_for(lambda: patient.application._at_once.total() == 1)
        assert patient.post("graphs", GRAPH).status == 201


def test_of_large_bodies_one_is_read_at_a_time(
    patient: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "LARGE_WAITS", SOON)
    large = b'{"jobs": [{"id": "a", "argv": ["true"]}]' + b" " * MIB + b"}"
    with patient.wire() as slow:
        begin_graph(slow, patient.token("submit"), 3 * MIB, 2 * MIB)
        wait_for(patient.application._large.locked)
        heard = patient.post("graphs", large)
        assert (heard.status, heard.json["title"]) == (503, "too-busy")
        assert heard.header("retry-after") and patient.post("graphs", GRAPH).status == 201
    wait_for(lambda: not patient.application._large.locked())
    assert patient.post("graphs", large).status == 201


def test_bodies_that_drip_are_requests_at_once(patient: Served) -> None:  # fault G5
    """Each takes memory while it is read."""
    mine, other = patient.token("submit"), patient.token("submit", name="other")
    with ExitStack() as stack:
        for _ in range(32):
            begin_graph(stack.enter_context(patient.wire()), mine, 1000, 10)
        wait_for(lambda: patient.application._at_once.total() == 32)
        assert patient.ask_as(mine, "POST", "graphs", GRAPH).status == 429
        assert patient.ask_as(other, "POST", "graphs", GRAPH).status == 201
    wait_for(lambda: not patient.application._at_once.total())


def test_of_nobody_little_is_read(patient: Served) -> None:
    given = [("Sec-Fetch-Site", "same-origin"), ("Content-Length", "4097")]
    with patient.wire() as wire:
        wire.put(wire.request("POST", "/login", given))
        assert wire.hear().status == 413


def test_a_silent_connection_is_closed(hasty: Served) -> None:
    with hasty.wire() as wire:
        assert wire.is_closed()


def test_a_stream_that_is_read_outlasts_the_time_for_a_request(hasty: Served) -> None:
    with hasty.stream("events") as following, hasty.wire() as silent:
        assert next(following.frames).event == "hello"
        assert silent.is_closed()
        hasty.submit("true")
        assert following.until("submitted")


def test_those_who_leave_before_they_are_seen_do_no_harm(served: Served) -> None:
    """What they leave behind would be an error in the log, each time."""
    at_once = struct.pack("ii", 1, 0)
    for _ in range(300):
        wire = served.wire()
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
        wire.close()
    assert served.ask("GET", "/healthz").status == 200
    wait_for(lambda: connections(served) == 0)


def test_a_thousand_idle_connections_keep_nobody_out(served: Served) -> None:  # fault G5
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(served.wire())
        wait_for(lambda: connections(served) >= 1000)
        with served.wire() as wire:
            wire.socket.settimeout(5)  # a second is meant; the machine may be busy
            assert wire.ask("GET", f"{API}/me", bearer(served.token("read"))).status == 200


# -- answers that nobody reads -----------------------------------------------------------------


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little room in the kernel, so that what is not read soon waits in the server."""
    usual = server._tcp_sockets

    def made(*args: Any) -> list[socket.socket]:
        sockets = usual(*args)
        for each in sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        return sockets

    monkeypatch.setattr(server, "_tcp_sockets", made)


@pytest.mark.usefixtures("narrow")
def test_an_unread_answer_does_not_stay_for_ever(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:  # fault G5
    monkeypatch.setattr(protocol, "UNREAD_FOR", SOON)
    served = serve()
    job = served.submit("echo", "x" * 200_000)
    with served.wire(room=2048) as wire:
        wire.put(wire.request("GET", f"{API}/jobs/{job}", bearer(served.token("read"))))
        wait_for(lambda: connections(served) == 1)
        wait_for(lambda: connections(served) == 0, what="the server to let go of it")


@pytest.mark.usefixtures("narrow")
def test_an_unread_stream_does_not_stay_for_ever(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:  # fault G6
    monkeypatch.setattr(protocol, "UNREAD_FOR", SOON)
    served = serve()
    given = [*bearer(served.token("read")), ("Accept", "text/event-stream")]
    with served.wire(room=2048) as wire:
        wire.put(wire.request("GET", f"{API}/events", given))
        wire.hear_head()
        for _ in range(60):
            served.submit("true", name="x" * 200)
        wait_for(lambda: connections(served) == 0, what="the server to let go of it")
    assert not served.application._streams.total()


@pytest.mark.usefixtures("narrow")
def test_one_who_reads_slowly_gets_all_of_an_answer(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "UNREAD_FOR", SOON)
    monkeypatch.setattr(protocol, "LEAST_READ", 1)
    served = serve()
    job = served.submit("echo", "x" * 30_000)
    with served.wire(room=2048) as wire:
        asked = wire.request(
            "GET", f"{API}/jobs/{job}", [*bearer(served.token("read")), ("Connection", "close")]
        )
        wire.put(asked)
        come = b""

        def read() -> bool:
            nonlocal come
            some = wire.socket.recv(2000)
            come += some
            return not some

        wait_for(read)
    assert come.count(b"x") > 30_000


@pytest.mark.usefixtures("narrow")
def test_one_who_falls_behind_is_told_to_begin_again(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:  # fault G6
    monkeypatch.setattr(tail, "RING", 2)
    served = serve()
    given = [*bearer(served.token("read")), ("Accept", "text/event-stream")]
    with served.wire(room=2048) as wire:
        wire.put(wire.request("GET", f"{API}/events", given))
        wire.hear_head()
        frames = wire.frames()
        assert next(frames).event == "hello"
        listener = next(iter(served.application._tail._listeners))

        def behind() -> bool:
            served.submit("true", name="x" * 200)
            return listener.fell_behind

        wait_for(behind)
        seen = list(frames)
    assert seen[-1].event == "resync"
    last = seen[-2].id
    assert seen[-1].data == {"last": last} and seen[-1].id == last
    page = served.get(f"events?after={last}&limit=1000")["events"]
    numbers = [each.data["seq"] for each in seen[:-1]] + [each["seq"] for each in page]
    assert numbers == sorted(set(numbers)) and numbers[-1] == served.bench.client.events.last()


@pytest.mark.usefixtures("narrow")
def test_beside_all_of_them_a_good_request_is_answered(patient: Served) -> None:  # fault G5
    """Dripped heads and bodies, answers and streams that nobody reads, long heads, two requests in
    one: at the same time."""
    job = patient.submit("echo", "x" * 200_000)
    reader, good = patient.token("read"), patient.token("read", name="good")
    writers = [patient.token("submit", name=f"writer-{number}") for number in range(2)]
    unread = [f"{API}/jobs/{job}", f"{API}/openapi.json", f"{API}/events"]
    host = f"127.0.0.1:{patient.port}"
    odd = (
        f"GET /healthz HTTP/1.1\r\nX: {'a' * (16 << 10)}\r\n\r\n",
        f"GET / HTTP/1.1\r\nX: {'a' * ((16 << 10) + 1)}",
        f"POST /login HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n",
    )
    with ExitStack() as stack:

        def connected(room: int = 0) -> Wire:
            return stack.enter_context(patient.wire(room=room))

        for number in range(60):
            connected().put(HEAD[: 20 + number])
            begin_graph(connected(), writers[number % 2], 1000, number)
            asked = [*bearer(reader), ("Accept", "text/event-stream")]
            wire = connected(2048)
            wire.put(wire.request("GET", unread[number % 3], asked))
            connected().put(odd[number % 3].encode())
        wait_for(lambda: patient.application._at_once.total() == 60)
        with patient.wire() as wire:
            wire.socket.settimeout(5)  # a second is meant; the machine may be busy
            assert wire.ask("GET", f"{API}/me", bearer(good)).status == 200


# -- how many ----------------------------------------------------------------------------------


@pytest.fixture
def many(served: Served) -> Iterator[Callable[..., list[int]]]:
    """Sends requests that go on, each over a connection of its own, and tells their codes."""
    with ExitStack() as stack:

        def ask(count: int, request: Callable[[Wire], bytes]) -> list[int]:
            wires = [stack.enter_context(served.wire()) for _ in range(count)]
            codes = []
            for each in wires:
                each.put(request(each))
                codes.append(each.hear_head()[0])
            return codes

        yield ask


def test_a_principal_has_twenty_streams(
    served: Served, many: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = ("Accept", "text/event-stream")

    def of(token: str) -> Callable[[Wire], bytes]:
        return lambda wire: wire.request("GET", f"{API}/events", [*bearer(token), accept])

    mine, other = served.token("read"), served.token("read", name="other")
    assert many(20, of(mine)) == [200] * 20
    heard = served.ask_as(mine, "GET", "events", None, [accept])
    assert heard.status == 429 and heard.header("retry-after")
    assert served.ask_as(mine, "GET", "jobs").status == 200
    assert many(1, of(other)) == [200]
    monkeypatch.setattr(application, "ALL_STREAMS", 21)
    heard = served.ask_as(other, "GET", "events", None, [accept])
    assert heard.status == 503 and heard.header("retry-after")


def test_a_stream_that_ended_makes_room(served: Served) -> None:
    for _ in range(25):
        with served.stream("events") as following:
            assert next(following.frames).event == "hello"
    wait_for(lambda: not served.application._streams.total())


def test_a_principal_has_32_requests_at_once(served: Served) -> None:
    mine, other = served.token("submit"), served.token("submit", name="other")
    with ExitStack() as stack:
        for _ in range(32):
            wire = stack.enter_context(served.wire())
            given = [*bearer(mine), ("Prefer", "wait=60")]
            wire.put(wire.request("POST", f"{API}/jobs", given, {"argv": ["true"]}))
        wait_for(lambda: served.application._at_once.total() == 32)
        heard = served.ask_as(mine, "GET", "jobs")
        assert heard.status == 429 and heard.header("retry-after")
        assert served.ask_as(other, "GET", "jobs").status == 200
    # Those who have left make room.
    wait_for(lambda: not served.application._at_once.total())


def test_methods_that_nobody_knows_make_no_metrics(served: Served) -> None:
    """Else anybody could fill the server's memory with them."""
    with served.wire() as wire:
        for number in range(50):
            assert wire.ask(f"M{number}", "/nothing").status == 401
    told = served.ask("GET", "/metrics").body.decode()
    assert "M49" not in told and 'method="other"' in told


def test_answers_are_sent_at_once(served: Served) -> None:
    """Without waiting for an acknowledgement of their first part."""
    with served.wire() as wire:
        assert wire.ask("GET", "/healthz").status == 200
        running = served.server._uvicorn
        assert running is not None
        for each in running.server_state.connections:
            kept = each.transport.get_extra_info("socket")
            assert kept.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_comment_says_that_a_quiet_stream_is_there(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "COMMENT_EVERY", SOON)
    job = served.submit("true", require_approval=True)
    with served.stream("events") as events, served.stream(f"jobs/{job}/logs") as logs:
        assert [next(events.frames).event, next(events.frames).event] == ["hello", ""]
        assert next(logs.frames).event == ""
