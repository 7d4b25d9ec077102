"""Numbers over time, for pictures. What is read is bounded, whatever lies in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from headway.store.access import Table
from headway.store.rows import load, load_workflow_run

if TYPE_CHECKING:
    from headway.core.model import Job, JobId
    from headway.store.records import RunRecord


class Life(NamedTuple):
    """The instants of a job. `slot` is below zero where it took none."""

    status: str
    created_at: int
    not_before: int | None
    started_at: int | None
    finished_at: int | None
    slot: int | None


class AgentEnd(NamedTuple):
    job_id: JobId
    finished_at: int


class Spent(NamedTuple):
    """What the agents of a run used, in millionths of a dollar; `ended_at`: None while it runs."""

    ended_at: int | None
    usd: int
    tokens: int


class NodeChain(NamedTuple):
    chain: JobId
    node: str
    written: str
    passes: int


class ChainMember(NamedTuple):
    """A job as a timeline shows it."""

    id: JobId
    chain: JobId
    name: str
    state: str
    created_at: int
    started_at: int | None
    finished_at: int | None


class QueueEvent(NamedTuple):
    """A change of what a job waits for, its start, or that its start was taken back."""

    job_id: JobId
    at: int
    kind: str
    wait: str
    detail: str


class StatisticsReader(Table):
    """Numbers over time, as a read transaction shows them."""

    def ended(self, since: int, *, most: int) -> list[Life]:
        """The newest of those that ended since then, the last to end first."""
        rows = self._db.all("ended_since", since=since, most=most)
        return [Life._make(row) for row in rows]

    def count_ended(self, since: int, width: int, *, until: int, most: int) -> dict[int, int]:
        """How many of the newest so many that ended before `until` did so in each stretch."""
        asked = {"since": since, "width": width, "until": until, "most": most}
        return {int(place): count for place, count in self._db.all("count_ended_since", **asked)}

    def running(self, *, most: int) -> list[Life]:
        return [Life._make(row) for row in self._db.all("running_since", most=most)]

    def waiting(self, since: int, width: int, *, most: int) -> dict[int, int]:
        """How many of those that wait were made in each stretch of that width; those of before
        under -1."""
        asked = {"since": since, "width": width, "most": most}
        return {int(place): count for place, count in self._db.all("waiting_since", **asked)}

    def jobs_of_schedule(self, schedule: str, limit: int) -> list[Job]:
        """Its newest, each the last of its chain."""
        return self._readable(self._db.all("lasts_of_schedule", schedule=schedule, limit=limit))

    def runs_of_schedule(self, schedule: str, limit: int, *, most: int) -> list[RunRecord]:
        rows = self._db.all("runs_of_schedule", schedule=schedule, limit=limit, most=most)
        return [load_workflow_run(row) for row in rows]

    def newest_run(self) -> int:
        return self._db.all("newest_run")[0][0] or 0

    def runs_of_workflow(self, name: str, limit: int, *, low: int) -> list[RunRecord]:
        """The newest among those from a number on."""
        rows = self._db.all("runs_of_workflow", name=name, limit=limit, low=low)
        return [load_workflow_run(row) for row in rows]

    def newest_job(self) -> JobId:
        return self._db.all("newest_below", below=1 << 62)[0][0] or 0

    def jobs_named(self, name: str, limit: int, *, low: JobId) -> list[Job]:
        """The newest among those from a number on, each the last of its chain."""
        return self._readable(self._db.all("jobs_named", name=name, limit=limit, low=low))

    def agents_ended(self, since: int, *, most: int) -> list[AgentEnd]:
        """Agents of no run, among the newest so many jobs that ended."""
        return [
            AgentEnd._make(row)
            for row in self._db.all("agents_ended_since", since=since, most=most)
        ]

    def spent(self, since: int, limit: int) -> list[Spent]:
        """Of the runs that ended since then or go on."""
        return [Spent._make(row) for row in self._db.all("spent_since", since=since, limit=limit)]

    def chains_of_run(self, run: int, limit: int) -> list[NodeChain]:
        return [NodeChain._make(row) for row in self._db.all("chains_of_run", run=run, limit=limit)]

    def chains_of_group(self, group_id: int, limit: int) -> list[JobId]:
        rows = self._db.all("chains_of_group", group_id=group_id, limit=limit)
        return [row[0] for row in rows]

    def of_chains(self, chains: Sequence[JobId], limit: int) -> list[ChainMember]:
        """Their jobs, by chain, the last one last."""
        rows = self._db.all("lives_of_chains", chains=self._db.json(chains), limit=limit)
        return [ChainMember._make(row) for row in rows]

    def queue_events(self, ids: Sequence[JobId], limit: int) -> list[QueueEvent]:
        """By job, in their order."""
        rows = self._db.all("waits_of_jobs", ids=self._db.json(ids), limit=limit)
        found = []
        for job_id, at, kind, data in rows:
            said = load(data, f"an event of job-{job_id}")
            wait, detail = said.get("wait") or "", said.get("detail") or ""
            found.append(QueueEvent(job_id, at, kind, wait, detail))
        return found
