"""When each job of a run, a group or a graph waited, on what, and ran.

The intervals are read from the events of the queue. Where they are more than are read, a job shows
what its row says. All jobs of a chain are one row: a node of a workflow with its passes, a job with
its retries.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.clock import SECOND
from headway.base.units import show_instant
from headway.core.groups import shown_group
from headway.core.model import shown, shown_run
from headway.jobs.awaited_runs import require_run
from headway.jobs.lookup import find_job
from headway.jobs.membership import find_group
from headway.jobs.views.graph.loader import neighbourhood

if TYPE_CHECKING:
    from headway.core.model import JobId
    from headway.jobs.context import Context
    from headway.store.tables.statistics import ChainMember, QueueEvent
    from headway.store.transaction import ReadTx

MOST_JOBS = 3_000
MOST_EVENTS = 30_000
NOT_LOOKED_AT = "not looked at yet"
SOON = SECOND  # a step looks at a new job within this time
RUNNING, UNCLAIMED = "running", "unclaimed"


class Interval(NamedTuple):
    """`on` is what it waited for; `state` is what a run came to."""

    kind: str
    since: int
    until: int | None
    on: str | None
    state: str


class RowName(NamedTuple):
    chain: JobId
    name: str | None = None  # that of its job
    passes: int = 1


def timeline_of_run(context: Context, run: str) -> dict[str, Any]:
    """Its nodes in the order of the file."""
    with context.store.read() as tx:
        record = require_run(tx, run)
        found = tx.statistics.chains_of_run(record.id, MOST_JOBS + 1)
        names = [RowName(each.chain, each.node, each.passes) for each in found]
        return _document(tx, shown_run(record.id), names)


def timeline_of_group(context: Context, group: str) -> dict[str, Any]:
    """Its members in their order."""
    with context.store.read() as tx:
        group_id = find_group(tx, group).id
        chains = tx.statistics.chains_of_group(group_id, MOST_JOBS + 1)
        return _document(tx, shown_group(group_id), [RowName(each) for each in chains])


def timeline_of_job(context: Context, job_id: JobId) -> dict[str, Any]:
    """The job, all that it depends on and all that depends on it, the first that was made
    first."""
    job = find_job(context, job_id)
    with context.store.read() as tx:
        near = neighbourhood(tx, job, everything=False)
        chains = sorted({each.chain for each in near} | {job.chain})
        return _document(tx, shown(job.id), [RowName(each) for each in chains])


def _document(tx: ReadTx, name: str, rows: Sequence[RowName]) -> dict[str, Any]:
    chains = [each.chain for each in rows[:MOST_JOBS]]
    jobs = tx.statistics.of_chains(chains, MOST_JOBS + 1)
    members: dict[JobId, list[ChainMember]] = {}
    for job in jobs[:MOST_JOBS]:
        members.setdefault(job.chain, []).append(job)
    events = tx.statistics.queue_events([job.id for job in jobs[:MOST_JOBS]], MOST_EVENTS + 1)
    of_job = {
        job: list(some) for job, some in groupby(events[:MOST_EVENTS], lambda each: each.job_id)
    }
    longest = max(len(rows), len(jobs))
    return {
        "of": name,
        "truncated": longest > MOST_JOBS or len(events) > MOST_EVENTS,
        "rows": [_row(each, members[each.chain], of_job) for each in rows if each.chain in members],
    }


def _row(
    name: RowName, jobs: Sequence[ChainMember], events: dict[JobId, list[QueueEvent]]
) -> dict[str, Any]:
    last = jobs[-1]
    return {
        "name": name.name or last.name,
        "job": shown(last.id),
        "state": last.state,
        "pass": name.passes,
        "jobs": len(jobs),
        "intervals": [
            {
                "job": shown(job.id),
                "kind": each.kind,
                "since": show_instant(each.since),
                "until": show_instant(each.until),
                "on": each.on,
                "state": each.state,
            }
            for job in jobs
            for each in intervals(job, events.get(job.id, ()))
        ],
    }


def intervals(job: ChainMember, events: Sequence[QueueEvent]) -> list[Interval]:
    """What a job did, one thing after the other, until its end or until now."""
    found = [Interval("waiting", job.created_at, None, NOT_LOOKED_AT, job.state)]
    for each in events:
        if job.finished_at is not None and each.at > job.finished_at:
            continue
        if each.kind == RUNNING:
            _begin(found, Interval(RUNNING, each.at, None, None, job.state))
        elif each.kind == UNCLAIMED:
            if found[-1].kind == RUNNING:  # nothing had been started
                found[-1] = found[-1]._replace(state=UNCLAIMED)
            _begin(found, Interval("waiting", each.at, None, NOT_LOOKED_AT, job.state))
        else:
            _wait(found, each.at, each.detail or each.wait or each.kind, job.state)
    if job.started_at is not None and found[-1].kind != RUNNING:
        _begin(found, Interval(RUNNING, job.started_at, None, None, job.state))
    if job.started_at is None and found[-1].kind == RUNNING:
        found[-1] = found[-1]._replace(state=UNCLAIMED)
    found[-1] = found[-1]._replace(until=job.finished_at)
    return [each for each in found if each.kind == RUNNING or each.until != each.since]


def _wait(found: list[Interval], at: int, on: str, state: str) -> None:
    """It waits for this from now on. A reason that is found soon after the job was made counts from
    the beginning."""
    last = found[-1]
    if last.kind == "waiting" and last.on == NOT_LOOKED_AT and at - last.since <= SOON:
        found[-1] = last._replace(on=on)
    elif last.kind != "waiting" or last.on != on:
        _begin(found, Interval("waiting", at, None, on, state))


def _begin(found: list[Interval], interval: Interval) -> None:
    found[-1] = found[-1]._replace(until=max(interval.since, found[-1].since))
    found.append(interval)
