"""The writing verbs of the job graph. Each applies a decision that was made elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headway.core.artifacts import ArtifactKey, ArtifactKind, artifact_key, parse_artifact
from headway.core.model import Approval, Job, JobId
from headway.core.worktrees import OwnedWorktree, WorktreeState, owned_worktree
from headway.store.base import Marker
from headway.store.changing import Changing
from headway.store.rows import dump, dump_approval, dump_gates

_PATCH = f"{ArtifactKind.COMMAND_PATCH}:"


class GraphWriteTx(Changing):
    def _add_graph(self, jobs: Sequence[Job]) -> None:
        """Who needs what, who makes it and who owns a worktree, for jobs that were just added."""
        self.own_worktrees([each for job in jobs if (each := owned_worktree(job)) is not None])
        involved = [job for job in jobs if job.needs or job.produces]
        if not involved:
            return
        self._many(
            "add_needs",
            [
                {"artifact": artifact_key(text, job.repo), "job_id": job.id}
                for job in involved
                for text in job.needs
            ],
        )
        self._many(
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
        self._many(
            "add_patch_maker",
            [{"artifact": each, "maker": parse_artifact(each).job_id} for each in sorted(patches)],
        )

    def own_worktrees(self, worktrees: Sequence[OwnedWorktree]) -> None:
        """Say whose they are, before there is anything of them."""
        if worktrees:
            fields = ("job_id", "repo", "path", "branch", "base", "state")
            self._many(
                "own_worktrees",
                ({**{f: getattr(each, f) for f in fields}, "at": self._now} for each in worktrees),
            )

    def set_worktree_state(
        self, job_id: JobId, state: WorktreeState, error: str | None = None
    ) -> None:
        self._tell(
            "set_worktree_state", job_id=job_id, state=state.value, error=error, at=self._now
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
        self._many("publish", rows)

    def made_again(self, chains: Sequence[JobId]) -> None:
        """These chains have succeeded: what a rewind withdrew of theirs counts again."""
        self._tell("end_withdrawals", chains=self._database.json(chains))

    def made_one_again(self, artifact: ArtifactKey, chain: JobId) -> None:
        self._tell("end_withdrawal", artifact=artifact, chain=chain)

    def withdraw(self, chains: Sequence[JobId]) -> list[ArtifactKey]:
        """Nothing that these chains have made counts until they make it again; what it was."""
        asked = self._database.json(chains)
        ids = self._database.json([row[0] for row in self._all("members_of_chains", chains=asked)])
        marked = [row[0] for row in self._all("withdraw_markers", ids=ids, at=self._now)]
        self._tell("withdraw_products", chains=asked, at=self._now)
        return sorted({*marked, *(each.artifact for each in self.produced_by(chains))})

    def reset_jobs(self, jobs: Sequence[Job]) -> None:
        """Waiting jobs are back at the start, as given, and are looked at anew."""
        self._many("clear_waits", ({"job_id": job.id} for job in jobs))
        self._many(
            "reset_jobs",
            (
                {
                    "id": job.id,
                    "status": job.status.value,
                    "not_before": job.not_before,
                    "approval": dump_approval(job.approval) if job.approval else None,
                }
                for job in jobs
            ),
        )

    def reopen_edges(self, ids: Sequence[JobId], chains: Sequence[JobId]) -> None:
        """These jobs wait again for these chains, if they ever did."""
        self._tell("reopen_edges", ids=self._database.json(ids), chains=self._database.json(chains))

    def set_approval(self, job_id: JobId, approval: Approval) -> bool:
        return self._run("set_approval", id=job_id, approval=dump_approval(approval)) == 1

    def set_gates(self, job: Job) -> bool:
        """Write the job's pin and the like, as long as it waits."""
        return self._run("set_gates", id=job.id, gates=dump_gates(job)) == 1
