"""Running jobs of other hosts of the store, and whether a worker there watches them."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from headway.base.units import show_instant
from headway.core.model import Claim, JobId, shown
from headway.jobs.context import Context
from headway.store.records import WorkerRecord
from headway.store.transaction import ReadTx


class Elsewhere(NamedTuple):
    """The host that ran a job, and where its output is there."""

    host: str
    folder: str


def ran_elsewhere(context: Context, tx: ReadTx, ids: Iterable[JobId]) -> dict[JobId, Elsewhere]:
    """Of these jobs, those whose output is on another host."""
    if not context.store.shared:
        return {}
    claims = tx.claims.last_of(list(ids)).values()
    names = tx.hosts.all()
    return {
        claim.job_id: Elsewhere(
            names[claim.host_id].name if claim.host_id in names else claim.host_id,
            output_folder(claim),
        )
        for claim in claims
        if claim.host_id != context.host.id
    }


def where_it_ran(context: Context, job_id: JobId) -> Elsewhere | None:
    """The host that ran this job, if its output is not here."""
    with context.store.read() as tx:
        return ran_elsewhere(context, tx, [job_id]).get(job_id)


def output_folder(claim: Claim) -> str:
    """Where the job's output is. A function's claim names the folder of its host instead, which is
    `run/hosts/TOKEN` beside `jobs`."""
    if claim.function_host is None:
        return claim.folder
    root = os.path.dirname(os.path.dirname(os.path.dirname(claim.folder)))
    return os.path.join(root, "jobs", str(claim.job_id))


def pauses_elsewhere(tx: ReadTx, host_id: str) -> list[dict[str, Any]]:
    """The other hosts that start nothing, while those of the rest do."""
    theirs = [each for each in tx.settings.host_pauses() if each.host_id != host_id]
    names = tx.hosts.all() if theirs else {}
    return [
        {
            "host_id": each.host_id,
            "host": names[each.host_id].name if each.host_id in names else None,
            "home": names[each.host_id].home if each.host_id in names else None,
            "paused_by": each.actor,
            "paused_at": show_instant(each.at),
            "paused_reason": each.reason,
        }
        for each in sorted(theirs, key=lambda pause: pause.host_id or "")
    ]


def all_hosts(context: Context) -> list[dict[str, Any]]:
    """Every host that the store knows, with its last worker and how many jobs run there."""
    with context.store.read() as tx:
        known = tx.hosts.all()
        running = Counter(claim.host_id for claim in tx.claims.live())
        paused = {each.host_id: each for each in tx.settings.host_pauses()}
        found = []
        for host in sorted(known.values(), key=lambda each: (each.name, each.id)):
            workers = tx.hosts.recent_workers(host.id, 1)
            breaker = tx.hosts.trouble(host.id)
            found.append(
                {
                    "id": host.id,
                    "name": host.name,
                    "home": host.home,
                    "here": host.id == context.host.id,
                    "running": running[host.id],
                    "paused_by": paused[host.id].actor if host.id in paused else None,
                    "breaker": breaker.cause if breaker else None,
                    "worker": _worker(workers[0]) if workers else None,
                }
            )
    return found


def _worker(worker: WorkerRecord) -> dict[str, Any]:
    return {
        "id": worker.id,
        "pid": worker.pid,
        "mode": worker.mode,
        "started_at": show_instant(worker.started_at),
        "ended_at": show_instant(worker.ended_at),
        "ending": worker.ending,
    }


def claims_elsewhere(tx: ReadTx, live: Sequence[Claim], host_id: str) -> list[dict[str, Any]]:
    """The claims of other hosts, which only they can judge. An expired lease says that no worker
    there watches them, not that they have ended."""
    theirs: dict[str, list[Claim]] = {}
    for claim in live:
        if claim.host_id != host_id:
            theirs.setdefault(claim.host_id, []).append(claim)
    names = tx.hosts.all() if theirs else {}
    found = []
    for other, claims in sorted(theirs.items()):
        known = names.get(other)
        leases = [claim.lease_until for claim in claims if claim.lease_until is not None]
        expired = [until for until in leases if until < tx.now()]
        found.append(
            {
                "host_id": other,
                "host": known.name if known else None,
                "home": claims[0].home,
                "running": [shown(claim.job_id) for claim in claims],
                "expired": len(expired),
                "expired_at": show_instant(min(expired)) if expired else None,
            }
        )
    return found
