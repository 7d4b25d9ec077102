"""Ask the store for what a schedule shows, and for no more than that.

Whether an artifact is there may need a look at a file or a repository; that is done after the
store's transaction, and once for each repository.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headway.client import Client, present_wait
from headway.core.artifacts import ArtifactKey, artifact_key, with_branch
from headway.core.facts import ArtifactView, Facts
from headway.core.graphgates import lacking
from headway.core.model import Job, JobId, Wait
from headway.core.states import ACTIVE, Status
from headway.downstream import downstream
from headway.probes import look_at
from headway.schedule.model import BLOCKED, BUCKETS, Graph, Need, Node, Schedule, arrange, bucket_of
from headway.store.base import ReadTx

NO_LIMIT = 1 << 62


class Known(NamedTuple):
    """Jobs in outline, the last job of each chain that one of them comes after, and what the store
    says of the artifacts that they need."""

    jobs: Mapping[JobId, Job]
    ends: Mapping[JobId, JobId]
    artifacts: Mapping[ArtifactKey, ArtifactView]


def load_schedule(
    client: Client,
    *,
    everything: bool = False,
    focus: JobId | None = None,
    top: int | None = None,
    depth: int = 1,
) -> Schedule:
    """The schedule as it is now. `depth` is how far the dependencies of its rows are followed."""
    focused = None if focus is None else client.job(focus)
    with client.store.read() as tx:
        if focused is None:
            limit = NO_LIMIT if top is None else top + 1  # one more tells that there are more
            jobs = tx.outlines_all(limit) if everything else tx.outlines_shown(limit)
        else:
            jobs = neighbourhood(tx, focused, everything=everything)
        known = _known(tx, jobs, depth)
        facts = client.at_the_door(tx)
        client.unreadable = dict(tx.unreadable())
    within = frozenset(job.id for job in jobs) if focused else None
    graph = _graph(known, facts, client)
    return arrange(graph, everything=everything, focus=focus, within=within, top=top)


def count_buckets(client: Client) -> dict[str, int]:
    """How many jobs of the store are in each of the buckets of a watch."""
    counts = dict.fromkeys(BUCKETS, 0)
    with client.store.read() as tx:
        for status, count in tx.count_active().items():
            counts[bucket_of(status)] += count
        ended, blocked = tx.count_ended()
    return counts | {"blocked": blocked, "terminal": ended - blocked}


def neighbourhood(tx: ReadTx, focused: Job, *, everything: bool) -> list[Job]:
    """The job, all that it depends on and all that depends on it, over jobs, artifacts and turns in
    groups.

    Of a chain that was retried this is the last job, and with `everything` each one.
    """
    chains = upstream(tx, focused) | {job.chain for job in downstream(tx, [focused])}
    jobs = {job.id: job for job in tx.chain_ends(sorted(chains)).values()}
    if everything:
        members = tx.jobs_of_chains(sorted(chains)).values()
        jobs |= tx.outlines([job.id for some in members for job in some])
    return list((jobs | tx.outlines([focused.id])).values())


def upstream(tx: ReadTx, focused: Job) -> set[JobId]:
    """The job's chain and all chains that it depends on, directly or not."""
    seen = {focused.chain}
    frontier = {focused.chain}
    while frontier:
        ends = tx.chain_ends(sorted(frontier)).values()
        needed = {each for job in ends for each in job.after}
        needed |= _producers(_artifacts(tx, ends).values())
        found = set(tx.chains_of(sorted(needed)).values()) if needed else set()
        frontier = {*found, *tx.chains_before(sorted(frontier))} - seen
        seen |= frontier
    return seen


def _known(tx: ReadTx, jobs: Iterable[Job], depth: int) -> Known:
    """These jobs and what they depend on, so many levels far."""
    known = {job.id: job for job in jobs}
    ends: dict[JobId, JobId] = {}
    artifacts: dict[ArtifactKey, ArtifactView] = {}
    frontier = list(known.values())
    for _ in range(depth):
        views = _artifacts(tx, frontier)
        artifacts |= views
        declared = {each for job in frontier for each in job.after} - ends.keys()
        # An active job is the last of its chain, so nobody has to be asked about that.
        active = {each for each in declared if each in known and known[each].finished_at is None}
        ends |= {each: each for each in active}
        chains = tx.chains_of(sorted(declared - active)) if declared - active else {}
        last = tx.chain_ends(sorted(set(chains.values()))) if chains else {}
        ends |= {each: last[chain].id for each, chain in chains.items() if chain in last}
        found = {job.id: job for job in last.values()}
        makers = _producers(views.values()) - known.keys() - found.keys()
        found |= tx.outlines(sorted(makers)) if makers else {}
        frontier = [job for job in found.values() if job.id not in known]
        known |= found
        if not frontier:
            break
    return Known(known, ends, artifacts)


def _artifacts(tx: ReadTx, jobs: Iterable[Job]) -> dict[ArtifactKey, ArtifactView]:
    """What the store knows of the artifacts that these jobs need."""
    keys = {artifact_key(text, job.repo) for job in jobs for text in job.needs}
    return tx.artifact_views(keys) if keys else {}


def _producers(views: Iterable[ArtifactView]) -> set[JobId]:
    return {producer.job_id for view in views for producer in view.producers}


def _graph(known: Known, facts: Facts, client: Client) -> Graph:
    facts = facts._replace(
        artifacts=known.artifacts, home=client.home.path, jobs_folder=client.home.jobs
    )
    needing = [job for job in known.jobs.values() if job.needs]
    objections = (lacking(text, job, facts) for job in needing for text in job.needs)
    asked = {ask for each in objections if isinstance(each, Wait) for ask in each.asks}
    if asked:
        facts = facts._replace(answers=look_at(asked, client.config.conditions))
    nodes = {job.id: _node(job, facts) for job in known.jobs.values()}
    return Graph(nodes, known.ends)


def _node(job: Job, facts: Facts) -> Node:
    wait = None
    if job.status is not Status.RUNNING and (job.status in ACTIVE or job.status in BLOCKED):
        wait = present_wait(job, facts)
    return Node(
        id=job.id,
        name=job.name,
        status=job.status,
        created_at=job.created_at,
        chain=job.chain,
        slug=job.slug,
        wait=wait.detail if wait else None,
        after=job.after,
        needs=tuple(_need(text, job, facts) for text in job.needs),
    )


def _need(text: str, job: Job, facts: Facts) -> Need:
    view = facts.artifacts.get(artifact_key(text, job.repo), ArtifactView())
    producers = tuple(each.job_id for each in view.producers)
    return Need(with_branch(text), producers, lacking(text, job, facts) is None)
