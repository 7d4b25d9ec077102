"""Ask the store for what a schedule shows, and for no more than that."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from headway.client import Client, present_wait
from headway.core.facts import Facts
from headway.core.model import Job, JobId
from headway.core.states import ACTIVE, Status
from headway.schedule.model import BLOCKED, BUCKETS, Graph, Node, Schedule, arrange, bucket_of
from headway.store.base import ReadTx

NO_LIMIT = 1 << 62


class Artifacts(NamedTuple):
    """Of the artifacts that some jobs need: who produces each, and which are there."""

    producers: dict[str, tuple[JobId, ...]]
    present: frozenset[str]


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
        graph = _graph(tx, jobs, client.at_the_door(tx), depth=depth)
        client.unreadable = dict(tx.unreadable())
    within = frozenset(job.id for job in jobs) if focused else None
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
    """The job, all that it depends on and all that depends on it, over jobs and artifacts.

    Of a chain that was retried this is the last job, and with `everything` each one.
    """
    chains = {focused.chain}
    ends: dict[JobId, Job] = {}
    for follow in (_upstream, _downstream):
        frontier = {focused.chain}
        while frontier:
            found = tx.chain_ends(sorted(frontier))
            ends |= found
            frontier = set(follow(tx, found)) - chains
            chains |= frontier
    jobs = {job.id: job for job in ends.values()} | tx.outlines([focused.id])
    if everything:
        jobs |= tx.outlines([job.id for chain in sorted(chains) for job in tx.chain(chain)])
    return list(jobs.values())


def _upstream(tx: ReadTx, ends: dict[JobId, Job]) -> Iterator[JobId]:
    """The chains that these depend on."""
    declared = {each for job in ends.values() for each in job.after}
    producers = artifacts_of(tx, ends.values()).producers.values()
    declared.update(each for some in producers for each in some)
    yield from tx.chains_of(sorted(declared)).values()


def _downstream(tx: ReadTx, ends: dict[JobId, Job]) -> Iterator[JobId]:
    """The chains that depend on these."""
    yield from tx.dependent_chains(sorted(ends))
    yield from tx.chains_of(sorted(consumers_of(tx, ends.values()))).values()


def _graph(tx: ReadTx, jobs: Iterable[Job], facts: Facts, *, depth: int) -> Graph:
    """These jobs and what they depend on, so many levels far."""
    known = {job.id: job for job in jobs}
    ends: dict[JobId, JobId] = {}
    artifacts = Artifacts({}, frozenset())
    frontier = list(known.values())
    for _ in range(depth):
        found = artifacts_of(tx, frontier)
        artifacts = Artifacts(
            artifacts.producers | found.producers, artifacts.present | found.present
        )
        declared = {each for job in frontier for each in job.after} - ends.keys()
        made = {each for some in found.producers.values() for each in some}
        # An active job is the last of its chain, so nobody has to be asked about that.
        active = {each for each in declared | made if each in known and _is_active(known[each])}
        ends |= {each: each for each in active}
        chains = tx.chains_of(sorted((declared | made) - active))
        last = tx.chain_ends(sorted(set(chains.values())))
        ends |= {each: last[chain].id for each, chain in chains.items() if chain in last}
        frontier = [job for job in last.values() if job.id not in known]
        known |= {job.id: job for job in frontier}
        if not frontier:
            break
    producers = {
        artifact: tuple(dict.fromkeys(ends[each] for each in some if each in ends))
        for artifact, some in artifacts.producers.items()
    }
    nodes = {job.id: _node(job, facts) for job in known.values()}
    return Graph(nodes, ends, producers, artifacts.present)


def _is_active(job: Job) -> bool:
    return job.finished_at is None


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
        needs=(),
    )


def artifacts_of(tx: ReadTx, jobs: Iterable[Job]) -> Artifacts:
    """The artifacts that these jobs need."""
    return Artifacts({}, frozenset())


def consumers_of(tx: ReadTx, jobs: Iterable[Job]) -> set[JobId]:
    """The jobs that need an artifact of these."""
    return set()
