"""Was each slot of each schedule fired or skipped, and that once? Nothing of Headway is imported.

What the slots are follows from the rule alone: every `period` after its anchor. What became of them
is read with plain SQL, and what ran, from the ledger that the jobs themselves wrote.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from torture.database import Select

SECOND = 1_000_000


class Timetable(NamedTuple):
    """One schedule; all times are microseconds."""

    id: int
    anchor: int
    period: int
    since: int  # no slot at or before
    overlap: str


class Firing(NamedTuple):
    schedule: int
    slot: int
    last_slot: int
    slots: int
    outcome: str
    job: int | None
    at: int


class Made(NamedTuple):
    """A job, with its one execution."""

    id: int
    schedule: int
    retry_of: int | None
    status: str
    started_at: int | None
    finished_at: int | None


class Seen(NamedTuple):
    timetables: list[Timetable]
    firings: list[Firing]
    jobs: list[Made]
    ledger: list[int]  # the ids of the jobs that ran, as they wrote them down
    from_to: tuple[int, int]  # the time in which every slot must have been looked at


class Counted(NamedTuple):
    slots: int
    fired: int
    skipped: int
    worst_delay: float  # seconds from a slot to its job


def gather(select: Select, ledger: Path, from_to: tuple[int, int]) -> Seen:
    timetables = []
    for number, document, since in select(
        "select id, document, created_at from schedules order by id"
    ):
        said = json.loads(document)
        rule = said["rule"]
        timetables.append(Timetable(number, rule["anchor"], rule["every"], since, said["overlap"]))
    firings = select("select schedule_id, slot, last_slot, slots, outcome, job_id, at from firings")
    jobs = select(
        "select j.id, j.schedule_id, j.retry_of, j.status, r.started_at, r.finished_at"
        " from jobs j left join runs r on r.job_id = j.id where j.schedule_id is not null"
    )
    written = ledger.read_text().split() if ledger.exists() else []
    return Seen(
        timetables,
        [Firing(*row) for row in firings],
        [Made(row[0], int(row[1].removeprefix("schedule-")), *row[2:]) for row in jobs],
        [int(word.removeprefix("job-")) for word in written],
        from_to,
    )


def counted(seen: Seen) -> Counted:
    fired = [each for each in seen.firings if each.outcome == "fired"]
    skipped = sum(each.slots for each in seen.firings if each.outcome == "skipped")
    worst = max((each.at - each.slot for each in fired), default=0) / SECOND
    return Counted(len(fired) + skipped, len(fired), skipped, worst)


def violations(seen: Seen) -> list[str]:
    """What is wrong, in words."""
    found: list[str] = []
    of_schedule: dict[int, list[Firing]] = {}
    for firing in seen.firings:
        of_schedule.setdefault(firing.schedule, []).append(firing)
    for timetable in seen.timetables:
        rows = sorted(of_schedule.pop(timetable.id, []), key=lambda each: each.slot)
        found += _slots(timetable, rows, seen.from_to)
    found += [f"schedule-{each}: slots of a schedule that nobody made" for each in of_schedule]
    found += _jobs(seen)
    found += _executions(seen)
    return found


def _slots(timetable: Timetable, rows: list[Firing], from_to: tuple[int, int]) -> Iterator[str]:
    """Every slot from the first to the last is in one row: none missing, none in two."""
    name, period = f"schedule-{timetable.id}", timetable.period
    if not rows:
        yield f"{name}: nothing is known of any slot"
        return
    first = timetable.since + period - (timetable.since - timetable.anchor) % period
    if rows[0].slot != first:
        yield f"{name}: its first slot is {first}, but {rows[0].slot} is on the books"
    if rows[-1].last_slot + period <= from_to[1]:
        yield f"{name}: slots after {rows[-1].last_slot} are lost; it ended at {from_to[1]}"
    for row in rows:
        if (row.slot - timetable.anchor) % period or (row.last_slot - row.slot) % period:
            yield f"{name}: {row.slot} is no slot of it"
        if row.slots != (row.last_slot - row.slot) // period + 1:
            yield f"{name}: {row.slots} slots from {row.slot} to {row.last_slot}"
        if row.at < row.last_slot:
            yield f"{name}: {row.last_slot} was looked at before its time"
        if (row.outcome == "fired") != (row.job is not None) or (
            row.job is not None and row.slots > 1
        ):
            yield f"{name}: {row.slot} was {row.outcome}, with job {row.job}"
    for before, after in pairwise(rows):
        if after.slot <= before.last_slot:
            yield f"{name}: {after.slot} is on the books twice"
        elif after.slot != before.last_slot + period:
            yield f"{name}: slots between {before.last_slot} and {after.slot} are lost"


def _jobs(seen: Seen) -> Iterator[str]:
    """Each slot that fired has one job, and each job but a retry stands for one slot."""
    stand_for = Counter(each.job for each in seen.firings if each.job is not None)
    made = {each.id: each for each in seen.jobs}
    for job, slots in stand_for.items():
        if slots > 1:
            yield f"job-{job} stands for {slots} slots"
        if job not in made:
            yield f"job-{job} of a slot is not there"
    for firing in seen.firings:
        if firing.job in made and made[firing.job].schedule != firing.schedule:
            yield f"job-{firing.job} is not of schedule-{firing.schedule}"
    for each in seen.jobs:
        if each.retry_of is None and each.id not in stand_for:
            yield f"job-{each.id} of schedule-{each.schedule} stands for no slot"
        if each.status not in ("succeeded", "cancelled"):
            yield f"job-{each.id} is {each.status}"


def _executions(seen: Seen) -> Iterator[str]:
    ran = Counter(seen.ledger)
    overlaps = {each.id: each.overlap for each in seen.timetables}
    of_schedule: dict[int, list[Made]] = {}
    for each in seen.jobs:
        # One that another took the place of was perhaps ended before it could write.
        least = 1 if each.status == "succeeded" else 0
        if not least <= ran.pop(each.id, 0) <= 1:
            yield f"job-{each.id} is {each.status} and ran {Counter(seen.ledger)[each.id]} times"
        if each.status == "cancelled" and overlaps.get(each.schedule) != "replace":
            yield f"job-{each.id} was cancelled, and nothing takes its place"
        if each.started_at is not None:
            of_schedule.setdefault(each.schedule, []).append(each)
    for job, times in ran.items():
        yield f"job-{job} ran {times} times and is not there"
    for number, jobs in of_schedule.items():
        ordered = sorted(jobs, key=lambda each: each.started_at or 0)
        for before, after in pairwise(ordered):
            if before.finished_at is None or (after.started_at or 0) < before.finished_at:
                yield f"schedule-{number}: job-{before.id} and job-{after.id} ran at once"
