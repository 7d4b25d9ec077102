"""The reading verbs of the job graph: artifacts, approvals, worktrees, who depends on whom."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headway.core.artifacts import ArtifactKey, ArtifactKind, parse_artifact
from headway.core.facts import ArtifactView, Producer
from headway.core.model import Job, JobId, LockMode, lock_topic
from headway.core.states import Status
from headway.core.worktrees import OwnedWorktree, WorktreeState
from headway.store.base import HeldLock, LockWaiter, Marker, Product, Records
from headway.store.reading import evidence_in
from headway.store.rows import dump, load, load_run
from headway.store.waking import WakingReadTx


class GraphReadTx(WakingReadTx):
    def artifact_views(self, keys: Iterable[ArtifactKey]) -> dict[ArtifactKey, ArtifactView]:
        """What is known of each of these artifacts, of those that anything is known of."""
        wanted = sorted(set(keys))
        if not wanted:
            return {}
        asked = self._database.json(wanted)
        published = {row[0] for row in self._all("published_keys", keys=asked)}
        withdrawn = {row[0] for row in self._all("withdrawn_keys", keys=asked)}
        producers: dict[ArtifactKey, list[Producer]] = {}
        for key, job_id, status in self._all("producers_of", keys=asked):
            producers.setdefault(key, []).append(Producer(job_id, Status(status)))
        for key in wanted:
            self._add_patch_maker(key, producers)
        return {
            key: ArtifactView(key in published, key in withdrawn, tuple(producers.get(key, ())))
            for key in wanted
        }

    def _add_patch_maker(
        self, key: ArtifactKey, producers: dict[ArtifactKey, list[Producer]]
    ) -> None:
        """The patch of a job is made by its chain, whether that said so or not."""
        if not key.startswith(f"{ArtifactKind.COMMAND_PATCH}:"):
            return
        row = self._one("chain_ends", job_id=parse_artifact(key).job_id)
        if row and all(each.job_id != row[0] for each in producers.get(key, ())):
            producers.setdefault(key, []).append(Producer(row[0], Status(row[1])))

    def topics_waited_for(self, topics: Sequence[str]) -> set[str]:
        """Of these, the ones that a job is filed under."""
        rows = self._all("topics_waited_for", rows=dump([{"topic": each} for each in topics]))
        return {row[0] for row in rows}

    def produced_by(self, chains: Sequence[JobId]) -> list[Product]:
        """What these chains declare to make, each by the chain's newest job."""
        if self._whereabouts is not None and not self._whereabouts.products:
            return []
        rows = self._all("produced_by_chains", chains=self._database.json(chains))
        return [Product(*row) for row in rows]

    def consumers(self, keys: Iterable[ArtifactKey]) -> dict[ArtifactKey, list[JobId]]:
        """The jobs, active or ended, that need each of these artifacts."""
        found: dict[ArtifactKey, list[JobId]] = {}
        for key, job_id in self._all("consumers_of", keys=self._database.json(sorted(set(keys)))):
            found.setdefault(key, []).append(job_id)
        return found

    def dependents_of(self, chains: Sequence[JobId]) -> list[JobId]:
        """The jobs, active or ended, with an edge to one of these chains."""
        rows = self._all("dependents_of_chains", chains=self._database.json(chains))
        return [row[0] for row in rows]

    def chains_of(self, ids: Sequence[JobId]) -> dict[JobId, JobId]:
        """The chain of each of these jobs."""
        return dict(self._all("chains_of_jobs", ids=self._database.json(ids)))

    def jobs_of_chains(self, chains: Sequence[JobId]) -> dict[JobId, list[Job]]:
        """The jobs of each of these chains, the last one last."""
        found: dict[JobId, list[Job]] = {}
        rows = self._all("jobs_of_chains", chains=self._database.json(chains))
        for job in self._readable(rows):
            found.setdefault(job.chain, []).append(job)
        return found

    def needed_by(self, ids: Sequence[JobId]) -> list[tuple[ArtifactKey, JobId]]:
        """What these jobs need, and who of them."""
        rows = self._all("needed_by", ids=self._database.json(ids))
        return [(key, job_id) for key, job_id in rows]

    def chain_lasts(self, ids: Sequence[JobId]) -> dict[JobId, JobId]:
        """For each of these jobs the last one of its chain."""
        rows = self._all("chain_lasts", ids=self._database.json(ids))
        return dict(rows)

    def upstream(self, ids: Sequence[JobId]) -> dict[JobId, list[JobId]]:
        """These jobs and all that they wait for by `after`, as far as they have not ended, each
        with those of them that it waits for itself."""
        found: dict[JobId, list[JobId]] = {}
        for job_id, other in self._all("upstream", ids=self._database.json(ids)):
            found.setdefault(job_id, []).append(other)
        return {
            job_id: [each for each in others if each in found] for job_id, others in found.items()
        }

    def published_by(self, ids: Sequence[JobId]) -> list[tuple[ArtifactKey, JobId]]:
        """The artifacts that these jobs have published, without what they carry."""
        rows = self._all("published_by_jobs", ids=self._database.json(ids))
        return [(key, job_id) for key, job_id in rows]

    def markers_by(self, ids: Sequence[JobId]) -> list[Marker]:
        """What these jobs have published."""
        rows = self._all("markers_of_jobs", ids=self._database.json(ids))
        return [_marker(row) for row in rows]

    def records(self, ids: Sequence[JobId]) -> Records:
        asked = ("jobs_by_id", "runs_by_job", "evidence_by_job", "markers_of_jobs")
        given = {"ids": self._database.json(ids)}
        found, runs, evidence, markers = self._ask(dict.fromkeys(asked, given))
        jobs = {job.id: job for job in self._readable(found)}
        started = {job.id for job in jobs.values() if job.started_at is not None}
        return Records(
            jobs,
            {row[0]: load_run(row) for row in runs if row[0] in started},
            evidence_in(row for row in evidence if row[0] in started),
            [_marker(row) for row in markers if row[1] in started],
        )

    def markers(self, keys: Sequence[ArtifactKey]) -> list[Marker]:
        rows = self._all("markers_of_keys", keys=self._database.json(keys))
        return [_marker(row) for row in rows]

    def newest_markers(self, limit: int) -> list[Marker]:
        """Of each artifact the newest marker, without what it carries; the newest first."""
        return [_marker(row) for row in self._all("newest_markers", limit=limit)]

    def declared_artifacts(self) -> list[ArtifactKey]:
        """What active jobs make or need."""
        return sorted(row[0] for row in self._all("declared_keys"))

    def worktrees(self, ids: Sequence[JobId]) -> dict[JobId, OwnedWorktree]:
        """The worktrees that these jobs own, or owned."""
        rows = self._all("worktrees_of_jobs", ids=self._database.json(ids))
        return {row[0]: _worktree(row) for row in rows}

    def kept_worktrees(self) -> dict[JobId, OwnedWorktree]:
        """Those that were not cleaned away."""
        return {row[0]: _worktree(row) for row in self._all("kept_worktrees")}

    def to_approve(self) -> list[Job]:
        """Active jobs that ask for approval, decided or not."""
        return self._readable(self._all("to_approve"))

    def locks_held(self) -> list[HeldLock]:
        rows = self._all("locks_held")
        return [HeldLock(key, job_id, LockMode(mode)) for key, job_id, mode in rows]

    def lock_waiters(self, limit: int) -> list[LockWaiter]:
        """Those that wait for each lock, in the order in which they will get it."""
        rows = self._all("lock_waiters", limit=limit)
        return [
            LockWaiter(topic.removeprefix(lock_topic("")), job_id, LockMode(mode), bool(reserves))
            for topic, job_id, mode, reserves in rows
        ]


def _worktree(row: tuple[Any, ...]) -> OwnedWorktree:
    job_id, repo, path, branch, base, state, error = row
    return OwnedWorktree(job_id, repo, path, branch, base, state=WorktreeState(state), error=error)


def _marker(row: tuple[Any, ...]) -> Marker:
    key, job_id, at, data, withdrawn_at = row
    value = load(data, f"the data of {key}") if data is not None else None
    return Marker(key, job_id, at, value, withdrawn_at)
