"""Webhooks over HTTP: endpoints, deliveries, replays."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from headway.base.units import parse_since
from headway.client import Client
from headway.core.principals import Role
from headway.web.calls import Answer, Later, Reply, WebCall
from headway.webhooks.manage import prepared_test

AT_ONCE = 0.2  # seconds; most servers have answered by then
LONGEST_TEST = 30.0  # one ends by itself long before
NO_ANSWER = {"delivered": False, "status_code": None, "error": "no answer came", "seconds": None}


def list_endpoints(call: WebCall) -> Reply:
    return Reply(
        document={"endpoints": [_shown(call, each) for each in call.client.webhooks.list()]}
    )


def show_endpoint(call: WebCall) -> Reply:
    return Reply(document={"endpoint": _shown(call, call.client.webhooks.show(_name(call)))})


def _shown(call: WebCall, endpoint: Mapping[str, Any]) -> Mapping[str, Any]:
    """A URL may itself be a secret: who may not set it sees where it leads, and no more."""
    if call.principal.role >= Role.ADMIN:
        return endpoint
    return {**endpoint, "url": None}


def add_endpoint(call: WebCall) -> Reply:
    body = call.body
    made = call.client.webhooks.add(
        body["name"],
        body["url"],
        types=tuple(body.get("types", ())),
        schedule=body.get("schedule", "quick"),
    )
    return Reply(201, {"endpoint": made}, {"Location": f"/api/v1/webhooks/{made['name']}"})


def remove_endpoint(call: WebCall) -> Reply:
    call.client.webhooks.remove(_name(call))
    return Reply(204)


def test_endpoint(call: WebCall) -> Answer:
    """In a thread of its own: a slow server must not hold one of those that all verbs share."""
    send = prepared_test(call.client.context, _name(call))
    sent: Future[dict[str, Any]] = Future()

    def run() -> None:
        try:
            sent.set_result(send())
        except BaseException as error:
            sent.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    with suppress(TimeoutError):
        return Reply(document=sent.result(AT_ONCE))

    def look(client: Client) -> Reply | None:
        return Reply(document=sent.result()) if sent.done() else None

    return Later(look, Reply(document=NO_ANSWER), LONGEST_TEST)


def pause_endpoint(call: WebCall) -> Reply:
    call.client.webhooks.pause(_name(call))
    return show_endpoint(call)


def resume_endpoint(call: WebCall) -> Reply:
    call.client.webhooks.resume(_name(call))
    return show_endpoint(call)


def rotate(call: WebCall) -> Reply:
    overlap = call.body.get("overlap", "24h")
    return Reply(document=call.client.webhooks.rotate(_name(call), overlap=overlap))


def deliveries(call: WebCall) -> Reply:
    query = call.query
    found = call.client.webhooks.deliveries(
        state=query.get("state"),
        job=query.get("job"),
        since=parse_since(query["since"], call.now, "since") if "since" in query else None,
        limit=query["limit"],
    )
    return Reply(document={"deliveries": list(found)})


def show_delivery(call: WebCall) -> Reply:
    return Reply(document={"delivery": call.client.webhooks.delivery(call.path["delivery"])})


def replay(call: WebCall) -> Reply:
    return Reply(202, {"delivery": call.client.webhooks.replay(call.path["delivery"])})


def replay_since(call: WebCall) -> Reply:
    since = parse_since(call.body["since"], call.now, "since")
    return Reply(202, {"replayed": call.client.webhooks.replay_since(since)})


def _name(call: WebCall) -> str:
    return call.path["endpoint"]
