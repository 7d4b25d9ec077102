"""Who is woken, and what they still wait for.

Where questions travel, all that is to be known of the woken jobs is asked for at once, together
with the change that wakes them, and kept until this transaction itself changes jobs or edges.
Elsewhere a question costs less than an answer that nobody needs, and each is asked by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headway.core.facts import Predecessor, waits_for_last
from headway.core.model import Job, JobId, chain_topic
from headway.errors import DataError, OthersWroteError
from headway.store.adding import AddingTx
from headway.store.reading import SqlReadTx
from headway.store.rows import COLUMNS, load_job, queue_of
from headway.store.seam_waking import ROUND_JOBS, Remembered
from headway.store.state import load_state

Row = tuple[Any, ...]

_WIDTH = COLUMNS["JOB"].count(",") + 1  # the columns of a job; then come those of an edge


class Edge(NamedTuple):
    """One that is unmet, with the last job of the chain that it leads to."""

    place: str  # failed, or the first or the last that is pending
    declared: JobId
    chain: JobId
    last: Row


class Woken(NamedTuple):
    """The woken jobs of all queues, and the unmet edges of each."""

    limit: int
    rows: list[Row]
    unmet: dict[JobId, list[Edge]]


class WakingReadTx(SqlReadTx):
    def look_around(self, calls: int) -> None:
        if self._state is not None or not self._named.at_once:
            return
        questions = {
            "present_state": {},
            "woken_with_unmet": {"limit": ROUND_JOBS},
            **({"plain_calls": {"limit": calls}} if calls > 0 else {}),
        }
        state, woken, *ahead = self._ask(questions)
        self._state, self._whereabouts = load_state(state)
        self._looked = _woken(ROUND_JOBS, woken)
        self._ahead = (calls, ahead[0]) if ahead else (0, [])

    def woken(self, limit: int, queues: Sequence[str] = ("",)) -> list[Job]:
        if self._whereabouts is not None and not self._whereabouts.woken:
            return []
        if not self._crowded and (len(queues) > 1 or self._named.at_once):
            rows = self._woken_anywhere(limit)
            self._crowded = len(rows) >= limit
            if not self._crowded:
                found = self._readable(row for row in rows if queue_of(row) in queues)
                return sorted(found, key=lambda job: job.order)
        return self._queued("woken", limit, queues)

    def _woken_anywhere(self, limit: int) -> list[Row]:
        if not self._named.at_once:
            return [*self._all("woken_anywhere", limit=limit)]
        if self._looked is None or self._looked.limit != limit:
            self._looked = _woken(limit, self._all("woken_with_unmet", limit=limit))
        return self._looked.rows

    def predecessors(self, jobs: Iterable[Job]) -> dict[JobId, tuple[Predecessor, ...]]:
        """A mark is an index; the word that counts is the chain's own, read here."""
        waiting = [job for job in jobs if job.after]
        if self._named.at_once:
            return self._predecessors_at_once(waiting)
        found = {}
        for job in waiting:
            query = "unmet_edges_of_many" if waits_for_last(job.after) else "unmet_edges"
            edges = self._all(query, job_id=job.id)
            found[job.id] = tuple(self._predecessor(*edge) for edge in edges)
        return found

    def _predecessor(self, declared: JobId, chain: JobId) -> Predecessor:
        row = self._one("last_in_chain", chain=chain)
        return _as_predecessor(declared, chain, row)

    def _predecessors_at_once(self, waiting: Sequence[Job]) -> dict[JobId, tuple[Predecessor, ...]]:
        known = dict(self._looked.unmet) if self._looked is not None else {}
        unknown = [job.id for job in waiting if job.id not in known]
        if unknown:
            for job_id, *edge in self._all("unmet_of_jobs", ids=self._database.json(unknown)):
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


class WakingWriteTx(AddingTx, WakingReadTx):
    def remember(self) -> Remembered | None:
        state, lies = self._state, self._whereabouts
        if state is None or lies is None:
            return None
        return Remembered(lies.awaited, (self._database.undone, state, lies))

    def recall(self, known: Remembered) -> None:
        undone, self._state, self._whereabouts = known.known
        if undone != self._database.undone:
            raise OthersWroteError("a change was undone since this was remembered; look again")

    def chains_succeeded(self, chains: Sequence[JobId]) -> None:
        if not chains:
            return
        if self._named.at_once:
            self._succeed_at_once(chains)
            return
        awaited = self._all("satisfy_chains", chains=self._database.json(chains))
        topics = (chain_topic(chain) for chain in {row[0] for row in awaited})
        self._many("wake_topic", ({"topic": topic} for topic in topics))

    def _succeed_at_once(self, chains: Sequence[JobId]) -> None:
        """Along with it, who is woken then; unless nobody waits for anyone, and nobody is."""
        known = self._whereabouts
        self._tell("satisfy_and_wake", chains=self._database.json(chains))
        self._ahead = 0, []
        self._looked = None
        if known is not None and not known.awaited:
            return
        timed = known is not None and known.next_wake is not None  # one of them may be woken now
        questions: dict[str, Any] = {"woken_with_unmet": {"limit": ROUND_JOBS}}
        woken, *wake = self._ask(questions | ({"next_wake": {}} if timed else {}))
        self._looked = _woken(ROUND_JOBS, woken)
        if known is not None:
            next_wake = wake[0][0][0] if wake else None
            self._whereabouts = known._replace(woken=bool(woken), next_wake=next_wake)

    def _seen_to(self, before: Woken | None, ids: Iterable[JobId]) -> None:
        """These jobs were started, or put where they wait. The other ones are as they were, but not
        all that they wait for; if there are none, nobody need be asked who is woken."""
        if before is None or len(before.rows) >= before.limit:
            return
        seen_to = set(ids)
        rows = [row for row in before.rows if row[0] not in seen_to]
        self._looked = before._replace(rows=rows, unmet={})
        if not rows and self._whereabouts is not None:
            self._whereabouts = self._whereabouts._replace(woken=False)

    def note_dispatch(self, at: int, count: int) -> None:
        self._tell("note_dispatch", at=at, count=count)
        if self._state is not None:
            self._state.marks["last_dispatch_at"] = at
            self._state.marks["last_dispatch_count"] = count


def _woken(limit: int, rows: Iterable[tuple[Any, ...]]) -> Woken:
    """A job has a row for each of its unmet edges, and one if it has none."""
    jobs: list[Row] = []
    unmet: dict[JobId, list[Edge]] = {}
    for row in rows:
        edges = unmet.get(row[0])
        if edges is None:
            edges = unmet[row[0]] = []
            jobs.append(row[:_WIDTH])
        if row[_WIDTH] is not None:
            edges.append(_edge(row[_WIDTH:]))
    return Woken(limit, jobs, unmet)


def _edge(row: Sequence[Any]) -> Edge:
    place, declared, chain, *last = row
    return Edge(place, declared, chain, tuple(last))


def _as_predecessor(declared: JobId, chain: JobId, last: Row | None) -> Predecessor:
    if last is None or last[0] is None:
        return Predecessor(declared, chain, None)
    try:
        return Predecessor(declared, chain, load_job(last).status)
    except DataError as error:
        return Predecessor(declared, chain, None, error=str(error))
