"""Numbers over time: what ended, waited and ran, how long runs took, what agents used.

They are derived from the rows of jobs when somebody asks; nothing is kept for them. No answer reads
more than a bounded number of rows, so one about a busy store may know less than it was asked for:
then it says since when it is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.clock import SECOND
from headway.base.errors import InvalidInputError
from headway.base.units import parse_duration, show_instant
from headway.core.agents import MILLION
from headway.core.model import shown, shown_run
from headway.integrations.agents.results import read_result
from headway.jobs.settings import store_setting

if TYPE_CHECKING:
    from headway.core.model import Job
    from headway.jobs.context import Context
    from headway.store.records import RunRecord
    from headway.store.tables.statistics import AgentEnd, Life, Spent
    from headway.store.transaction import ReadTx

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WIDTHS = (
    *(MINUTE, 2 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY),
)
MOST_BUCKETS = 96
LONGEST_SPAN = 31 * DAY
MOST_ENDED = 10_000  # jobs that are read for one answer
MOST_COUNTED = 100_000  # more that are only counted
MOST_WAITING = 100_000
MOST_RUNS = 1_000
MOST_RESULTS = 500  # files of agents


class Buckets(NamedTuple):
    """Stretches of time of one width; the last one contains `now`."""

    since: int
    width: int
    number: int
    now: int

    def place(self, instant: int) -> int:
        """The bucket of an instant; -1 before all."""
        return max(-1, (instant - self.since) // self.width)

    def begin(self, place: int) -> int:
        return self.since + place * self.width


def buckets_of(span: int, now: int) -> Buckets:
    """The finest ones that are few enough."""
    width = next(each for each in WIDTHS if ceil(span / each) <= MOST_BUCKETS)
    count = max(1, ceil(span / width))
    return Buckets((now // width - count + 1) * width, width, count, now)


def load(context: Context, span: str = "1h") -> dict[str, Any]:
    """What ended, waited and ran in each stretch of the last `span`."""
    micros = parse_duration(span, "span")
    if not MINUTE <= micros <= LONGEST_SPAN:
        raise InvalidInputError(f"span {span!r} is not between 1m and 31d")
    with context.store.read() as tx:
        buckets = buckets_of(micros, tx.now())
        ended = tx.statistics.ended(buckets.since, most=MOST_ENDED + 1)
        running = tx.statistics.running(most=MOST_ENDED)
        asked = (buckets.since, buckets.width)
        made = tx.statistics.waiting(*asked, most=MOST_WAITING + 1)
        slots = store_setting(tx.settings.all(), "scheduler.max_active")
        first, counted = 0, dict[int, int]()
        if len(ended) > MOST_ENDED:  # not all is known of the bucket of the last one, and before
            first = buckets.place(ended[-1].finished_at or 0) + 1
            counted = tx.statistics.count_ended(
                *asked, until=buckets.begin(first), most=MOST_COUNTED + 1
            )
    counted_first = 0
    if sum(counted.values()) > MOST_COUNTED:
        counted_first = min(counted) + 1
    waiting = made if sum(made.values()) <= MOST_WAITING else None
    numbers = series(buckets, [*ended, *running], waiting)
    return {
        "since": show_instant(buckets.since),
        "until": show_instant(buckets.now),
        "bucket_seconds": buckets.width // SECOND,
        "complete_since": show_instant(min(buckets.begin(first), buckets.now)),
        "truncated": first > 0 or waiting is None,
        "slots": slots,
        "buckets": [
            each if place >= first else _counted(each, counted, place, counted_first)
            for place, each in enumerate(numbers)
        ],
    }


def _counted(
    bucket: dict[str, Any], counted: Mapping[int, int], place: int, first: int
) -> dict[str, Any]:
    """Of a bucket of which only the number is known, or not even that."""
    unknown = dict.fromkeys(bucket)
    number = counted.get(place, 0) if place >= first else None
    return {**unknown, "at": bucket["at"], "ended": number}


def series(
    buckets: Buckets, lives: Iterable[Life], waiting: Mapping[int, int] | None
) -> list[dict[str, Any]]:
    """The numbers of each bucket. `lives` are of all jobs that ended since then or run, `waiting`
    says in which buckets others were made."""
    since, width, count, now = buckets
    ends: dict[str, list[int]] = {word: [0] * count for word in ("succeeded", "failed", "other")}
    other = ends["other"]
    waits: list[list[int]] = [[] for _ in range(count)]
    line = [0] * (count + 1)  # by how much it grows
    busy = BusyTime(buckets)
    for status, created, not_before, started, finished, slot in lives:
        if finished is not None:
            ends.get(status, other)[min((finished - since) // width, count - 1)] += 1
        begun = started if started is not None else now if finished is None else finished
        if started is not None:
            if slot is None or slot >= 0:
                busy.add(started, now if finished is None else finished)
            if started >= since:
                could = created if not_before is None or not_before < created else not_before
                waits[min((started - since) // width, count - 1)].append(
                    started - could if started > could else 0
                )
        if begun >= since:
            line[min((created - since) // width, count) if created > since else 0] += 1
            line[min((begun - since) // width, count)] -= 1
    for place, number in (waiting or {}).items():
        line[min(max(place, 0), count)] += number
    lengths = [*accumulate(line)][:count]
    return [
        {
            "at": show_instant(buckets.begin(place)),
            "ended": sum(each[place] for each in ends.values()),
            **{word: each[place] for word, each in ends.items()},
            "waiting": None if waiting is None else lengths[place],
            "started": len(waits[place]),
            "wait_p50": _percentile(waits[place], 0.50),
            "wait_p95": _percentile(waits[place], 0.95),
            "slots": share,
        }
        for place, share in enumerate(busy.shares())
    ]


class BusyTime:
    """For how much of each bucket slots were taken."""

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets
        self._parts = [0] * buckets.number
        self._whole = [0] * (buckets.number + 1)

    def add(self, begin: int, end: int) -> None:
        since, width, count, _ = self._buckets
        if begin < since:
            begin = since
        if end <= begin:
            return
        first, last = (begin - since) // width, (end - since) // width
        if last >= count:
            last = count - 1
        if first >= last:
            self._parts[last] += end - begin
            return
        self._parts[first] += since + (first + 1) * width - begin
        self._parts[last] += end - since - last * width
        self._whole[first + 1] += width
        self._whole[last] -= width

    def shares(self) -> list[float]:
        """How many were in use on average."""
        found = []
        whole = accumulate(self._whole)
        for place, part in enumerate(self._parts):
            begin = self._buckets.begin(place)
            length = min(begin + self._buckets.width, self._buckets.now) - begin
            found.append(round((part + next(whole)) / length, 3) if length > 0 else 0.0)
        return found


def _percentile(micros: list[int], share: float) -> float | None:
    """In seconds, of those that there are the smallest that so many do not exceed."""
    if not micros:
        return None
    micros.sort()
    return micros[ceil(share * len(micros)) - 1] / SECOND


# -- durations ---------------------------------------------------------------------------------


def lengths_of_schedule(
    tx: ReadTx, schedule: str, limit: int, *, runs: bool
) -> list[dict[str, Any]]:
    """Of the last jobs of a schedule like `schedule-7`, or of its `runs` of a workflow; the newest
    first."""
    if runs:
        found = tx.statistics.runs_of_schedule(schedule, limit, most=MOST_ENDED)
        return [run_length(each) for each in found]
    return [job_length(each) for each in tx.statistics.jobs_of_schedule(schedule, limit)]


def last_jobs(context: Context, name: str, limit: int = 30) -> dict[str, Any]:
    """How long the last jobs of a name took, the newest first."""
    with context.store.read() as tx:
        low = max(0, tx.statistics.newest_job() - MOST_ENDED + 1)
        found = tx.statistics.jobs_named(name, _checked(limit), low=low)
    return _lengths([job_length(each) for each in found], limit, whole=low <= 1)


def last_runs(context: Context, workflow: str, limit: int = 30) -> dict[str, Any]:
    """How long the last runs of a workflow took, the newest first."""
    with context.store.read() as tx:
        low = max(0, tx.statistics.newest_run() - MOST_RUNS + 1)
        found = tx.statistics.runs_of_workflow(workflow, _checked(limit), low=low)
    return _lengths([run_length(each) for each in found], limit, whole=low <= 1)


def _checked(limit: int) -> int:
    if not 1 <= limit <= MOST_RUNS:
        raise InvalidInputError(f"the limit {limit} is not between 1 and {MOST_RUNS}")
    return limit


def _lengths(found: list[dict[str, Any]], limit: int, *, whole: bool) -> dict[str, Any]:
    return {"runs": found, "truncated": not whole and len(found) < limit}


def job_length(job: Job) -> dict[str, Any]:
    return {
        "job": shown(job.id),
        "run": None,
        "state": job.status.value,
        **_length(job.created_at, job.started_at, job.finished_at),
    }


def run_length(run: RunRecord) -> dict[str, Any]:
    return {
        "job": None,
        "run": shown_run(run.id),
        "state": str(run.state),
        **_length(run.created_at, run.created_at, run.ended_at),
    }


def _length(created: int, started: int | None, finished: int | None) -> dict[str, Any]:
    ran = None if started is None or finished is None else max(0, finished - started) / SECOND
    return {
        "created_at": show_instant(created),
        "started_at": show_instant(started),
        "finished_at": show_instant(finished),
        "seconds": ran,
    }


# -- what agents use ---------------------------------------------------------------------------


def spend(context: Context, days: int = 30) -> dict[str, Any]:
    """What agents used on each of the last days, in UTC. Agents of a run count with the run, on the
    day of its end, or today while it goes on. Others count on the day of their own end, by the
    result in their folder, if it is here."""
    if not 1 <= days <= 31:
        raise InvalidInputError(f"{days} days are not between 1 and 31")
    with context.store.read() as tx:
        now = tx.now()
        buckets = Buckets((now // DAY - days + 1) * DAY, DAY, days, now)
        agents = tx.statistics.agents_ended(buckets.since, most=MOST_ENDED)
        runs = tx.statistics.spent(buckets.since, MOST_ENDED + 1)
    results = [(each, read_result(context.home.job(each.job_id))) for each in agents[:MOST_RESULTS]]
    return {
        "days": spend_by_day(buckets, results, runs),
        "unknown": sum(not _shows_cost(result) for _, result in results),
        "left_out": max(0, len(agents) - MOST_RESULTS),
        "truncated": len(agents) > MOST_RESULTS or len(runs) > MOST_ENDED,
    }


def spend_by_day(
    buckets: Buckets,
    results: Iterable[tuple[AgentEnd, Mapping[str, Any] | None]],
    runs: Iterable[Spent],
) -> list[dict[str, Any]]:
    usd, tokens = [0.0] * buckets.number, [0] * buckets.number
    for each, result in results:
        place = min(buckets.place(each.finished_at), buckets.number - 1)
        cost, used = (result or {}).get("cost_usd"), (result or {}).get("tokens")
        usd[place] += cost if isinstance(cost, int | float) else 0
        tokens[place] += used if isinstance(used, int) else 0
    for run in runs:
        ended = buckets.now if run.ended_at is None else run.ended_at
        place = min(buckets.place(ended), buckets.number - 1)
        usd[place] += run.usd / MILLION
        tokens[place] += run.tokens
    return [
        {
            "day": (show_instant(buckets.begin(place)) or "")[:10],
            "usd": round(usd[place], 6),
            "tokens": tokens[place],
        }
        for place in range(buckets.number)
    ]


def _shows_cost(result: Mapping[str, Any] | None) -> bool:
    return result is not None and isinstance(result.get("cost_usd"), int | float)
