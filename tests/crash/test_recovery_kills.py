"""Recovery itself is killed at its first point, its second, and so on until it gets through.

It is the recovery of `headway scheduler run`, which is a worker's, and the step after it; what it
finds is in `Leftovers`. Whatever was done when it died, the next one comes to the same end.
"""

import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from leftovers import Leftovers
from stage import Stage, step_once

# How many points it passes before the verdicts are committed. These can be visited over and over
# on the same claims; from the commit on, each visit needs claims that nobody has judged before.
BEFORE_THE_COMMIT = 18
# The way from there is the same on both stores, so that each goes half of it.
LANES = [("sqlite", 0), ("postgres", 1), ("sqlite", 2), ("postgres", 3)]


@pytest.fixture
def stage(tmp_path: Path, store_url: str | None) -> Iterator[Stage]:
    made = Stage(tmp_path, store_url=store_url)
    yield made
    made.close()


def killed_recovering(stage: Stage, visit: int) -> str | None:
    """The point at which recovery died, or None if it got through."""
    stage.mark.unlink(missing_ok=True)
    recovery = stage.actor(step_once, points=f"*=kill@{visit}")
    recovery.join(30)
    if recovery.exitcode == 0:
        return None
    assert recovery.exitcode == -signal.SIGKILL
    return stage.killed_at()


@pytest.mark.long
@pytest.mark.req("E21", "E24")
def test_recovery_that_dies_again_and_again_comes_to_the_same_end(  # fault A1
    stage: Stage,
) -> None:
    left = Leftovers(stage)
    points = []
    for visit in count(1):
        point = killed_recovering(stage, visit)
        if point is None:
            break
        points.append(point)
    assert points.index("store.committed") == BEFORE_THE_COMMIT
    left.finish()


@pytest.mark.long
@pytest.mark.req("E21", "E24")
@pytest.mark.parametrize(("store_url", "lane"), LANES, indirect=["store_url"])
def test_recovery_killed_at_its_nth_point_comes_to_the_same_end(  # fault A1, A2
    stage: Stage, lane: int
) -> None:
    points = []
    for visit in count(BEFORE_THE_COMMIT + 1 + lane, len(LANES)):
        left = Leftovers(stage)
        point = killed_recovering(stage, visit)
        left.finish()
        if point is None:
            break
        points.append(point)
    assert points, "it was killed at least once"
