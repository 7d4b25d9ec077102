"""The queues at locks: every wake-up that lets the next waiter look.

`core.gates.locks_free` decides who may take a lock, and `core.plan` promises a free one to the
first that lacks nothing else. Those behind it are parked. So each event after which another may be
the first has to wake it, and all of these events are here. docs/protocols.md, section 11.
"""

from collections.abc import Collection, Sequence

from headway.core.model import Job, JobId, LockMode, Stage, WaitKind, lock_topic
from headway.core.plan import Hold
from headway.store.transaction import WriteTx


def give_up_locks(tx: WriteTx, job: Job) -> None:
    """A job that will not take its locks now wakes the next waiter."""
    tx.waits.wake_first([lock_topic(lock.key) for lock in job.locks])


def pass_on_shared(tx: WriteTx, job: Job, *, lacking: Collection[str] = ()) -> None:
    """A job that took, or reserved, a free lock shared wakes the next waiter: it may join."""
    topics = [lock_topic(lock.key) for lock in job.locks if lock.mode is LockMode.SHARED]
    tx.waits.wake_next([topic for topic in topics if topic not in lacking], job)


def release_locks(tx: WriteTx, job_ids: Sequence[JobId]) -> None:
    """The process trees of these jobs are gone: their locks are free."""
    tx.waits.wake_first([lock_topic(key) for key in tx.claims.release_locks(job_ids)])


def ended_waiting(tx: WriteTx, jobs: Sequence[Job]) -> None:
    """These jobs will not take their locks any more."""
    tx.waits.wake_first(dict.fromkeys(lock_topic(lock.key) for job in jobs for lock in job.locks))


def parked(tx: WriteTx, job: Job, hold: Hold, stage: Stage, *, lent: bool) -> None:
    """The planner has parked a job, or left it in the queue for slots. There it still means to take
    its locks; elsewhere it does not. A lent slot may admit a later waiter although this job finds
    none."""
    if hold.shown.kind is WaitKind.LOCKS and (hold.reserves or hold.for_capacity):
        pass_on_shared(tx, job, lacking=hold.shown.topics)
    elif stage is Stage.PARKED or lent:
        tx.waits.wake_next([lock_topic(lock.key) for lock in job.locks], job)
