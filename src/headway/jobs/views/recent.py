"""What ended of late: the newest ends, the failures that nobody has seen to, and what is usual."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.base.clock import MINUTE, SECOND
from headway.core.forecast import pace_of
from headway.core.states import Status
from headway.jobs.context import Context
from headway.jobs.views.details import describe
from headway.jobs.views.graph.loader import MOST_ENDED
from headway.jobs.views.queue import LOOKED_BACK
from headway.jobs.views.search import DAY

MOST_RECENT = 50
# What a person cancelled or rejected is as that person wanted it.
_FAILURES = frozenset({Status.FAILED, Status.BLOCKED_BY_DEPENDENCY})


class Recent(NamedTuple):
    ended: list[dict[str, Any]]  # documents, the newest end first
    failed: list[dict[str, Any]]  # in the last day, and nobody retried them; causes come first
    active: Mapping[Status, int]  # jobs in each state
    last_day: Mapping[Status, int]  # that ended in it
    last_minute: int
    usual: Mapping[str, float]  # how many seconds jobs of each name took


def recent(context: Context, limit: int) -> Recent:
    with context.store.read() as tx:
        now = tx.now()
        finished = tx.jobs.finished(0, LOOKED_BACK)
        failed = tx.jobs.ended_without_success(
            now - DAY, limit, most=MOST_ENDED, statuses=_FAILURES
        )
        jobs = list({job.id: job for job in (*finished[:limit], *failed)}.values())
        documents = dict(zip((job.id for job in jobs), describe(context, tx, jobs), strict=True))
        return Recent(
            ended=[documents[job.id] for job in finished[:limit]],
            failed=[documents[job.id] for job in failed],
            active=tx.jobs.count_active(),
            last_day=tx.jobs.count_finished(now - DAY),
            last_minute=sum(tx.jobs.count_finished(now - MINUTE).values()),
            usual={name: took / SECOND for name, took in pace_of(finished).by_name.items()},
        )
