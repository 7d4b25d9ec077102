"""Who is let in: public paths, sign-ins, sessions, the socket, tokens of templates."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from served import API, Served, bearer, serving_new_home
from wire import Headers, Heard

from headway.admin.tokens import CODE_LASTS, SESSION_IDLES, SESSION_LASTS, csrf_value
from headway.base.clock import SECOND
from headway.web.handlers.login import AGAIN
from headway.web.routes import ROUTES
from headway.web.server import Listen

HERE = [("Sec-Fetch-Site", "same-origin")]


# -- what needs no credential ------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["//healthz", "/healthz/", "/healthz/.", "/healthz/..", "/./healthz", "/x/../healthz",
     "/Healthz", "/HEALTHZ", "/healthz;x", "/healthz;", "/healthz%2f", "/%68ealthz", "/healthz%00",
     "/healthz%20", "/healthz.json", "/healthzz", "/api/v1/healthz", "%2fhealthz", "/healthz%3fx",
     "/healthz/api/v1/jobs", "/healthz/../api/v1/jobs", "/login/../api/v1/jobs", "/login/",
     "/login.js/", "/login%2f..%2fapi", "/LOGIN"],
)  # fmt: skip
def test_only_the_literal_path_is_public(shared: Served, path: str) -> None:
    for method in ("GET", "HEAD", "POST"):
        assert shared.ask(method, path, role=None).status == 401, method


def test_healthz_says_only_that_the_process_answers(shared: Served) -> None:
    heard = shared.ask("GET", "/healthz", role=None)
    assert (heard.status, heard.body) == (200, b"ok\n")
    assert shared.ask("GET", "/healthz?x=1", role=None).status == 400


# -- links of other sites ----------------------------------------------------------------------

FOLLOWED = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]


def test_a_link_of_another_site_is_asked_for_again_by_a_page_of_ours(shared: Served) -> None:
    """The browser keeps the cookie back from such a link, and sends it with the second request."""
    secret = secret_of(post_code(shared, code_for(shared)))
    cookie = ("Cookie", f"headway={secret}")
    for path in ("/", f"{API}/jobs", "/nothing"):
        for given in (FOLLOWED, [*FOLLOWED, cookie], [*FOLLOWED, *bearer(shared.token("read"))]):
            heard = shared.ask_as(None, "GET", path, None, given)
            assert (heard.status, heard.body) == (200, AGAIN.body), (path, given)
            assert "text/html" in heard.header("content-type")
    assert b'http-equiv="refresh" content="0"' in (AGAIN.body or b"")
    assert shared.ask_as(None, "GET", "/ui/", None, [*HERE, FOLLOWED[1], cookie]).status == 200


@pytest.mark.parametrize(
    "headers",
    [FOLLOWED[:1], [FOLLOWED[0], ("Sec-Fetch-Mode", "no-cors")],
     [*FOLLOWED, ("Origin", "http://evil.example")], [*FOLLOWED, ("Origin", "null")]],
)  # fmt: skip
def test_what_is_no_link_gets_no_such_page(shared: Served, headers: Headers) -> None:
    given = [*headers, *bearer(shared.token("read"))]
    assert shared.ask_as(None, "GET", "jobs", None, given).status == 403


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS"])
def test_a_form_of_another_site_gets_no_such_page(shared: Served, method: str) -> None:
    given = [*FOLLOWED, *bearer(shared.token("admin"))]
    assert shared.ask_as(None, method, "jobs", None, given).status == 403


def test_forms_of_our_pages_say_where_they_come_from(shared: Served) -> None:
    """With `no-referrer` a browser sends `Origin: null` with a form, so nobody could sign in."""
    policy = shared.ask("GET", "/login", role=None).header("referrer-policy")
    assert policy == "same-origin"


# -- signing in --------------------------------------------------------------------------------


def code_for(served: Served, host: str = "127.0.0.1", role: str = "operate") -> str:
    return served._client.tokens.login_code(role=role, host=host)


def post_code(served: Served, code: str, host: str = "127.0.0.1", headers: Headers = ()) -> Heard:
    with served.wire(host=host) as wire:
        given = headers or [("Origin", f"http://{wire.host}")]
        return wire.ask("POST", "/login", given, {"code": code})


def secret_of(heard: Heard) -> str:
    assert heard.status == 303, heard
    return heard.header("set-cookie").partition("=")[2].partition(";")[0]


def sees(served: Served, secret: str, host: str = "127.0.0.1") -> int:
    with served.wire(host=host) as wire:
        return wire.ask("GET", f"{API}/me", [("Cookie", f"headway={secret}")]).status


def test_a_code_signs_in_once(shared: Served) -> None:
    code = code_for(shared)
    heard = post_code(shared, code)
    assert heard.header("location") == "/" and sees(shared, secret_of(heard)) == 200
    again = post_code(shared, code)
    assert again.status == 403 and "set-cookie" not in again.headers


def test_the_cookie_is_for_this_host_alone_and_out_of_reach_of_scripts(shared: Served) -> None:
    words = post_code(shared, code_for(shared)).header("set-cookie").split("; ")[1:]
    assert {"Path=/", "HttpOnly", "SameSite=Strict"} <= set(words)
    assert not any(each.startswith("Domain") for each in words)


def test_under_https_the_cookie_has_the_prefix_that_browsers_guard(
    serve: Callable[..., Served],
) -> None:
    served = serve(**{"web.origins": ("https://jobs.example.org",)})
    code = code_for(served, "jobs.example.org")
    with served.wire() as wire:
        given = [("Origin", "https://jobs.example.org")]
        asked = wire.request("POST", "/login", given, {"code": code}, hosts=["jobs.example.org"])
        wire.put(asked)
        cookie = wire.hear().header("set-cookie")
    assert cookie.startswith("__Host-headway=") and "; Secure" in cookie


def test_a_code_that_is_late_is_refused(served: Served) -> None:
    code = code_for(served)
    served.clock.pass_by(CODE_LASTS / SECOND - 1)
    other = code_for(served)
    served.clock.pass_by(2)
    assert post_code(served, code).status == 403
    assert post_code(served, other).status == 303


@pytest.mark.parametrize("code", ["", "x", "A" * 22, "é", "A" * 4000, "*", "%"])
def test_a_guessed_code_is_refused(shared: Served, code: str) -> None:
    code_for(shared)
    heard = post_code(shared, code)
    assert heard.status == 403 and "set-cookie" not in heard.headers


def test_a_code_is_of_the_host_that_it_was_made_for(shared: Served) -> None:
    code = code_for(shared, "127.0.0.1")
    assert post_code(shared, code, "localhost").status == 403
    assert post_code(shared, code, shared.name).status == 403
    assert post_code(shared, code).status == 303  # and is not used up by that


def test_two_at_once_do_not_both_sign_in(shared: Served) -> None:
    code = code_for(shared)
    wires = [shared.wire() for _ in range(8)]
    for each in wires:
        given = [("Origin", f"http://{each.host}")]
        each.put(each.request("POST", "/login", given, {"code": code}))
    codes = sorted(each.hear().status for each in wires)
    for each in wires:
        each.close()
    assert codes == [303, *[403] * 7]


def test_a_sign_in_says_where_it_comes_from(shared: Served) -> None:
    """Else a page of others could sign a browser in as somebody of its choice."""
    code = code_for(shared)
    for headers in ([("X", "y")], [("Origin", "http://evil.example")], [("Origin", "null")]):
        assert post_code(shared, code, headers=headers).status == 403
    assert post_code(shared, code, headers=HERE).status == 303


def test_the_page_sends_its_code_as_a_form(shared: Served) -> None:
    body = f"code={code_for(shared)}".encode()
    media = [("Content-Type", "application/x-www-form-urlencoded"), *HERE]
    heard = shared.ask_as(None, "POST", "/login", body, media)
    assert sees(shared, secret_of(heard)) == 200


# -- sessions ----------------------------------------------------------------------------------


def test_a_session_that_was_fixed_before_the_sign_in_is_none(shared: Served) -> None:
    fixed = "A" * 43
    given = [*HERE, ("Cookie", f"headway={fixed}")]
    secret = secret_of(post_code(shared, code_for(shared), headers=given))
    assert secret != fixed
    assert (sees(shared, fixed), sees(shared, secret)) == (401, 200)


def test_a_session_counts_under_the_host_name_of_its_sign_in_alone(shared: Served) -> None:
    """Cookies ignore ports: those of localhost go to every server there."""
    secret = secret_of(post_code(shared, code_for(shared, shared.name), shared.name))
    assert sees(shared, secret, shared.name) == 200
    assert sees(shared, secret) == 401
    assert sees(shared, secret, "localhost") == 401


def test_a_session_ends_when_it_is_idle_and_at_the_latest_after_a_week(served: Served) -> None:
    idle, used = (secret_of(post_code(served, code_for(served))) for _ in range(2))
    half = SESSION_IDLES / SECOND / 2
    served.clock.pass_by(half)
    assert sees(served, used) == 200
    served.clock.pass_by(half)
    assert (sees(served, idle), sees(served, used)) == (401, 200)
    for _ in range(int(SESSION_LASTS / SECOND / half) - 2):
        assert sees(served, used) == 200
        served.clock.pass_by(half)
    assert sees(served, used) == 401


def test_a_stream_is_no_use_of_a_session(served: Served) -> None:
    """A page that nobody looks at opens its stream again, whenever it was lost."""
    secret = secret_of(post_code(served, code_for(served)))
    given = [("Cookie", f"headway={secret}"), ("Accept", "text/event-stream")]
    for _ in range(2):
        assert served.ask_as(None, "HEAD", "events", None, given).status == 200
        served.clock.pass_by(SESSION_IDLES / SECOND / 2)
    assert sees(served, secret) == 401


def test_two_sessions_of_a_role_have_neither_name_nor_mark_in_common(shared: Served) -> None:
    first, second = (secret_of(post_code(shared, code_for(shared))) for _ in range(2))
    assert csrf_value(first) != csrf_value(second)
    for mine, other in ((first, second), (second, first)):
        for path in (f"{API}/me", "/ui/", f"{API}/jobs"):
            heard = shared.ask_as(None, "GET", path, None, [("Cookie", f"headway={mine}")])
            assert heard.status == 200
            assert other.encode() not in heard.body
            assert csrf_value(other).encode() not in heard.body


def test_a_revoked_session_is_out_at_once(served: Served) -> None:
    secret = secret_of(post_code(served, code_for(served)))
    me = served.ask_as(None, "GET", "me", None, [("Cookie", f"headway={secret}")]).json
    served._client.tokens.revoke(me["name"])
    assert sees(served, secret) == 401


# -- tokens ------------------------------------------------------------------------------------


def test_a_token_counts_no_more_from_its_expiry_on(served: Served) -> None:
    token = served._client.tokens.add("short", role="read", lasts=10 * SECOND)
    assert served.ask_as(token, "GET", "me").status == 200
    served.clock.pass_by(11)
    assert served.ask_as(token, "GET", "me").status == 401


def test_a_revocation_by_another_process_holds_at_once(served: Served) -> None:
    token = served._client.tokens.add("gone", role="read")
    assert served.ask_as(token, "GET", "me").status == 200
    served.bench.client.tokens.revoke("gone")  # another reader and writer of the file
    assert served.ask_as(token, "GET", "me").status == 401


def test_revoking_ends_the_streams_of_a_token(served: Served) -> None:
    token = served._client.tokens.add("gone", role="read")
    other = served._client.tokens.add("stays", role="read")
    job = served.submit("true")
    with (
        served.stream("events", token=token) as events,
        served.stream(f"jobs/{job}/logs", token=token) as logs,
        served.stream("events", token=other) as stays,
    ):
        assert next(events.frames).event == next(stays.frames).event == "hello"
        served.bench.client.tokens.revoke("gone")
        assert events.until("bye") and not list(events.frames)
        assert logs.until("bye") and not list(logs.frames)
        served.submit("true", name="later")
        assert stays.until("submitted")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o660])
def test_a_tokens_file_that_others_may_read_or_write_lets_nobody_in(
    served: Served, mode: int
) -> None:
    token = served.token("admin")
    path = os.path.join(served.bench.home.path, "web", "tokens.json")
    os.chmod(path, mode)
    heard = served.ask_as(token, "GET", "me")
    assert heard.status == 503 and b"chmod 0600" in heard.body
    assert token.encode() not in heard.body
    os.chmod(path, 0o600)
    assert served.ask_as(token, "GET", "me").status == 200


# -- tokens that make jobs of templates alone --------------------------------------------------

MAY_WITH_TEMPLATES = {
    ("POST", "/api/v1/jobs"),
    ("POST", "/api/v1/jobs/{job}/cancel"),
    ("POST", "/api/v1/jobs/{job}/retry"),
    ("POST", "/api/v1/runs/{run}/retry"),
    ("POST", "/api/job-runs/{run}/retry"),
    ("POST", "/jobs/{template}/trigger"),
    ("POST", "/jobs/batch/trigger"),
    ("POST", "/jobs/{job}/cancel"),
}


@pytest.fixture(scope="module")
def bound(shared: Served) -> str:
    """A token for the template `hello`."""
    for name in ("hello", "other"):
        made = {"argv": ["echo", "{who}"], "params": {"who": "you"}}
        assert shared.ask("PUT", f"templates/{name}", made).status == 201
    return shared.token("submit", name="bound", templates=("hello",))


@pytest.mark.parametrize(
    "body",
    [{}, {"argv": ["id"]}, {"shell": "id"}, {"template": "other"},
     {"template": "hello", "argv": ["id"]}, {"template": "hello", "shell": "id"},
     {"template": "hello", "env": {"LD_PRELOAD": "x"}}, {"template": "hello", "cwd": "/"},
     {"template": "hello", "priority": 5}, {"template": "hello", "prompt": "x"},
     {"template": "hello", "webhooks": ["https://8.8.8.8/"]},
     {"template": "hello", "name": "x"}, {"template": "hello", "require_approval": False},
     {"template": "hello", "timeout": "1s"}, {"template": "hello", "after": ["job-1"]}],
)  # fmt: skip
def test_a_token_of_a_template_gives_params_and_a_key_alone(
    shared: Served, bound: str, body: dict[str, Any]
) -> None:
    before = shared.bench.client.events.last()
    assert shared.ask_as(bound, "POST", "jobs", body).status == 403
    assert shared.bench.client.events.last() == before


def test_a_token_of_a_template_makes_jobs_of_it(shared: Served, bound: str) -> None:
    heard = shared.ask_as(
        bound, "POST", "jobs", {"template": "hello", "params": {"who": "ada"}, "key": "bound-1"}
    )
    assert heard.status == 201 and heard.json["job"]["params"]["argv"] == ["echo", "ada"]
    job = heard.json["job"]["id"]
    assert shared.ask_as(bound, "POST", f"jobs/{job}/cancel", {}).status == 200
    assert shared.ask_as(bound, "POST", "/jobs/hello/trigger", {}).status == 202
    assert shared.ask_as(bound, "POST", "/jobs/other/trigger", {}).status == 403


def test_a_token_of_a_template_changes_nothing_else_of_its_own_jobs(
    shared: Served, bound: str
) -> None:
    """An edit could replace the command, and so make it a shell."""
    job = shared.ask_as(bound, "POST", "jobs", {"template": "hello"}).json["job"]["id"]
    for body in ({"argv": ["id"]}, {"shell": "id"}, {"env": {"A": "b"}}, {"name": "x"}):
        assert shared.ask_as(bound, "PATCH", f"jobs/{job}", body).status == 403
    assert shared.get(f"jobs/{job}")["job"]["params"]["argv"] == ["echo", "you"]


def test_no_other_change_is_open_to_a_token_of_a_template(shared: Served, bound: str) -> None:
    """Each route that it may use stands here; a new one is refused until somebody decides."""
    job = shared.ask_as(bound, "POST", "jobs", {"template": "hello"}).json["job"]["id"]
    bodies = {
        "/api/v1/graphs": {"jobs": [{"id": "a", "argv": ["id"]}]},
        "/api/v1/jobs/{job}": {"name": "x"},
        "/ui/jobs/{job}/edit": {"name": "x"},
        "/ui/jobs/bulk": {"verb": "cancel", "job": [job]},
    }
    held = shared.post("reservations", {"note": "x"}, role="submit").json["reservation"]["id"]
    words = {"{job}": job, "{reservation}": held, "{workflow}": "x", "{run}": "1"}
    for route in ROUTES:
        of_api = route.path.replace("/ui/", f"{API}/") if route.page else route.path
        known = (route.method, of_api) in MAY_WITH_TEMPLATES
        if route.method == "GET" or route.right.public or known:
            continue
        path = "/".join(words.get(each, each) for each in route.path.split("/"))
        body = None if route.body is None else bodies.get(route.path, {})
        heard = shared.ask_as(bound, route.method, path, body)
        # A run of a workflow can be nobody's, so it may also not be there.
        assert heard.status in ((403, 404) if "workflow-runs" in path else (403,)), (path, heard)


# -- the socket --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving_new_home(tmp_path_factory.mktemp("home"), listen=Listen(unix=True)) as served:
        yield served


def test_the_owner_may_ask_over_the_socket_without_a_token(by_socket: Served) -> None:
    me = by_socket.get("me", role=None)
    assert (me["kind"], me["role"], me["actor"]) == ("person", "operate", "owner")
    path = by_socket.server.place and by_socket.server.place.socket
    assert path is not None and os.stat(path).st_mode & 0o777 == 0o600
    assert (
        by_socket.ask("PUT", "settings/scheduler.max_active", {"value": 1}, role=None).status == 403
    )


@pytest.mark.parametrize(
    "header",
    ["Origin: http://127.0.0.1", "Via: 1.1 proxy", "Cookie: a=b", "Forwarded: for=1.2.3.4",
     "X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: https", "X-Real-IP: 1.2.3.4",
     "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: navigate"],
)  # fmt: skip
def test_behind_a_proxy_the_user_of_the_socket_says_nothing(by_socket: Served, header: str) -> None:
    name, _, value = header.partition(": ")
    assert by_socket.ask_as(None, "GET", "me", None, [(name, value)]).status == 401
    token = by_socket.token("read")
    assert by_socket.ask_as(token, "GET", "me", None, [(name, value)]).status == 200


def test_with_names_for_others_the_socket_needs_a_token(serve: Callable[..., Served]) -> None:
    served = serve(None, Listen(unix=True), **{"web.origins": ("http://jobs.example.org",)})
    assert served.ask("GET", "me", role=None).status == 401
    assert served.ask("GET", "me", role="read").status == 200


def test_over_tcp_a_user_is_nobody(shared: Served) -> None:
    assert shared.ask("GET", "me", role=None).status == 401
