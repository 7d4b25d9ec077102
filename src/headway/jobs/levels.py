"""The levels that jobs get by the ageing that is set: `core.order.level_of`, with its arguments."""

from headway.base.units import parse_duration
from headway.core.model import Job
from headway.core.order import level_of
from headway.store.transaction import ReadTx

SETTING = "scheduler.ageing"


def level_now(priority: int, now: int, ageing: str | None) -> int:
    """The level of a job of this priority that is submitted now."""
    return level_of(priority, now, parse_duration(ageing) if ageing else 0)


def level_of_chain(tx: ReadTx, job: Job) -> int:
    """The level of another job of the same chain: it is as old as the first one.

    That of an ended job says nothing any more: the setting may have been another one in its time.
    """
    ageing = parse_duration(tx.settings.all().get(SETTING, "0s"))
    if not ageing:
        return job.priority
    first = tx.jobs.readable([job.chain]).get(job.chain, job)
    return level_of(job.priority, first.created_at, ageing)
