"""A walk over the whole route table: whoever may not ask gets not a byte of data, and changes
nothing (faults G1, G2). A new route is walked as soon as it stands in the table."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from served import Served, bearer, serving_new_home
from wire import Headers, Heard, Wire

from harness import Bench
from headway.admin.tokens import csrf_value
from headway.core.principals import ROLES, Role
from headway.web.handlers.login import AGAIN, HEALTHY, PAGE, SCRIPT
from headway.web.pages.assets import ASSETS
from headway.web.route import Route
from headway.web.routes import ROUTES

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
READS = ("GET", "HEAD")
AT_ONCE = 40  # requests that are sent before the first answer is read
SECRETS_OF_THE_HOME = (b"canary", b"job-1", b"walked")
WORDS = {"job": "job-1", "run": "1", "group": "group-1", "stream": "stdout", "key": "paused"}
WELL_KNOWN = {each.body for each in (HEALTHY, PAGE, SCRIPT, *(each.reply for each in ASSETS))}


class Ask(NamedTuple):
    method: str
    path: str
    headers: Headers = ()
    hosts: Sequence[str] | None = None
    version: str = "1.1"


class Walked(NamedTuple):
    ask: Ask
    heard: Heard


def path_of(route: Route) -> str:
    """A path that leads there, of things that are there where it matters."""
    parts = route.path.split("/")
    return "/".join(WORDS.get(each[1:-1], "walked") if "{" in each else each for each in parts)


PATHS = tuple(dict.fromkeys(map(path_of, ROUTES)))
PUBLIC = {path_of(route) for route in ROUTES if route.right.public}
CLOSED = [each for each in ROUTES if not each.right.public]
OF_ALL_METHODS = ("none", "broken", "revoked", "expired", "of another home")
CHANGES = [each for each in CLOSED if each.method not in READS]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home with a job, a group and a template that nobody may see."""
    with serving_new_home(tmp_path_factory.mktemp("home")) as served:
        served.submit("echo", "canary", name="walked", require_approval=True)
        served.post("groups", {"name": "walked", "open": True})
        served.ask("PUT", "templates/walked", {"argv": ["echo", "canary"]})
        yield served


def walk(served: Served, asked: Iterable[Ask]) -> Iterator[Walked]:
    """All answers, over connections that are kept."""
    waiting: list[Ask] = []
    with served.wire() as wire:

        def ask_all() -> Iterator[Walked]:
            wire.put(b"".join(_bytes(wire, each) for each in waiting))
            for each in waiting:
                yield Walked(each, wire.hear(each.method))
            waiting.clear()

        for each in asked:
            waiting.append(each)
            if len(waiting) == AT_ONCE:
                yield from ask_all()
        yield from ask_all()


def _bytes(wire: Wire, ask: Ask) -> bytes:
    method, path, headers, hosts, version = ask
    return wire.request(method, path, headers, hosts=hosts, version=version)


class Walker:
    """Sees to it that nothing was given away, and that the store is as it was."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.count = 0

    def refuses(self, status: int, asked: Iterable[Ask], *, public: bool = False) -> None:
        """`public`: a path that needs no credential may also answer as it always does."""
        store = self.served.bench.client.context
        before = store.changes()
        for ask, heard in walk(self.served, asked):
            self.count += 1
            if public and ask.path in PUBLIC and heard.status < 400:
                assert heard.status == 200 and ask.method in READS, ask
                assert heard.body in (WELL_KNOWN if ask.method == "GET" else {b""}), ask
            elif public and ask.path in PUBLIC:
                assert heard.status in (400, 403, 405), (ask, heard)
            else:
                assert heard.status == status, (ask, heard)
                _has_no_data(ask, heard)
            assert store.changes() == before, ask


def _has_no_data(ask: Ask, heard: Heard) -> None:
    assert not any(each in heard.body for each in SECRETS_OF_THE_HOME), (ask, heard)
    if ask.method == "HEAD":
        assert heard.body == b""
    else:
        keys = set(heard.json)
        assert keys == {"type", "title", "status", "detail", "instance"}, (ask, heard)
    assert "etag" not in heard.headers and "location" not in heard.headers, (ask, heard)
    assert not any(name.startswith("access-control") for name in heard.headers), (ask, heard)


@pytest.fixture
def walker(home: Served) -> Walker:
    return Walker(home)


# -- who ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def credentials(
    home: Served, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Headers]]:
    """What does not let anybody in."""
    good = home.token("admin")
    revoked = home.token("admin", name="revoked")
    home._client.tokens.revoke("revoked")
    expired = home.token("admin", name="expired", lasts=-1)
    bench = Bench(tmp_path_factory.mktemp("other"))
    others = bench.client.tokens.add("admin-0", role="admin")
    session, _ = sign_in(home)
    yield {
        "none": (),
        "broken": bearer(good[:5] + ("A" if good[5] != "A" else "B") + good[6:]),
        "revoked": bearer(revoked),
        "expired": bearer(expired),
        "of another home": bearer(others),
        "cut": bearer(good[:-1]),
        "longer": bearer(good + "A"),
        "empty": bearer(""),
        "of another scheme": [("Authorization", f"Basic {good}")],
        "without a scheme": [("Authorization", good)],
        "digest": bearer(home._client.tokens.list()[0].digest),
        "a session as a token": bearer(session),
        "a token as a session": [("Cookie", f"headway={good}")],
        "a cookie of another name": [("Cookie", f"__Host-headway={session}; h={session}")],
        "a broken session": [("Cookie", f"headway={session[:-1]}")],
        "a broken token beside a session": [
            *bearer(good[:-1]),
            ("Cookie", f"headway={session}"),
            ("Sec-Fetch-Site", "same-origin"),
            ("X-CSRF-Token", csrf_value(session)),
        ],
    }
    bench.close()


def sign_in(served: Served, role: str = "admin", host: str = "127.0.0.1") -> tuple[str, str]:
    """The secret of a new session, and what its pages send with every change."""
    code = served._client.tokens.login_code(role=role, host=host)
    with served.wire(host=host) as wire:
        heard = wire.ask("POST", "/login", [("Origin", f"http://{wire.host}")], {"code": code})
    assert heard.status == 303, heard
    secret = heard.header("set-cookie").partition("=")[2].partition(";")[0]
    return secret, csrf_value(secret)


def test_without_a_good_credential_nothing_is_given_and_nothing_changes(
    walker: Walker, credentials: dict[str, Headers]
) -> None:  # fault G2
    for name in OF_ALL_METHODS:
        asked = (Ask(method, path, credentials[name]) for path in PATHS for method in METHODS)
        walker.refuses(401, asked, public=True)
    assert walker.count == len(OF_ALL_METHODS) * len(PATHS) * len(METHODS)
    for name, headers in credentials.items():
        if name not in OF_ALL_METHODS:
            walker.refuses(401, (Ask(each.method, path_of(each), headers) for each in CLOSED))


def test_streams_are_closed_as_well(walker: Walker, credentials: dict[str, Headers]) -> None:
    accept = ("Accept", "text/event-stream")
    streams = [path_of(each) for each in ROUTES if each.stream]
    assert len(streams) >= 2
    walker.refuses(
        401,
        (
            Ask("GET", each, [*headers, accept])
            for headers in credentials.values()
            for each in streams
        ),
    )


def test_a_path_that_is_not_there_says_so_only_to_those_who_may_ask(walker: Walker) -> None:
    unknown = (
        "/nothing",
        "/api",
        "/api/v1",
        "/api/v2/jobs",
        "/static/x",
        "/.git",
        "/ui",
        "/ui/x",
        "/docs",
    )
    walker.refuses(401, (Ask(method, path) for path in unknown for method in METHODS))
    given = bearer(walker.served.token("read"))
    walker.refuses(404, (Ask(method, path, given) for path in unknown for method in METHODS))


def test_with_a_good_credential_the_same_requests_go_through(walker: Walker) -> None:
    """Else the walk would prove nothing."""
    given = bearer(walker.served.token("admin"))
    reads = [each for each in CLOSED if each.method == "GET" and not each.stream]
    codes = {
        heard.status
        for _, heard in walk(walker.served, (Ask("GET", path_of(each), given) for each in reads))
    }
    assert codes <= {200, 303, 400, 404, 409}, codes


def test_another_method_of_a_path_says_which_there_are(walker: Walker) -> None:
    given = bearer(walker.served.token("admin"))
    by_path: dict[str, set[str]] = {}
    for each in ROUTES:
        found = by_path.setdefault(path_of(each), set())
        found |= {each.method, *(("HEAD",) if each.method == "GET" else ())}
    asked = [
        Ask(method, path, given)
        for path, there in by_path.items()
        for method in METHODS
        if method not in there and path not in PUBLIC
    ]
    for ask, heard in walk(walker.served, asked):
        assert heard.status == 405, (ask, heard)
        assert set(heard.header("allow").split(", ")) == by_path[ask.path], (ask, heard)


# -- what they may -----------------------------------------------------------------------------


def test_each_lesser_role_is_refused_and_changes_nothing(walker: Walker) -> None:  # fault G2
    served = walker.served
    lesser = [
        (route, bearer(served.token(word)))
        for route in CLOSED
        for word, role in ROLES.items()
        if role < route.right.role
    ]
    walker.refuses(403, (Ask(route.method, path_of(route), given) for route, given in lesser))
    # The least that each role is kept from; a right that was lowered by mistake is missed here.
    assert {each.path for each in CLOSED if each.right.role > Role.READ} == {
        each.path for each in CHANGES
    }


def test_where_a_person_decides_an_agent_is_refused(walker: Walker) -> None:
    decided = [each for each in CLOSED if each.right.person]
    assert {"approve", "reject", "repin"} <= {each.path.split("/")[-1] for each in decided}
    given = bearer(walker.served.token("operate", agent=True))
    walker.refuses(403, (Ask(each.method, path_of(each), given) for each in decided))


# -- from where --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.:{port}", "localhost.:{port}", "{name}.",
     "127.0.0.1.evil.example", "evil.localhost:{port}", "127.0.0.2:{port}", "[::2]:{port}", "0",
     "127.0.0.1:{port}:{port}", "127.0.0.1:x", "127.0.0.1:²", "127.0.0.1@evil.example",
     "127.0.0.1/{port}", "2130706433", "headway-00000000.localhost:{port}",
     "127.0.0.1, evil.example", ""],
)  # fmt: skip
def test_under_another_host_name_nobody_is_answered(walker: Walker, host: str) -> None:
    """DNS rebinding: a page of others has led its own name here (fault G1)."""
    served = walker.served
    said = [host.format(port=served.port, name=served.name)]
    given = bearer(served.token("admin"))
    walker.refuses(421, (Ask(each.method, path_of(each), given, said) for each in ROUTES))


def test_without_a_host_or_with_two_nobody_is_answered(walker: Walker) -> None:
    """HTTP/1.1 asks for one: the parser itself refuses others, and closes."""
    served = walker.served
    good = f"127.0.0.1:{served.port}"
    given = bearer(served.token("admin"))
    for path in PATHS:
        for hosts in ([], [good, good], [good, "evil.example"], ["evil.example", good]):
            with served.wire() as wire:
                wire.put(wire.request("GET", path, given, hosts=hosts))
                heard = wire.hear()
            assert heard.status == 400
            _has_no_data(Ask("GET", path), heard)
    walker.refuses(421, (Ask("GET", path, given, [], "1.0") for path in PATHS[:1]))


@pytest.mark.parametrize(
    "headers",
    [
        *([("Origin", each)] for each in (
            "http://evil.example", "null", "", "http://127.0.0.1", "http://127.0.0.1:1",
            "http://localhost:{port}", "http://{name}:{port}", "https://127.0.0.1:{port}",
            "http://127.0.0.1:{port}.evil.example", "http://127.0.0.1:{port}/",
            "http://evil@127.0.0.1:{port}", "http://headway-0.localhost:{port}", "127.0.0.1:{port}",
            "http://127.0.0.1:{port}, http://evil.example",
        )),
        *([("Sec-Fetch-Site", each)] for each in (
            "cross-site", "same-site", "", "Same-Origin", "x",
        )),
        [("Origin", "http://127.0.0.1:{port}"), ("Sec-Fetch-Site", "cross-site")],
        [("Origin", "http://evil.example"), ("Sec-Fetch-Site", "same-origin")],
    ],
    ids=str,
)  # fmt: skip
def test_pages_of_others_are_refused_whatever_they_send(
    walker: Walker, headers: Headers
) -> None:  # fault G1
    served = walker.served
    said = [(name, text.format(port=served.port, name=served.name)) for name, text in headers]
    given = [*bearer(served.token("admin")), *said]
    asked = (Ask(each.method, path_of(each), given) for each in ROUTES if each.path != "/healthz")
    walker.refuses(403, asked)


def test_a_link_of_another_site_leads_to_no_data_and_changes_nothing(walker: Walker) -> None:
    served = walker.served
    followed = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")]
    given = [*bearer(served.token("admin")), *followed]
    before = served.bench.client.context.changes()
    asked = (Ask(method, path, given) for path in PATHS for method in METHODS)
    for ask, heard in walk(served, asked):
        if ask.path == "/healthz" and ask.method in READS:
            assert heard.status == 200, ask
        elif ask.method == "GET":
            assert (heard.status, heard.body) == (200, AGAIN.body), ask
        else:
            assert heard.status == 403, (ask, heard)
            _has_no_data(ask, heard)
        assert served.bench.client.context.changes() == before, ask


# -- browsers ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sessions(home: Served) -> tuple[tuple[str, str], tuple[str, str]]:
    return sign_in(home), sign_in(home)


def test_a_session_changes_nothing_without_its_own_mark(
    walker: Walker, sessions: tuple[tuple[str, str], tuple[str, str]]
) -> None:
    (secret, mark), (_, others) = sessions
    cookie, here = ("Cookie", f"headway={secret}"), ("Sec-Fetch-Site", "same-origin")
    marks = [[], *([("X-CSRF-Token", each)] for each in (others, mark[:-1], mark.upper(), "", "é"))]
    asked = (
        Ask(each.method, path_of(each), [cookie, here, *shown])
        for each in CHANGES
        for shown in marks
    )
    walker.refuses(403, asked)


def test_a_session_says_where_a_change_comes_from(
    walker: Walker, sessions: tuple[tuple[str, str], tuple[str, str]]
) -> None:
    (secret, mark), _ = sessions
    given = [("Cookie", f"headway={secret}"), ("X-CSRF-Token", mark)]
    walker.refuses(403, (Ask(each.method, path_of(each), given) for each in CHANGES))


def test_with_its_mark_a_session_may_do_what_its_role_may(
    home: Served, sessions: tuple[tuple[str, str], tuple[str, str]]
) -> None:
    (secret, mark), _ = sessions
    given = [("Cookie", f"headway={secret}"), ("X-CSRF-Token", mark), ("Sec-Fetch-Site", "none")]
    heard = home.ask_as(None, "POST", "jobs", {"argv": ["true"]}, given)
    assert heard.status == 201 and heard.json["job"]["submitted_by"] == "owner"


# -- the table ---------------------------------------------------------------------------------


def test_a_route_without_a_right_cannot_be_written() -> None:
    given: dict[str, Any] = dict(ROUTES[0]._asdict())
    del given["right"]
    with pytest.raises(TypeError, match="right"):
        Route(**given)


def test_public_are_these_and_no_others() -> None:
    public = {(each.method, each.path) for each in ROUTES if each.right.public}
    assert public == {
        *(("GET", each) for each in ("/healthz", "/login", "/login.js")),
        *(("GET", each.path) for each in ASSETS),
        ("POST", "/login"),
    }
