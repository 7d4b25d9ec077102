"""What counts at this moment: the capacity, what a waiting job waits for, what hinders a running
one. The planner's own code answers."""

from __future__ import annotations

from collections.abc import Collection

from headway.core.facts import Capacity, Facts
from headway.core.gates import slot_free
from headway.core.model import TYPES, Job, Stage, Wait, WaitKind
from headway.core.states import Status
from headway.integrations.probes.pressure import measure
from headway.jobs.context import Context
from headway.jobs.facts import count_capacity, strain_of, tasks_known
from headway.jobs.policies import policies_for
from headway.jobs.run_trouble import hindrance
from headway.jobs.settings import limits_set
from headway.jobs.views.storage import lack_of_room
from headway.store.transaction import ReadTx

_CLOSED = (WaitKind.PAUSED, WaitKind.STORAGE, WaitKind.PRESSURE)


def present_capacity(context: Context, tx: ReadTx) -> Capacity:
    """How much may start now; the same count as the planner's."""
    settings = tx.settings.all()
    seen = count_capacity(
        tx,
        context.host.id,
        log_budget=context.config.bytes("logs.budget"),
        policies=policies_for(limits_set(settings)),
        strain=strain_of(settings, measure),
    )
    # On a full disk a worker cannot write down that this is why.
    lack = lack_of_room(context.home) if seen.trouble is None else None
    return seen if lack is None else seen._replace(trouble=lack)


def present_facts(context: Context, tx: ReadTx) -> Facts:
    """The facts that say what a job waits for that lacks nothing but capacity."""
    capacity = present_capacity(context, tx)
    return Facts(now=tx.now(), capacity=capacity, types=TYPES, tasks=tasks_known(tx))


def present_wait(job: Job, facts: Facts) -> Wait | None:
    """The wait to show. For a job that lacks nothing but capacity this is what the capacity says
    now, asked as on the host that the job belongs to."""
    lacks_capacity = job.stage in (Stage.READY, Stage.WOKEN) or (
        job.stage is Stage.PARKED and job.wait is not None and job.wait.kind in _of_capacity(job)
    )
    if not lacks_capacity or job.status is not Status.QUEUED:
        return job.wait
    objection = slot_free(job, facts._replace(queues=(job.queue,)))
    if isinstance(objection, Wait):
        return objection
    return job.wait if job.stage is not Stage.WOKEN else None


def _of_capacity(job: Job) -> Collection[WaitKind]:
    """The waits for capacity of jobs that are parked elsewhere than in the queue for slots."""
    limited = (WaitKind.CAPACITY, WaitKind.RATE)
    return (*limited, *_CLOSED) if job.is_entry else limited


def hindrance_of(context: Context, tx: ReadTx, job: Job) -> Wait | None:
    """What keeps a running job from its end, or its end from the store."""
    waits_or_ended = job.stage is not None or job.finished_at is not None
    claim = None if waits_or_ended else tx.claims.of_job(job.id)
    if claim is None:
        return None
    return hindrance(
        claim,
        context.host,
        context.home,
        now=context.clock.now(),
        lack=lack_of_room(context.home),
        shared=context.store.shared,
    )
