"""A request that passed the guard, and what a handler answers.

A handler is a plain function of a `WebCall`: it runs in a thread, calls verbs of the client and
gives a `Reply`. A handler that must wait for others gives `Later`; one whose answer goes on gives
`Stream`. Both wait without a thread.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headway.client import Client
from headway.core.model import JobId
from headway.core.principals import PERSON, Principal, Role
from headway.web.problems import ForbiddenError, HttpProblem
from headway.web.tail import EventTail

LONGEST_WAIT = 60.0
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
NO_HEADERS: Mapping[str, str] = {}


class WebCall(NamedTuple):
    """`client` acts for the principal; of a public route, for nobody."""

    client: Client
    principal: Principal
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any
    headers: Mapping[str, str]
    now: int
    host: str = ""  # as it was sent
    secure: bool = False
    tail_age: float | None = None  # for how many seconds the reader of events has not looked
    here: str = ""  # the path and the query, as they were sent
    csrf: str | None = None  # what a change by the caller's cookie must carry

    def header(self, name: str) -> str | None:
        return self.headers.get(name)

    @property
    def revision(self) -> str | None:
        """What the caller saw, from `If-Match: "..."`; None where it does not say."""
        said = self.headers.get("if-match")
        if said is None or said.strip() == "*":
            return None
        return said.strip().removeprefix("W/").strip('"')

    def required_revision(self) -> str:
        """The same where a change of what was not seen would do harm."""
        seen = self.revision
        if seen is None:
            raise HttpProblem(
                428,
                "revision-missing",
                'say what you decide about: If-Match: "REVISION", from the ETag of the last GET',
            )
        return seen

    @property
    def key(self) -> str | None:
        """Headway's key of a request: the same one twice makes one job."""
        return self.headers.get("idempotency-key")

    def seconds_to_wait(self) -> float:
        """From `Prefer: wait=N`."""
        for word in self.headers.get("prefer", "").split(","):
            name, _, value = word.strip().partition("=")
            if name.lower() == "wait" and value.strip().isdecimal():
                return min(LONGEST_WAIT, float(value))
        return 0.0

    def refuse_bound_to_templates(self) -> None:
        """For what a token that is bound to templates may not do, also with what is its own: it
        gives no command, by no way."""
        if self.principal.templates:
            raise ForbiddenError(
                f"this token makes jobs of {', '.join(self.principal.templates)} alone"
            )

    def own(self, job_ids: Sequence[JobId], verb: str) -> None:
        """Refuse what a token that may only submit does to jobs of others."""
        for job_id in job_ids:
            job = self.client.jobs.get(job_id)
            if not self.principal.may_change(job.submitted_by):
                raise ForbiddenError(
                    f"{self.principal.name} may {verb} only jobs that it submitted; "
                    f"job-{job.id} is of {job.submitted_by or 'nobody'}"
                )


class Reply(NamedTuple):
    """An answer that is known. A document becomes JSON; `body` is sent as it is."""

    status: int = 200
    document: Any = None
    headers: Mapping[str, str] = NO_HEADERS
    body: bytes | None = None
    media: str = "application/json"

    def content(self) -> bytes:
        if self.body is not None:
            return self.body
        return b"" if self.document is None else "".join(_encoded(self.document)).encode()

    def rendered(self) -> "Reply":
        """The same with its bytes. For the thread of the verb: a long list takes a while."""
        return self._replace(body=self.content(), document=None)


def _encoded(document: Any) -> Iterator[str]:
    """As JSON. Lists within are encoded entry by entry: while one call encodes all of a long one,
    no other thread runs."""
    if not isinstance(document, dict):
        yield _JSON.encode(document)
        return
    before = "{"
    for key, value in document.items():
        yield f"{before}{_JSON.encode(key)}:"
        before = ","
        if isinstance(value, list | tuple) and value:
            yield "["
            yield ",".join(map(_JSON.encode, value))
            yield "]"
        else:
            yield _JSON.encode(value)
    yield "{}" if not document else "}"


class Later(NamedTuple):
    """An answer that may come later: `look` is asked again whenever something was committed, and
    `otherwise` is sent when the time is over."""

    look: Callable[[Client], Reply | None]
    otherwise: Reply
    seconds: float


Asker = Callable[[Callable[[Client], Any]], Awaitable[Any]]


class Live(NamedTuple):
    """What a stream lives on: news, and verbs in threads."""

    tail: EventTail
    ask: Asker


class Stream(NamedTuple):
    """Server-sent events, as they come. `make` is called in the event loop."""

    make: Callable[[Live], AsyncGenerator[bytes, None]]


class Scrape(NamedTuple):
    """The metrics, which the server counts itself."""


Answer = Reply | Later | Stream | Scrape
Handler = Callable[[WebCall], Answer]
NOBODY = Principal("nobody", "nobody", PERSON, Role.READ)
