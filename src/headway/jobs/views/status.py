"""How the scheduler stands: its mode, what is in use, and why nothing starts now.

The code that decides also answers here, so what is said is what will happen.
"""

from typing import Any

from headway.base.units import show_instant
from headway.core.capacity import closed, free_slots, left_by_direct
from headway.core.facts import Capacity
from headway.core.model import (
    shown,
)
from headway.core.policies import ENTRY
from headway.core.reservations import Reservation, is_expired
from headway.core.states import Status
from headway.core.wait_words import direct_call_first, no_slot
from headway.jobs.context import Context
from headway.jobs.launch_failures import launch_troubles
from headway.jobs.settings import store_setting, unusable_settings
from headway.jobs.views.capacity import (
    limits_in_force,
    parked_for_entries,
    what_all_lack,
)
from headway.jobs.views.hosts import claims_elsewhere, pauses_elsewhere
from headway.jobs.views.present import present_capacity
from headway.jobs.worker_trouble import in_short_of, trouble_of
from headway.store.transaction import ReadTx


def scheduler_status(context: Context) -> dict[str, Any]:
    """Mode, cap, used, free, and the reason why nothing starts now."""
    with context.store.read() as tx:
        capacity = present_capacity(context, tx)
        counts = tx.jobs.count_active()
        marks = tx.settings.marks()
        settings = tx.settings.all()
        now = tx.now()
        for_capacity, parked = tx.waits.count_ready(), parked_for_entries(tx)
        ready = for_capacity + parked
        live = tx.claims.live()
        breaker = tx.hosts.trouble(context.host.id)
        elsewhere = claims_elsewhere(tx, live, context.host.id)
        paused_hosts = pauses_elsewhere(tx, context.host.id)
        functions = _functions(tx)
        troubles = launch_troubles(tx)
        reservations = [_reservation(context, tx, each) for each in tx.reservations.all()]
        limits, rates = limits_in_force(tx, capacity)
        waiting = sum(count for status, count in counts.items() if status is not Status.RUNNING)
        lacking = what_all_lack(tx, capacity, waiting) if for_capacity == 0 else None
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
        "waiting": {
            status.value: count for status, count in counts.items() if status is not Status.RUNNING
        },
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


def _reservation(context: Context, tx: ReadTx, held: Reservation) -> dict[str, Any]:
    """A direct call: who has a slot outside of the queue, or waits for one."""
    from headway.jobs.reservations import why_not as why_waiting

    names = tx.hosts.all()
    return {
        "id": held.name,
        "holder": held.holder,
        "note": held.note,
        "state": "waiting" if held.waits else "running",
        "wait": why_waiting(context, tx, held) if held.waits else None,
        "requested_at": show_instant(held.requested_at),
        "granted_at": show_instant(held.granted_at),
        "expires_at": show_instant(held.expires_at),
        "expired": is_expired(held, tx.now()),
        "host_id": held.host_id,
        "host": names[held.host_id].name if held.host_id in names else None,
        "pid": held.pid,
        "inside": None if held.inside is None else shown(held.inside),
        "occupies": list(held.occupies),
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
