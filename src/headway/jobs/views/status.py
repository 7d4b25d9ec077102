"""How the scheduler stands: its mode, what is in use, and why nothing starts now.

The code that decides also answers here, so what is said is what will happen.
"""

from typing import Any

from headway.base.units import show_instant
from headway.core.capacity import closed, free_slots, left_by_direct
from headway.core.facts import Capacity
from headway.core.policies import ENTRY
from headway.core.wait_words import direct_call_first, no_slot
from headway.jobs.context import Context
from headway.jobs.launch_failures import launch_troubles
from headway.jobs.reservations import reservation_document
from headway.jobs.settings import store_setting, unusable_settings
from headway.jobs.views.capacity import limits_in_force, what_all_lack
from headway.jobs.views.counts import Counts, count
from headway.jobs.views.hosts import claims_elsewhere, pauses_elsewhere
from headway.jobs.views.present import present_capacity
from headway.jobs.worker_trouble import in_short_of, trouble_of
from headway.store.transaction import ReadTx


def scheduler_status(context: Context, counts: Counts | None = None) -> dict[str, Any]:
    """Mode, cap, used, free, and the reason why nothing starts now. Who asks often may give the
    counts of a moment ago: then it does not matter how much waits."""
    with context.store.read() as tx:
        capacity = present_capacity(context, tx)
        counts = count(tx) if counts is None else counts
        marks = tx.settings.marks()
        settings = tx.settings.all()
        now = tx.now()
        # Entries of the jobs file do not stand in the queue for slots: they wait for places of
        # their own, or until any job may start.
        parked = counts.for_limit.get(ENTRY, 0)
        ready, waiting = counts.ready + parked, counts.total
        live = tx.claims.live()
        breaker = tx.hosts.trouble(context.host.id)
        elsewhere = claims_elsewhere(tx, live, context.host.id)
        paused_hosts = pauses_elsewhere(tx, context.host.id)
        functions = _functions(tx)
        troubles = launch_troubles(tx)
        reservations = [reservation_document(context, tx, each) for each in tx.reservations.all()]
        limits, rates = limits_in_force(tx, capacity, counts.for_limit)
        lacking = what_all_lack(capacity, counts) if counts.ready == 0 else None
        entries = sum(ENTRY in claim.occupies for claim in live)
    worker = context.worker_is_there()
    trouble = trouble_of(context.home)
    return {
        "mode": "direct" if capacity.max_active <= 0 else "deferred",
        "paused": capacity.paused is not None,
        "paused_by": capacity.paused.actor if capacity.paused else None,
        "paused_at": show_instant(capacity.paused.at) if capacity.paused else None,
        "paused_reason": capacity.paused.reason if capacity.paused else None,
        "paused_hosts": paused_hosts,
        "max_active": capacity.max_active,
        "unusable_settings": [
            {"key": each.key, "problem": each.problem, "next": each.remedy}
            for each in unusable_settings(settings)
        ],
        "batch_size": store_setting(settings, "scheduler.batch_size"),
        "active": len(live) - entries + len(capacity.granted),
        "free": free_slots(capacity),
        "queued_total": waiting,
        "queued_ready": ready,
        "waiting": {status.value: number for status, number in counts.waiting.items()},
        "last_dispatch_at": show_instant(marks["last_dispatch_at"] or None),
        "last_dispatch_count": marks["last_dispatch_count"],
        "log_bytes": marks["log_bytes"],
        "breaker": {
            "kind": breaker.kind.value,
            "cause": breaker.cause,
            "failures": breaker.failures,
            "probe_at": show_instant(breaker.probe_at),
        }
        if breaker
        else None,
        **troubles,
        "worker": worker,
        "worker_trouble": trouble,
        "elsewhere": elsewhere,
        "functions": functions,
        "reservations": reservations,
        "jobs_file": {"parallel": capacity.parallel, "running": entries, "waiting": parked},
        "limits": limits,
        "rates": rates,
        "pressure": capacity.strain.detail if capacity.strain else None,
        "reason": _why_nothing_starts(
            capacity,
            now,
            ready=ready,
            waiting=waiting,
            worker=worker,
            trouble=trouble,
            lacking=lacking,
        ),
    }


def _functions(tx: ReadTx) -> list[dict[str, Any]]:
    """Which hosts run functions, and which, or why they cannot."""
    names = tx.hosts.all()
    return [
        {
            "host_id": host_id,
            "host": names[host_id].name if host_id in names else None,
            "tasks": sorted(view.names),
            "trouble": view.trouble,
        }
        for host_id, view in sorted(tx.hosts.tasks_known().items())
        if view.names or view.trouble
    ]


def _why_nothing_starts(
    capacity: Capacity,
    now: int,
    *,
    ready: int,
    waiting: int,
    worker: bool,
    trouble: dict[str, Any] | None,
    lacking: str | None,
) -> str | None:
    shut = closed(capacity, now)
    if shut is not None:
        return shut.detail
    if capacity.reserved is not None and left_by_direct(capacity) is None:
        return direct_call_first(capacity.reserved).detail
    if waiting == 0:
        return "nothing is queued"
    if worker and trouble is not None:
        return in_short_of(trouble)
    if free_slots(capacity) == 0:
        return no_slot(capacity).detail
    if not worker:
        return "no worker is there"
    if lacking is not None:
        return lacking
    if ready == 0:
        return "every queued job waits for something; `headway jobs why JOB` says for what"
    return None
