"""Change the order in which waiting jobs are started: move one, or reorder several.

Positions are compared inside of one level only: that is the priority, or with ageing the priority
that a job has come to. To stand among those of another level, a job needs another priority first.
"""

from collections.abc import Sequence
from typing import NamedTuple

from headway.base.errors import InvalidInputError, InvalidOperationError
from headway.core.model import Job, JobId, shown
from headway.core.order import (
    AFTER_ALL,
    BEFORE_ALL,
    Key,
    Place,
    Side,
    Standing,
    exchanged,
    just_before,
)
from headway.core.states import WAITING
from headway.jobs.context import Context
from headway.jobs.lookup import require
from headway.jobs.places import by_rank, put, stands_there, wake_moved
from headway.jobs.revisions import refuse_changed, refuse_changed_queue
from headway.store.new_jobs import Event
from headway.store.transaction import ReadTx, WriteTx


class Moved(NamedTuple):
    job: Job
    moved: bool  # it did not stand there already


def move(context: Context, job_id: JobId, place: Place, *, revision: str | None = None) -> Moved:
    """Let a waiting job stand elsewhere among those of its level; refused if it was changed since
    this revision of it was seen."""
    if place.side is Side.POSITION and place.number < 1:
        raise InvalidInputError(f"position {place.number} is less than 1, which is the first")

    def transaction(tx: WriteTx) -> Moved:
        job = _waiting(context, tx, job_id)
        wanted = _key(context, tx, job, place)
        refuse_changed(tx, job_id, revision)
        if stands_there(tx, job, wanted):
            return Moved(job, moved=False)
        moved = put(tx, job, job.dispatch_level, wanted)
        tx.events.add([_moved(job, moved, _in_words(place))], actor=context.actor)
        wake_moved(tx, [moved])
        return Moved(moved, moved=True)

    moved = context.store.transact(transaction)
    context.wake()
    return moved


def reorder(
    context: Context, job_ids: Sequence[JobId], *, revision: str | None = None
) -> list[Moved]:
    """Let these jobs take, among the places that they have now, the order given; refused if the
    queue was changed since this revision of it was seen."""
    named = set[JobId]()
    for job_id in job_ids:
        if job_id in named:
            raise InvalidInputError(f"{shown(job_id)} is named twice; name each job once")
        named.add(job_id)

    def transaction(tx: WriteTx) -> list[Moved]:
        before = [_waiting(context, tx, job_id) for job_id in job_ids]
        for job in before[1:]:
            _refuse_another_level(job, before[0])
        refuse_changed_queue(tx, revision)
        apart = _put_apart(tx, before)
        places = exchanged((_standing(job) for job in apart.values()), job_ids)
        after = [apart[each]._replace(position=places[each]) for each in job_ids]
        tx.queue_order.place([(job.id, job.dispatch_level, job.position) for job in after])
        sorted_before = sorted(before, key=lambda job: job.order)
        results = [
            Moved(job, moved=job.id != stood.id)
            for job, stood in zip(after, sorted_before, strict=True)
        ]
        known = {job.id: job for job in before}
        moves = [
            _moved(known[each.job.id], each.job, "reordered") for each in results if each.moved
        ]
        tx.events.add(moves, actor=context.actor)
        wake_moved(tx, [each.job for each in results if each.moved])
        return results

    results = context.store.transact(transaction)
    context.wake()
    return results


def _put_apart(tx: WriteTx, jobs: Sequence[Job]) -> dict[JobId, Job]:
    """The same jobs in the same order, with positions that nobody shares.

    Jobs may share one: a retry has that of the job before it. Among themselves they go by age,
    which cannot be exchanged.
    """
    for each in jobs:
        job = tx.jobs.by_id([each.id])[each.id]  # room for another may have moved it
        around = tx.queue_order.neighbours(job.dispatch_level, job.order[1:], job.id, 1)
        beside = (*around.before, *around.after)
        if any(other.position == job.position for other in beside):
            put(tx, job, job.dispatch_level, job.order[1:])
    return tx.jobs.by_id([job.id for job in jobs])


def _standing(job: Job) -> Standing:
    return Standing(job.id, job.position, job.created_at)


def _key(context: Context, tx: ReadTx, job: Job, place: Place) -> Key:
    match place.side:
        case Side.FRONT:
            return BEFORE_ALL
        case Side.BACK:
            return AFTER_ALL
        case Side.POSITION:
            return by_rank(tx, job, place.number)
    if place.number == job.id:
        raise InvalidInputError(f"{shown(job.id)} cannot stand {place.side} itself")
    other = _waiting(context, tx, place.number)
    _refuse_another_level(job, other)
    return other.order[1:] if place.side is Side.AFTER else just_before(other.order[1:])


def _waiting(context: Context, tx: ReadTx, job_id: JobId) -> Job:
    job = require(tx, [job_id])[job_id]
    if job.status in WAITING:
        return job
    last = tx.jobs.last_in_chain(job.chain) or job
    hint = "only jobs that wait have a place in the queue"
    if last.id != job.id and last.status in WAITING:
        hint = f"of its chain {shown(last.id)} waits"
    raise InvalidOperationError(f"{shown(job.id)} is {job.status} and cannot be moved; {hint}")


def _refuse_another_level(job: Job, other: Job) -> None:
    ahead = other.dispatch_level - job.dispatch_level
    if ahead == 0:
        return
    waits = (
        f"has priority {other.priority} and {shown(job.id)} has {job.priority}"
        if other.priority - job.priority == ahead
        else f"counts {abs(ahead)} {'higher' if ahead > 0 else 'lower'} than {shown(job.id)} by age"
    )
    raise InvalidOperationError(
        f"{shown(other.id)} {waits}; first let them count the same: "
        f"headway jobs edit {shown(job.id)} --priority {job.priority + ahead}"
    )


def _in_words(place: Place) -> str:
    match place.side:
        case Side.BEFORE | Side.AFTER:
            return f"{place.side} {shown(place.number)}"
        case Side.POSITION:
            return f"position {place.number}"
    return str(place.side)


def _moved(before: Job, after: Job, place: str) -> Event:
    data = {"place": place, "from": before.position, "position": after.position}
    return Event("moved", after.id, data)
