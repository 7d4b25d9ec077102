"""Put jobs back to their start, within one transaction: what a rewind does for a person, and a loop
for its workflow run.

A job that has ended gets a new one in its chain, so that no evidence is lost. A job that waits is
reset in place. What their chains have made is withdrawn, and what they recorded is forgotten.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headway.core.model import NOTHING, Job, JobId, shown_run
from headway.core.rewind import next_approval, put_back
from headway.core.settle import ChainRetry
from headway.core.states import WAITING, Status
from headway.jobs.lifecycle import continue_chain, end_all_unstarted
from headway.jobs.locks import give_up_locks
from headway.store.new_jobs import Event
from headway.store.transaction import WriteTx


class Repeated(NamedTuple):
    """The jobs that wait now, by their chains, and the artifacts that count no more."""

    waiting: Mapping[JobId, Job]
    withdrawn: Sequence[str]


def repeat_jobs(
    tx: WriteTx,
    again: Sequence[Job],
    reset: Sequence[Job],
    *,
    actor: str,
    data: Mapping[str, Any],
    not_before: Mapping[JobId, int] = NOTHING,
) -> Repeated:
    """Queue jobs once more: those that ended by a new job, those that wait in place. `not_before`
    holds some chains back; each event carries `data`."""
    now = tx.now()
    chains = tuple(job.chain for job in (*again, *reset))
    of_runs = any(job.workflow_run is not None for job in (*again, *reset))
    old = frozenset(tx.workflows.made_by_fans(chains) if of_runs else ())
    waiting: dict[JobId, Job] = {}
    for job in again:
        if job.chain in old:
            continue
        fresh = _next_pass(job)._replace(approval=next_approval(job, now=now, by=actor))
        retry = ChainRetry(not_before.get(job.chain), 0)
        waiting[job.chain] = continue_chain(tx, fresh, retry, actor=actor, data=data)
        tx.waits.chain_reopened(job.chain)
    # All jobs that wait for any of it are in the set themselves, and are so checked again.
    kept = [_next_pass(put_back(job, now=now, by=actor)) for job in reset if job.chain not in old]
    kept = [_held_back(job, not_before.get(job.chain)) for job in kept]
    tx.jobs.reset(kept)
    for job in kept:
        if job.workflow_run is not None:
            tx.graph.set_gates(job)
    tx.events.add((Event("rewound", job.id, data) for job in kept), actor=actor)
    for job in kept:  # another host may be the one that checks it again
        give_up_locks(tx, job)
    waiting |= {job.chain: job for job in kept}
    tx.graph.reopen_edges([job.id for job in waiting.values()], chains)
    if of_runs:
        _dismiss(tx, [job for job in (*again, *reset) if job.chain in old], actor=actor)
    tx.steps.forget(chains)
    return Repeated(waiting, tx.graph.withdraw(chains))


def _next_pass(job: Job) -> Job:
    return job if job.workflow_run is None else job._replace(node_pass=job.node_pass + 1)


def _held_back(job: Job, until: int | None) -> Job:
    return job if until is None else job._replace(not_before=max(until, job.not_before or 0))


def _dismiss(tx: WriteTx, jobs: Sequence[Job], *, actor: str) -> None:
    """Instances whose fan runs again: it makes new ones."""
    if not jobs:
        return
    tx.workflows.dismiss([job.chain for job in jobs])
    for job in jobs:
        if job.status in WAITING:
            name = (job.node or "").partition("[")[0]
            reason = f"{shown_run(job.workflow_run or 0)} expands {name} anew"
            end_all_unstarted(tx, [job], Status.CANCELLED, reason, actor=actor)
