"""Which jobs a schedule shows, in which order, and the edges between them."""

import pytest
from drawn import graph, ids, missing, node, present, schedule

from headway.core.states import ACTIVE, TERMINAL, Status
from headway.jobs.views.graph.model import BLOCKED, BUCKETS, Edge, arrange, bucket_of, count_rows


@pytest.mark.req("V87")
@pytest.mark.parametrize("status", Status)
def test_by_default_active_and_blocked_jobs_are_shown(status: Status) -> None:
    visible = status in ACTIVE or status in BLOCKED
    assert ids(schedule(node(1, status))) == ([1] if visible else [])
    assert ids(schedule(node(1, status), everything=True)) == [1]


@pytest.mark.req("V87")
@pytest.mark.parametrize("status", sorted(TERMINAL))
@pytest.mark.parametrize(
    "waiting", [Status.WAITING_ON_DEPS, Status.QUEUED, Status.BLOCKED_BY_DEPENDENCY]
)
def test_what_ended_without_success_is_shown_while_it_holds_another_back(
    status: Status, waiting: Status
) -> None:
    drawn = schedule(node(1, status), node(2, waiting, after=(1,)))
    assert ids(drawn) == ([2] if status is Status.SUCCEEDED else [1, 2])


@pytest.mark.req("V87")
def test_what_holds_nobody_back_any_more_is_not_shown() -> None:
    assert ids(schedule(node(1, Status.FAILED), node(2, Status.RUNNING, after=(1,)))) == [2]
    assert ids(schedule(node(1, Status.FAILED), node(2, Status.SUCCEEDED, after=(1,)))) == []


@pytest.mark.req("V87")
def test_a_failed_producer_is_shown_while_its_artifact_is_missing() -> None:
    failed = node(1, Status.FAILED)
    assert ids(schedule(failed, node(2, needs=(missing("custom:a:b", 1),)))) == [1, 2]
    assert ids(schedule(failed, node(2, needs=(present("custom:a:b", 1),)))) == [2]


@pytest.mark.req("V85")
def test_rows_are_in_the_order_of_creation_then_of_ids() -> None:
    drawn = schedule(
        node(3, created_at=5), node(10, created_at=5), node(2, created_at=7), node(7, created_at=1)
    )
    assert ids(drawn) == [7, 3, 10, 2]


@pytest.mark.req("V86")
def test_the_focused_job_is_row_1_also_when_it_has_ended() -> None:
    known = graph(node(1), node(2, Status.SUCCEEDED), node(3))
    assert ids(arrange(known, focus=2)) == [2, 1, 3]
    assert ids(arrange(known, focus=3)) == [3, 1]
    assert ids(arrange(known, focus=3, within=frozenset({1, 3}))) == [3, 1]
    assert ids(arrange(known, focus=1, within=frozenset({1}))) == [1]


@pytest.mark.req("V92")
def test_the_first_rows_are_kept_and_the_others_counted() -> None:
    drawn = schedule(*(node(each) for each in range(1, 8)), top=3)
    assert (ids(drawn), drawn.hidden) == ([1, 2, 3], 4)
    assert drawn.first(1).hidden == 6


def test_edges_name_what_was_declared_with_the_state_of_the_chains_last_job() -> None:
    known = graph(node(3, Status.RUNNING, chain=1), node(4, after=(1,)), ends={1: 3})
    assert arrange(known).edges[4] == (Edge(4, 1, 3, Status.RUNNING),)


def test_a_predecessor_that_is_gone_has_no_state() -> None:
    assert schedule(node(4, after=(1,))).edges[4] == (Edge(4, 1, None, None),)


def test_each_producer_of_an_artifact_is_an_edge_and_nobody_is_one_too() -> None:
    needs = (missing("custom:a:b", 1, 2), present("file:/x"))
    drawn = schedule(node(1), node(2, Status.RUNNING), node(3, needs=needs))
    assert drawn.edges[3] == (
        Edge(3, 1, 1, Status.QUEUED, "custom:a:b"),
        Edge(3, 2, 2, Status.RUNNING, "custom:a:b"),
        Edge(3, None, None, None, "file:/x", present=True),
    )


@pytest.mark.req("V91")
def test_every_status_is_in_one_bucket() -> None:
    assert {status: bucket_of(status) for status in Status} == {
        Status.QUEUED: "queued",
        Status.WAITING_ON_DEPS: "waiting",
        Status.WAITING_ON_APPROVAL: "waiting",
        Status.WAITING_ON_LOCKS: "waiting",
        Status.RUNNING: "running",
        Status.SUCCEEDED: "terminal",
        Status.FAILED: "terminal",
        Status.SKIPPED: "terminal",
        Status.CANCELLED: "terminal",
        Status.BLOCKED_BY_DEPENDENCY: "blocked",
        Status.BLOCKED_BY_APPROVAL: "blocked",
    }
    drawn = schedule(*(node(at, status) for at, status in enumerate(Status, 1)), everything=True)
    assert count_rows(drawn) == dict(zip(BUCKETS, (1, 3, 1, 2, 4), strict=True))
