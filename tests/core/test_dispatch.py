"""The plan of one pass: what starts, what does not, and why."""

import pytest
from given import facts, job

from headway.core.dispatch import plan_dispatch
from headway.core.facts import Capacity
from headway.core.model import Pause


def many(count: int) -> list[object]:
    return [job(number) for number in range(1, count + 1)]


@pytest.mark.req("G24", "G29")
@pytest.mark.parametrize(
    ("cap", "active", "batch", "ready", "started"),
    [
        (5, 0, 1, 3, 1),
        (5, 0, 10, 3, 3),
        (5, 3, 10, 10, 2),
        (5, 5, 10, 10, 0),
        (5, 7, 10, 10, 0),
        (5, 0, 10, 0, 0),
        (-1, 7, 10, 10, 10),
        (0, 7, 4, 10, 4),
    ],
)
def test_it_is_the_least_of_capacity_batch_and_ready(
    cap: int, active: int, batch: int, ready: int, started: int
) -> None:
    jobs = many(ready)
    found = facts(capacity=Capacity(max_active=cap, running=active))
    planned = plan_dispatch(jobs, found, batch=batch)  # type: ignore[arg-type]
    assert [each.id for each in planned.to_dispatch] == list(range(1, started + 1))
    assert len(planned.skipped) == ready - started
    assert all(each.reason for each in planned.skipped)
    assert planned.reason


@pytest.mark.req("G29")
def test_each_that_is_left_says_why() -> None:
    found = facts(capacity=Capacity(max_active=2, running=0))
    planned = plan_dispatch(many(3), found, batch=1)  # type: ignore[arg-type]
    assert [(each.job.id, each.reason) for each in planned.skipped] == [
        (2, "one pass starts at most 1"),
        (3, "all 2 slots are in use"),
    ]
    assert planned.reason == "one pass starts at most 1"
    paused = facts(capacity=Capacity(paused=Pause("ann", "lunch", 0)))
    assert plan_dispatch(many(1), paused, batch=1).reason == "paused by ann: lunch"  # type: ignore[arg-type]
    assert plan_dispatch([], found, batch=1).reason == "nothing is ready"
