"""The graph of jobs: edges, artifacts, approvals, worktrees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headway.core.artifacts import ArtifactKey, ArtifactKind, artifact_key, parse_artifact
from headway.core.facts import ArtifactView, Producer
from headway.core.model import Approval, Job, JobId
from headway.core.states import Status
from headway.core.worktrees import OwnedWorktree, WorktreeState, owned_worktree
from headway.store.access import Access, Table
from headway.store.records import Marker, Product
from headway.store.rows import dump, dump_approval, dump_gates, load_marker

_PATCH = f"{ArtifactKind.COMMAND_PATCH}:"


class GraphReader(Table):
    """The graph as a read transaction shows it."""

    def artifact_views(self, keys: Iterable[ArtifactKey]) -> dict[ArtifactKey, ArtifactView]:
        """The views of those of these artifacts that anything is known of."""
        wanted = sorted(set(keys))
        if not wanted:
            return {}
        asked = self._db.json(wanted)
        published = {row[0] for row in self._db.all("published_keys", keys=asked)}
        withdrawn = {row[0] for row in self._db.all("withdrawn_keys", keys=asked)}
        producers: dict[ArtifactKey, list[Producer]] = {}
        for key, job_id, status in self._db.all("producers_of", keys=asked):
            producers.setdefault(key, []).append(Producer(job_id, Status(status)))
        for key in wanted:
            self._add_patch_maker(key, producers)
        return {
            key: ArtifactView(key in published, key in withdrawn, tuple(producers.get(key, ())))
            for key in wanted
        }

    def produced_by(self, chains: Sequence[JobId]) -> list[Product]:
        """The artifacts that these chains declare to make, each by the chain's newest job."""
        if self._cache.presence is not None and not self._cache.presence.products:
            return []
        rows = self._db.all("produced_by_chains", chains=self._db.json(chains))
        return [Product(*row) for row in rows]

    def consumers(self, keys: Iterable[ArtifactKey]) -> dict[ArtifactKey, list[JobId]]:
        """The jobs, active or ended, that need each of these artifacts."""
        found: dict[ArtifactKey, list[JobId]] = {}
        for key, job_id in self._db.all("consumers_of", keys=self._db.json(sorted(set(keys)))):
            found.setdefault(key, []).append(job_id)
        return found

    def dependents_of(self, chains: Sequence[JobId]) -> list[JobId]:
        """The jobs, active or ended, with an edge to one of these chains."""
        rows = self._db.all("dependents_of_chains", chains=self._db.json(chains))
        return [row[0] for row in rows]

    def chains_of(self, ids: Sequence[JobId]) -> dict[JobId, JobId]:
        """The chain of each of these jobs."""
        return dict(self._db.all("chains_of_jobs", ids=self._db.json(ids)))

    def chain_lasts(self, ids: Sequence[JobId]) -> dict[JobId, JobId]:
        """For each of these jobs the last one of its chain."""
        rows = self._db.all("chain_lasts", ids=self._db.json(ids))
        return dict(rows)

    def needed_by(self, ids: Sequence[JobId]) -> list[tuple[ArtifactKey, JobId]]:
        """The artifacts that these jobs need, each with the job."""
        rows = self._db.all("needed_by", ids=self._db.json(ids))
        return [(key, job_id) for key, job_id in rows]

    def upstream(self, ids: Sequence[JobId]) -> dict[JobId, list[JobId]]:
        """These jobs and all that they wait for by `after`, as far as they have not ended, each
        with those of them that it waits for itself."""
        found: dict[JobId, list[JobId]] = {}
        for job_id, other in self._db.all("upstream", ids=self._db.json(ids)):
            found.setdefault(job_id, []).append(other)
        return {
            job_id: [each for each in others if each in found] for job_id, others in found.items()
        }

    def published_by(self, ids: Sequence[JobId]) -> list[tuple[ArtifactKey, JobId]]:
        """The artifacts that these jobs have published, without what they carry."""
        rows = self._db.all("published_by_jobs", ids=self._db.json(ids))
        return [(key, job_id) for key, job_id in rows]

    def markers_by(self, ids: Sequence[JobId]) -> list[Marker]:
        """The artifacts that these jobs have published."""
        rows = self._db.all("markers_of_jobs", ids=self._db.json(ids))
        return [load_marker(row) for row in rows]

    def markers(self, keys: Sequence[ArtifactKey]) -> list[Marker]:
        rows = self._db.all("markers_of_keys", keys=self._db.json(keys))
        return [load_marker(row) for row in rows]

    def newest_markers(self, limit: int) -> list[Marker]:
        """Of each artifact the newest marker, without what it carries; the newest first."""
        return [load_marker(row) for row in self._db.all("newest_markers", limit=limit)]

    def declared_artifacts(self) -> list[ArtifactKey]:
        """The artifacts that active jobs make or need."""
        return sorted(row[0] for row in self._db.all("declared_keys"))

    def worktrees(self, ids: Sequence[JobId]) -> dict[JobId, OwnedWorktree]:
        """The worktrees that these jobs own, or owned."""
        rows = self._db.all("worktrees_of_jobs", ids=self._db.json(ids))
        return {row[0]: _worktree(row) for row in rows}

    def kept_worktrees(self) -> dict[JobId, OwnedWorktree]:
        """Those that were not cleaned away."""
        return {row[0]: _worktree(row) for row in self._db.all("kept_worktrees")}

    def to_approve(self) -> list[Job]:
        """Active jobs that ask for approval, decided or not."""
        return self._readable(self._db.all("to_approve"))

    def awaited_chains(self, chain: JobId) -> list[JobId]:
        return [row[0] for row in self._db.all("awaited_edges", chain=chain)]

    def _add_patch_maker(
        self, key: ArtifactKey, producers: dict[ArtifactKey, list[Producer]]
    ) -> None:
        """The patch of a job is made by its chain, whether that said so or not."""
        if not key.startswith(f"{ArtifactKind.COMMAND_PATCH}:"):
            return
        row = self._db.one("chain_ends", job_id=parse_artifact(key).job_id)
        if row and all(each.job_id != row[0] for each in producers.get(key, ())):
            producers.setdefault(key, []).append(Producer(row[0], Status(row[1])))


class GraphTable(GraphReader):
    """The graph as a write transaction changes it."""

    def own_worktrees(self, worktrees: Sequence[OwnedWorktree]) -> None:
        """Say whose they are, before there is anything of them."""
        if worktrees:
            fields = ("job_id", "repo", "path", "branch", "base", "state")
            self._db.many(
                "own_worktrees",
                (
                    {**{f: getattr(each, f) for f in fields}, "at": self._db.now}
                    for each in worktrees
                ),
            )

    def set_worktree_state(
        self, job_id: JobId, state: WorktreeState, error: str | None = None
    ) -> None:
        self._db.send(
            "set_worktree_state", job_id=job_id, state=state.value, error=error, at=self._db.now
        )

    def publish(self, markers: Iterable[Marker]) -> None:
        """Say that these artifacts are there."""
        rows = (
            {
                "artifact": each.artifact,
                "job_id": each.job_id,
                "at": each.at,
                "data": None if each.data is None else dump(each.data),
            }
            for each in markers
        )
        self._db.many("publish", rows)

    def made_again(self, chains: Sequence[JobId]) -> None:
        """These chains have succeeded: what a rewind withdrew of theirs counts again."""
        self._db.send("end_withdrawals", chains=self._db.json(chains))

    def made_one_again(self, artifact: ArtifactKey, chain: JobId) -> None:
        self._db.send("end_withdrawal", artifact=artifact, chain=chain)

    def withdraw(self, chains: Sequence[JobId]) -> list[ArtifactKey]:
        """Nothing that these chains have made counts until they make it again; what it was."""
        asked = self._db.json(chains)
        ids = self._db.json([row[0] for row in self._db.all("members_of_chains", chains=asked)])
        marked = [row[0] for row in self._db.all("withdraw_markers", ids=ids, at=self._db.now)]
        self._db.send("withdraw_products", chains=asked, at=self._db.now)
        return sorted({*marked, *(each.artifact for each in self.produced_by(chains))})

    def reopen_edges(self, ids: Sequence[JobId], chains: Sequence[JobId]) -> None:
        """These jobs wait again for these chains, if they ever did."""
        self._db.send("reopen_edges", ids=self._db.json(ids), chains=self._db.json(chains))

    def set_approval(self, job_id: JobId, approval: Approval) -> bool:
        return self._db.change("set_approval", id=job_id, approval=dump_approval(approval)) == 1

    def set_gates(self, job: Job) -> bool:
        """Write the job's pin and the like, as long as it waits."""
        return self._db.change("set_gates", id=job.id, gates=dump_gates(job)) == 1


def add_edges(db: Access, jobs: Sequence[Job]) -> None:
    """The chains of predecessors that are added along with their dependents are known; others are
    read."""
    chains = {job.id: job.chain for job in jobs}
    edges = [
        {"job_id": job.id, "ord": place, "declared": declared}
        for job in jobs
        for place, declared in enumerate(job.after)
        if declared not in chains
    ]
    db.many("add_edges", edges)
    inside = (
        {"job_id": job.id, "ord": place, "declared": declared, "chain": chains[declared]}
        for job in jobs
        for place, declared in enumerate(job.after)
        if declared in chains
    )
    db.many("add_new_edges", inside)


def add_graph(db: Access, jobs: Sequence[Job]) -> None:
    """The artifacts that jobs just added need and make, and the worktrees they own."""
    GraphTable(db).own_worktrees(
        [each for job in jobs if (each := owned_worktree(job)) is not None]
    )
    involved = [job for job in jobs if job.needs or job.produces]
    if not involved:
        return
    db.many(
        "add_needs",
        [
            {"artifact": artifact_key(text, job.repo), "job_id": job.id}
            for job in involved
            for text in job.needs
        ],
    )
    db.many(
        "add_produces",
        [
            {
                "artifact": artifact_key(text, job.repo),
                "job_id": job.id,
                "chain": job.chain,
            }
            for job in involved
            for text in job.produces
        ],
    )
    patches = {text for job in involved for text in job.needs if text.startswith(_PATCH)}
    db.many(
        "add_patch_maker",
        [{"artifact": each, "maker": parse_artifact(each).job_id} for each in sorted(patches)],
    )


def _worktree(row: tuple[Any, ...]) -> OwnedWorktree:
    job_id, repo, path, branch, base, state, error = row
    return OwnedWorktree(job_id, repo, path, branch, base, state=WorktreeState(state), error=error)
