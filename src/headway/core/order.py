"""Where a job stands: levels, the positions inside of one, and room for one more. Pure.

Jobs go by `(-level, position, created_at, id)`. A position is an integer, of either sign, and says
nothing by itself: only the order counts. Neighbours are a gap apart, so that one more finds its
place between them without touching anybody.

When a gap is used up, those around it are spread out again. The window of those that are touched
is doubled until it has room. A small window is content with little room, a larger one wants more:
so whoever was spread out along with many others has room for many, and moves to one and the same
place, however often, cost little each. Nobody outside of the window is touched, and beyond the
first and the last of a level there is always room.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from headway.core.model import POSITION_GAP, JobId

# (position, created_at, id): who comes after whom inside of one level.
Key = tuple[int, int, int]

_FAR = 1 << 62
BEFORE_ALL: Key = (-_FAR, 0, 0)
AFTER_ALL: Key = (_FAR, 0, 0)

_LEAST_STEP = 2
_MOST_STEP = POSITION_GAP // 4  # jobs that were only appended have four times as much


class Side(StrEnum):
    FRONT = "front"
    BACK = "back"
    BEFORE = "before"
    AFTER = "after"
    POSITION = "position"


class Place(NamedTuple):
    """Where someone wants a job: `number` is the other job, or the rank from 1."""

    side: Side
    number: int = 0


class Standing(NamedTuple):
    """A waiting job, as far as its place goes."""

    id: JobId
    position: int
    created_at: int

    @property
    def key(self) -> Key:
        return (self.position, self.created_at, self.id)


class Neighbours(NamedTuple):
    """The jobs around a place in a level, the nearest first."""

    before: tuple[Standing, ...] = ()
    after: tuple[Standing, ...] = ()


def level_of(priority: int, born: int, ageing: int) -> int:
    """The priority that dispatch goes by; `born` is when the first job of its chain was submitted.

    With ageing a job gains one priority for every `ageing` that it has waited: at a time `t` it
    counts `priority + (t - born) / ageing`. All jobs gain at the same rate, so the difference of
    two of them is the same at every `t`, and `priority - born / ageing` orders them once and for
    all. Nothing is to be recomputed while time passes. It is rounded to whole levels, so that
    those of one priority who came within one `ageing` keep to positions among themselves.
    """
    return priority - born // ageing if ageing > 0 else priority


def just_before(other: Key) -> Key:
    """The place right before this job: everyone up to the key is before it, the rest after."""
    position, created_at, job_id = other
    return (position, created_at, job_id - 1)


def spread(before: Sequence[int], after: Sequence[int], size: int) -> list[int] | None:
    """New positions for `size` on each side of a place and for the one that is put between them,
    in order; None if the window has not enough room.

    `before` and `after` are the present positions, the nearest first, and of one more than `size`
    on each side unless the level ends there.
    """
    count = min(size, len(before)) + 1 + min(size, len(after))
    low = before[size] if len(before) > size else None
    high = after[size] if len(after) > size else None
    step = POSITION_GAP
    if low is not None and high is not None:
        step = (high - low) // (count + 1)
        if step < _wanted(size):
            return None
    if low is None:
        low = high - step * (count + 1) if high is not None else (after or before or (0,))[0]
    return [low + step * (each + 1) for each in range(count)]


def _wanted(size: int) -> int:
    """The room that each must have in a window of this size."""
    if size == 0:
        return 1
    return min(_MOST_STEP, int(_LEAST_STEP * 1.5 ** size.bit_length()))


class Levelled(NamedTuple):
    """An active job, as far as a change of ageing concerns it; in dispatch order they come."""

    id: JobId
    priority: int
    born: int
    level: int
    position: int


def relevel(jobs: Iterable[Levelled], ageing: int) -> list[tuple[JobId, int, int]]:
    """Level and position of each whose place becomes another one; `jobs` are in dispatch order.

    Those that meet in one level keep the order that they had: positions of different levels have
    nothing to do with each other, so they are given anew.
    """
    last: dict[int, int] = {}
    changed = []
    for job in jobs:
        level = level_of(job.priority, job.born, ageing)
        position = last[level] = last.get(level, 0) + POSITION_GAP
        if (level, position) != (job.level, job.position):
            changed.append((job.id, level, position))
    return changed


def exchanged(places: Iterable[Standing], wanted: Sequence[JobId]) -> Mapping[JobId, int]:
    """The positions of these jobs, which must all differ, dealt out in the order that is wanted."""
    positions = sorted(each.position for each in places)
    return dict(zip(wanted, positions, strict=True))
