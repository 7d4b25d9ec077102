"""Limits, rates and pressure as people see them: how much of each is used, by whom, who waits."""

from collections.abc import Mapping
from typing import Any

from headway.base.units import show_instant
from headway.core.capacity import room
from headway.core.facts import Capacity
from headway.core.model import Block, Objection, shown
from headway.core.policies import RATE, read_topic
from headway.core.wait_words import used_up
from headway.jobs.facts import with_rates
from headway.jobs.settings import limits_set
from headway.jobs.views.counts import Counts
from headway.store.transaction import ReadTx

MOST_NAMED = 5


def limits_in_force(
    tx: ReadTx, capacity: Capacity, waiting: Mapping[str, int]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Every limit, and every rate that is set or waited for, with what is used of it and how many
    wait for it."""
    capacity = with_rates(
        tx, capacity, (key for key in limits_set(tx.settings.all()) if _is_rate(key))
    )
    limits, rates = [], []
    for key, limit in sorted(capacity.limits.items()):
        used, view = capacity.usage.get(key, 0), capacity.rates.get(key)
        if view is None:
            kind, _, word = key.partition(":")
            document = {"kind": kind, "name": word, "limit": limit, "used": used}
            limits.append({**document, "waiting": waiting.get(key, 0)})
        else:
            document = {"name": view.rate.key, "limit": view.text, "used": used}
            until = show_instant(view.until)
            rates.append({**document, "until": until, "waiting": waiting.get(key, 0)})
    return limits, rates


def _is_rate(key: str) -> bool:
    return key.startswith(f"{RATE}:")


def what_all_lack(capacity: Capacity, counts: Counts) -> str | None:
    """Which limits and rates are used up, if all that waits waits for those."""
    if counts.limited < counts.total:
        return None
    lacking = sorted(key for key in counts.for_limit if room(key, capacity) == 0)
    return "; ".join(used_up(key, capacity).detail for key in lacking) or None


def with_holders(tx: ReadTx, objection: Objection) -> Objection:
    """The same objection; where it is a limit, with the jobs that use it up."""
    if isinstance(objection, Block):
        return objection
    topics = [each for each in objection.topics if each.startswith("limit:")]
    keys = {read_topic(each).key for each in topics}
    if not keys:
        return objection
    claims = [each for each in tx.claims.slots().occupants if keys & {*each.keys}]
    holders = [shown(job_id) for job_id in sorted(each.job_id or 0 for each in claims)]
    calls = (each for each in tx.reservations.all() if not each.waits)
    holders += [each.name for each in calls if keys & {*each.occupies}]
    if not holders:
        return objection
    more = f" and {len(holders) - MOST_NAMED} more" if len(holders) > MOST_NAMED else ""
    named = ", ".join(holders[:MOST_NAMED])
    return objection._replace(remedy=f"in use by {named}{more}: {objection.remedy}")
