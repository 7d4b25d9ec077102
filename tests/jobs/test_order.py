"""Waiting jobs can be moved and reordered; what is stored, what is woken, and what is refused."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from harness import Bench
from headway.base.errors import InvalidInputError, InvalidOperationError, NotFoundError
from headway.core.model import Stage
from headway.core.order import Place, Side
from headway.core.states import Status
from headway.jobs.edit import Changes, edit
from headway.jobs.order import move, reorder
from headway.jobs.request import Request
from headway.jobs.specification import parse_lock
from headway.testing.clock import FakeClock

HOUR = 3_600_000_000

FRONT, BACK = Place(Side.FRONT), Place(Side.BACK)


def before(job: int) -> Place:
    return Place(Side.BEFORE, job)


def after(job: int) -> Place:
    return Place(Side.AFTER, job)


def rank(number: int) -> Place:
    return Place(Side.POSITION, number)


def queue(bench: Bench) -> list[int]:
    with bench.store.read() as tx:
        return [job.id for job in tx.queue_order.waiting(1000)]


def copies_are_true(bench: Bench) -> bool:
    """What waiters are found by says the same as the jobs."""
    with bench.store.read() as tx:
        database = bench.store.database  # type: ignore[attr-defined]
        rows = database.execute("select job_id, level, position from waits", {})
        jobs = tx.jobs.by_id([row[0] for row in rows])
    return all(
        (jobs[job_id].dispatch_level, jobs[job_id].position) == (level, position)
        for job_id, level, position in rows
    )


def started(bench: Bench) -> list[int]:
    with bench.store.read() as tx:
        return [
            each.job_id
            for each in tx.events.since(0, 10_000)
            if each.kind == "running" and each.job_id is not None
        ]


@pytest.fixture
def five(bench: Bench) -> list[int]:
    bench.client.pause("nothing starts")
    return [bench.submit("true") for _ in range(5)]


@pytest.mark.req("D11")
@pytest.mark.parametrize(
    ("mover", "where", "expected"),
    [
        (4, FRONT, [4, 1, 2, 3, 5]),
        (1, FRONT, [1, 2, 3, 4, 5]),
        (2, BACK, [1, 3, 4, 5, 2]),
        (5, before(2), [1, 5, 2, 3, 4]),
        (1, before(2), [1, 2, 3, 4, 5]),
        (1, after(3), [2, 3, 1, 4, 5]),
        (4, after(3), [1, 2, 3, 4, 5]),
        (4, rank(1), [4, 1, 2, 3, 5]),
        (1, rank(3), [2, 3, 1, 4, 5]),
        (3, rank(3), [1, 2, 3, 4, 5]),
        (3, rank(99), [1, 2, 4, 5, 3]),
    ],
)
def test_a_job_is_moved(
    bench: Bench, five: list[int], mover: int, where: Place, expected: list[int]
) -> None:
    told = move(bench.client.context, mover, where)
    assert queue(bench) == expected
    assert told.moved is (expected != five)
    assert told.job == bench.job(mover)
    assert bench.kinds(mover).count("moved") == int(told.moved)


def test_the_event_says_where_it_was_put(bench: Bench, five: list[int]) -> None:
    move(bench.client.context, 5, before(2))
    (event,) = [each for each in bench.events(5) if each.kind == "moved"]
    assert event.data == {"place": "before job-2", "from": 500, "position": 150}
    assert event.actor == "tester"


@pytest.mark.req("D4", "D11")
def test_an_order_that_was_changed_is_the_order_of_dispatch(bench: Bench, five: list[int]) -> None:
    move(bench.client.context, 3, FRONT)
    move(bench.client.context, 5, after(3))
    reorder(bench.client.context, [4, 1])
    assert queue(bench) == [3, 5, 4, 2, 1]
    bench.client.resume()
    bench.until_ended(*five)
    assert started(bench) == [3, 5, 4, 2, 1]


@pytest.mark.req("D4")
def test_priority_goes_before_position(bench: Bench, five: list[int]) -> None:
    urgent = bench.submit("true", priority=1)
    move(bench.client.context, 4, FRONT)
    assert queue(bench) == [urgent, 4, 1, 2, 3, 5]


@pytest.mark.req("D11")
def test_a_gap_that_is_used_up_is_made_anew(bench: Bench, five: list[int]) -> None:
    expected = [1, 2, 3, 4, 5]
    for number in range(60):
        mover = (4, 5)[number % 2]
        move(bench.client.context, mover, after(1))
        expected = [1, mover, *(each for each in expected[1:] if each != mover)]
        assert queue(bench) == expected


@pytest.mark.req("D11")
@pytest.mark.parametrize("seed", range(3))
def test_random_moves_give_the_order_of_a_plain_list(bench: Bench, seed: int) -> None:
    bench.client.pause("nothing starts")
    lots = random.Random(seed)
    plain = [bench.submit("true", delay=lots.choice([0, HOUR])) for _ in range(6)]
    for _ in range(25):
        job, other = lots.sample(plain, 2)
        side = lots.choice(list(Side))
        number = {Side.BEFORE: other, Side.AFTER: other, Side.POSITION: lots.randint(1, 7)}
        move(bench.client.context, job, Place(side, number.get(side, 0)))
        rest = [each for each in plain if each != job]
        index = {
            Side.FRONT: 0,
            Side.BACK: len(rest),
            Side.BEFORE: rest.index(other),
            Side.AFTER: rest.index(other) + 1,
            Side.POSITION: number[Side.POSITION] - 1,
        }[side]
        plain = [*rest[:index], job, *rest[index:]]
        assert queue(bench) == plain
        if lots.random() < 0.3:
            some = lots.sample(plain, 3)
            places = iter(some)
            plain = [next(places) if each in some else each for each in plain]
            reorder(bench.client.context, some)
            assert queue(bench) == plain
        bench.step()


# -- bulk --------------------------------------------------------------------------------------


@pytest.mark.req("D11")
def test_several_take_their_places_in_the_order_given(bench: Bench, five: list[int]) -> None:
    told = reorder(bench.client.context, [5, 3, 1])
    assert queue(bench) == [5, 2, 3, 4, 1]
    assert [(each.job.id, each.moved) for each in told] == [(5, True), (3, False), (1, True)]
    assert [bench.kinds(each).count("moved") for each in (1, 2, 3, 4, 5)] == [1, 0, 0, 0, 1]


def test_jobs_that_share_a_position_can_be_reordered(bench: Bench, five: list[int]) -> None:
    with bench.store.write() as tx:
        tx.queue_order.place([(each, 0, 100) for each in (1, 2, 3, 4)])
    assert queue(bench) == [1, 2, 3, 4, 5]
    reorder(bench.client.context, [4, 2])
    assert queue(bench) == [1, 4, 3, 2, 5]


@pytest.mark.parametrize("jobs", [[1, 9], [1, 2, 1], [1, 6]], ids=str)
def test_a_bulk_change_is_whole_or_not_at_all(
    bench: Bench, five: list[int], jobs: list[int]
) -> None:
    bench.submit("true", priority=2)
    with pytest.raises((NotFoundError, InvalidInputError, InvalidOperationError)):
        reorder(bench.client.context, jobs)
    assert queue(bench) == [6, 1, 2, 3, 4, 5]


# -- what cannot be moved ----------------------------------------------------------------------


def test_what_runs_or_has_ended_has_no_place(bench: Bench) -> None:
    job = bench.submit("sleep", "60", grace=0)
    other = bench.submit("true")
    bench.until(lambda: bench.status(job) is Status.RUNNING)
    for call in (
        lambda: move(bench.client.context, job, FRONT),
        lambda: move(bench.client.context, other, before(job)),
        lambda: reorder(bench.client.context, [other, job]),
    ):
        with pytest.raises(InvalidOperationError, match="job-1 is running") as refused:
            call()
        assert refused.value.exit_code == 4
    bench.client.cancel([job])
    bench.until_ended(job)
    with pytest.raises(InvalidOperationError, match="job-1 is cancelled"):
        move(bench.client.context, job, FRONT)


def test_the_waiting_retry_of_a_job_is_named(bench: Bench) -> None:
    job = bench.submit("false", retries=1, retry_base=HOUR)
    bench.until(lambda: bench.last(job).id != job)
    with pytest.raises(InvalidOperationError, match=f"of its chain job-{bench.last(job).id} waits"):
        move(bench.client.context, job, FRONT)


def test_beside_a_job_of_another_priority_the_next_step_is_said(
    bench: Bench, five: list[int]
) -> None:
    urgent = bench.submit("true", priority=7)
    with pytest.raises(InvalidOperationError) as refused:
        move(bench.client.context, 2, before(urgent))
    assert "job-6 has priority 7 and job-2 has 0" in str(refused.value)
    assert "headway jobs edit job-2 --priority 7" in str(refused.value)
    edit(bench.client.context, 2, Changes(priority=7))
    move(bench.client.context, 2, before(urgent))
    assert queue(bench) == [2, urgent, 1, 3, 4, 5]


@pytest.mark.parametrize("where", [before(1), after(1), rank(0)], ids=str)
def test_a_place_that_makes_no_sense(bench: Bench, five: list[int], where: Place) -> None:
    with pytest.raises(InvalidInputError) as refused:
        move(bench.client.context, 1, where)
    assert refused.value.exit_code == 5
    assert queue(bench) == five


# -- waking ------------------------------------------------------------------------------------


@pytest.fixture
def promised(make_bench: Callable[..., Bench]) -> tuple[Bench, int, int]:
    """One job waits for two locks, of which one is free and promised to it; another wants that."""
    bench = make_bench(max_active=5)
    holder = bench.submit("sleep", "60", locks=(parse_lock("b"),), grace=0)
    bench.until(lambda: bench.status(holder) is Status.RUNNING)
    first = bench.submit("true", locks=(parse_lock("a"), parse_lock("b")))
    second = bench.submit("sleep", "60", locks=(parse_lock("a"),), grace=0)
    bench.step()
    assert [bench.status(each) for each in (first, second)] == [Status.WAITING_ON_LOCKS] * 2
    return bench, first, second


CHANGES: dict[str, Callable[[Bench, int, int], Any]] = {
    "back": lambda bench, first, second: move(bench.client.context, first, BACK),
    "after": lambda bench, first, second: move(bench.client.context, first, after(second)),
    "front": lambda bench, first, second: move(bench.client.context, second, FRONT),
    "before": lambda bench, first, second: move(bench.client.context, second, before(first)),
    "reorder": lambda bench, first, second: reorder(bench.client.context, [second, first]),
    "lower": lambda bench, first, second: edit(bench.client.context, first, Changes(priority=-1)),
    "higher": lambda bench, first, second: edit(bench.client.context, second, Changes(priority=1)),
}


@pytest.mark.parametrize("how", CHANGES)
def test_who_now_stands_before_gets_what_was_promised(
    promised: tuple[Bench, int, int], how: str
) -> None:
    bench, first, second = promised
    CHANGES[how](bench, first, second)
    assert copies_are_true(bench)
    bench.step()
    assert bench.status(second) is Status.RUNNING
    assert bench.status(first) is Status.WAITING_ON_LOCKS
    assert copies_are_true(bench)


@pytest.mark.parametrize("how", ["front", "higher"])
def test_who_stays_before_keeps_what_was_promised(
    promised: tuple[Bench, int, int], how: str
) -> None:
    bench, first, second = promised
    CHANGES[how](bench, second, first)
    bench.step()
    assert [bench.status(each) for each in (first, second)] == [Status.WAITING_ON_LOCKS] * 2
    assert copies_are_true(bench)


def test_room_that_is_made_moves_the_copies_of_others_too(
    promised: tuple[Bench, int, int],
) -> None:
    bench, first, second = promised
    third = bench.submit("true", locks=(parse_lock("a"),))
    bench.step()
    with bench.store.write() as tx:
        places = {first: 100, second: 101, third: 102}
        tx.queue_order.place([(each, 0, position) for each, position in places.items()])
    move(bench.client.context, third, after(first))
    assert queue(bench) == [first, third, second]
    assert bench.job(second).stage is Stage.PARKED, "it was only given another number"
    assert copies_are_true(bench)


# -- submit ------------------------------------------------------------------------------------


@pytest.mark.req("D11")
def test_a_job_is_submitted_to_a_place(bench: Bench, five: list[int]) -> None:
    front = bench.submit("true", position=1)
    third = bench.submit("true", position=3)
    last = bench.submit("true", position=99)
    urgent = bench.submit("true", position=2, priority=1)
    assert queue(bench) == [urgent, front, 1, third, 2, 3, 4, 5, last]
    assert "moved" not in bench.kinds(front)


def test_places_of_one_submit_are_taken_one_after_the_other(bench: Bench, five: list[int]) -> None:
    requests = [
        Request(argv=("true",), position=1),
        Request(argv=("true",)),
        Request(argv=("true",), position=1),
        Request(argv=("true",), position=3, local="x"),
        Request(argv=("true",), position=1, after=("x",)),
    ]
    made = [each.job_id for each in bench.client.submit_many(requests)]
    assert made == [6, 7, 8, 9, 10]
    assert queue(bench) == [10, 8, 6, 9, 1, 2, 3, 4, 5, 7]
    assert bench.job(10).stage is Stage.PARKED and copies_are_true(bench)


def test_a_key_seen_before_moves_nothing(bench: Bench, five: list[int]) -> None:
    first = bench.submit("true", key="k", position=3)
    move(bench.client.context, first, BACK)
    assert bench.submit("true", key="k", position=3) == first
    assert queue(bench) == [*five, first]


def test_a_place_below_one_is_refused(bench: Bench) -> None:
    with pytest.raises(InvalidInputError, match="position 0 is less than 1"):
        bench.submit("true", position=0)


# -- ageing ------------------------------------------------------------------------------------


def starve(bench: Bench, clock: FakeClock) -> bool:
    """Whether a low job still waits after a day in which a higher one came every hour."""
    bench.client.pause("one at a time")
    low = bench.submit("true")
    for _ in range(24):
        clock.advance(3600)
        bench.submit("true", priority=5)
        bench.client.resume()
        bench.step(limit=1)
        bench.client.pause("one at a time")
        bench.until(lambda: not bench._live())
    return bench.status(low) is not Status.SUCCEEDED


# fault H10
@pytest.mark.req("D26")
@pytest.mark.parametrize(("ageing", "starves"), [("0s", True), ("1h", False)])
def test_only_without_ageing_an_endless_stream_starves_a_low_job(
    make_bench: Callable[..., Bench], ageing: str, starves: bool
) -> None:
    clock = FakeClock()
    bench = make_bench(clock=clock)
    bench.client.set_setting("scheduler.ageing", ageing)
    bench.submit("true", priority=5)  # always one more than can start
    assert starve(bench, clock) is starves


@pytest.fixture
def aged(make_bench: Callable[..., Bench]) -> tuple[Bench, FakeClock]:
    clock = FakeClock()
    bench = make_bench(clock=clock)
    bench.client.pause("nothing starts")
    return bench, clock


def test_a_changed_ageing_puts_everyone_in_order_and_back(aged: tuple[Bench, FakeClock]) -> None:
    bench, clock = aged
    old, moved = bench.submit("true"), bench.submit("true", locks=(parse_lock("a"),))
    move(bench.client.context, moved, FRONT)
    clock.advance(3 * 3600)
    new = [bench.submit("true", priority=each) for each in (0, 2, 4)]
    bench.step()
    assert queue(bench) == [new[2], new[1], moved, old, new[0]]
    bench.client.set_setting("scheduler.ageing", "1h")
    assert queue(bench) == [new[2], moved, old, new[1], new[0]]
    assert copies_are_true(bench)
    clock.advance(3 * 3600)
    late = bench.submit("true", priority=8)
    later = bench.submit("true")
    assert queue(bench) == [late, new[2], moved, old, new[1], new[0], later]
    bench.client.set_setting("scheduler.ageing", "0s")
    assert queue(bench) == [late, new[2], new[1], moved, old, new[0], later]
    assert bench.job(later).level is None and copies_are_true(bench)


def test_an_ageing_that_is_unset_puts_everyone_back(aged: tuple[Bench, FakeClock]) -> None:
    bench, clock = aged
    bench.client.set_setting("scheduler.ageing", "1h")
    old = bench.submit("true")
    clock.advance(3 * 3600)
    new = bench.submit("true", priority=2)
    assert queue(bench) == [old, new]
    bench.client.scheduler.unset("scheduler.ageing")
    assert queue(bench) == [new, old]
    assert copies_are_true(bench)


def test_another_priority_leaves_the_age_as_it_is(aged: tuple[Bench, FakeClock]) -> None:
    bench, clock = aged
    bench.client.set_setting("scheduler.ageing", "1h")
    old = bench.submit("true")
    clock.advance(3 * 3600)
    new = bench.submit("true", priority=2)
    assert queue(bench) == [old, new]
    with pytest.raises(InvalidOperationError, match="counts 1 higher") as refused:
        move(bench.client.context, new, before(old))
    assert f"jobs edit job-{new} --priority 3" in str(refused.value)
    edit(bench.client.context, new, Changes(priority=3))
    assert bench.job(new).dispatch_level == bench.job(old).dispatch_level
    move(bench.client.context, new, before(old))
    assert queue(bench) == [new, old]


def test_a_retry_is_as_old_as_its_chain(make_bench: Callable[..., Bench]) -> None:
    clock = FakeClock()
    bench = make_bench(clock=clock)
    job = bench.submit("false")
    bench.until_ended(job)
    clock.advance(10 * 3600)
    bench.client.set_setting("scheduler.ageing", "1h")
    bench.client.pause("nothing starts")
    other = bench.submit("true", priority=5)
    again = bench.client.retry(job).id
    assert queue(bench) == [again, other]
    bench.client.set_setting("scheduler.ageing", "0s")
    assert queue(bench) == [other, again]


def test_who_comes_first_for_a_lock_by_another_ageing_gets_it(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock()
    bench = make_bench(clock=clock, max_active=5)
    bench.client.set_setting("scheduler.ageing", "1h")
    holder = bench.submit("sleep", "60", locks=(parse_lock("b"),), grace=0)
    bench.until(lambda: bench.status(holder) is Status.RUNNING)
    old = bench.submit("true", locks=(parse_lock("a"), parse_lock("b")))
    clock.advance(3 * 3600)
    new = bench.submit("sleep", "60", locks=(parse_lock("a"),), grace=0, priority=1)
    bench.step()
    assert bench.status(new) is Status.WAITING_ON_LOCKS, "the old one counts for more"
    bench.client.set_setting("scheduler.ageing", "0s")
    bench.step()
    assert bench.status(new) is Status.RUNNING
    assert bench.status(old) is Status.WAITING_ON_LOCKS
