"""All jobs that a query asks for are in its pages, each once and the newest first."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from harness import Bench
from headway.base.errors import InvalidInputError, NotFoundError
from headway.core.model import Job
from headway.core.states import API_STATUS, TERMINAL, Status
from headway.jobs.groups import Plan
from headway.jobs.views.search import SearchResult
from headway.store.transaction import WriteTx
from headway.testing.clock import FakeClock

NAMES = ("build", "build-2", "test")
LABELS: tuple[dict[str, str], ...] = ({}, {"team": "a"}, {"team": "a", "night": "yes"})
DAY = 86_400


@pytest.fixture
def yard(make_bench: Callable[..., Bench]) -> Bench:
    """Jobs of every sort that waited, and ended on one of three days, or did not."""
    clock = FakeClock(1_700_000_000_000_000)
    bench = make_bench(clock=clock)
    client = bench.client
    client.pause("nothing shall start")
    client.groups.create(Plan(name="night", on_failure="continue"), stays_open=True)
    for number in range(60):
        options: dict[str, Any] = {"group": "night"} if number % 4 == 0 else {}
        if number % 7 == 0:
            options |= {"subject": f"s-{number}", "target": "here"}
        job = bench.submit("true", name=NAMES[number % 3], labels=LABELS[number % 5 % 3], **options)
        if number % 3:
            status = sorted(TERMINAL)[number % len(TERMINAL)]
            bench.store.transact(lambda tx, job=job, status=status: end(tx, job, status))
        if number in {20, 40}:
            clock.advance(2 * DAY)
    return bench


def end(tx: WriteTx, job_id: int, status: Status) -> None:
    job = tx.jobs.by_id([job_id])[job_id]
    assert tx.jobs.end_waiting(job, status, "for the test", None)


def pages(bench: Bench, limit: int, **asked: Any) -> list[str]:
    found: list[str] = []
    page = SearchResult([], True)
    while page.more:
        page = bench.client.jobs.list(limit=limit, before=page.next, **asked)
        assert len(page.documents) <= limit and (page.next is None) == (not page.more)
        found += [each["id"] for each in page.documents[::-1]]
    return found


ASKED = some.fixed_dictionaries(
    {},
    optional={
        "states": some.lists(some.sampled_from([each.value for each in Status]), max_size=3),
        "statuses": some.lists(some.sampled_from(sorted(set(API_STATUS.values()))), max_size=2),
        "labels": some.sampled_from(LABELS),
        "name": some.sampled_from(("build", "b*", "*2", "nothing")),
        "since": some.integers(-1, 5).map(lambda days: 1_700_000_000_000_000 + days * DAY * 10**6),
        "groups": some.sampled_from(((), ("night",), ("group-1",))),
        "subjects": some.lists(some.sampled_from(("s-0", "s-7", "s-49", "s-x")), max_size=2),
        "targets": some.sampled_from(((), ("here",), ("there",))),
        "everything": some.booleans(),
    },
)


def is_asked_for(job: Job, asked: dict[str, Any], now: int) -> bool:
    ended_lately = job.finished_at is None or job.finished_at >= now - DAY * 10**6
    return (
        (not asked.get("states") or job.status.value in asked["states"])
        and (not asked.get("statuses") or API_STATUS[job.status] in asked["statuses"])
        and asked.get("labels", {}).items() <= job.labels.items()
        and fnmatchcase(job.name, asked.get("name", "*"))
        and job.created_at >= asked.get("since", 0)
        and (not asked.get("groups") or job.group_id == 1)
        and (not asked.get("subjects") or job.subject in asked["subjects"])
        and (not asked.get("targets") or job.target in asked["targets"])
        and (asked.get("everything") or "since" in asked or ended_lately)
    )


def test_the_pages_together_are_all_that_was_asked_for(yard: Bench) -> None:
    with yard.store.read() as tx:
        jobs = [tx.jobs.by_id([each])[each] for each in range(60, 0, -1)]

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(asked=ASKED, limit=some.integers(2, 25))
    def compare(asked: dict[str, Any], limit: int) -> None:
        expected = [f"job-{job.id}" for job in jobs if is_asked_for(job, asked, yard.clock.now())]
        assert pages(yard, limit, **asked) == expected
        assert pages(yard, 50, most_read=1, **asked) == expected

    compare()


def test_a_page_looks_at_no_more_rows_than_it_may(yard: Bench) -> None:
    """And says where to go on, also if it has found nothing."""
    page = yard.client.jobs.list(name="nothing", everything=True, most_read=10)
    assert (page.documents, page.more) == ([], True)
    whole = yard.client.jobs.list(name="nothing", everything=True)
    assert (whole.documents, whole.more, whole.next) == ([], False, None)


def test_what_comes_and_goes_between_two_pages_shifts_nothing(yard: Bench) -> None:
    first = yard.client.jobs.list(limit=10, everything=True)
    for _ in range(3):
        yard.submit("true")
    second = yard.client.jobs.list(limit=10, everything=True, before=first.next)
    ids = [int(each["id"][4:]) for each in (*second.documents, *first.documents)]
    assert ids == list(range(41, 61))


def test_what_is_not_there_to_be_asked_for_is_refused(yard: Bench) -> None:
    listed = yard.client.jobs.list
    with pytest.raises(InvalidInputError, match="state 'runing' is not one of queued, "):
        listed(states=["runing"])
    with pytest.raises(InvalidInputError, match="status 'failed' is not one of CANCELLED, "):
        listed(statuses=["failed"])
    with pytest.raises(NotFoundError, match="wf-9"):
        listed(runs=["wf-9"])
