"""Answer one request: guard, route, body, verb, answer. This is the ASGI application.

Before it is known who asks, only the guard runs. A body is read only from a caller who may send
one. Every answer has the same security headers and its own id.
"""

import asyncio
import gzip
import json
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl

from headway.base.clock import Clock
from headway.base.errors import HeadwayError
from headway.base.verb_threads import VerbThreads
from headway.client import Client
from headway.core.principals import Principal
from headway.web.bodies import form_fields, read_form, read_json
from headway.web.calls import NOBODY, Answer, Later, Live, Reply, Scrape, Stream, WebCall
from headway.web.guard import (
    Admitted,
    Guard,
    LinkFollowed,
    Visitor,
    refuse_forged,
    unauthorized,
)
from headway.web.handlers.login import AGAIN
from headway.web.metrics import MEDIA, Metrics
from headway.web.pages.page import problem_page
from headway.web.pages.regions import RegionCache, RegionKey
from headway.web.peers import Peer
from headway.web.problems import (
    HttpProblem,
    ProblemAnswer,
    new_request_id,
    problem_of,
)
from headway.web.route import LARGEST, Route
from headway.web.route_tree import Found, RouteTree
from headway.web.routes import NEW_ROUTES, ROUTES
from headway.web.shapes import read_query
from headway.web.streams import frame
from headway.web.tail import EventTail

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

log = logging.getLogger("headway.web")

MOST_AT_ONCE = 32  # requests of one principal
MOST_STREAMS, ALL_STREAMS = 20, 600
WORTH_PACKING = 1024
SEND_JSON = "the body is JSON, so say so: Content-Type: application/json"
LARGE_WAITS = 5.0  # seconds for which one body above 1 MiB waits for another
LONG = 64 << 10  # bytes of a body that are neither read nor packed in the event loop
CATCHES_UP_WITHIN = 5.0  # seconds, before metrics
BYE = frame("bye", {})
LOOK_EVERY = 1.0  # seconds; a wake-up that was missed costs no more than this

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types headway"
)
ON_ALL_ANSWERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with none at all, the `Origin` of our own forms is `null`
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Application:
    """`acting` makes a client for a principal from one of this process."""

    def __init__(
        self,
        guard: Guard,
        threads: VerbThreads[Client],
        tail: EventTail,
        clock: Clock,
        *,
        acting: Callable[[Client, Principal, int | None], Client],
        used: Callable[[str, int], None],
        metrics: Metrics,
        legacy: bool,
    ) -> None:
        self._guard = guard
        self._threads = threads
        self._tail = tail
        self.clock = clock
        self._acting = acting
        self._used = used
        self._metrics = metrics
        self._tree = RouteTree(ROUTES if legacy else NEW_ROUTES)
        self._regions = RegionCache()
        self._changes = 0  # that were made here; the tail tells of them only later
        self._large = asyncio.Lock()
        self._at_once: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Exchange(self, scope, receive, send).answer()

    async def look_up(self, exchange: "Exchange") -> Reply | Stream:
        """All that is done before the first byte of an answer is known."""
        visitor = exchange.visitor
        try:
            admitted = self._guard.admit(visitor, self.clock.now())
        except LinkFollowed:
            return AGAIN
        exchange.admitted = admitted
        found = self._find(visitor)
        exchange.route = found.route
        if admitted.principal is not None:
            found.route.right.require(admitted.principal)
            # A page that nobody looks at opens its stream again and again.
            is_use = not (found.route.stream and admitted.principal.session)
            if admitted.digest is not None and is_use:
                self._used(admitted.digest, self.clock.now())
        elif not found.route.right.public:
            raise unauthorized()
        changes = visitor.method not in ("GET", "HEAD")
        if changes and not found.route.form:
            refuse_forged(admitted, visitor.value("x-csrf-token"))
        with self._one_more(admitted.principal):
            body = await exchange.read_body(found.route, admitted)
            query = read_query(_words(visitor.query), found.route.query)
            return await self._perform(exchange, admitted, found, query, body)

    @contextmanager
    def _one_more(self, principal: Principal | None) -> Iterator[None]:
        """A request of this principal, from before its body is read: that is kept in memory."""
        if principal is None:
            yield
            return
        if self._at_once[principal.name] >= MOST_AT_ONCE:
            raise too_many("requests at once")
        self._at_once[principal.name] += 1
        try:
            yield
        finally:
            self._at_once[principal.name] -= 1

    @asynccontextmanager
    async def a_large_body(self) -> AsyncGenerator[None, None]:
        """One at a time, because a large body takes memory. A request that would wait for long is
        refused at once, before the time for a whole request is over."""
        try:
            await asyncio.wait_for(self._large.acquire(), LARGE_WAITS)
        except TimeoutError:
            raise HttpProblem(
                503,
                "too-busy",
                "another large body is being read; send it again",
                headers={"Retry-After": "5"},
            ) from None
        try:
            yield
        finally:
            self._large.release()

    def _find(self, visitor: Visitor) -> Found:
        methods = self._tree.methods(visitor.path) if visitor.path.startswith("/") else {}
        if not methods:
            raise HttpProblem(404, "not-found", f"there is no {visitor.path[:200]}")
        wanted = "GET" if visitor.method == "HEAD" else visitor.method
        if wanted not in methods:
            allowed = sorted({*methods, *({"HEAD"} if "GET" in methods else set())})
            raise HttpProblem(
                405,
                "method-not-allowed",
                f"that takes {', '.join(allowed)}",
                headers={"Allow": ", ".join(allowed)},
            )
        return methods[wanted]

    async def _perform(
        self,
        exchange: "Exchange",
        admitted: Admitted,
        found: Found,
        query: Mapping[str, Any],
        body: Any,
    ) -> Reply | Stream:
        route = found.route
        principal = admitted.principal or NOBODY
        if route.fixed is not None:
            return route.fixed

        def act(client: Client) -> Answer:
            return self._act(client, exchange, admitted, found, query, body)

        if "region" in query:
            position = self._tail.position + self._changes
            key = RegionKey.of(exchange.visitor.path, query, principal, position)
            kept = self._regions.find(key, self.clock.monotonic())
            if kept is not None:
                return kept
            answer = await self._threads.run(act)
            if isinstance(answer, Reply):
                self._regions.keep(key, self.clock.monotonic(), answer)
        else:
            try:
                answer = await self._threads.run(act)
            finally:
                if route.method != "GET":
                    self._changes += 1
        if isinstance(answer, Later):
            return await self._wait(answer, principal, exchange)
        return await self._scraped() if isinstance(answer, Scrape) else answer

    def _act(
        self,
        client: Client,
        exchange: "Exchange",
        admitted: Admitted,
        found: Found,
        query: Mapping[str, Any],
        body: Any,
    ) -> Answer:
        """What the handler answers. In a thread of the verbs."""
        route, principal = found.route, admitted.principal or NOBODY
        pid = exchange.peer.pid() if route.right.person else None
        acting = self._acting(client, principal, pid)
        call = WebCall(
            acting,
            principal,
            found.words,
            query,
            body,
            dict(exchange.visitor.headers),
            self.clock.now(),
            admitted.host,
            admitted.secure,
            self._tail.age,
            exchange.visitor.here,
            admitted.csrf,
        )
        answer = route.handler(call)
        if not isinstance(answer, Reply):
            return answer
        return (answer if route.method == "GET" else _with_worker(answer, acting)).rendered()

    async def _scraped(self) -> Reply:
        """With what was counted here, which the tail brings up to date first. If it has too much to
        read for that, what it has read so far is said: counters only grow."""
        self._tail.keep_up = True
        with self._tail.listening(), suppress(HeadwayError):
            await self._tail.caught_up(CATCHES_UP_WITHIN)
        now = self.clock.monotonic()
        gauges = await self._threads.run(lambda client: self._metrics.gauges(client, now))
        await self._threads.run(self._metrics.count_deliveries)
        return Reply(body=(gauges + self._metrics.text()).encode(), media=MEDIA)

    async def _wait(self, later: Later, principal: Principal, exchange: "Exchange") -> Reply:
        """Ask again after each commit, without a thread in between, until the time is over or the
        server has to end. A client that has left gives up its place among those who wait."""
        give_up_at = self.clock.monotonic() + later.seconds
        with self._tail.listening() as news, exchange.watching() as gone:
            while not news.ended and (left := give_up_at - self.clock.monotonic()) > 0:
                if gone.done():
                    raise ClientGone
                found = await self._threads.run(
                    lambda client: later.look(self._acting(client, principal, None))
                )
                if found is not None:
                    return found
                await news.wait(min(left, LOOK_EVERY))
        return later.otherwise

    def live(self, principal: Principal) -> Live:
        async def ask(act: Callable[[Client], Any]) -> Any:
            return await self._threads.run(
                lambda client: act(self._acting(client, principal, None))
            )

        return Live(self._tail, ask)

    def enter_stream(self, principal: Principal) -> None:
        if self._streams[principal.name] >= MOST_STREAMS:
            raise too_many("streams")
        if self._streams.total() >= ALL_STREAMS:
            raise HttpProblem(
                503,
                "too-many-streams",
                "the server has no stream left",
                headers={"Retry-After": "5"},
            )
        self._streams[principal.name] += 1

    def leave_stream(self, principal: Principal) -> None:
        self._streams[principal.name] -= 1

    def still_admitted(self, visitor: Visitor) -> bool:
        """Whether the one behind a stream still may ask; asked now and then."""
        try:
            self._guard.admit(visitor, self.clock.now())
        except HttpProblem:
            return False
        return True

    def own_address(self, visitor: Visitor) -> str | None:
        """The same page under the name of this home, where its cookies are; None if it is that."""
        return self._guard.own_address(visitor)

    def observe(self, exchange: "Exchange", status: int, seconds: float) -> None:
        route = exchange.route.path if exchange.route else "none"
        self._metrics.requested(route, exchange.visitor.method, status, seconds)


class Exchange:
    """One request and its answer."""

    def __init__(
        self, application: Application, scope: Scope, receive: Receive, send: Send
    ) -> None:
        self._application = application
        self._receive = receive
        self._send = send
        self._clock = application.clock
        self.id = new_request_id()
        self.peer = Peer.of(scope)
        self.visitor = _visitor(scope, self.peer)
        self.admitted: Admitted | None = None
        self.route: Route | None = None
        self._began = self._clock.monotonic()
        self._status = 0

    async def answer(self) -> None:
        try:
            try:
                answer = await self._application.look_up(self)
                if isinstance(answer, Stream):
                    await self._send_stream(answer)
                else:
                    await self._send_reply(answer)
            except ClientGone:
                raise
            except Exception as error:
                if self._status:  # a stream that had begun
                    log.exception("request %s", self.id)
                    return
                found = problem_of(error, self.id)
                if found.status >= 500 and found.document["title"] == "unexpected":
                    log.exception("request %s", self.id)
                await self._send_problem(found)
        except ClientGone:
            pass
        finally:
            seconds = self._clock.monotonic() - self._began
            self._application.observe(self, self._status, seconds)
            self._write_log(seconds)

    # -- the body ------------------------------------------------------------------------------

    async def read_body(self, route: Route, admitted: Admitted) -> Any:
        """The body, read and checked; a route without a body takes none. A form carries the mark of
        its session in its body, so the mark is checked here, before the fields."""
        length = self.visitor.value("content-length")
        if length is not None and length.isdigit() and int(length) > route.largest:
            raise _too_large(route.largest)
        read = bytearray()
        async with AsyncExitStack() as stack:
            pieces = await stack.enter_async_context(aclosing(self._pieces()))
            async for piece in pieces:
                if len(read) <= LARGEST < len(read) + len(piece) <= route.largest:
                    await stack.enter_async_context(self._application.a_large_body())
                read += piece
                if len(read) > route.largest:
                    raise _too_large(route.largest)
            return await self._checked_body(route, bytes(read), admitted)

    async def _checked_body(self, route: Route, content: bytes, admitted: Admitted) -> Any:
        if route.body is None:
            if content:
                raise HttpProblem(400, "bad-request", "this takes no body")
            return None
        media = (self.visitor.value("content-type") or "").partition(";")[0].strip().lower()
        if route.form:
            given = form_fields(content) if media == "application/x-www-form-urlencoded" else []
            shown = self.visitor.value("x-csrf-token") or dict(given).get("csrf")
            refuse_forged(admitted, shown)
            if given:
                return read_form(given, route.body)
        if content and media != "application/json":
            raise HttpProblem(415, "unsupported-media", SEND_JSON)
        if len(content) > LONG:
            return await asyncio.to_thread(read_json, content, route.body)
        return read_json(content, route.body)

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            yield message.get("body", b"")
            if not message.get("more_body"):
                return

    # -- the answer ----------------------------------------------------------------------------

    async def _send_problem(self, found: ProblemAnswer) -> None:
        """As a page for a browser, as a document for all others."""
        if self.visitor.wants_page:
            there = self._application.own_address(self.visitor)
            signed_in = self.admitted is not None and self.admitted.principal is not None
            await self._send_reply(problem_page(found, signed_in=signed_in, there=there))
            return
        body = json.dumps(found.document, ensure_ascii=False).encode()
        await self._send_reply(
            Reply(found.status, None, found.headers, body, "application/problem+json")
        )

    async def _send_reply(self, reply: Reply) -> None:
        content = reply.content()
        headers = {**ON_ALL_ANSWERS, **_lower(reply.headers)}
        if content or reply.status not in (204, 304):
            headers["content-type"] = reply.media
        if len(content) > WORTH_PACKING and self._takes_gzip(reply):
            content = await _packed(content)
            headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
        headers["content-length"] = str(len(content))
        if self.visitor.method == "HEAD":
            content = b""
        await self._begin(reply.status, headers)
        await self._put(content, more=False)

    def _takes_gzip(self, reply: Reply) -> bool:
        said = self.visitor.values("accept-encoding")
        return bool(said) and "gzip" in said[0] and "content-range" not in _lower(reply.headers)

    async def _send_stream(self, stream: Stream) -> None:
        principal = (self.admitted and self.admitted.principal) or NOBODY
        self._application.enter_stream(principal)
        try:
            headers = {**ON_ALL_ANSWERS, "content-type": "text/event-stream; charset=utf-8"}
            await self._begin(200, headers)
            if self.visitor.method == "HEAD":
                await self._put(b"", more=False)
                return
            with self.watching() as gone:
                async with aclosing(stream.make(self._application.live(principal))) as pieces:
                    try:
                        await self._pump(pieces, gone)
                    except HeadwayError as error:  # the store may be there again in a moment
                        log.warning("request %s: %s", self.id, error)
                        await self._put(BYE, more=True)
            await self._put(b"", more=False)
        finally:
            self._application.leave_stream(principal)

    async def _pump(self, pieces: Any, gone: "asyncio.Future[None]") -> None:
        """Send what comes until it ends, the client leaves, or it may ask no more."""
        look_at = self._clock.monotonic() + LOOK_EVERY
        coming: asyncio.Future[bytes] | None = None
        try:
            while True:
                coming = coming or asyncio.ensure_future(anext(pieces))
                await asyncio.wait(
                    {coming, gone}, timeout=LOOK_EVERY, return_when=asyncio.FIRST_COMPLETED
                )
                if gone.done():
                    raise ClientGone
                if self._clock.monotonic() >= look_at:
                    look_at = self._clock.monotonic() + LOOK_EVERY
                    if not self._application.still_admitted(self.visitor):
                        await self._put(BYE, more=True)
                        return
                if coming.done():
                    piece, coming = coming, None
                    try:
                        await self._put(piece.result(), more=True)
                    except StopAsyncIteration:
                        return
        finally:
            if coming is not None:
                coming.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await coming

    @contextmanager
    def watching(self) -> Iterator["asyncio.Future[None]"]:
        """Something that is done as soon as the client has left."""
        gone = asyncio.ensure_future(self._until_gone())
        try:
            yield gone
        finally:
            gone.cancel()

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        sent = {**headers, "x-request-id": self.id}
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
        self._status = status
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def _put(self, body: bytes, *, more: bool) -> None:
        """Waits until what was put before is read; `protocol` bounds that."""
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    def _write_log(self, seconds: float) -> None:
        principal = self.admitted.principal if self.admitted else None
        log.info(
            json.dumps(
                {
                    "id": self.id,
                    "method": self.visitor.method,
                    "route": self.route.path if self.route else None,
                    "code": self._status,
                    "ms": round(seconds * 1000, 1),
                    "principal": principal.name if principal else None,
                }
            ),
            extra={"of_nobody": principal is None},
        )


class ClientGone(Exception):  # noqa: N818
    """The other end has left; nobody reads an answer."""


def _visitor(scope: Scope, peer: Peer) -> Visitor:
    return Visitor(
        scope["method"],
        scope["raw_path"].decode("ascii", "replace"),
        [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]],
        scope["query_string"].decode("ascii", "replace"),
        peer.on_socket,
        peer.uid(),
    )


def _words(query: str) -> list[tuple[str, str]]:
    if not query:
        return []
    try:
        return parse_qsl(
            query, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=64
        )
    except ValueError:  # broken UTF-8 is one
        raise HttpProblem(400, "bad-request", "the words after the ? are not NAME=VALUE") from None


def _with_worker(reply: Reply, client: Client) -> Reply:
    """Say so if nobody is there to run what was asked for."""
    if client.context.worker_is_there():
        return reply
    return reply._replace(headers={**reply.headers, "Headway-Worker": "none"})


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


async def _packed(content: bytes) -> bytes:
    if len(content) <= LONG:
        return gzip.compress(content, 3, mtime=0)
    return await asyncio.to_thread(gzip.compress, content, 3, mtime=0)


def _too_large(most: int) -> HttpProblem:
    return HttpProblem(413, "too-large", f"a body has at most {most} bytes here")


def too_many(what: str) -> HttpProblem:
    return HttpProblem(
        429, "too-many", f"you have too many {what}; wait for others", headers={"Retry-After": "1"}
    )
