"""When each job waited, on what, and ran."""

from typing import Any

import pytest

from harness import Bench
from headway.base.clock import SECOND
from headway.base.errors import NotFoundError
from headway.jobs.groups import Plan
from headway.jobs.request import Request
from headway.jobs.views import timeline
from headway.jobs.views.timeline import NOT_LOOKED_AT, intervals
from headway.store.tables.statistics import ChainMember, QueueEvent


def member(state: str, started: int | None = None, finished: int | None = None) -> ChainMember:
    times = (None if each is None else each * SECOND for each in (started, finished))
    return ChainMember(1, 1, "build", state, 0, *times)


def event(at: int, kind: str, detail: str = "") -> QueueEvent:
    return QueueEvent(1, at * SECOND, kind, "", detail)


def told(job: ChainMember, *events: QueueEvent) -> list[tuple[Any, ...]]:
    """Kind, from, to, and what it waited for or what the run came to."""
    return [
        (
            each.kind,
            each.since // SECOND,
            None if each.until is None else each.until // SECOND,
            each.on if each.kind == "waiting" else each.state,
        )
        for each in intervals(job, events)
    ]


LOCK, TIME = event(1, "waiting_on_locks", "lock repo"), event(1, "queued", "starts at noon")
BEGIN = event(8, "running")
CASES = {
    "made a moment ago": (member("queued"), [], [("waiting", 0, None, NOT_LOOKED_AT)]),
    "a wait that was found at once": (
        member("waiting_on_locks"),
        [LOCK],
        [("waiting", 0, None, "lock repo")],
    ),
    "a wait that was found late": (
        member("waiting_on_locks"),
        [LOCK._replace(at=5 * SECOND)],
        [("waiting", 0, 5, NOT_LOOKED_AT), ("waiting", 5, None, "lock repo")],
    ),
    "one wait after the other": (
        member("succeeded", 8, 9),
        [TIME, LOCK._replace(at=4 * SECOND), BEGIN],
        [
            ("waiting", 0, 4, "starts at noon"),
            ("waiting", 4, 8, "lock repo"),
            ("running", 8, 9, "succeeded"),
        ],
    ),
    "the same wait twice": (
        member("queued"),
        [LOCK, LOCK._replace(at=4 * SECOND)],
        [("waiting", 0, None, "lock repo")],
    ),
    "at once, and still": (
        member("running", 0),
        [event(0, "running")],
        [("running", 0, None, "running")],
    ),
    "a start that was taken back": (
        member("failed", 8, 9),
        [event(0, "running"), event(3, "unclaimed"), event(4, "queued", "launch"), BEGIN],
        [
            ("running", 0, 3, "unclaimed"),
            ("waiting", 3, 8, "launch"),
            ("running", 8, 9, "failed"),
        ],
    ),
    "cancelled while it waited": (
        member("cancelled", None, 6),
        [LOCK],
        [("waiting", 0, 6, "lock repo")],
    ),
    "without its events": (
        member("succeeded", 4, 6),
        [],
        [("waiting", 0, 4, NOT_LOOKED_AT), ("running", 4, 6, "succeeded")],
    ),
    "without detail": (
        member("queued"),
        [event(1, "waiting_on_deps")],
        [("waiting", 0, None, "waiting_on_deps")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_life_of_a_job_is_one_interval_after_the_other(case: str) -> None:
    job, events, expected = CASES[case]
    assert told(job, *events) == expected


def kinds(row: dict[str, Any]) -> list[str]:
    return [each["kind"] for each in row["intervals"]]


def test_a_graph_is_shown_from_any_of_its_jobs(bench: Bench) -> None:
    first = bench.submit("true", name="first")
    second = bench.submit("false", name="second", after=[first])
    bench.submit("true", name="apart")
    bench.until_ended(first, second)
    found = bench.client.statistics.timeline_of_job(f"job-{first}")
    assert (found["of"], found["truncated"]) == (f"job-{first}", False)
    assert [(each["name"], each["state"]) for each in found["rows"]] == [
        ("first", "succeeded"),
        ("second", "failed"),
    ]
    waited, ran = found["rows"][1]["intervals"]
    assert waited["kind"] == "waiting" and f"job-{first}" in waited["on"]
    assert waited["until"] == ran["since"] and ran["kind"] == "running"
    assert ran["state"] == "failed" and ran["until"] is not None
    assert bench.client.statistics.timeline_of_job(second)["rows"] == found["rows"]


def test_a_retry_is_in_the_row_of_its_chain(bench: Bench) -> None:
    job = bench.submit("false", retries=1, retry_base="0s")
    bench.until_ended(job)
    last = bench.last(job).id
    (row,) = bench.client.statistics.timeline_of_job(job)["rows"]
    assert (row["job"], row["jobs"], row["state"]) == (f"job-{last}", 2, "failed")
    ran = [each["job"] for each in row["intervals"] if each["kind"] == "running"]
    assert ran == [f"job-{job}", f"job-{last}"]


def test_the_members_of_a_group_are_in_their_order(bench: Bench) -> None:
    requests = [Request(argv=("true",), name=name) for name in ("one", "two")]
    made, _ = bench.client.groups.submit(requests, Plan(name="g"))
    bench.until_ended(*made.jobs) if made.jobs else bench.step()
    found = bench.client.statistics.timeline_of_group("g")
    assert found["of"] == "group-1"
    assert [each["name"] for each in found["rows"]] == ["one", "two"]
    with pytest.raises(NotFoundError):
        bench.client.statistics.timeline_of_group("h")


def test_what_is_not_there_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFoundError):
        bench.client.statistics.timeline_of_job(7)
    with pytest.raises(NotFoundError):
        bench.client.statistics.timeline_of_run("wf-7")


def test_more_than_is_read_is_left_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first = bench.submit("true")
    last = bench.submit("true", after=[first])
    bench.until_ended(first, last)
    monkeypatch.setattr(timeline, "MOST_JOBS", 1)
    found = bench.client.statistics.timeline_of_job(last)
    assert found["truncated"] and [each["job"] for each in found["rows"]] == [f"job-{first}"]
    monkeypatch.setattr(timeline, "MOST_JOBS", 2)
    monkeypatch.setattr(timeline, "MOST_EVENTS", 1)
    found = bench.client.statistics.timeline_of_job(last)
    assert found["truncated"] and kinds(found["rows"][1])[-1] == "running"
