"""Endpoints and deliveries over HTTP: the same verbs as `headway webhooks`."""

import socket
import threading
from collections.abc import Callable

import pytest
from served import Served, on_both_stores

from headway.core.webhooks import ENDS
from headway.store.records import Try
from new_deliveries import new_delivery

URL = "https://203-0-113-9.example/hook?key=1"  # a name that nothing resolves
HERE = "127.0.0.1"


@pytest.fixture
def ci(served: Served) -> Served:
    assert served.post("webhooks", {"name": "ci", "url": URL}).status == 201
    return served


def put(served: Served, number: int, *, failed: bool = False) -> str:
    """A delivery as a courier would leave it."""
    made = new_delivery(number)
    with served.bench.store.write() as tx:
        tx.webhooks.add_deliveries([made])
        if failed:
            tx.webhooks.lease("endpoint-1", lease="x", until=tx.now(), limit=9)
            tx.webhooks.record_failure(Try(made.id, "x", 500, "500 No"), None)
    return made.id


def test_an_endpoint_is_added_as_on_the_command_line(served: Served) -> None:
    heard = served.post("webhooks", {"name": "ci", "url": URL})
    made = heard.json["endpoint"]
    assert (heard.status, heard.headers["location"]) == (201, "/api/v1/webhooks/ci")
    assert made.pop("secret") == served.bench.client.webhooks.secret("ci")
    assert made == served.bench.client.webhooks.show("ci") == served.get("webhooks/ci")["endpoint"]
    assert made["types"] == list(ENDS) and made["url"] == URL
    (listed,) = served.get("webhooks", role="operate")["endpoints"]
    assert listed == {**made, "url": None}, "where it leads, and no more"
    assert served.get("webhooks/endpoint-1", role="read")["endpoint"] == listed
    wanted = {"name": "two", "url": URL, "types": ["job.*"], "schedule": "standard"}
    two = served.post("webhooks", wanted).json["endpoint"]
    assert (two["types"], two["schedule"]) == (["job.*"], "standard")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"name": "ci", "url": "http://10.0.0.1/"}, 400, 'webhooks.allow = ["10.0.0.1:80"]'),
        ({"name": "ci", "url": "ftp://x.example/"}, 400, "neither with https"),
        ({"name": "ci", "url": URL, "types": ["job.end"]}, 400, "no type 'job.end'"),
        ({"name": "ci", "url": URL, "schedule": "slow"}, 400, "schedule"),
        ({"name": "ci"}, 400, "url"),
        ({"name": "ci", "url": URL, "type": "*"}, 400, "type"),
    ],
)
def test_what_cannot_be_added_is_said(
    shared: Served, body: dict[str, object], status: int, words: str
) -> None:
    heard = shared.post("webhooks", body)
    assert heard.status == status and words in str(heard.json)
    assert shared.get("webhooks") == {"endpoints": []}


def test_an_endpoint_is_paused_resumed_rotated_and_removed(ci: Served) -> None:
    assert ci.post("webhooks", {"name": "ci", "url": URL}).status == 409
    assert ci.post("webhooks/ci/pause").json["endpoint"]["state"] == "paused"
    assert ci.post("webhooks/ci/resume").json["endpoint"]["state"] == "active"
    rotated = ci.post("webhooks/ci/rotate", {"overlap": "1h"}).json
    assert rotated["secret"] == ci.bench.client.webhooks.secret("ci")
    assert ci.get("webhooks/ci")["endpoint"]["overlap_until"] == rotated["overlap_until"]
    assert ci.ask("DELETE", "webhooks/ci").status == 204
    for method, path in (("GET", ""), ("POST", "/pause"), ("POST", "/rotate"), ("DELETE", "")):
        assert ci.ask(method, f"webhooks/ci{path}").status == 404


@on_both_stores
def test_deliveries_are_listed_shown_and_sent_again(ci: Served) -> None:
    failed, waiting = put(ci, 1, failed=True), put(ci, 2)
    assert [each["id"] for each in ci.get("deliveries")["deliveries"]] == [waiting, failed]
    (only,) = ci.get("deliveries?state=failed&since=1h", role="read")["deliveries"]
    assert (only["id"], only["error"]) == (failed, "500 No")
    assert ci.get(f"deliveries/{failed}")["delivery"] == {**only, "body": '{"n":1}'}
    heard = ci.post(f"deliveries/{failed}/replay", role="operate")
    assert (heard.status, heard.json["delivery"]["state"]) == (202, "pending")
    assert ci.post(f"deliveries/{failed}/replay", role="operate").status == 409
    assert ci.post("deliveries/e-9-1/replay").status == 404
    put(ci, 3, failed=True)
    again = ci.post("deliveries/replay", {"since": "1h"}, role="operate")
    assert (again.status, again.json["replayed"]) == (202, 1)
    for query in ("state=sent", "since=9", "job=job-99", "limit=1001"):
        assert ci.ask("GET", f"deliveries?{query}").status in (400, 404), query


def test_an_endpoint_that_is_slow_to_answer_a_test_holds_up_no_other_request(
    serve: Callable[..., Served],
) -> None:
    served = serve(**{"webhooks.allow": (HERE,)})
    heard: list[dict[str, object]] = []
    tests = 6  # more than there are threads for verbs
    with socket.create_server((HERE, 0)) as listener:
        url = f"http://{HERE}:{listener.getsockname()[1]}/"
        assert served.post("webhooks", {"name": "slow", "url": url}).status == 201
        token = served.token("admin")

        def ask() -> None:
            heard.append(served.ask_as(token, "POST", "/api/v1/webhooks/slow/test").json)

        threads = [threading.Thread(target=ask) for _ in range(tests)]
        for each in threads:
            each.start()
        listener.settimeout(30)
        waiting = [listener.accept()[0] for _ in threads]
        assert served.get("jobs") == {"jobs": [], "next": None} and heard == []
        for connection in waiting:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n")
        for each in threads:
            each.join(30)
        for connection in waiting:
            connection.close()
    assert [each["error"] for each in heard] == ["503 Later"] * tests
    assert served.post("webhooks/none/test").status == 404
