"""Put jobs where they are to stand, inside the transaction that asked, and wake whom that concerns.

A submit with a place, a move, a bulk reorder and another priority all go through here.
"""

from collections.abc import Sequence

from headway.core.model import Job
from headway.core.order import AFTER_ALL, Key, just_before, spread
from headway.jobs.locks import give_up_locks
from headway.store.transaction import ReadTx, WriteTx


def put(tx: WriteTx, job: Job, level: int, place: Key) -> Job:
    """Let the job stand at this place of a level; only those right around it are touched, and only
    if there is no room between them. Wakes nobody."""
    size = 0
    while True:
        around = tx.queue_order.neighbours(level, place, job.id, size + 1)
        before = [each.position for each in around.before]
        positions = spread(before, [each.position for each in around.after], size)
        if positions is not None:
            break
        size = 2 * size or 1
    left = around.before[:size][::-1]
    ids = [*(each.id for each in left), job.id, *(each.id for each in around.after[:size])]
    places = zip(ids, positions, strict=True)
    tx.queue_order.place([(job_id, level, position) for job_id, position in places])
    own = level if level != job.priority else None
    return job._replace(level=own, position=positions[len(left)])


def put_last(tx: WriteTx, job: Job, level: int) -> Job:
    return put(tx, job, level, AFTER_ALL)


def by_rank(tx: ReadTx, job: Job, rank: int) -> Key:
    """The place behind so many others of its level, less one; the last, if there are not so
    many."""
    other = tx.queue_order.nth_of_level(job.dispatch_level, rank - 1, job.id)
    return AFTER_ALL if other is None else just_before(other.key)


def stands_there(tx: ReadTx, job: Job, place: Key) -> bool:
    """Whether a move there would change nothing."""
    around = tx.queue_order.neighbours(job.dispatch_level, place, job.id, 1)
    return all(each.key < job.order[1:] for each in around.before) and all(
        job.order[1:] < each.key for each in around.after
    )


def wake_moved(tx: WriteTx, jobs: Sequence[Job]) -> None:
    """Wake jobs that were moved, and the first waiter for each of their locks: their reservations
    hold back only jobs that are after them now."""
    for job in jobs:
        give_up_locks(tx, job)
    tx.waits.wake([job.id for job in jobs])
