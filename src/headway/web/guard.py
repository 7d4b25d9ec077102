"""The outermost layer: before any route is known, it decides who asks and whether to answer at all.

Its rules stand in the order in which they are applied. Each refuses by raising `HttpProblem`; what
passes has a principal. docs/security.md says what each rule is for.
"""

import hmac
from collections.abc import Collection, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from headway.admin.tokens import SESSION, TOKEN, TokenEntry, TokenFile, csrf_value
from headway.core.principals import PERSON, Principal, Role
from headway.web.problems import ForbiddenError, HttpProblem

LOCAL_NAMES = frozenset({"127.0.0.1", "[::1]", "localhost"})
SAME = frozenset({"same-origin", "none"})
OF_A_PROXY = ("origin", "cookie", "via", "forwarded", "x-forwarded-for", "x-real-ip")
READS = frozenset({"GET", "HEAD"})
COOKIE, SECURE_COOKIE = "headway", "__Host-headway"
MOST_COOKIES = 64
SINGLE = ("idempotency-key", "if-match", "last-event-id", "prefer", "range")
LARGEST_HEAD = 16 << 10
CLOSE = {"Connection": "close"}


class Visitor(NamedTuple):
    """What is known of a request before its body is read."""

    method: str
    path: str  # as it was sent
    headers: Sequence[tuple[str, str]]
    query: str = ""
    on_socket: bool = False  # it came over the unix socket
    peer_uid: int | None = None

    def values(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each == name]

    def value(self, name: str) -> str | None:
        """The one value of a header; twice is refused, because two readers could take two."""
        found = self.values(name)
        if len(found) > 1:
            raise HttpProblem(400, "bad-request", f"{name} is given twice")
        return found[0] if found else None

    @property
    def here(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def wants_page(self) -> bool:
        """A browser that goes to one of our pages."""
        of_pages = self.path in ("/", "/login") or self.path.startswith("/ui/")
        return of_pages and any("text/html" in each for each in self.values("accept"))

    @property
    def comes_by_link(self) -> bool:
        """A link of another site led here, so the browser has kept its cookie back."""
        modes, sites = self.values("sec-fetch-mode"), self.values("sec-fetch-site")
        return (
            self.method == "GET"
            and modes == ["navigate"]
            and sites in (["cross-site"], ["same-site"])
        )


class Admitted(NamedTuple):
    """One who may go on. `csrf` is what a change must carry, if a cookie brought it."""

    principal: Principal | None  # None: a public path
    host: str  # as it was sent
    secure: bool
    digest: str | None = None  # of the secret that was shown
    csrf: str | None = None


class LinkFollowed(Exception):  # noqa: N818
    """Somebody follows a link of another site, so the browser has kept the cookie back. An empty
    page that asks for itself once more is of here, and gets it."""


class Guard:
    def __init__(
        self,
        tokens: TokenFile,
        *,
        name: str,
        origins: Sequence[str] = (),
        public: Collection[str],
        owner: int,
        owner_name: str,
        socket_role: str = "operate",
    ) -> None:
        """`name` is the host name of the home, `owner` the user of this process; `public` are paths
        that need no credential."""
        self._tokens = tokens
        self._name = name
        self._names = LOCAL_NAMES | {name}
        self._origins = {urlsplit(each).netloc.lower(): each for each in origins}
        self._public = frozenset(public)
        self._owner = owner
        self._owner_name = owner_name
        self._socket_role = socket_role

    def admit(self, visitor: Visitor, now: int) -> Admitted:
        self._refuse_unclear(visitor)
        host = self._host(visitor)
        secure = self._origins.get(host, "").startswith("https://")
        if visitor.path == "/healthz" and visitor.method in READS:
            return Admitted(None, host, secure)
        self._refuse_other_origin(visitor, host)
        if visitor.path in self._public:
            self._refuse_unmarked(visitor)
            return Admitted(None, host, secure)
        admitted = self._who(visitor, host, secure, now)
        if admitted.csrf is not None:
            self._refuse_unmarked(visitor)
        return admitted

    def own_address(self, visitor: Visitor) -> str | None:
        """Where the same page is under the name of this home, if it was asked for by an address."""
        hosts = visitor.values("host")
        host = hosts[0].lower() if len(hosts) == 1 else ""
        name = host_name(host)
        port = host.removeprefix(name)
        if name not in LOCAL_NAMES or not port[1:].isdecimal():
            return None
        return f"http://{self._name}{port}{visitor.here}"

    # 0. The parser bounds a head only while it is not whole, and takes the second of two lengths; a
    # proxy may take the first, and then see one request where there are two.
    def _refuse_unclear(self, visitor: Visitor) -> None:
        lines = (len(name) + len(value) + 4 for name, value in visitor.headers)
        if len(visitor.path) + len(visitor.query) + sum(lines) > LARGEST_HEAD:
            raise HttpProblem(
                431, "head-too-large", f"a head has at most {LARGEST_HEAD} bytes", headers=CLOSE
            )
        if visitor.values("content-length") and visitor.values("transfer-encoding"):
            raise HttpProblem(400, "bad-request", "a body has one length", headers=CLOSE)
        for name in SINGLE:
            visitor.value(name)

    # 1. DNS rebinding: another name may lead here, too.
    def _host(self, visitor: Visitor) -> str:
        found = visitor.values("host")
        host = found[0].lower() if len(found) == 1 else ""
        name = host_name(host)
        port = host.removeprefix(name).removeprefix(":")
        known = name in self._names and (not port or port.isdecimal())
        if not known and host not in self._origins:
            raise HttpProblem(
                421,
                "wrong-host",
                "this server is not known by that name; web.origins has those that it is known by",
            )
        return host

    # 3. Pages of others must not act here, nor read.
    def _refuse_other_origin(self, visitor: Visitor, host: str) -> None:
        origin = visitor.value("origin")
        if origin is not None and origin != self._origins.get(host, f"http://{host}"):
            raise ForbiddenError("a page of another origin may not ask here")
        site = visitor.value("sec-fetch-site")
        if site is None or site in SAME:
            return
        if visitor.method == "GET" and visitor.value("sec-fetch-mode") == "navigate":
            raise LinkFollowed
        raise ForbiddenError("a page of another site may not ask here")

    # 4. Who it is.
    def _who(self, visitor: Visitor, host: str, secure: bool, now: int) -> Admitted:
        if any(
            part.split("=")[0] in ("token", "access_token") for part in visitor.query.split("&")
        ):
            raise HttpProblem(
                400, "bad-request", "a token in a URL stands in logs; send Authorization: Bearer"
            )
        said = visitor.value("authorization")
        if said is not None:
            scheme, _, secret = said.partition(" ")
            entry = self._tokens.find(secret.strip(), TOKEN, now)
            if scheme.lower() != "bearer" or entry is None:
                raise unauthorized(
                    "this token does not count: it is unknown, revoked or expired; "
                    "`headway tokens list` has those that count"
                )
            return Admitted(entry.principal(), host, secure, entry.digest)
        entry, secret = self._session(visitor, host, secure, now)
        if entry is not None:
            return Admitted(entry.principal(), host, secure, entry.digest, csrf_value(secret))
        if self._is_owner(visitor):
            role = Role[self._socket_role.upper()]
            return Admitted(Principal("socket", self._owner_name, PERSON, role), host, secure)
        raise unauthorized()

    def _session(
        self, visitor: Visitor, host: str, secure: bool, now: int
    ) -> tuple[TokenEntry | None, str]:
        """The session of the cookie, if it was begun under this host name."""
        wanted = SECURE_COOKIE if secure else COOKIE
        for secret in cookies(visitor.values("cookie"), wanted):
            entry = self._tokens.find(secret, SESSION, now)
            if entry is not None and entry.host == host_name(host):
                return entry, secret
        return None, ""

    def _is_owner(self, visitor: Visitor) -> bool:
        """Whether a process of this user is at the other end of the socket, and not a proxy: the
        user of a proxy says nothing about who is behind it."""
        if not visitor.on_socket or visitor.peer_uid != self._owner or self._origins:
            return False
        named = {name for name, _ in visitor.headers}
        return not any(name in named for name in OF_A_PROXY) and not any(
            name.startswith(("sec-fetch-", "x-forwarded-")) for name in named
        )

    # 5. A browser sends its cookie unasked; so a change must come from a page of ours.
    def _refuse_unmarked(self, visitor: Visitor) -> None:
        if visitor.method in READS:
            return
        if visitor.value("origin") is None and visitor.value("sec-fetch-site") is None:
            raise ForbiddenError("a browser says where a change comes from, and this one did not")


def refuse_forged(admitted: Admitted, shown: str | None) -> None:
    """Refuse a change by cookie without the value that only our own pages know."""
    if admitted.csrf is None:
        return
    if shown is None or not hmac.compare_digest(admitted.csrf.encode(), shown.encode()):
        raise ForbiddenError("the form is not of this session; load the page again")


def unauthorized(
    detail: str = "say who you are: Authorization: Bearer TOKEN; `headway tokens add` makes one",
) -> HttpProblem:
    return HttpProblem(
        401,
        "unauthorized",
        detail,
        headers={"WWW-Authenticate": "Bearer"},
    )


def host_name(host: str) -> str:
    """The name without the port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def cookies(headers: Sequence[str], wanted: str) -> list[str]:
    """The values of one cookie, in the order sent."""
    parts = [part.strip() for header in headers for part in header.split(";")][:MOST_COOKIES]
    pairs = (part.partition("=") for part in parts)
    return [value for name, _, value in pairs if name == wanted]
