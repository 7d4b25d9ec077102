"""Launch failures: hosts whose breaker is open, jobs that are tried again, and jobs that were given
up; and how people reset them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.units import MICROSECONDS, show_instant
from headway.core.model import Job, JobId, shown
from headway.store.new_jobs import Event
from headway.store.transaction import ReadTx, WriteTx

if TYPE_CHECKING:
    from headway.jobs.context import Context

SHOWN = 5
MOST_RESET = 100_000


class Reset(NamedTuple):
    """The result of a reset: the breakers of these hosts, the strikes of these jobs."""

    hosts: tuple[str, ...]
    jobs: tuple[JobId, ...]


def launch_troubles(tx: ReadTx) -> dict[str, Any]:
    """The breakers of all hosts; the jobs with strikes, and those given up in the last day: how
    many, and a few of them with the cause."""
    now = tx.now()
    struck, waiting = tx.hosts.struck_jobs(SHOWN)
    broken, ended = tx.hosts.circuit_broken(now - MICROSECONDS["d"], SHOWN)
    return {
        "breakers": _breakers(tx),
        "launch_failures": {"count": struck, "jobs": [_struck(each) for each in waiting]},
        "circuit_broken": {"count": broken, "jobs": [_broken(each) for each in ended]},
    }


def _breakers(tx: ReadTx) -> list[dict[str, Any]]:
    found = tx.hosts.open_breakers()
    names = tx.hosts.all() if found else {}
    return [
        {
            "host_id": each.host_id,
            "host": names[each.host_id].name if each.host_id in names else None,
            "kind": each.trouble.kind.value,
            "cause": each.trouble.cause,
            "failures": each.trouble.failures,
            "since": show_instant(each.opened_at),
            "probe_at": show_instant(each.trouble.probe_at),
        }
        for each in found
    ]


def _struck(job: Job) -> dict[str, Any]:
    return {
        "id": shown(job.id),
        "name": job.name,
        "failures": job.launch_failures,
        "cause": job.last_failure,
        "next_try_at": show_instant(job.not_before),
    }


def _broken(job: Job) -> dict[str, Any]:
    return {
        "id": shown(job.id),
        "name": job.name,
        "cause": (job.reason or "").removeprefix("circuit-broken: "),
        "finished_at": show_instant(job.finished_at),
    }


def reset(context: Context) -> Reset:
    """Forget launch failures: close breakers, try at once what waits after a failed launch."""

    def transaction(tx: WriteTx) -> Reset:
        hosts = tuple(each.host_id for each in tx.hosts.open_breakers())
        jobs = tuple(each.id for each in tx.hosts.struck_jobs(MOST_RESET)[1])
        woken = tx.hosts.reset_launches()
        tx.settings.set_mark("crashes_forgiven_at", tx.now())
        data = {"jobs": woken, "breakers": len(hosts)}
        tx.events.add([Event("reset", None, data)], actor=context.actor)
        return Reset(hosts, jobs)

    done = context.store.transact(transaction)
    context.wake()
    return done
