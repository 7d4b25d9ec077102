"""Waiting jobs: which are woken or ready, what the others are parked under, and who wakes them.

Where questions travel, all that is to be known of the woken jobs is read at once, together with the
change that wakes them, and kept until this transaction itself changes jobs or edges. Elsewhere a
question costs less than an answer that nobody needs, and each is asked by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from headway.base.errors import DataError
from headway.core.facts import Predecessor, waits_for_last
from headway.core.model import Job, JobId, LockMode, Stage, chain_topic, lock_topic
from headway.store.access import Access, Table
from headway.store.records import ROUND_JOBS, Parking
from headway.store.rows import COLUMNS, Row, dump, load_job, queue_of, waited_on
from headway.store.scheduler_state import UnmetEdge, Woken, load_state

MOST_SHARERS = 16  # the next ones are woken when these have started
_WIDTH = COLUMNS["JOB"].count(",") + 1  # the columns of a job; then come those of an edge


class WaitsReader(Table):
    """Waiting jobs as a read transaction shows them."""

    def prefetch(self, calls: int) -> None:
        """Ask for the state, for so many plain calls and for the woken jobs together, at the
        beginning: all of it will be needed, and where questions travel they travel once."""
        if self._cache.state is not None or not self._db.at_once:
            return
        questions = {
            "present_state": {},
            "woken_with_unmet": {"limit": ROUND_JOBS},
            **({"plain_calls": {"limit": calls}} if calls > 0 else {}),
        }
        state, woken, *ahead = self._db.ask(questions)
        self._cache.state, self._cache.presence = load_state(state)
        self._cache.woken = _woken(ROUND_JOBS, woken)
        self._cache.ahead = (calls, ahead[0]) if ahead else (0, [])

    def ready(self, limit: int, queues: Sequence[str] = ("",)) -> list[Job]:
        """The ready jobs at the head of these queues, in dispatch order."""
        if self._cache.presence is not None:
            queues = [each for each in queues if each in self._cache.presence.ready]
        return self._queued("ready", limit, queues)

    def woken(self, limit: int, queues: Sequence[str] = ("",)) -> list[Job]:
        """Jobs of these queues to check, in dispatch order."""
        if self._cache.presence is not None and not self._cache.presence.woken:
            return []
        if not self._cache.crowded and (len(queues) > 1 or self._db.at_once):
            rows = self._woken_anywhere(limit)
            self._cache.crowded = len(rows) >= limit
            if not self._cache.crowded:
                found = self._readable(row for row in rows if queue_of(row) in queues)
                return sorted(found, key=lambda job: job.order)
        return self._queued("woken", limit, queues)

    def anything_woken(self) -> bool:
        return self._db.one("any_woken") is not None

    def are_locks_contended(self) -> bool:
        """Whether anybody may wait for a lock."""
        self._present()
        return self._cache.contended

    def place_in_queue(self, job: Job) -> tuple[int, int]:
        """How many ready jobs stand before this one, and how many there are in all."""
        rows = self._db.all(
            "ahead_in_queue",
            level=job.dispatch_level,
            position=job.position,
            created_at=job.created_at,
            id=job.id,
        )
        return rows[0][0], rows[0][1]

    def next_wake(self) -> int | None:
        if self._cache.presence is not None:
            return self._cache.presence.next_wake
        row = self._db.one("next_wake")
        return row[0] if row else None

    def stale(self, before: int, limit: int, queues: Sequence[str] = ("",)) -> list[Job]:
        found = (
            self._db.all("stale_waiters", before=before, limit=limit, queue=each) for each in queues
        )
        return [job for rows in found for job in self._readable(rows)]

    def topics_waited_for(self, topics: Sequence[str]) -> set[str]:
        """Of these, the ones that a job is parked under."""
        rows = self._db.all("topics_waited_for", rows=dump([{"topic": each} for each in topics]))
        return {row[0] for row in rows}

    def predecessors(self, jobs: Iterable[Job]) -> dict[JobId, tuple[Predecessor, ...]]:
        """A mark is an index; the word that counts is the chain's own, read here."""
        waiting = [job for job in jobs if job.after]
        if self._db.at_once:
            return self._predecessors_at_once(waiting)
        found = {}
        for job in waiting:
            query = "unmet_edges_of_many" if waits_for_last(job.after) else "unmet_edges"
            edges = self._db.all(query, job_id=job.id)
            found[job.id] = tuple(self._predecessor(*edge) for edge in edges)
        return found

    def every_unmet(self, job: Job) -> list[Predecessor]:
        """All that it waits for, where the first of them does not decide."""
        edges = self._db.all("every_unmet_edge", job_id=job.id)
        return [self._predecessor(*edge) for edge in edges]

    def _queued(self, query: str, limit: int, queues: Sequence[str]) -> list[Job]:
        found = [self._readable(self._db.all(query, limit=limit, queue=each)) for each in queues]
        if len(found) == 1:
            return found[0]
        return sorted((job for jobs in found for job in jobs), key=lambda job: job.order)[:limit]

    def _woken_anywhere(self, limit: int) -> list[Row]:
        if not self._db.at_once:
            return [*self._db.all("woken_anywhere", limit=limit)]
        if self._cache.woken is None or self._cache.woken.limit != limit:
            self._cache.woken = _woken(limit, self._db.all("woken_with_unmet", limit=limit))
        return self._cache.woken.rows

    def _predecessor(self, declared: JobId, chain: JobId) -> Predecessor:
        row = self._db.one("last_in_chain", chain=chain)
        return _as_predecessor(declared, chain, row)

    def _predecessors_at_once(self, waiting: Sequence[Job]) -> dict[JobId, tuple[Predecessor, ...]]:
        known = dict(self._cache.woken.unmet) if self._cache.woken is not None else {}
        unknown = [job.id for job in waiting if job.id not in known]
        if unknown:
            for job_id, *edge in self._db.all("unmet_of_jobs", ids=self._db.json(unknown)):
                known.setdefault(job_id, []).append(_edge(edge))
        found = {}
        for job in waiting:
            places = ("failed", "last" if waits_for_last(job.after) else "first")
            edges = [each for each in known.get(job.id, ()) if each.place in places]
            found[job.id] = tuple(
                _as_predecessor(each.declared, each.chain, each.last)
                for each in sorted(edges, key=lambda edge: places.index(edge.place))
            )
        return found


class WaitsTable(WaitsReader):
    """Waiting jobs as a write transaction parks and wakes them."""

    def wake_due(self, now: int, limit: int) -> int:
        if self._cache.presence is not None:
            due = self._cache.presence.next_wake
            if due is None or due > now:
                return 0
        return self._db.change("wake_due", now=now, limit=limit)

    def wake_topics(self, topics: Iterable[str]) -> None:
        keys = sorted(set(topics))
        if keys:
            self._db.send("wake_topics", keys=self._db.json(keys))

    def wake_first(self, topics: Iterable[str]) -> None:
        """Wake the first of those that wait for each lock; of one that it would share, also
        those right behind it who would share it with it, so that nobody starts before them."""
        if not self._cache.contended:
            return
        first: list[JobId] = []
        for topic in topics:
            waiters = self._db.all("first_waiters", topic=topic, limit=MOST_SHARERS)
            first += [job_id for job_id, _ in waiters[:1]]
            sharing = takewhile(lambda waiter: waiter[1] == LockMode.SHARED.value, waiters)
            first += [job_id for job_id, _ in sharing]
        if first:
            self.wake(list(dict.fromkeys(first)))

    def wake_next(self, topics: Iterable[str], after: Job) -> None:
        """Of those that wait for each lock, wake the first that comes after this job."""
        if not self._cache.contended:
            return
        place = {
            "level": after.dispatch_level,
            "position": after.position,
            "created_at": after.created_at,
            "job_id": after.id,
        }
        self._db.many("wake_next", ({"topic": topic, **place} for topic in topics))

    def wake(self, ids: Sequence[JobId]) -> None:
        self._db.send("wake_jobs", ids=self._db.json(ids))

    def wake_chains(self, chains: Sequence[JobId]) -> None:
        self._db.send("wake_chain_borrowers", chains=self._db.json(chains))

    def wake_everything(self) -> None:
        self._db.send("wake_everything")

    def requeue(self, ids: Sequence[JobId], queue: str) -> None:
        """Put jobs into another queue; they keep their place in the order."""
        self._db.send("requeue", ids=self._db.json(ids), queue=queue)

    def touch_checked(self, ids: Sequence[JobId]) -> None:
        self._db.send("touch_checked", ids=self._db.json(ids), at=self._db.now)

    def park(self, parkings: Iterable[Parking]) -> None:
        """Put these jobs where they wait."""
        parkings = list(parkings)
        known, woken = self._cache.presence, self._cache.woken
        self._db.many("clear_waits", ({"job_id": parking.job.id} for parking in parkings))
        self._db.many("park_job", map(self._parked, parkings))
        self._db.many("add_waits", (row for parking in parkings for row in _wait_rows(parking)))
        self._cache.parked(known, parkings, woken)

    def _parked(self, parking: Parking) -> dict[str, Any]:
        return {
            "id": parking.job.id,
            "status": parking.status.value,
            "stage": parking.stage.value,
            "wait_kind": parking.wait.kind.value,
            "wait_detail": parking.wait.detail,
            "wake_at": parking.wake_at,
            "waited_on": dump(waited_on(parking.job, parking.wait)),
            "checked_at": self._db.now if parking.stage is Stage.PARKED else None,
        }

    def chains_succeeded(self, chains: Sequence[JobId]) -> None:
        """Wake the jobs that wait for one of these chains, and mark its edges."""
        if not chains:
            return
        if self._db.at_once:
            self._succeed_at_once(chains)
            return
        awaited = self._db.all("satisfy_chains", chains=self._db.json(chains))
        self.wake_topics(chain_topic(row[0]) for row in awaited)

    def _succeed_at_once(self, chains: Sequence[JobId]) -> None:
        """Along with it, who is woken then; unless nobody waits for anyone, and nobody is."""
        known = self._cache.presence
        self._db.send("satisfy_and_wake", chains=self._db.json(chains))
        self._cache.ahead = 0, []
        self._cache.woken = None
        if known is not None and not known.awaited:
            return
        timed = known is not None and known.next_wake is not None  # one of them may be woken now
        questions: dict[str, Any] = {"woken_with_unmet": {"limit": ROUND_JOBS}}
        woken, *wake = self._db.ask(questions | ({"next_wake": {}} if timed else {}))
        self._cache.woken = _woken(ROUND_JOBS, woken)
        if known is not None:
            next_wake = wake[0][0][0] if wake else None
            self._cache.presence = known._replace(woken=bool(woken), next_wake=next_wake)

    def chains_failed(self, chains: Sequence[JobId]) -> None:
        self._db.many("fail_chain", ({"chain": chain} for chain in chains))
        self._db.many("wake_dependents", ({"chain": chain} for chain in chains))

    def chain_reopened(self, chain: JobId) -> None:
        self._db.send("reopen_chain", chain=chain)
        self._db.send("wake_dependents", chain=chain)


def add_topics(db: Access, jobs: Iterable[Job]) -> None:
    """The topics of new jobs that are stored as waiting."""
    db.many("add_waits", (row for job in jobs for row in _topics_of_new(job)))


def _woken(limit: int, rows: Iterable[tuple[Any, ...]]) -> Woken:
    """A job has a row for each of its unmet edges, and one if it has none."""
    jobs: list[Row] = []
    unmet: dict[JobId, list[UnmetEdge]] = {}
    for row in rows:
        edges = unmet.get(row[0])
        if edges is None:
            edges = unmet[row[0]] = []
            jobs.append(row[:_WIDTH])
        if row[_WIDTH] is not None:
            edges.append(_edge(row[_WIDTH:]))
    return Woken(limit, jobs, unmet)


def _edge(row: Sequence[Any]) -> UnmetEdge:
    place, declared, chain, *last = row
    return UnmetEdge(place, declared, chain, tuple(last))


def _as_predecessor(declared: JobId, chain: JobId, last: Row | None) -> Predecessor:
    if last is None or last[0] is None:
        return Predecessor(declared, chain, None)
    try:
        return Predecessor(declared, chain, load_job(last).status)
    except DataError as error:
        return Predecessor(declared, chain, None, error=str(error))


def _wait_rows(parking: Parking) -> Iterable[dict[str, Any]]:
    modes = {lock_topic(lock.key): lock.mode.value for lock in parking.job.locks}
    for topic in parking.topics:
        yield _wait_row(parking.job, topic, modes.get(topic), parking.reserves)


def _topics_of_new(job: Job) -> Iterable[dict[str, Any]]:
    """Of a job that is stored as waiting: for others, and for no lock yet."""
    for topic in job.wait.topics if job.wait is not None else ():
        yield _wait_row(job, topic, None, False)


def _wait_row(job: Job, topic: str, mode: str | None, reserves: bool) -> dict[str, Any]:
    return {
        "topic": topic,
        "job_id": job.id,
        "mode": mode,
        "reserves": int(reserves),
        "level": job.dispatch_level,
        "position": job.position,
        "created_at": job.created_at,
    }
