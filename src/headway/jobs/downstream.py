"""The jobs after a job: those that wait, or have waited, for its chain, for what that makes, or for
their turn behind it in a group."""

from collections.abc import Mapping, Sequence

from headway.core.artifacts import ArtifactKey, ArtifactKind
from headway.core.model import Job, JobId, shown
from headway.store.transaction import ReadTx


def downstream(tx: ReadTx, roots: Sequence[Job]) -> list[Job]:
    """The last job of every chain that can be reached from these, active or ended, without the
    chains of the roots themselves. The nearest come first, and of equally near ones the oldest."""
    near = sorted({root.chain for root in roots})
    seen = set(near)
    found: list[Job] = []
    while near:
        members = tx.jobs.of_chains(near)
        found += [members[chain][-1] for chain in near if chain in members]
        near = sorted(_next_chains(tx, near, members) - seen)
        seen.update(near)
    own = {root.chain for root in roots}
    return [job for job in found if job.chain not in own]


def _next_chains(
    tx: ReadTx, chains: Sequence[JobId], members: dict[JobId, list[Job]]
) -> set[JobId]:
    """The chains with an edge to one of these, in need of something that one of them makes, behind
    one of them in a sequential group, or after one of them in a workflow run."""
    made = made_by(tx, {job.id: job.chain for jobs in members.values() for job in jobs})
    consumers = tx.graph.consumers({key for key, _ in made}) if made else {}
    waiting = {job_id for ids in consumers.values() for job_id in ids}
    waiting.update(tx.graph.dependents_of(chains))
    found = set(tx.graph.chains_of(sorted(waiting)).values()) if waiting else set()
    if any(job.group_id is not None for jobs in members.values() for job in jobs[-1:]):
        found.update(tx.groups.chains_behind(chains))
    if any(job.workflow_run is not None for jobs in members.values() for job in jobs[-1:]):
        from headway.jobs.awaited_runs import chains_behind
        from headway.jobs.routes import chains_after

        nodes = [jobs[-1] for jobs in members.values() if jobs[-1].workflow_run is not None]
        found.update(chains_after(tx, nodes), chains_behind(tx, nodes))
    return found


def made_by(tx: ReadTx, members: Mapping[JobId, JobId]) -> set[tuple[ArtifactKey, JobId]]:
    """The artifacts that chains make, each with its chain: those they announce, those their jobs
    published without announcing them, and the patches of these. `members` are their jobs, each with
    its chain."""
    ids = sorted(members)
    made = {(f"{ArtifactKind.COMMAND_PATCH}:{shown(each)}", members[each]) for each in ids}
    made |= {(key, members[job_id]) for key, job_id in tx.graph.published_by(ids)}
    made |= {
        (each.artifact, each.chain) for each in tx.graph.produced_by(sorted({*members.values()}))
    }
    return made
