"""The levels that jobs get by the ageing that is set: `core.order.level_of`, with its arguments."""

from collections.abc import Mapping
from typing import Any

from headway.base.units import parse_duration
from headway.core.model import Job
from headway.core.order import level_of
from headway.jobs.settings import store_setting
from headway.store.transaction import ReadTx

SETTING = "scheduler.ageing"


def level_now(priority: int, now: int, ageing: Any) -> int:
    """The level of a job of this priority that is submitted now, by the ageing as it is stored."""
    return level_of(priority, now, _ageing_of({SETTING: ageing}))


def level_of_chain(tx: ReadTx, job: Job) -> int:
    """The level of another job of the same chain: it is as old as the first one.

    That of an ended job says nothing any more: the setting may have been another one in its time.
    """
    ageing = _ageing_of(tx.settings.all())
    if not ageing:
        return job.priority
    first = tx.jobs.readable([job.chain]).get(job.chain, job)
    return level_of(job.priority, first.created_at, ageing)


def _ageing_of(stored: Mapping[str, Any]) -> int:
    return parse_duration(store_setting(stored, SETTING))
