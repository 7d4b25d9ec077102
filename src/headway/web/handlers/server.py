"""The server itself: who asks, which version, whether it is ready, and the login of a browser."""

from headway import __version__
from headway.core.principals import Role
from headway.web.calls import Reply, WebCall
from headway.web.problems import HttpProblem

LONGEST_SILENCE = 5.0  # seconds between two looks of the reader of events


def me(call: WebCall) -> Reply:
    principal = call.principal
    return Reply(
        document={
            "name": principal.name,
            "actor": call.client.context.actor,
            "kind": principal.kind,
            "role": principal.role.word,
            "may": [role.word for role in Role if role <= principal.role],
            "templates": list(principal.templates),
        }
    )


def version(call: WebCall) -> Reply:
    return Reply(document={"version": __version__, "api": "v1"})


def ready(call: WebCall) -> Reply:
    """Whether the store can be read, its schema is known, and who listens hears of what happens. A
    worker is no condition."""
    context = call.client.context
    context.store.check_schema()
    last = call.client.events.last()
    age = call.tail_age
    if age is not None and age > LONGEST_SILENCE:
        raise HttpProblem(
            503,
            "not-ready",
            f"no event was read for {age:.0f} s, although somebody listens",
            headers={"Retry-After": "1"},
        )
    worker = context.worker_is_there()
    return Reply(document={"ready": True, "last_event": last, "worker": worker})


def to_pages(call: WebCall) -> Reply:
    return Reply(303, None, {"Location": "/ui/"})
