"""How far awaited jobs are: counts of all of them, and details of those that fit on a screen."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headway.core.groups import failed
from headway.core.model import FUNCTION, Job, JobId
from headway.core.states import ACTIVE, WAITING, Status
from headway.jobs.context import Context
from headway.jobs.groups import MOST_MEMBERS
from headway.jobs.membership import find_group
from headway.jobs.views.present import present_facts, present_wait
from headway.jobs.views.queue import estimate
from headway.store.transaction import ReadTx


class AwaitedJob(NamedTuple):
    """The last job of an awaited chain. What is not known, or does not apply, is None."""

    job: Job
    wait: str | None = None
    progress: str | None = None
    starts_at: int | None = None  # estimated
    ends_at: int | None = None  # estimated


class AwaitedJobs(NamedTuple):
    counts: Mapping[Status, int]
    jobs: Sequence[AwaitedJob]


def awaited_jobs(
    context: Context, job_ids: Sequence[JobId], *, this_only: bool, most: int
) -> AwaitedJobs:
    """Of these jobs, or with their retries of their chains, `most` with details."""
    with context.store.read() as tx:
        if this_only:
            ends = tx.jobs.outlines(job_ids)
            lasts = [ends[each] for each in dict.fromkeys(job_ids) if each in ends]
        else:
            chains = tx.graph.chains_of(job_ids)
            ends = tx.jobs.chain_ends(sorted(set(chains.values())))
            ordered = dict.fromkeys(chains[each] for each in job_ids if each in chains)
            lasts = [ends[each] for each in ordered if each in ends]
        return _awaited(context, tx, [(job.id, job.status) for job in lasts], most)


def awaited_members(context: Context, group: str, *, most: int) -> AwaitedJobs:
    """Of the members of a group, in their order, `most` with details."""
    with context.store.read() as tx:
        group_id = find_group(tx, group).id
        members = tx.groups.members(group_id, MOST_MEMBERS)
        found = _awaited(context, tx, [(each.job_id, each.status) for each in members], most)
        return found._replace(counts=tx.groups.tally(group_id).counts)


def _awaited(
    context: Context, tx: ReadTx, states: Sequence[tuple[JobId, Status]], most: int
) -> AwaitedJobs:
    counts = Counter(status for _, status in states)
    chosen = set(sorted(range(len(states)), key=lambda at: _interest(states[at][1]))[:most])
    ids = [job_id for at, (job_id, _) in enumerate(states) if at in chosen]
    jobs = tx.jobs.readable(ids)
    return AwaitedJobs(
        counts, _described(context, tx, [jobs[each] for each in ids if each in jobs])
    )


def _interest(status: Status) -> int:
    """What runs is shown first, then what went wrong, what waits, and what is done."""
    if status is Status.RUNNING:
        return 0
    if failed(status):
        return 1
    return 2 if status in ACTIVE else 3


def _described(context: Context, tx: ReadTx, jobs: Sequence[Job]) -> list[AwaitedJob]:
    waiting = any(job.status in WAITING for job in jobs)
    called = [job.id for job in jobs if job.status is Status.RUNNING and job.type == FUNCTION]
    progress = tx.jobs.progress(called) if called else {}
    facts = present_facts(context, tx) if waiting else None
    expected = estimate(context, tx, _running(jobs)) if _unended(jobs) else None
    described = []
    for job in jobs:
        wait = present_wait(job, facts) if facts and job.status in WAITING else None
        far = progress.get(job.id)
        described.append(
            AwaitedJob(
                job,
                wait=wait.detail if wait else None,
                progress=f"{far.fraction:.0%} {far.text}".strip() if far else None,
                starts_at=expected.starts_at.get(job.id) if expected else None,
                ends_at=expected.ends_at.get(job.id) if expected else None,
            )
        )
    return described


def _running(jobs: Iterable[Job]) -> list[Job]:
    return [job for job in jobs if job.status is Status.RUNNING]


def _unended(jobs: Iterable[Job]) -> bool:
    return any(job.status in ACTIVE for job in jobs)
