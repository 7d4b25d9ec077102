"""Ended jobs that go: who is in their way, and their removal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headway.base.errors import InvalidOperationError
from headway.core.artifacts import ArtifactKey
from headway.core.model import JobId
from headway.core.retention import EndPlace, InTheWay, Obstacle
from headway.store.access import Table
from headway.store.records import EndedJob

_ASKED = {
    InTheWay.AFTER: "active_after",
    InTheWay.AWAITED: "waiting_for_chains",
    InTheWay.PROCESSES: "unproven_members",
    InTheWay.LOCKS: "members_with_locks",
    InTheWay.GROUP: "members_of_unended_groups",
    InTheWay.RUN: "nodes_of_unended_runs",
    InTheWay.WORKTREE: "members_with_worktrees",
}
# The job first: the guards of the others let go what has none.
_ROWS = (
    *("remove_runs", "remove_claims", "remove_evidence", "remove_edges", "remove_waits"),
    *("remove_results", "remove_progress", "remove_steps", "remove_events", "remove_needs"),
    *("remove_produces", "remove_artifacts", "remove_worktrees", "end_lendings_of_jobs"),
    *("remove_job_webhooks", "remove_deliveries_of_jobs"),
)


class RetentionReader(Table):
    """Retention as a read transaction shows it."""

    def finished_page(self, after: EndPlace, until: int, limit: int) -> list[EndedJob]:
        """The next jobs in the order of their ends; none that ended at `until` or later."""
        rows = self._db.all("finished_page", at=after.at, id=after.job_id, until=until, limit=limit)
        return [
            EndedJob(EndPlace(at, job_id), chain, bool(last)) for at, job_id, chain, last in rows
        ]

    def nth_newest_finished(self, number: int) -> EndPlace | None:
        """The place of the job that is the number-th when the newest is the first."""
        row = self._db.one("nth_newest_finished", skipped=number - 1)
        return EndPlace(*row) if row else None

    def members_of(self, chains: Sequence[JobId]) -> dict[JobId, JobId]:
        """The jobs of these chains, each with its chain."""
        return dict(self._db.all("members_of_chains", chains=self._db.json(chains)))

    def in_the_way(self, chains: Sequence[JobId]) -> dict[JobId, Obstacle]:
        """Of these chains, those that rows of others, or live processes, still refer to."""
        found: dict[JobId, Obstacle] = {}
        asked = self._db.json(chains)
        for why, query in _ASKED.items():
            for chain, by in self._db.all(query, chains=asked):
                found.setdefault(chain, Obstacle(why, by))
        return found

    def active_in_need(self, keys: Iterable[ArtifactKey]) -> dict[ArtifactKey, JobId]:
        """Of these artifacts those that an active job needs, with the first such job."""
        return dict(self._db.all("active_in_need", keys=self._db.json(sorted(set(keys)))))

    def files_to_remove(self, host_id: str, after: JobId, limit: int) -> list[JobId]:
        """Removed jobs beyond this id whose files this host has still to delete."""
        rows = self._db.all("files_to_remove", host_id=host_id, job_id=after, limit=limit)
        return [row[0] for row in rows]


class RetentionTable(RetentionReader):
    """Retention as a write transaction changes it."""

    def note_files(self, ids: Sequence[JobId], host_id: str) -> None:
        """This host is to delete the files of these jobs."""
        self._db.send("note_files", ids=self._db.json(ids), host_id=host_id)

    def note_files_elsewhere(self, ids: Sequence[JobId]) -> None:
        """And so is every host that ever ran one of them, or was to."""
        for query in ("note_files_of_claims", "note_files_of_queues"):
            self._db.send(query, ids=self._db.json(ids))

    def files_removed(self, ids: Sequence[JobId], host_id: str) -> None:
        self._db.send("files_removed", ids=self._db.json(ids), host_id=host_id)

    def remove_jobs(self, ids: Sequence[JobId]) -> None:
        """Whole chains that have ended go, with all that only speaks of them. What others said
        about them stays: an edge that was satisfied is satisfied for ever. The caller writes an
        event about no job before, so that the number of the newest one is never given again."""
        asked = self._db.json(ids)
        groups = [row[0] for row in self._db.all("groups_of_jobs", ids=asked)]
        workflow_runs = [row[0] for row in self._db.all("workflow_runs_of_chains", chains=asked)]
        self._db.send("keep_ids")
        if self._db.change("remove_jobs", ids=asked) != len(set(ids)):
            raise InvalidOperationError("a job that has not ended cannot be removed")
        for query in _ROWS:
            self._db.send(query, ids=asked)
        self._db.send("end_withdrawals", chains=asked)
        if groups:
            self._db.send("remove_empty_groups", ids=self._db.json(groups))
        if workflow_runs:
            self._db.send("remove_nodes", chains=asked)
            self._db.send("remove_empty_runs", ids=self._db.json(workflow_runs))

    def forget_events(self, before: int, most: int) -> int:
        """So many events at most that are about no job and older than this, but not of the day
        before the newest of all; how many went."""
        return self._db.change("forget_events", before=before, most=most)

    def forget_groups(self, before: int, most: int) -> int:
        """So many groups at most that ended before this and have no member; how many went."""
        return self._db.change("forget_groups", before=before, most=most)
