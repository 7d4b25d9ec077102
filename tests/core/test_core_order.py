"""Room is made between neighbours, nobody passes anybody else, and age counts as priority."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headway.core.model import POSITION_GAP
from headway.core.order import (
    AFTER_ALL,
    BEFORE_ALL,
    Key,
    Levelled,
    Standing,
    exchanged,
    just_before,
    level_of,
    relevel,
    spread,
)

HOUR = 3_600_000_000


class Queue:
    """One level, kept by positions as the store does it, beside a plain list."""

    def __init__(self, positions: Sequence[int] = ()) -> None:
        self.jobs = {at + 1: Standing(at + 1, each, at) for at, each in enumerate(positions)}
        self.plain = [each.id for each in self.in_order()]
        self.touched = 0

    def in_order(self, without: int = 0) -> list[Standing]:
        standing = (each for each in self.jobs.values() if each.id != without)
        return sorted(standing, key=lambda each: each.key)

    def put(self, job_id: int, place: Key) -> None:
        others = self.in_order(job_id)
        before = [each for each in others if each.key <= place][::-1]
        after = [each for each in others if each.key > place]
        size = 0
        while True:
            near = [each.position for each in before[: size + 1]]
            positions = spread(near, [each.position for each in after[: size + 1]], size)
            if positions is not None:
                break
            size = 2 * size or 1
        window = [*before[:size][::-1], Standing(job_id, 0, job_id), *after[:size]]
        for each, position in zip(window, positions, strict=True):
            self.jobs[each.id] = each._replace(position=position)
        self.touched += len(window)

    def move(self, job_id: int, how: str, number: int) -> None:
        """Move it, or add it if it is new; in both ways."""
        others = [each for each in self.plain if each != job_id]
        if how == "front" or not others:
            index, place = 0, BEFORE_ALL
        elif how == "back":
            index, place = len(others), AFTER_ALL
        else:
            at = number % len(others)
            key = self.jobs[others[at]].key
            index, place = (at, just_before(key)) if how == "before" else (at + 1, key)
        self.plain = [*others[:index], job_id, *others[index:]]
        self.put(job_id, place)

    def check(self) -> None:
        assert [each.id for each in self.in_order()] == self.plain


MOVES = some.lists(
    some.tuples(
        some.integers(1, 12),
        some.sampled_from(["front", "back", "before", "after"]),
        some.integers(0, 11),
    ),
    max_size=60,
)


@pytest.mark.req("D11")
@given(some.lists(some.integers(-5, 5), max_size=8), MOVES)
def test_any_moves_and_inserts_give_the_order_of_a_plain_list(
    positions: list[int], moves: list[tuple[int, str, int]]
) -> None:
    queue = Queue(positions)
    for move in moves:
        queue.move(*move)
        queue.check()


@pytest.mark.parametrize("how", ["before", "after", "front", "back"])
def test_many_moves_to_one_place_touch_few_others(how: str) -> None:
    """The window is small as a rule, however many stand there."""
    queue = Queue([POSITION_GAP * each for each in range(500)])
    for job_id in range(501, 1501):
        queue.move(job_id, how, 250)
    queue.check()
    assert queue.touched < 40 * 1000


def test_the_middle_of_a_gap_is_taken_and_nobody_is_touched() -> None:
    assert spread([100], [200], 0) == [150]
    assert spread([100], [102], 0) == [101]
    assert spread([], [100], 0) == [0]
    assert spread([100], [], 0) == [200]
    assert spread([], [], 0) == [100]


def test_without_a_gap_the_window_grows() -> None:
    assert spread([100], [101], 0) is None
    assert spread([100], [100], 0) is None
    assert spread([100, 0], [101, 200], 1) == [50, 100, 150]
    assert spread([100, 99], [101, 102], 1) is None


def test_at_the_ends_there_is_always_room_also_below_zero() -> None:
    assert spread([5], [5, 6], 1) == [-294, -194, -94]
    assert spread([5, 4], [5], 1) == [104, 204, 304]


@given(
    some.integers(-9, 9),
    some.integers(-9, 9),
    some.integers(0, 10**15),
    some.integers(0, 10**15),
    some.integers(1, 10**13),
    some.integers(0, 10**15),
)
def test_a_level_orders_as_the_priority_at_any_time_would(
    one: int, other: int, born: int, later: int, ageing: int, passed: int
) -> None:
    """As exactly as whole levels can: one who counts a whole level more is at a higher one."""
    now = max(born, later) + passed
    counts = [each + (now - at) / ageing for each, at in ((one, born), (other, later))]
    levels = [level_of(one, born, ageing), level_of(other, later, ageing)]
    if counts[0] > counts[1] + 1.001:
        assert levels[0] > levels[1]
    if counts[1] > counts[0] + 1.001:
        assert levels[1] > levels[0]


def test_without_ageing_the_level_is_the_priority() -> None:
    assert level_of(7, 10**15, 0) == 7


@pytest.mark.req("D26")
def test_a_waiting_job_passes_one_that_came_so_many_hours_later() -> None:
    old, ageing = level_of(0, 0, HOUR), HOUR
    assert level_of(5, 4 * HOUR, ageing) > old
    assert level_of(5, 6 * HOUR, ageing) < old


def test_who_meet_in_one_level_keep_their_order() -> None:
    jobs = [
        Levelled(1, 0, 0, 0, 100),
        Levelled(2, 0, 0, 0, 900),
        Levelled(3, 0, HOUR, -1, -50),
        Levelled(4, 1, 2 * HOUR, -1, 100),
        Levelled(5, 0, HOUR, -1, 200),
    ]
    assert relevel(jobs, 0) == [(2, 0, 200), (3, 0, 300), (4, 1, 100), (5, 0, 400)]
    assert relevel(jobs, HOUR) == [(2, 0, 200), (3, -1, 100), (4, -1, 200), (5, -1, 300)]


def test_positions_are_dealt_out_in_the_order_wanted() -> None:
    places = [Standing(1, 300, 0), Standing(2, -7, 0), Standing(3, 100, 0)]
    assert exchanged(places, [1, 2, 3]) == {1: -7, 2: 100, 3: 300}
