"""What people ask about the whole: why a job does not run, and how the scheduler stands.

Both answer with the code that decides, so what they say is what will happen.
"""

import os
import re
import socket
from typing import Any

from headway.client import Client
from headway.config import store_setting
from headway.core.admission import closed, free_slots, left_by_direct
from headway.core.dispatch import DispatchPlan
from headway.core.facts import Door, Facts
from headway.core.model import (
    Block,
    Job,
    JobId,
    LockMode,
    Objection,
    Stage,
    Wait,
    WaitKind,
    shown,
)
from headway.core.plan import explain
from headway.core.policies import ENTRY
from headway.core.reservations import Reservation
from headway.core.states import TERMINAL, Status
from headway.elsewhere import claims_elsewhere, pauses_elsewhere
from headway.epoch import shown_epoch
from headway.gather import gather, tasks_known
from headway.occupancy import (
    filed_for_entries,
    limits_in_force,
    what_all_lack,
    with_holders,
)
from headway.passing import plan_pass
from headway.probes import look_at
from headway.store.base import ReadTx
from headway.troubles import launch_troubles
from headway.units import show_duration, show_instant

STEP_WITHIN = 2.0
SECOND = 1_000_000
MOST_WAITERS = 10_000
_JOB = re.compile(r"\bjob-([1-9][0-9]*)\b")


def why(client: Client, job_id: JobId) -> dict[str, Any]:
    """Every objection to starting this job, what would clear each, and its place in the queue."""
    job = client.job(job_id)
    with client.store.read() as tx:
        door = client.door(tx)
        facts = gather(tx, [job], door, client.queues, tasks_known(tx), home=client.home)
        objections = _explained(client, job, facts) if job.stage is not None else ()
        hindrance = client.hindrance(tx, job)
        objections = objections if hindrance is None else (hindrance,)
        told = [_objection(tx, job, with_holders(tx, each)) for each in objections]
        ahead, queued = tx.place_in_queue(job) if job.stage is not None else (0, 0)
    at_door = job.stage in (Stage.READY, Stage.WOKEN)
    return {
        "id": shown(job.id),
        "state": job.status.value,
        "reason": job.reason,
        "objections": told,
        "place": ahead + 1 if at_door else None,
        "queued": queued,
        "worker": client.worker_is_there(),
        "worker_trouble": client.worker_trouble(),
        "ended": job.status in TERMINAL,
    }


def _explained(client: Client, job: Job, facts: Facts) -> tuple[Objection, ...]:
    """Every objection, after a look at whatever the gates want to know of the world."""
    while True:
        objections = explain(job, facts)
        asked = {ask for each in objections if isinstance(each, Wait) for ask in each.asks}
        unseen = asked - facts.answers.keys()
        if not unseen:
            return objections
        answers = {**facts.answers, **look_at(unseen, client.config.conditions)}
        facts = facts._replace(answers=answers)


def _objection(tx: ReadTx, job: Job, objection: Objection) -> dict[str, Any]:
    """As it is told to people: with the names of the jobs in the way, and for how long."""
    final = isinstance(objection, Block)
    others = {} if final else _in_the_way(tx, job, objection.remedy)
    remedy = _JOB.sub(
        lambda found: others[found[0]][0] if found[0] in others else found[0], objection.remedy
    )
    if objection.kind is WaitKind.APPROVAL and job.approval is not None:
        remedy += f", {_rounded(tx.now() - job.approval.requested_at)} ago"
    return {
        "kind": objection.kind.value,
        "detail": objection.detail,
        "remedy": remedy or None,
        "final": final,
        "until": show_instant(None if isinstance(objection, Block) else objection.until),
        "jobs": [document for _, document in others.values()],
    }


def _in_the_way(tx: ReadTx, job: Job, remedy: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """For each other job that a remedy names: how to call it, and what is known of it. Of a chain
    that goes on it is the last job that counts."""
    ids = {int(each) for each in _JOB.findall(remedy)} - {job.id}
    found = {}
    for named in tx.readable_jobs(sorted(ids)).values():
        last = tx.last_in_chain(named.chain) or named
        since = last.started_at or last.created_at
        state = f"{last.status} for {_rounded(tx.now() - since)}"
        now = f"now {shown(last.id)}, " if last.id != named.id else ""
        document = {
            "id": shown(last.id),
            "name": last.name,
            "state": last.status.value,
            "since": show_instant(since),
        }
        found[shown(named.id)] = (f"{shown(named.id)} ({last.name}, {now}{state})", document)
    return found


def _rounded(passed: int) -> str:
    """How long, in whole seconds from one on."""
    return show_duration(passed - passed % SECOND if passed >= SECOND else max(0, passed))


def locks(client: Client) -> list[dict[str, Any]]:
    """Who holds each lock that is held or waited for, and who waits, in the order of getting it."""
    with client.store.read() as tx:
        held, waiting = tx.locks_held(), tx.lock_waiters(MOST_WAITERS)
        ids = {*(each.job_id for each in held), *(each.job_id for each in waiting)}
        jobs = tx.readable_jobs(sorted(ids))
        now = tx.now()
    found: dict[str, dict[str, Any]] = {
        key: {"key": key, "holders": [], "waiters": []}
        for key in sorted({*(each.key for each in held), *(each.key for each in waiting)})
    }
    for lock in held:
        told = _holder(lock.job_id, lock.mode, jobs.get(lock.job_id), now)
        found[lock.key]["holders"].append(told)
    for waiter in waiting:
        job = jobs.get(waiter.job_id)
        found[waiter.key]["waiters"].append(
            {
                "job": shown(waiter.job_id),
                "name": job.name if job else None,
                "mode": waiter.mode.value,
                "reserves": waiter.reserves,
                "since": show_instant(job.created_at) if job else None,
            }
        )
    return list(found.values())


def _holder(job_id: JobId, mode: LockMode, job: Job | None, now: int) -> dict[str, Any]:
    """A lock is taken when the job starts, and kept until its last process is gone."""
    since = job.started_at if job else None
    return {
        "job": shown(job_id),
        "name": job.name if job else None,
        "state": job.status.value if job else None,
        "mode": mode.value,
        "since": show_instant(since),
        "held_ms": (now - since) // 1000 if since is not None else None,
    }


def scheduler_status(client: Client) -> dict[str, Any]:
    """Mode, cap, used, free, and the reason why nothing starts now."""
    with client.store.read() as tx:
        door = client.door(tx)
        counts = tx.count_active()
        marks = tx.marks()
        settings = tx.settings()
        now = tx.now()
        at_door, filed = tx.count_at_door(), filed_for_entries(tx)
        ready = at_door + filed
        live = tx.live_claims()
        breaker = tx.host_trouble(client.host.id)
        elsewhere = claims_elsewhere(tx, live, client.host.id)
        paused_hosts = pauses_elsewhere(tx, client.host.id)
        functions = _functions(tx)
        troubles = launch_troubles(tx)
        reservations = [_reservation(client, tx, each) for each in tx.reservations()]
        limits, rates = limits_in_force(tx, door)
        waiting = sum(count for status, count in counts.items() if status is not Status.RUNNING)
        lacking = what_all_lack(tx, door, waiting) if at_door == 0 else None
        entries = sum(ENTRY in claim.occupies for claim in live)
    worker = client.worker_is_there()
    trouble = client.worker_trouble()
    return {
        "mode": "direct" if door.max_active <= 0 else "deferred",
        "paused": door.paused is not None,
        "paused_by": door.paused.actor if door.paused else None,
        "paused_at": show_instant(door.paused.at) if door.paused else None,
        "paused_reason": door.paused.reason if door.paused else None,
        "paused_hosts": paused_hosts,
        "max_active": door.max_active,
        "batch_size": store_setting(settings, "scheduler.batch_size"),
        "active": len(live) - entries + len(door.granted),
        "free": free_slots(door),
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
        "jobs_file": {"parallel": door.parallel, "running": entries, "waiting": filed},
        "limits": limits,
        "rates": rates,
        "pressure": door.strain.detail if door.strain else None,
        "reason": _why_nothing_starts(
            door,
            now,
            ready=ready,
            waiting=waiting,
            worker=worker,
            trouble=trouble,
            lacking=lacking,
        ),
    }


def _reservation(client: Client, tx: ReadTx, held: Reservation) -> dict[str, Any]:
    """A direct call: who has a slot outside of the queue, or waits for one."""
    from headway.reserving import why_not as why_waiting

    names = tx.hosts()
    return {
        "id": held.name,
        "holder": held.holder,
        "note": held.note,
        "state": "waiting" if held.waits else "running",
        "wait": why_waiting(client, tx, held) if held.waits else None,
        "requested_at": show_instant(held.requested_at),
        "granted_at": show_instant(held.granted_at),
        "expires_at": show_instant(held.expires_at),
        "expired": held.expires_at <= tx.now(),
        "host_id": held.host_id,
        "host": names[held.host_id].name if held.host_id in names else None,
        "pid": held.pid,
        "inside": None if held.inside is None else shown(held.inside),
        "occupies": list(held.occupies),
    }


def _functions(tx: ReadTx) -> list[dict[str, Any]]:
    """Which hosts run functions, and which, or why they cannot."""
    names = tx.hosts()
    return [
        {
            "host_id": host_id,
            "host": names[host_id].name if host_id in names else None,
            "tasks": sorted(view.names),
            "trouble": view.trouble,
        }
        for host_id, view in sorted(tx.tasks_known().items())
        if view.names or view.trouble
    ]


def why_not(client: Client, job_id: JobId) -> str | None:
    """In a few words, what is in the way of a job that does not run: the first objection."""
    told = why(client, job_id)
    if told["ended"] or told["state"] == Status.RUNNING:
        return None
    if told["objections"]:
        return _in_short(told["objections"][0])
    if not told["worker"]:
        return "no worker is there (`headway work` is one)"
    return told["worker_trouble"] and in_short_of(told["worker_trouble"])


def not_importable(client: Client, job_id: JobId) -> str | None:
    """Why nobody can call the function of a job, if that is all that is in its way."""
    objections = why(client, job_id)["objections"]
    first = objections[0] if objections else None
    return _in_short(first) if first and first["kind"] == WaitKind.TASK else None


def _in_short(objection: dict[str, Any]) -> str:
    remedy = f" ({objection['remedy']})" if objection["remedy"] else ""
    return f"{objection['detail']}{remedy}"


def in_short_of(trouble: dict[str, Any]) -> str:
    """What keeps a worker that is there from its work."""
    return f"the worker cannot {trouble['what']}: {trouble['error']}"


def _why_nothing_starts(
    door: Door,
    now: int,
    *,
    ready: int,
    waiting: int,
    worker: bool,
    trouble: dict[str, Any] | None,
    lacking: str | None,
) -> str | None:
    shut = closed(door, now)
    if shut is not None:
        return shut.detail
    if door.reserved is not None and left_by_direct(door) is None:
        return f"{door.reserved.name} of {door.reserved.holder} goes first"
    if waiting == 0:
        return "nothing is queued"
    if worker and trouble is not None:
        return in_short_of(trouble)
    if free_slots(door) == 0:
        return f"all {door.max_active} slots are in use"
    if not worker:
        return "no worker is there"
    if lacking is not None:
        return lacking
    if ready == 0:
        return "every queued job waits for something; `headway jobs why JOB` says for what"
    return None


def await_step(client: Client) -> bool:
    """Wait up to 2 s until the worker's step has passed what was committed before this call."""
    folder = os.open(client.home.run, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asker:
            asker.bind("")  # an address of the kernel's choosing, gone with the socket
            asker.settimeout(STEP_WITHIN)
            name = os.path.basename(client.home.worker_socket)
            asker.sendto(b"step", f"/proc/self/fd/{folder}/{name}")
            return asker.recv(16) == b"stepped"
    except OSError:
        return False
    finally:
        os.close(folder)


def started_since(client: Client, seq: int) -> list[str]:
    """The jobs that were started after the given event."""
    with client.store.read() as tx:
        return [
            shown(event.job_id)
            for event in tx.events_since(seq, 10_000)
            if event.kind == "running" and event.job_id is not None
        ]


def last_event(client: Client) -> int:
    with client.store.read() as tx:
        return tx.last_event()


def event_epoch(client: Client) -> str | None:
    """What the numbers of events are counted in; another one after a restore."""
    with client.store.read() as tx:
        return shown_epoch(tx.marks())


def dry_run(client: Client, batch: int) -> DispatchPlan:
    """What one pass would start now, and what it would leave, without changing anything."""
    with client.store.read() as tx:
        return plan_pass(
            tx,
            client.door(tx),
            client.queues,
            home=client.home,
            look=lambda questions: look_at(questions, client.config.conditions),
            batch=batch,
        )
