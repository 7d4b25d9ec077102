"""Couriers under kills, in small; and a check that finds what is lost or changed."""

from pathlib import Path

import pytest

from torture.deliveries import Counting, arena_in, torture, violations

DELIVERIES, KILLS = 300, 8


@pytest.mark.long
@pytest.mark.req("D15")
def test_killed_couriers_lose_nothing_and_repeat_only_the_same(tmp_path: Path) -> None:
    with Counting(7) as receiver, arena_in(tmp_path / "arena", receiver.port) as arena:  # fault F6
        done = torture(
            arena, receiver, deliveries=DELIVERIES, kills=KILLS, seed=7, longest_life=1.5
        )
        assert violations(arena, receiver, DELIVERIES) == []
        assert done.kills >= KILLS and done.taken >= DELIVERIES
        # A check that cannot fail proves nothing.
        first = next(iter(receiver.bodies))
        receiver.bodies[first].add(b"another body")
        assert violations(arena, receiver, DELIVERIES) == [f"{first} has two bodies"]
        del receiver.bodies[first]
        assert violations(arena, receiver, DELIVERIES) == [f"{first} was never taken"]
        receiver.bodies["e-0-1"] = {b""}
        assert f"{'e-0-1'} is of no row" in violations(arena, receiver, DELIVERIES)
        assert violations(arena, receiver, DELIVERIES + 1)[-1].startswith("301 jobs")
