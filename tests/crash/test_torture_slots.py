"""Schedules under kills, and a checker of slots that finds each single fault."""

from pathlib import Path

import pytest

from torture.slots import Counted, Firing, Made, Seen, Timetable, counted, violations
from torture.timetable import Arena, torture

S = 1_000_000
SINCE = 500_500_000  # the first slot after it is 501 s


def firing(slot: int, job: int | None = None, *, until: int | None = None, at: int = 0) -> Firing:
    last = until or slot
    outcome = "skipped" if job is None else "fired"
    return Firing(1, slot * S, last * S, last - slot + 1, outcome, job, at or last * S + 5)


def made(job: int, began: int, ended: int, status: str = "succeeded") -> Made:
    return Made(job, 1, None, status, began * S, ended * S)


FIRINGS = [firing(501, 7), firing(502, until=504), firing(505, 8), firing(506, 9)]
JOBS = [made(7, 501, 505), made(8, 505, 506), made(9, 506, 507)]
LEDGER = [7, 8, 9]


def seen(
    firings: list[Firing] | None = None,
    jobs: list[Made] | None = None,
    ledger: list[int] | None = None,
    overlap: str = "skip",
) -> Seen:
    return Seen(
        [Timetable(1, 0, S, SINCE, overlap)],
        FIRINGS if firings is None else firings,
        JOBS if jobs is None else jobs,
        LEDGER if ledger is None else ledger,
        (SINCE, 506 * S + 900_000),
    )


def test_what_is_in_order_is_found_so() -> None:
    assert violations(seen()) == []
    assert counted(seen()) == Counted(6, 3, 3, 5 / S)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (seen(firings=[]), "nothing is known"),
        (seen(firings=FIRINGS[1:]), "its first slot is"),
        (seen(firings=FIRINGS[:3]), "are lost; it ended"),
        (seen(firings=[FIRINGS[0], *FIRINGS[2:]]), "between 501000000 and 505000000 are lost"),
        (seen(firings=[*FIRINGS, firing(503)]), "on the books twice"),
        (seen(firings=[*FIRINGS[:3], FIRINGS[3], firing(506, 8)]), "on the books twice"),
        (seen(firings=[*FIRINGS[:3], firing(506, 9, at=505 * S)]), "before its time"),
        (seen(firings=[*FIRINGS[:3], FIRINGS[3]._replace(job=None)]), "was fired, with job None"),
        (seen(firings=[*FIRINGS[:3], FIRINGS[3]._replace(slot=506 * S + 1)]), "is no slot of it"),
        (seen(firings=[FIRINGS[0], FIRINGS[1]._replace(slots=2), *FIRINGS[2:]]), "2 slots from"),
        (seen(firings=[*FIRINGS[:3], firing(506, 8)]), "job-8 stands for 2 slots"),
        (seen(jobs=JOBS[:2]), "job-9 of a slot is not there"),
        (seen(jobs=[*JOBS[:2], JOBS[2]._replace(schedule=2)]), "is not of schedule-1"),
        (seen(jobs=[*JOBS, made(10, 508, 509)]), "stands for no slot"),
        (seen(jobs=[*JOBS[:2], made(9, 506, 507, "running")]), "job-9 is running"),
        (seen(jobs=[*JOBS[:2], made(9, 506, 507, "cancelled")]), "nothing takes its place"),
        (seen(ledger=[7, 8]), "job-9 is succeeded and ran 0 times"),
        (seen(ledger=[*LEDGER, 9]), "job-9 is succeeded and ran 2 times"),
        (seen(ledger=[*LEDGER, 10]), "job-10 ran 1 times and is not there"),
        (seen(jobs=[made(7, 501, 506), *JOBS[1:]]), "job-7 and job-8 ran at once"),
    ],
)
def test_each_single_fault_is_found(wrong: Seen, word: str) -> None:
    assert any(word in text for text in violations(wrong)), violations(wrong)


def test_a_job_that_was_replaced_may_have_written_nothing() -> None:
    jobs = [*JOBS[:2], made(9, 506, 507, "cancelled")]
    assert violations(seen(jobs=jobs, ledger=[7, 8], overlap="replace")) == []


@pytest.mark.req("D24")
def test_killed_workers_lose_no_slot_and_fire_none_twice(tmp_path: Path, postgres_url: str) -> None:
    """`make torture SCHEDULES=200` is the same for longer."""  # fault E8
    arena = Arena(tmp_path / "arena", postgres_url)
    try:
        tortured, found = torture(arena, schedules=8, seconds=1.5, seed=1)
    finally:
        arena.close()
    assert violations(found) == []
    assert tortured.caught_up
    assert tortured.came_to_rest
    assert tortured.kills and counted(found).fired
