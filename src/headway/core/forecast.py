"""When will a waiting job start? Slots are played through with how long jobs took so far. Pure.

It knows the order, the cap, times and `after`. Of other things that a job may wait for (a person, a
lock, a commit) nobody knows how long they take: such a job is left out, and has no estimate.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from headway.core.model import Job, JobId
from headway.core.policies import ENTRY, SLOT


class Expected(NamedTuple):
    """A waiting job. `takes` is None if nobody knows; it is due in so many microseconds, unless
    what it waits for is not known to end (None), and only after these have ended."""

    id: JobId
    takes: int | None
    due_in: int | None = 0
    after: tuple[JobId, ...] = ()
    place: str = SLOT


class Pace(NamedTuple):
    """How long jobs of each name took in the past."""

    by_name: Mapping[str, int]

    def of(self, name: str) -> int | None:
        """None if no job of that name has ended: what others took says nothing about it."""
        return self.by_name.get(name)


def pace_of(ended: Iterable[Job]) -> Pace:
    """The means of jobs that ran to an end."""
    taken: dict[str, list[int]] = {}
    for job in ended:
        if job.started_at is not None and job.finished_at is not None:
            taken.setdefault(job.name, []).append(max(0, job.finished_at - job.started_at))
    return Pace({name: sum(times) // len(times) for name, times in taken.items()})


def forecast(
    waiting: Sequence[Expected],
    running: Mapping[JobId, int | None],
    slots: int | None,
    *,
    parallel: int = 4,
    entries: Collection[JobId] = (),
) -> dict[JobId, int]:
    """In how many microseconds each of these starts, of those that can be told; `waiting` is in
    dispatch order, `running` says what each still takes, `slots` is the cap. `parallel` is that of
    the places for entries of the jobs file, which `entries` of those that run have."""
    has = {job_id: ENTRY if job_id in entries else SLOT for job_id in running}
    stage = _Stage(waiting, running, has, {SLOT: slots, ENTRY: parallel})
    now: int | None = 0
    while now is not None:
        stage.start_what_may(now)
        now = stage.next_change()
    return stage.started


class _Stage:
    def __init__(
        self,
        waiting: Sequence[Expected],
        running: Mapping[JobId, int | None],
        has: Mapping[JobId, str],
        caps: Mapping[str, int | None],
    ) -> None:
        self.started: dict[JobId, int] = {}
        self._waiting = waiting
        self._has = dict(has)
        self._free = {
            place: len(waiting) if cap is None else cap - [*has.values()].count(place)
            for place, cap in caps.items()
        }
        self._ends = [(left, job_id) for job_id, left in running.items() if left is not None]
        heapify(self._ends)
        self._ready: dict[str, list[int]] = {place: [] for place in caps}  # places in the order
        self._later: list[tuple[int, int]] = []
        self._lacks: dict[int, int] = {}
        self._dependents: dict[JobId, list[int]] = {}
        active = {*running, *(each.id for each in waiting)}
        for place, each in enumerate(waiting):
            awaited = [other for other in each.after if other in active]
            self._lacks[place] = len(awaited)
            for other in awaited:
                self._dependents.setdefault(other, []).append(place)
            if not awaited:
                self._come(place)

    def _come(self, place: int) -> None:
        due_in = self._waiting[place].due_in
        if due_in is not None:
            heappush(self._later, (due_in, place))

    def start_what_may(self, now: int) -> None:
        while self._ends and self._ends[0][0] <= now:
            self._end(heappop(self._ends)[1])
        while self._later and self._later[0][0] <= now:
            number = heappop(self._later)[1]
            heappush(self._ready[self._waiting[number].place], number)
        for place, ready in self._ready.items():
            while ready and self._free[place] > 0:
                self._start(self._waiting[heappop(ready)], now)

    def _start(self, job: Expected, now: int) -> None:
        self.started[job.id] = now
        self._has[job.id] = job.place
        self._free[job.place] -= 1
        if job.takes is not None:  # else its slot is never seen free again
            heappush(self._ends, (now + job.takes, job.id))

    def _end(self, job_id: JobId) -> None:
        self._free[self._has[job_id]] += 1
        for place in self._dependents.get(job_id, ()):
            self._lacks[place] -= 1
            if not self._lacks[place]:
                self._come(place)

    def next_change(self) -> int | None:
        times = [heap[0][0] for heap in (self._ends, self._later) if heap]
        return min(times, default=None)
