"""What somebody has seen, as one word: the revision of a job, and that of the queue.

A job's revision is the number of its last change, with the epoch in which that number counts. Each
change writes an event; what the job waits for is no change. The queue's revision is a digest of its
order. A verb that is given one refuses, in its own transaction, if that is not the present one.
"""

from collections.abc import Sequence
from hashlib import sha256

from headway.base.epoch import shown_epoch
from headway.base.errors import ChangedMeanwhileError
from headway.core.model import JobId, shown
from headway.jobs.context import Context
from headway.jobs.lookup import require
from headway.store.transaction import ReadTx

MOST_IN_LINE = 10_000  # of the queue; a listing of it shows no more


def revision(context: Context, job_id: JobId) -> str:
    with context.store.read() as tx:
        require(tx, [job_id])
        return revisions_of(tx, [job_id])[job_id]


def queue_revision(context: Context) -> str:
    with context.store.read() as tx:
        return revision_of_queue(tx)


def revisions_of(tx: ReadTx, job_ids: Sequence[JobId]) -> dict[JobId, str]:
    epoch = shown_epoch(tx.settings.marks())
    newest = tx.events.last_changes(job_ids)
    return {job_id: f"{epoch}-{newest[job_id]}" for job_id in job_ids}


def revision_of_queue(tx: ReadTx) -> str:
    ids = tx.queue_order.ids(MOST_IN_LINE)
    return sha256(" ".join(map(str, ids)).encode()).hexdigest()[:32]


def refuse_changed(tx: ReadTx, job_id: JobId, seen: str | None) -> None:
    """Refuse if the job was changed after this revision was seen; None: nobody asks."""
    if seen is not None and revisions_of(tx, [job_id])[job_id] != seen:
        raise ChangedMeanwhileError(
            f"{shown(job_id)} has changed since you looked at it; look again: "
            f"headway jobs show {shown(job_id)}"
        )


def refuse_changed_queue(tx: ReadTx, seen: str | None) -> None:
    if seen is not None and revision_of_queue(tx) != seen:
        raise ChangedMeanwhileError(
            "the queue has changed since you looked at it; look again: headway jobs list --queue"
        )
