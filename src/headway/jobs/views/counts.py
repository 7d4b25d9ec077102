"""How much waits. It is exact, and the one part of a status that takes longer the more that is."""

from collections.abc import Mapping
from typing import NamedTuple

from headway.core.policies import read_topic
from headway.core.states import Status
from headway.jobs.context import Context
from headway.store.transaction import ReadTx


class Counts(NamedTuple):
    waiting: Mapping[Status, int]  # jobs; without the states that none has
    ready: int  # of these: for nothing but capacity, as far as is known
    for_limit: Mapping[str, int]  # of each limit or rate how many wait for it
    limited: int  # jobs that wait for any of these

    @property
    def total(self) -> int:
        return sum(self.waiting.values())


def counts(context: Context) -> Counts:
    with context.store.read() as tx:
        return count(tx)


def count(tx: ReadTx) -> Counts:
    jobs = tx.jobs.count_waiting()
    for_limit: dict[str, int] = {}
    for topic, number in tx.limits.count_parked().items():
        key = read_topic(topic).key
        for_limit[key] = for_limit.get(key, 0) + number
    limited = tx.limits.count_limited() if for_limit else 0
    return Counts(jobs.statuses, jobs.ready, for_limit, limited)
