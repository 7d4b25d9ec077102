"""Metrics: what the store says at a scrape, and what was counted since the server began."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from served import Served, on_both_stores

from harness import Bench
from headway.base.clock import SECOND, SystemClock
from headway.base.errors import StoreError
from headway.base.units import parse_instant
from headway.jobs.context import Context
from headway.store.new_jobs import Event
from headway.store.records import Try
from headway.testing.clock import FakeClock
from headway.web import application, metrics
from new_deliveries import new_delivery

URL = "https://203-0-113-9.example/hook"  # a name that nothing resolves
LABELS = {
    *("version", "host", "state", "kind", "word", "schedule", "endpoint", "type", "reason"),
    *("outcome", "route", "method", "code", "le"),
}


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gauges that were read a moment ago are read again."""
    monkeypatch.setattr(metrics, "FRESH_FOR", 0.0)


def scrape(served: Served) -> Mapping[str, float]:
    """Each series and its value."""
    heard = served.ask("GET", "/metrics", role="read")
    assert heard.status == 200
    text = heard.body.decode()
    check_format(text)
    lines = [each for each in text.splitlines() if not each.startswith("#")]
    pairs = [each.removeprefix("headway_").rsplit(" ", 1) for each in lines]
    assert len({name for name, _ in pairs}) == len(pairs), "no series is there twice"
    return {name: float(value) for name, value in pairs}


def check_format(text: str) -> None:
    """As the library of Prometheus reads it, and with the rules that it does not check."""
    begun = re.findall(r"^# (HELP|TYPE) (\w+) ", text, re.M)
    assert [kind for kind, _ in begun] == ["HELP", "TYPE"] * (len(begun) // 2)
    names = [name for _, name in begun[::2]]
    assert names == [name for _, name in begun[1::2]] and len(set(names)) == len(names)
    assert all(each.startswith("headway_") for each in names) and text.endswith("\n")
    found = list(text_string_to_metric_families(text))
    assert [each.name for each in found] == [
        name.removesuffix("_total") if kind == "counter" else name
        for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M)
    ], "all samples of a family stand below its lines"
    for family in found:
        assert family.documentation and family.type in ("gauge", "counter", "histogram")
        assert (family.type == "counter") is (f"{family.name}_total" in names)
        for sample in family.samples:
            assert set(sample.labels) <= LABELS and math.isfinite(sample.value)
            assert family.type == "gauge" or sample.value >= 0
        if family.type == "histogram":
            check_histogram(family)


def check_histogram(family: Any) -> None:
    series: dict[frozenset[tuple[str, str]], dict[str, Any]] = {}
    for sample in family.samples:
        labels = {key: word for key, word in sample.labels.items() if key != "le"}
        one = series.setdefault(frozenset(labels.items()), {"buckets": []})
        if sample.name.endswith("_bucket"):
            one["buckets"].append((float(sample.labels["le"]), sample.value))
        else:
            one[sample.name.removeprefix(family.name)] = sample.value
    for one in series.values():
        assert set(one) == {"buckets", "_sum", "_count"}
        bounds, counts = zip(*one["buckets"], strict=True)
        assert list(bounds) == sorted(set(bounds)) and list(counts) == sorted(counts)
        assert bounds[-1] == math.inf and counts[-1] == one["_count"]


def of(said: Mapping[str, float], name: str) -> Mapping[str, float]:
    """The series of one name, by their labels."""
    found = (re.fullmatch(rf"{name}(?:\{{(.*)\}})?", each) for each in said)
    return {each[1] or "": said[each[0]] for each in found if each}


def put(served: Served, number: int, endpoint: int = 1) -> str:
    made = new_delivery(number, endpoint)
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
    for number in range(1, 5):
        end(served, endpoint=number, well=False)
    counted = of(scrape(served), "webhook_deliveries_total")
    assert {each for each in counted if "other" not in each} == {
        f'endpoint="e{number}",outcome="{outcome}"'
        for number in (1, 2)
        for outcome in ("delivered", "failed")
    }
    assert sum(counted.values()) == 8 and counted['endpoint="other",outcome="delivered"'] == 2


def test_an_endpoint_that_is_called_other_is_in_one_series_with_the_rest(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MOST_SERIES", 1)
    for number, name in enumerate(("other", "more"), 1):
        assert served.post("webhooks", {"name": name, "url": URL}).status == 201
        put(served, number, endpoint=number), put(served, 10 + number, endpoint=number)
        end(served, endpoint=number, well=True)
    said = scrape(served)
    assert of(said, "webhook_pending") == {'endpoint="other"': 2}
    assert of(said, "webhook_deliveries_total") == {'endpoint="other",outcome="delivered"': 2}


def test_limits_beyond_200_are_one(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_SERIES", 2)
    for number, word in enumerate("abcd", 1):
        served.bench.client.set_setting(f"scheduler.limits.resource.{word}", number)
    said = of(scrape(served), "limit_capacity")
    assert said == {
        'kind="resource",word="a"': 1,
        'kind="resource",word="b"': 2,
        'kind="other",word="other"': 7,
    }
    assert set(of(scrape(served), "limit_in_use")) == set(said)


def test_schedules_say_to_the_second_when_they_fired_and_beyond_200_are_one(
    serve: Callable[..., Served], make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    served = serve(bench)
    assert of(scrape(served), "schedule_last_fire_timestamp_seconds") == {}
    for name in "abc":
        body = {"name": name, "every": "1h", "job": {"argv": ["true"]}}
        assert served.post("schedules", body).status == 201
        clock.advance(7)
    clock.advance(3_600)
    bench.step()
    fired = {
        each["name"]: parse_instant(each["last_slot"], 0) / SECOND
        for each in bench.client.schedules.list()
    }
    assert len(set(fired.values())) == 3 and min(fired.values()) > 1e9
    said = of(scrape(served), "schedule_last_fire_timestamp_seconds")
    assert said == {f'schedule="{name}"': at for name, at in fired.items()}
    monkeypatch.setattr(metrics, "MOST_SERIES", 1)
    said = of(scrape(served), "schedule_last_fire_timestamp_seconds")
    assert said == {'schedule="a"': fired["a"], 'schedule="other"': fired["c"]}


def test_a_number_has_all_its_digits(served: Served) -> None:
    """A counter that stands still from a million on would be no rate."""
    told = served.server.metrics
    scrape(served)
    for code in (201, 202):
        labels = (("route", "/x"), ("method", "GET"), ("code", str(code)))
        told._counters["http_requests_total"][labels] = 12_345_000 + code
    said = of(scrape(served), "http_requests_total")
    assert said['route="/x",method="GET",code="201"'] == 12_345_201


def test_gauges_are_read_once_a_second_however_many_ask(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "FRESH_FOR", 3_600.0)
    assert scrape(served)["paused"] == 0
    served.bench.client.pause("lunch")
    served.submit("true")
    said = scrape(served)
    assert (said["paused"], said["jobs_submitted_total"]) == (0, 1), "what is counted is not kept"
    monkeypatch.setattr(metrics, "FRESH_FOR", 0.0)
    assert scrape(served)["paused"] == 1


def test_what_was_not_read_yet_is_no_reason_to_say_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a drain that made more events than can be read within a scrape."""
    scrape(served)
    served.submit("true")
    assert scrape(served)["jobs_submitted_total"] == 1
    with monkeypatch.context() as patch:
        patch.setattr(application, "CATCHES_UP_WITHIN", 0.05)
        patch.setattr(Context, "changes", fails)
        served.submit("true")
        assert scrape(served)["jobs_submitted_total"] == 1
    assert scrape(served)["jobs_submitted_total"] == 2


def fails(context: Context) -> int:
    raise StoreError("the disk is slow")


def test_no_word_of_a_user_is_in_them(served: Served) -> None:
    """But those that somebody set up: limits, schedules, endpoints."""
    client = served.bench.client
    scrape(served)
    client.set_setting("scheduler.limits.resource.gpu", 1)
    url = "https://203-0-113-9.example/canary-url"
    for number, options in enumerate(
        ({"type": "canary-type"}, {"require_approval": True}, {"resources": ["gpu"]}), 1
    ):
        words = {"name": "canary-name", "labels": {"canary-key": "canary-word"}, "webhooks": [url]}
        words |= {"slug": f"canary-{number}", "locks": ["canary-lock"]}
        assert served.submit("echo", "canary-word", **words, **options) == number
    served.ask("GET", "jobs?name=canary-query"), served.ask("GET", "canary-path")
    served.bench.until_ended(1)
    client.cancel([2])
    scrape(served)
    text = served.ask("GET", "/metrics").body.decode()
    assert 'jobs_ended_total{state="succeeded",type="other"} 1' in text
    assert 'jobs_ended_total{state="cancelled",type="command"} 1' in text
    assert 'job_run_seconds_count{type="other"} 1' in text
    assert "canary" not in text and "job-1" not in text and "203-0-113-9" not in text


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
