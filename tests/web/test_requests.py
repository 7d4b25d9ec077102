"""What is refused of a request: its path, its query, its headers, its body."""

import json
from itertools import product

import pytest
from served import API, Served, bearer, on_both_stores
from wire import ClosedError, Headers, Heard

ODD_WORDS = ("..%2Fx", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "x%00", "%0a", "%ff", "%C3%28",
             "%C2%B2", "job-%C2%B2", "run-%C2%B2", "wf-%C2%B2", "x-%C2%B2", "1" + "0" * 30, "-1",
             "0", "job-0", "1e3", "%20", "%25", "a" * 5000, "job-" + "9" * 18, "job-" + "9" * 19,
             "%F0%9F%98%80", "'%20or%201=1--", "*", "~", "...")  # fmt: skip
WORDS = ("jobs/{}", "jobs/{}/why", "jobs/{}/logs", "jobs/{}/logs/stdout", "jobs/1/logs/{}",
         "jobs/{}/patch", "jobs/{}/result", "runs/{}", "workflows/{}", "workflow-runs/{}",
         "workflow-runs/{}/why", "groups/{}", "schedules/{}", "schedules/{}/slots", "templates/{}",
         "runners/{}", "graph?job={}", "events?job={}", "events?group={}", "jobs?group={}",
         "jobs?run={}", "jobs?label={}", "jobs?since={}", "jobs?cursor={}", "jobs?name={}",
         "events?after={}", "/jobs/{}", "/jobs/batch/{}")  # fmt: skip


def is_a_refusal(heard: Heard, *codes: int) -> bool:
    """A problem document with one of these codes."""
    assert heard.status in codes, heard
    document = heard.json
    assert heard.header("content-type") == "application/problem+json"
    assert document["status"] == heard.status and document["detail"]
    assert document["type"].startswith("urn:headway:problem:")
    assert document["instance"] == heard.header("x-request-id")
    return True


@on_both_stores
def test_odd_names_are_not_found_or_refused(served: Served) -> None:  # fault H4
    with served.wire() as wire:
        given = bearer(served.token("admin"))
        for where, word in product(WORDS, ODD_WORDS):
            path = where.format(word)
            path = path if path.startswith("/") else f"{API}/{path}"
            heard = wire.ask("GET", path, given)
            if heard.status == 200:
                assert "?" in where, (path, heard)  # it fits nothing
            else:
                is_a_refusal(heard, 400, 404, 409)


def test_no_name_reaches_a_file_outside_of_the_home(served: Served) -> None:  # fault H4
    secret = served.bench.folder / "secret.toml"
    secret.write_text("canary")
    for where in (
        "workflows/{}",
        "workflows/{}/runs",
        "templates/{}",
        "runners/{}",
        "schedules/{}",
    ):
        for word in (
            "..%2Fsecret",
            "..%2Fsecret.toml",
            str(secret).replace("/", "%2F"),
            "secret.toml",
        ):
            method = "POST" if where.endswith("runs") else "GET"
            heard = served.ask(method, where.format(word), {} if method == "POST" else None)
            assert is_a_refusal(heard, 400, 404) and b"canary" not in heard.body


@pytest.mark.parametrize(
    "query",
    ["x", "x=1", "limit", "limit=", "limit=0", "limit=1001", "limit=-1", "limit=1e1",
     "limit=%C2%B2", "limit=1&limit=1", "=", "&", "a=1;b=2", "state=done", "status=succeeded",
     "label=x", "since=x", "since=" + "9" * 50, "since=1000000d", "cursor=x", "cursor=W10",
     "cursor=%C3%A9", "name=%00", "name=%FF", "token=hw_x", "access_token=x",
     "&".join(f"limit={n}" for n in range(100))],
)  # fmt: skip
def test_an_unknown_or_wrong_query_is_refused(shared: Served, query: str) -> None:
    heard = shared.ask("GET", f"jobs?{query}")
    assert is_a_refusal(heard, 400)


def test_a_token_in_a_query_is_refused_even_if_it_is_good(shared: Served) -> None:
    token = shared.token("read")
    for name in ("token", "access_token"):
        heard = shared.ask("GET", f"jobs?{name}={token}", role=None)
        assert is_a_refusal(heard, 400) and token.encode() not in heard.body


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("jobs/1/logs/stdout", [("Range", "bytes=²-")]),
        ("jobs/1/logs/stdout", [("Range", "bytes=1-²")]),
        ("jobs/1/logs/stdout", [("Range", "bytes=-5")]),
        ("jobs/1/logs/stdout", [("Range", "lines=1-5")]),
        ("jobs/1/logs/stdout", [("Range", "bytes=5-1")]),
        ("jobs/1/logs/stdout", [("Range", "bytes=0-1,3-4")]),
        ("jobs/1/logs/stdout", [("Range", "bytes=" + "9" * 30 + "-")]),
        ("jobs/1/logs", [("Last-Event-ID", "1-²-0")]),
        ("jobs/1/logs", [("Last-Event-ID", "1-0")]),
        ("jobs/1/logs", [("Last-Event-ID", "77-0-0")]),
        ("events", [("Last-Event-ID", "x-²"), ("Accept", "text/event-stream")]),
        ("events", [("Last-Event-ID", "x"), ("Accept", "text/event-stream")]),
    ],
)
def test_a_header_that_means_nothing_is_refused(
    shared: Served, path: str, headers: Headers
) -> None:
    if "job" in path:
        shared.submit("true")
    heard = shared.ask_as(shared.token("read"), "GET", path, None, headers)
    assert is_a_refusal(heard, 400, 416)


def test_a_wait_that_means_nothing_is_no_wait(shared: Served) -> None:
    for said in ("wait=²", "wait=-1", "wait=x", "wait", "respond-async", "wait=1e9"):
        assert shared.post("jobs", {"argv": ["true"]}, prefer=said).status == 201, said


def test_a_header_that_counts_once_is_refused_twice(shared: Served) -> None:
    token = shared.token("read")
    others = ("Origin", "Idempotency-Key", "If-Match", "Last-Event-ID", "Prefer", "Range")
    for twice in (bearer(token) * 2, *([*bearer(token), *[(name, "x")] * 2] for name in others)):
        assert is_a_refusal(shared.ask_as(None, "GET", "jobs", None, twice), 400)


def test_a_token_that_does_not_count_is_told_from_none(shared: Served) -> None:
    def said(headers: Headers) -> str:
        heard = shared.ask_as(None, "GET", "jobs", None, headers)
        assert heard.status == 401
        return str(heard.json["detail"])

    secret = shared.token("read", name="gone")
    shared._client.tokens.revoke("gone")
    texts = [said(bearer(each)) for each in ("hw_wrong", secret)]
    assert len(set(texts)) == 1 and "unknown, revoked or expired" in texts[0]
    assert said([]).startswith("say who you are")


def test_a_kind_of_event_that_there_is_not_is_refused(shared: Served) -> None:
    """Else one who misspells it listens for ever."""
    heard = shared.ask_as(shared.token("read"), "GET", "events?kind=succeded", None, [])
    assert heard.status == 400 and "did you mean 'succeeded'?" in heard.json["detail"]


# -- bodies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"{,}", b"", b"[]", b"null", b'"x"', b"1", b"{}x", b"\xff\xfe{}",
        b'{"argv": ["\xff"]}', b'\xef\xbb\xbf{"argv": ["true"]}', b'{"argv": ["\\ud800"]}',
        b'{"\\ud800": 1}', b'{"argv": ["true"], "name": "\\uDFFF"}', b'{"argv": ["a\\u0000b"]}',
        b'{"argv": ["true"], "name": "\\u0000"}', b'{"argv": ["true"], "argv": ["false"]}',
        b'{"argv": ["true"], "labels": {"a": "b", "a": "c"}}', b'{"argv": "true"}', b'{"argv": []}',
        b'{"argv": ["true"], "priority": NaN}', b'{"argv": ["true"], "priority": -Infinity}',
        b'{"argv": ["true"], "priority": 1e400}', b'{"argv": ["true"], "priority": 1e1}',
        b'{"argv": ["true"], "priority": ' + b"9" * 5000 + b"}",
        b'{"argv": ["true"], "priority": 1' + b"0" * 30 + b"}",
        b'{"argv": ["true"], "unknown": 1}', b'{"argv": ["true"], "env": {"A": 1}}',
        b'{"argv": ["true"], "prompt_file": "/etc/passwd"}', b'{"template": "nothing"}',
        b'{"argv": ["true"], "params": {"a": "b"}}', b'{"template": null}',
        b'{"argv": ["true"], "after": ["job-99999"]}',
        b'{"argv": ["true"], "after": ["' + b"x" * 9000 + b'"]}',
    ],
)  # fmt: skip
def test_a_wrong_body_is_refused_and_nothing_is_made(
    shared: Served, body: bytes
) -> None:  # fault H3
    before = shared.bench.client.events.last()
    heard = shared.post("jobs", body)
    assert is_a_refusal(heard, 400, 404)
    assert shared.bench.client.events.last() == before


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_a_body_is_nested_32_deep_and_no_deeper(
    shared: Served, opening: bytes, closing: bytes
) -> None:  # fault H3
    def nested(depth: int) -> Heard:
        return shared.post("jobs", opening * depth + b"1" + closing * depth)

    assert "nested" not in nested(32).json["detail"]
    for depth in (33, 100_000):
        assert is_a_refusal(nested(depth), 400)
        assert nested(depth).json["detail"] == "it is nested deeper than 32"
    quoted = json.dumps({"argv": ["echo", '[{"' * 50 + '\\"[['], "name": "]" * 40}).encode()
    assert shared.post("jobs", quoted).status == 201  # brackets in texts are no depth


@pytest.mark.parametrize(
    "media", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]
)
def test_only_json_is_taken(shared: Served, media: str) -> None:
    """Others can be sent by a form of any page without asking first."""
    heard = shared.post("jobs", b'{"argv": ["true"]}', content_type=media)
    assert is_a_refusal(heard, 415)


def test_a_route_without_a_body_takes_none(shared: Served) -> None:
    assert is_a_refusal(shared.ask("GET", "jobs", {"a": 1}), 400)
    assert is_a_refusal(shared.ask("DELETE", "templates/x", {"a": 1}), 400)


def test_all_mistakes_of_a_body_are_named_with_their_places(shared: Served) -> None:
    heard = shared.post("graphs", {"jobs": [{"argv": "x"}, {"a/b": 1, "priority": "high"}]})
    found = {each["pointer"] for each in heard.json["errors"]}
    assert is_a_refusal(heard, 400) and heard.json["exit_code"] == 5
    assert found == {"/jobs/0/argv", "/jobs/1/a~1b", "/jobs/1/priority"}


# -- how much ----------------------------------------------------------------------------------

MIB = 1 << 20


def padded(size: int) -> bytes:
    """A job whose JSON has so many bytes."""
    start = b'{"argv": ["true"]'
    return start + b" " * (size - len(start) - 1) + b"}"


def chunked(body: bytes, size: int = 60_000) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in parts) + b"0\r\n\r\n"


def test_a_body_has_one_mebibyte_and_not_a_byte_more(shared: Served) -> None:  # fault G5
    assert shared.post("jobs", padded(MIB)).status == 201
    assert is_a_refusal(shared.post("jobs", padded(MIB + 1)), 413)


def test_the_same_counts_for_a_body_in_chunks(shared: Served) -> None:  # fault G5
    given = [*bearer(shared.token("admin")), ("Transfer-Encoding", "chunked")]
    for size, code in ((MIB, 201), (MIB + 1, 413)):
        with shared.wire() as wire:
            wire.put(wire.request("POST", f"{API}/jobs", given, chunked(padded(size))))
            assert wire.hear().status == code


def test_a_graph_may_be_larger(shared: Served) -> None:
    def graph(size: int) -> bytes:
        start = b'{"jobs": [{"id": "a", "argv": ["true"]}]'
        return start + b" " * (size - len(start) - 1) + b"}"

    assert shared.post("graphs", graph(16 * MIB)).status == 201
    assert is_a_refusal(shared.post("graphs", graph(16 * MIB + 1)), 413)


def test_a_body_is_not_read_of_one_who_may_not_send_it(shared: Served) -> None:
    """The answer comes before the body; else anybody could make the server keep sixteen MiB."""
    for token, code in ((None, 401), (shared.token("read"), 403)):
        given = [("Content-Length", str(10 * MIB)), *(bearer(token) if token else ())]
        with shared.wire() as wire:
            wire.put(wire.request("POST", f"{API}/graphs", given))
            assert wire.hear().status == code


def test_heads_are_small(shared: Served) -> None:  # fault G5
    room = 16 << 10
    for name, path in ((f"X: {'a' * room}", "/healthz"), ("X: a", "/healthz?" + "a" * room)):
        with shared.wire() as wire:
            wire.put(f"GET {path} HTTP/1.1\r\nHost: {wire.host}\r\n{name}\r\n\r\n".encode())
            heard = wire.hear()
            assert heard.status == 431 and wire.is_closed()
    with shared.wire() as wire:
        assert wire.ask("GET", "/healthz", [("X", "a" * (room - 200))]).status == 200


# -- two readers, two requests -----------------------------------------------------------------

SMUGGLED = b"GET /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %b\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 4\r\nContent-Length: 5",
        "Content-Length: 4, 5",
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding : chunked",
        "Content-Length: +4",
        "Content-Length: 0x4",
        "Content-Length: -1",
        "Content-Length : 4",
        " Content-Length: 4",
        "X: a\n\nY: b",
        "X: a\rContent-Length: 4",
        "X: a\0b",
        "Content-Length: 4\r\n folded",
    ],
)  # fmt: skip
def test_a_request_that_two_readers_may_read_differently_is_refused(
    shared: Served, head: str
) -> None:
    """And what comes behind it is not a second request."""
    token = shared.token("read").encode()
    with shared.wire() as wire:
        start = f"POST {API}/jobs HTTP/1.1\r\nHost: {wire.host}\r\n{head}\r\n\r\n"
        wire.put(start.encode() + b"0\r\n\r\n" + SMUGGLED % token)
        heard = wire.hear()
        assert heard.status in (400, 401, 421), heard
        if heard.status != 400:  # it was one request, of which the body is what was said
            with pytest.raises(ClosedError):
                assert wire.hear().status in (400, 401)
                wire.hear()
        else:
            assert wire.is_closed()


def test_lines_that_end_with_a_bare_lf_hide_nothing(shared: Served) -> None:
    """The parser takes LF for the end of a line, as RFC 9112 allows; so the guard sees them all."""
    with shared.wire() as wire:
        wire.put(f"GET {API}/jobs HTTP/1.1\nHost: {wire.host}\nHost: evil.example\n\n".encode())
        assert wire.hear().status == 400
    with shared.wire() as wire:
        wire.put(f"GET {API}/jobs HTTP/1.1\nHost: evil.example\n\n".encode())
        assert wire.hear().status == 421


@pytest.mark.parametrize(
    "line",
    ["GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 x", "\0", "GET /\0 HTTP/1.1",
     "GET / HTTP/x", "G\xe9T / HTTP/1.1", "GET /\xe9 HTTP/1.1", "\x16\x03\x01\x02"],
)  # fmt: skip
def test_what_is_no_http_is_closed(shared: Served, line: str) -> None:
    with shared.wire() as wire:
        wire.put(f"{line}\r\nHost: {wire.host}\r\n\r\n".encode("latin-1"))
        assert wire.hear().status == 400 and wire.is_closed()


def test_a_target_of_another_form_is_no_path_of_ours(shared: Served) -> None:
    given = bearer(shared.token("admin"))
    for target in (
        "http://127.0.0.1/healthz",
        "*",
        "healthz",
        "x/healthz",
        "//healthz",
        "127.0.0.1:80",
    ):
        with shared.wire() as wire:
            assert wire.ask("GET", target).status == 401
            assert wire.ask("GET", target, given).status == 404, target


def test_no_upgrade_to_another_protocol(shared: Served) -> None:
    for upgrade in ("websocket", "h2c"):
        with shared.wire() as wire:
            asked = [("Connection", "Upgrade"), ("Upgrade", upgrade), ("Sec-WebSocket-Key", "AAAA")]
            assert wire.ask("GET", f"{API}/events", asked).status == 401
