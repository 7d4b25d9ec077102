"""What comes after a job: all that waits, or has waited, for its chain or for what that makes."""

from collections.abc import Iterator, Sequence

from headway.core.artifacts import ArtifactKey, ArtifactKind
from headway.core.model import Job, JobId, shown
from headway.store.base import ReadTx


def downstream(tx: ReadTx, roots: Sequence[Job]) -> list[Job]:
    """The last job of every chain that can be reached from these, active or ended, without the
    chains of the roots themselves. The nearest come first, and of equally near ones the oldest."""
    near = sorted({root.chain for root in roots})
    seen = set(near)
    found: list[Job] = []
    while near:
        members = tx.jobs_of_chains(near)
        found += [members[chain][-1] for chain in near if chain in members]
        near = sorted(_next_chains(tx, near, members) - seen)
        seen.update(near)
    own = {root.chain for root in roots}
    return [job for job in found if job.chain not in own]


def _next_chains(
    tx: ReadTx, chains: Sequence[JobId], members: dict[JobId, list[Job]]
) -> set[JobId]:
    """The chains with an edge to one of these, or in need of something that one of them makes."""
    made = {product.artifact for product in tx.produced_by(chains)}
    made.update(_made_undeclared(tx, [job for jobs in members.values() for job in jobs]))
    waiting = {job_id for ids in tx.consumers(made).values() for job_id in ids} if made else set()
    waiting.update(tx.dependents_of(chains))
    return set(tx.chains_of(sorted(waiting)).values()) if waiting else set()


def _made_undeclared(tx: ReadTx, jobs: Sequence[Job]) -> Iterator[ArtifactKey]:
    """What jobs published without having announced it, and the patches of their own."""
    ids = [job.id for job in jobs]
    yield from (marker.artifact for marker in tx.markers_by(ids))
    yield from (f"{ArtifactKind.COMMAND_PATCH}:{shown(job_id)}" for job_id in ids)
