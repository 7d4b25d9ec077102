"""Load from the store what the graph view shows, and no more.

To know whether an artifact is there, a file or a repository may have to be probed. That happens
after the store's transaction, once for each repository.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headway.core.artifacts import ArtifactKey, artifact_key, with_branch
from headway.core.facts import ArtifactView, Facts
from headway.core.gates.graph import lacking
from headway.core.model import Job, JobId, Wait
from headway.core.states import ACTIVE, Status
from headway.integrations.probes import answers_to
from headway.jobs.awaited_runs import require_run
from headway.jobs.context import Context
from headway.jobs.downstream import downstream
from headway.jobs.lookup import find_job
from headway.jobs.views.graph.model import (
    BLOCKED,
    BUCKETS,
    Graph,
    GraphSchedule,
    Need,
    Node,
    arrange,
    bucket_of,
)
from headway.jobs.views.present import present_facts, present_wait
from headway.store.transaction import ReadTx

NO_LIMIT = 1 << 62
RECENT = 10 * 60 * 1_000_000  # µs
MOST_FAILURES = 50  # more than fit on a line
MOST_ENDED = 20_000  # ended jobs among which failures are looked for


class LoadedJobs(NamedTuple):
    """Jobs in outline, the last job of each chain that one of them comes after, and what the store
    says of the artifacts that they need."""

    jobs: Mapping[JobId, Job]
    ends: Mapping[JobId, JobId]
    artifacts: Mapping[ArtifactKey, ArtifactView]


def load_schedule(
    context: Context,
    *,
    everything: bool = False,
    focus: JobId | None = None,
    run: str | None = None,
    top: int | None = None,
    depth: int = 1,
) -> GraphSchedule:
    """The schedule as it is now. `depth` is how far the dependencies of its rows are followed; of a
    workflow `run` all nodes are shown."""
    focused = None if focus is None else find_job(context, focus)
    with context.store.read() as tx:
        if run is not None:
            jobs = _of_run(tx, run)
        elif focused is None:
            limit = NO_LIMIT if top is None else top + 1  # one more shows that there are more
            jobs = tx.jobs.outlines_all(limit) if everything else tx.jobs.outlines_shown(limit)
        else:
            jobs = neighbourhood(tx, focused, everything=everything)
        known = _known(tx, jobs, depth)
        facts = present_facts(context, tx)
        unreadable = dict(tx.unreadable())
    within = frozenset(job.id for job in jobs) if focused or run is not None else None
    graph = _graph(known, facts, context)
    whole = everything or run is not None
    arranged = arrange(graph, everything=whole, focus=focus, within=within, top=top)
    return arranged._replace(unreadable=unreadable)


def _of_run(tx: ReadTx, run: str) -> list[Job]:
    """The last job of each of its nodes."""
    nodes = tx.workflows.nodes(require_run(tx, run).id)
    return list(tx.jobs.outlines([each.job_id for each in nodes]).values())


def count_buckets(context: Context) -> dict[str, int]:
    """How many jobs of the store are in each of the buckets of a watch."""
    counts = dict.fromkeys(BUCKETS, 0)
    with context.store.read() as tx:
        for status, count in tx.jobs.count_active().items():
            counts[bucket_of(status)] += count
        ended, blocked = tx.jobs.count_ended()
    return counts | {"blocked": blocked, "terminal": ended - blocked}


def recent_failures(context: Context, focus: JobId | None = None) -> list[Job]:
    """The jobs that ended without success in the last minutes, the newest first; with a focus only
    those of its neighbourhood."""
    focused = None if focus is None else find_job(context, focus)
    with context.store.read() as tx:
        found = tx.jobs.ended_without_success(tx.now() - RECENT, MOST_FAILURES, most=MOST_ENDED)
        if focused is None or not found:
            return found
        near = {job.id for job in neighbourhood(tx, focused, everything=False)}
    return [job for job in found if job.id in near]


def neighbourhood(tx: ReadTx, focused: Job, *, everything: bool) -> list[Job]:
    """The job, all that it depends on and all that depends on it, over jobs, artifacts and turns in
    groups.

    Of a chain that was retried this is the last job, and with `everything` each one.
    """
    chains = upstream(tx, focused) | {job.chain for job in downstream(tx, [focused])}
    jobs = {job.id: job for job in tx.jobs.chain_ends(sorted(chains)).values()}
    if everything:
        members = tx.jobs.of_chains(sorted(chains)).values()
        jobs |= tx.jobs.outlines([job.id for some in members for job in some])
    return list((jobs | tx.jobs.outlines([focused.id])).values())


def upstream(tx: ReadTx, focused: Job) -> set[JobId]:
    """The job's chain and all chains that it depends on, directly or not."""
    seen = {focused.chain}
    frontier = {focused.chain}
    while frontier:
        ends = tx.jobs.chain_ends(sorted(frontier)).values()
        needed = {each for job in ends for each in job.after}
        needed |= _producers(_artifacts(tx, ends).values())
        found = set(tx.graph.chains_of(sorted(needed)).values()) if needed else set()
        frontier = {*found, *tx.groups.chains_before(sorted(frontier))} - seen
        seen |= frontier
    return seen


def _known(tx: ReadTx, jobs: Iterable[Job], depth: int) -> LoadedJobs:
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
        chains = tx.graph.chains_of(sorted(declared - active)) if declared - active else {}
        last = tx.jobs.chain_ends(sorted(set(chains.values()))) if chains else {}
        ends |= {each: last[chain].id for each, chain in chains.items() if chain in last}
        found = {job.id: job for job in last.values()}
        makers = _producers(views.values()) - known.keys() - found.keys()
        found |= tx.jobs.outlines(sorted(makers)) if makers else {}
        frontier = [job for job in found.values() if job.id not in known]
        known |= found
        if not frontier:
            break
    return LoadedJobs(known, ends, artifacts)


def _artifacts(tx: ReadTx, jobs: Iterable[Job]) -> dict[ArtifactKey, ArtifactView]:
    """What the store knows of the artifacts that these jobs need."""
    keys = {artifact_key(text, job.repo) for job in jobs for text in job.needs}
    return tx.graph.artifact_views(keys) if keys else {}


def _producers(views: Iterable[ArtifactView]) -> set[JobId]:
    return {producer.job_id for view in views for producer in view.producers}


def _graph(known: LoadedJobs, facts: Facts, context: Context) -> Graph:
    facts = facts._replace(
        artifacts=known.artifacts, home=context.home.path, jobs_folder=context.home.jobs
    )
    needing = [job for job in known.jobs.values() if job.needs]
    objections = (lacking(text, job, facts) for job in needing for text in job.needs)
    asked = {ask for each in objections if isinstance(each, Wait) for ask in each.asks}
    if asked:
        facts = facts._replace(answers=answers_to(asked, context.config.conditions))
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
