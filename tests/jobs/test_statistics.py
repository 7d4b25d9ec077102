"""Numbers over time, from rows whose times are known."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Bench
from headway.base.clock import SECOND
from headway.base.errors import InvalidInputError
from headway.core.states import Status
from headway.jobs import statistics
from headway.jobs.statistics import DAY, MINUTE, BusyTime, buckets_of
from headway.testing.clock import NEW_YEAR, FakeClock
from lives import let_go, lived

NOW = NEW_YEAR + 30 * MINUTE + 30 * SECOND
SINCE = NEW_YEAR + 26 * MINUTE  # of the last five minutes


@pytest.fixture
def past(make_bench: Callable[..., Bench]) -> Iterator[Bench]:
    """At its end nothing runs any more."""
    bench = make_bench(clock=FakeClock(NOW), max_active=3)
    yield bench
    with bench.store.write() as tx:
        for each in tx.claims.live():
            let_go(bench.store, each.job_id)


def at(seconds: int) -> int:
    return SINCE + seconds * SECOND


def a_past(bench: Bench) -> None:
    """One of each: it waited and ran, was held back, ended without a run, runs, waits, took no
    slot, ended before."""
    store = bench.store
    lived(store, Status.SUCCEEDED, at(-600), at(60), at(150))
    lived(store, Status.FAILED, at(70), at(130), at(140), not_before=at(100), slot=2)
    lived(store, Status.CANCELLED, at(10), None, at(200))
    lived(store, Status.RUNNING, at(120), at(125), slot=3)
    lived(store, Status.QUEUED, at(190))
    lived(store, Status.QUEUED, at(-900))
    lived(store, Status.SUCCEEDED, at(0), at(0), at(10), slot=-1)
    lived(store, Status.SUCCEEDED, at(-90), at(-60), at(-1), slot=4)


def columns(document: dict[str, Any], *words: str) -> list[tuple[Any, ...]]:
    return [tuple(bucket[word] for word in words) for bucket in document["buckets"]]


def test_what_ended_waited_and_ran_is_counted_by_the_minute(past: Bench) -> None:
    a_past(past)
    found = past.client.statistics.load("5m")
    assert columns(found, "ended", "succeeded", "failed", "other") == [
        *((1, 1, 0, 0), (0, 0, 0, 0), (2, 1, 1, 0), (1, 0, 0, 1), (0, 0, 0, 0))
    ]
    assert columns(found, "waiting") == [(3,), (3,), (2,), (2,), (2,)]
    assert columns(found, "started", "wait_p50", "wait_p95") == [
        *((1, 0.0, 0.0), (1, 660.0, 660.0), (2, 5.0, 30.0), (0, None, None), (0, None, None))
    ]
    assert columns(found, "slots") == [(0.0,), (1.0,), (1.583,), (1.0,), (1.0,)]
    assert (found["slots"], found["bucket_seconds"], found["truncated"]) == (3, 60, False)
    assert found["buckets"][0]["at"] == found["since"] == found["complete_since"]
    assert found["since"] == "2026-01-01T00:26:00.000000Z"
    assert found["until"] == "2026-01-01T00:30:30.000000Z"


def test_beyond_what_is_read_only_the_number_of_ends_is_known(
    past: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for minute in (4, 3, 3, 2, 1, 1, 1):
        lived(past.store, Status.SUCCEEDED, at(0), None, at(60 * minute + 5))
    monkeypatch.setattr(statistics, "MOST_ENDED", 2)
    found = past.client.statistics.load("5m")
    assert found["truncated"] and found["complete_since"] == "2026-01-01T00:30:00.000000Z"
    assert columns(found, "ended", "succeeded", "waiting", "slots", "wait_p50")[:4] == [
        (each, None, None, None, None) for each in (0, 3, 1, 2)
    ]
    assert columns(found, "ended", "succeeded", "waiting")[4] == (1, 1, 0)
    monkeypatch.setattr(statistics, "MOST_COUNTED", 5)
    found = past.client.statistics.load("5m")
    assert columns(found, "ended") == [(None,), (None,), (1,), (2,), (1,)]


def test_too_many_that_wait_are_not_counted(past: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        lived(past.store, Status.QUEUED, at(0))
    assert columns(past.client.statistics.load("5m"), "waiting") == [(3,)] * 5
    monkeypatch.setattr(statistics, "MOST_WAITING", 2)
    found = past.client.statistics.load("5m")
    assert found["truncated"] and columns(found, "waiting", "ended") == [(None, 0)] * 5


@pytest.mark.parametrize(
    ("span", "width", "number"),
    [("1h", 60, 60), ("24h", 900, 96), ("7d", 7200, 84), ("31d", 43_200, 62), ("1m", 60, 1)],
)
def test_the_span_decides_how_long_a_bucket_is(
    past: Bench, span: str, width: int, number: int
) -> None:
    found = past.client.statistics.load(span)
    assert (found["bucket_seconds"], len(found["buckets"])) == (width, number)


@pytest.mark.parametrize("span", ["59s", "32d", "soon"])
def test_another_span_is_refused(past: Bench, span: str) -> None:
    with pytest.raises(InvalidInputError, match="span"):
        past.client.statistics.load(span)


def test_clocks_that_went_back_break_nothing(past: Bench) -> None:
    lived(past.store, Status.SUCCEEDED, at(900), at(800), at(850))
    lived(past.store, Status.RUNNING, at(900), at(700))
    assert sum(each for (each,) in columns(past.client.statistics.load("5m"), "ended")) == 1


def test_a_slot_that_is_busy_over_many_buckets_counts_in_each() -> None:
    buckets = buckets_of(4 * MINUTE, 10 * MINUTE)
    busy = BusyTime(buckets)
    busy.add(0, 9 * MINUTE)
    busy.add(8 * MINUTE + 30 * SECOND, 10 * MINUTE)
    assert buckets.since == 7 * MINUTE and busy.shares() == [1.0, 1.5, 1.0, 0.0]


# -- durations -------------------------------------------------------------------------------------


def test_the_last_jobs_of_a_name_say_how_long_they_took(past: Bench) -> None:
    first = lived(past.store, Status.FAILED, at(0), at(10), at(15), name="build")
    retried = lived(
        past.store,
        Status.SUCCEEDED,
        at(20),
        at(30),
        at(50),
        name="build",
        retry_of=first,
        chain=first,
    )
    lived(past.store, Status.SUCCEEDED, at(0), at(10), at(15), name="other")
    waiting = lived(past.store, Status.QUEUED, at(60), name="build")
    found = past.client.statistics.jobs("build")
    assert [(each["job"], each["state"], each["seconds"]) for each in found["runs"]] == [
        (f"job-{waiting}", "queued", None),
        (f"job-{retried}", "succeeded", 20.0),
    ]
    assert not found["truncated"]
    assert len(past.client.statistics.jobs("build", 1)["runs"]) == 1
    for limit in (0, 1001):
        with pytest.raises(InvalidInputError, match="limit"):
            past.client.statistics.jobs("build", limit)


def test_jobs_of_long_ago_are_not_looked_for(past: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("build", "other", "other"):
        lived(past.store, Status.QUEUED, at(0), name=name)
    monkeypatch.setattr(statistics, "MOST_ENDED", 2)
    assert past.client.statistics.jobs("build") == {"runs": [], "truncated": True}
    assert len(past.client.statistics.jobs("other", 2)["runs"]) == 2


def test_the_last_jobs_of_a_schedule_say_how_long_they_took(past: Bench) -> None:
    schedule = past.client.schedules.add(name="nightly", every="1h", argv=["true"])
    jobs = [
        lived(past.store, Status.SUCCEEDED, at(each), at(each), at(each + 7), schedule_id=of)
        for each, of in ((0, schedule.shown), (10, "schedule-9"), (20, schedule.shown))
    ]
    found = past.client.schedules.runs("nightly")
    assert [(each["job"], each["seconds"]) for each in found] == [
        (f"job-{jobs[2]}", 7.0),
        (f"job-{jobs[0]}", 7.0),
    ]
    assert len(past.client.schedules.runs("nightly", 1)) == 1
    with pytest.raises(InvalidInputError, match="limit"):
        past.client.schedules.runs("nightly", 0)


# -- what agents use -------------------------------------------------------------------------------


def an_agent(bench: Bench, finished: int, result: dict[str, Any] | None) -> int:
    job = lived(bench.store, Status.SUCCEEDED, at(0), at(0), finished, type="agent")
    folder = Path(bench.home.job(job))
    folder.mkdir(parents=True, mode=0o700)
    if result is not None:
        (folder / "result.json").write_text(json.dumps(result))
    return job


def test_what_agents_used_is_counted_by_the_day(
    past: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    yesterday = NEW_YEAR - 5 * SECOND
    an_agent(past, at(5), {"cost_usd": 0.25, "tokens": 100})
    an_agent(past, yesterday, {"cost_usd": 1.5, "tokens": 7})
    an_agent(past, NEW_YEAR - 5 * DAY, {"cost_usd": 100})
    an_agent(past, at(6), {"tokens": 3, "cost_usd": None})
    an_agent(past, at(7), None)
    lived(past.store, Status.SUCCEEDED, at(0), at(0), at(5))
    found = past.client.statistics.spend(3)
    assert found["days"] == [
        {"day": "2025-12-30", "usd": 0.0, "tokens": 0},
        {"day": "2025-12-31", "usd": 1.5, "tokens": 7},
        {"day": "2026-01-01", "usd": 0.25, "tokens": 103},
    ]
    assert (found["unknown"], found["left_out"], found["truncated"]) == (2, 0, False)
    monkeypatch.setattr(statistics, "MOST_RESULTS", 3)
    found = past.client.statistics.spend(3)
    assert (found["left_out"], found["truncated"]) == (1, True)
    assert [each["usd"] for each in found["days"]] == [0.0, 0.0, 0.25]
    with pytest.raises(InvalidInputError, match="32 days"):
        past.client.statistics.spend(32)
