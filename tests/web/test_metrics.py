"""Metrics: what the store says at a scrape, and what was counted since the server began."""

import re
from collections.abc import Mapping

import pytest
from served import Served, on_both_stores

from headway.base.clock import SECOND
from headway.store.new_jobs import Event
from headway.store.records import NewDelivery, Try
from headway.web import metrics

URL = "https://203-0-113-9.example/hook"  # a name that nothing resolves


def scrape(served: Served) -> Mapping[str, float]:
    """Each series and its value."""
    heard = served.ask("GET", "/metrics", role="read")
    assert heard.status == 200
    lines = [each for each in heard.body.decode().splitlines() if not each.startswith("#")]
    pairs = [each.removeprefix("headway_").rsplit(" ", 1) for each in lines]
    assert len({name for name, _ in pairs}) == len(pairs), "no series is there twice"
    return {name: float(value) for name, value in pairs}


def of(said: Mapping[str, float], name: str) -> Mapping[str, float]:
    """The series of one name, by their labels."""
    found = (re.fullmatch(rf"{name}(?:\{{(.*)\}})?", each) for each in said)
    return {each[1] or "": said[each[0]] for each in found if each}


def put(served: Served, number: int, endpoint: int = 1) -> str:
    made = NewDelivery(
        id=f"e-{number}-{endpoint}",
        endpoint=endpoint,
        receiver=f"endpoint-{endpoint}",
        url=None,
        type="job.completed",
        seq=number,
        job_id=None,
        chain=None,
        body="{}",
    )
    with served.bench.store.write() as tx:
        tx.webhooks.add_deliveries([made])
    return made.id


def end(served: Served, endpoint: int = 1, *, well: bool) -> None:
    """The next one of an endpoint is sent, for the last time."""
    with served.bench.store.write() as tx:
        lease = {"lease": "x", "until": tx.now() + SECOND, "limit": 1}
        (leased,) = tx.webhooks.lease(f"endpoint-{endpoint}", **lease)
        if well:
            tx.webhooks.record_delivered([Try(leased.id, "x", 204, None)])
        else:
            tx.webhooks.record_failure(Try(leased.id, "x", 500, "500 No"), None)


@on_both_stores
def test_deliveries_are_counted_once_each(served: Served) -> None:
    for name in ("ci", "chat"):
        assert served.post("webhooks", {"name": name, "url": URL}).status == 201
    said = scrape(served)
    none = {'endpoint="ci"': 0, 'endpoint="chat"': 0}
    assert of(said, "webhook_pending") == none
    assert of(said, "webhook_oldest_pending_seconds") == {"": 0}
    assert of(said, "webhook_deliveries_total") == {}

    put(served, 1), put(served, 2), put(served, 3), put(served, 4, endpoint=2)
    said = scrape(served)
    assert of(said, "webhook_pending") == {'endpoint="ci"': 3, 'endpoint="chat"': 1}
    assert said["webhook_oldest_pending_seconds"] > 0

    end(served, well=True), end(served, well=False), end(served, endpoint=2, well=True)
    delivered = 'endpoint="ci",outcome="delivered"'
    ended = {
        delivered: 1,
        'endpoint="ci",outcome="failed"': 1,
        'endpoint="chat",outcome="delivered"': 1,
    }
    for _ in range(2):
        said = scrape(served)
        assert of(said, "webhook_deliveries_total") == ended
    assert said['webhook_pending{endpoint="ci"}'] == 1

    end(served, well=True)
    assert of(scrape(served), "webhook_deliveries_total") == ended | {delivered: 2}
    put(served, 5), end(served, well=True)
    assert of(scrape(served), "webhook_deliveries_total") == ended | {delivered: 3}
    assert of(scrape(served), "webhook_pending") == none


def test_a_delivery_that_is_sent_again_is_counted_again(served: Served) -> None:
    """Also if it is over before anybody asks."""
    assert served.post("webhooks", {"name": "ci", "url": URL}).status == 201
    old = put(served, 1)
    end(served, well=False)
    put(served, 2), end(served, well=True)
    scrape(served)
    served.bench.client.webhooks.replay(old)
    end(served, well=True)
    assert of(scrape(served), "webhook_deliveries_total") == {
        'endpoint="ci",outcome="delivered"': 2,
        'endpoint="ci",outcome="failed"': 1,
    }


def test_endpoints_beyond_200_are_one(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_SERIES", 2)
    for number in range(1, 5):
        body = {"name": f"e{number}", "url": URL}
        assert served.post("webhooks", body).status == 201
        put(served, number, endpoint=number), put(served, 10 + number, endpoint=number)
        end(served, endpoint=number, well=True)
    said = scrape(served)
    first = {'endpoint="e1"': 1, 'endpoint="e2"': 1}
    assert of(said, "webhook_pending") == first | {'endpoint="other"': 2}
    counted = of(said, "webhook_deliveries_total")
    assert sum(counted.values()) == 4 and counted['endpoint="other",outcome="delivered"'] == 2


@on_both_stores
def test_what_waits_is_counted_by_what_for(served: Served) -> None:
    said = scrape(served)
    assert of(said, "jobs_waiting") == {} and said["oldest_ready_seconds"] == 0
    assert said["store_bytes"] > 10_000
    first = served.submit("true")
    served.submit("true", after=[f"job-{first}"])
    assert of(scrape(served), "jobs_waiting") == {'kind="dependencies"': 1}
    for _ in range(4):
        served.submit("true", require_approval=True)
    served.bench.client.pause(None)
    served.bench.step()
    said = scrape(served)
    assert of(said, "jobs_waiting")['kind="approval"'] == 4
    assert said["jobs_ready"] == 1 and said["oldest_ready_seconds"] > 0


def test_slots_that_made_nothing_are_counted_by_the_sort_of_their_reason(served: Served) -> None:
    scrape(served)  # from now on the events are read
    for slots, reason in (
        (3, "missed: no worker looked at that time"),
        (1, "job-1 is still running"),
        (1, "job-2 still waits"),
        (2, "there is no template 'x'"),
    ):
        data = {"schedule": "schedule-1", "name": "n", "slots": slots, "reason": reason}
        with served.bench.store.write() as tx:
            tx.events.add([Event("schedule_skipped", None, data)], actor="worker")
    assert of(scrape(served), "schedule_slots_skipped_total") == {
        'reason="missed"': 3,
        'reason="overlap"': 2,
        'reason="refused"': 2,
    }


def test_each_host_of_the_store_has_its_own(served: Served) -> None:
    name = served.bench.client.context.host.name
    said = scrape(served)
    assert of(said, "worker_up") == of(said, "breaker_open") == {f'host="{name}"': 0}
