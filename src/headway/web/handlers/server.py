"""The server itself: who asks, which version, whether it is ready, and the login of a browser."""

from headway import __version__
from headway.core.principals import Role
from headway.web.calls import Reply, WebCall


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
    """Whether the store can be read; a worker is no condition."""
    last = call.client.events.last()
    worker = call.client.context.worker_is_there()
    return Reply(document={"ready": True, "last_event": last, "worker": worker})
