"""`headway scheduler ...`: look at the scheduler and steer it."""

from typing import Any

import click

from headway.cli.breakers import told_of, trouble_fields
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import age, counted, emit, fields, moment, say
from headway.cli.scope import Scope
from headway.cli.stepping import MOST_NAMED, listed, started_by
from headway.config import store_setting
from headway.core.dispatch import DispatchPlan
from headway.core.model import shown
from headway.errors import InvalidInputError, WorkerPresentError
from headway.text import plain
from headway.views import dry_run as would_start
from headway.views import last_event, scheduler_status

SLOT_LINES = 4  # of `scheduler status`: mode, cap, used, free


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def status(scope: Scope, as_json: bool) -> None:
    """Mode, cap, slots, and why nothing starts now."""
    client = scope.connect()
    told = scheduler_status(client)
    if as_json:
        emit(told)
        return
    now = client.now()
    direct = told["mode"] == "direct"
    paused = f"by {told['paused_by']}, {moment(told['paused_at'], now)}" if told["paused"] else "no"
    if told["paused_reason"]:
        paused += f": {told['paused_reason']}"
    waiting = ", ".join(f"{count} {state}" for state, count in told["waiting"].items())
    last = moment(told["last_dispatch_at"], now)
    lines = fields(
        [
            ("mode", told["mode"]),
            ("cap", "none" if direct else str(told["max_active"])),
            ("used", str(told["active"])),
            ("free", "any" if told["free"] is None else str(told["free"])),
            ("jobs file", _entries(told["jobs_file"])),
            ("waiting", waiting or None),
            ("paused", paused),
            *(("paused", _paused_host(each, now)) for each in told["paused_hosts"]),
            ("last start", last and f"{last}, {counted(told['last_dispatch_count'], 'job')}"),
            *(("limit", _limit(each)) for each in told["limits"]),
            *(("rate", _rate(each, now)) for each in told["rates"]),
            ("pressure", told["pressure"]),
            *trouble_fields(told, now),
            ("worker", _worker(told, now)),
            *(("elsewhere", _elsewhere(each, now)) for each in told["elsewhere"]),
            *(("functions", _functions(each)) for each in told["functions"]),
            *(("direct", _direct(each, now)) for each in told["reservations"]),
            ("nothing starts", told["reason"]),
        ],
        indent="",
    )
    queued = f"Queued: {told['queued_total']} total, {told['queued_ready']} ready"
    print("\n".join([*lines[:SLOT_LINES], queued, *lines[SLOT_LINES:]]))


def _entries(entries: dict[str, Any]) -> str | None:
    """What runs and waits of the jobs file beside the slots; nothing if it is neither."""
    if not entries["running"] and not entries["waiting"]:
        return None
    waiting = f", {entries['waiting']} waiting" if entries["waiting"] else ""
    return f"{entries['running']} of {entries['parallel']} running{waiting}"


def _paused_host(other: dict[str, Any], now: int) -> str:
    who = f"{other['host'] or other['host_id']} ({other['home']})"
    reason = f": {other['paused_reason']}" if other["paused_reason"] else ""
    return f"{who} by {other['paused_by']}, {moment(other['paused_at'], now)}{reason}"


def _worker(told: dict[str, Any], now: int) -> str:
    trouble = told["worker_trouble"]
    if not told["worker"] or trouble is None:
        return "there" if told["worker"] else "none"
    since = moment(trouble["since"], now)
    return f"there; it cannot {trouble['what']} since {since}: {plain(trouble['error'])}"


def _limit(limit: dict[str, Any]) -> str:
    waiting = f", {limit['waiting']} waiting" if limit["waiting"] else ""
    return f"{limit['kind']} {limit['name']}: {limit['used']} of {limit['limit']} used{waiting}"


def _rate(rate: dict[str, Any], now: int) -> str:
    told = f"{rate['name']}: {rate['used']} of {rate['limit']} used"
    if rate["waiting"]:
        told += f", {rate['waiting']} waiting"
    return f"{told}; more {moment(rate['until'], now)}" if rate["until"] else told


def _elsewhere(other: dict[str, Any], now: int) -> str:
    who = f"{other['host'] or other['host_id']} ({other['home']})"
    told = f"{counted(len(other['running']), 'job')} on {who}"
    if not other["expired"]:
        return told
    since = moment(other["expired_at"], now)
    return f"{told}; nobody there looks after {other['expired']} since {since}"


def _functions(host: dict[str, Any]) -> str:
    where = f" on {host['host']}" if host["host"] else ""
    if host["trouble"]:
        return f"{host['trouble']}{where}"
    return f"{', '.join(host['tasks'])}{where}"


def _direct(call: dict[str, Any], now: int) -> str:
    since = age(call["granted_at"] or call["requested_at"], now)
    note = f" ({call['note']})" if call["note"] else ""
    told = f"{call['id']} of {call['holder']}{note}, {call['state']} for {since}"
    if call["expired"]:
        return f"{told}; not renewed in time"
    return f"{told}; {call['wait']}" if call["wait"] else told


@click.command()
@click.option("--batch", type=WHOLE_NUMBER, metavar="N", help="Start at most N jobs.")
@click.option("--dry-run", is_flag=True, help="Only say what would be started.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def run(scope: Scope, batch: int | None, dry_run: bool, as_json: bool) -> None:
    """Do one planning step now.

    With a worker there, it is the worker who steps. Prints the ids of the started jobs.
    """
    if batch is not None and batch < 1:
        raise InvalidInputError(f"--batch {batch} is less than 1")
    client = scope.connect() if dry_run else scope.connect_to_change()
    limit = batch or store_setting(client.settings(), "scheduler.batch_size")
    if dry_run:
        _tell_plan(would_start(client, limit), as_json=as_json)
        return
    worker = client.worker_is_there()
    busy = False
    if worker:
        started = started_by(client, last_event(client))
    else:
        from headway.engine.single import single_step

        try:
            ids = single_step(
                client.store, client.home, client.config, client.host, client.clock, limit=limit
            )
            started = [f"job-{each}" for each in ids]
        except WorkerPresentError:
            busy, started = True, []
    if as_json:
        emit({"dry_run": False, "worker": worker, "busy": busy, "started": started})
        return
    for job_id in started:
        print(job_id)
    if busy:
        say("another step is running; nothing to do")
    elif not started:
        say(f"started nothing: {scheduler_status(client)['reason'] or 'no job may start now'}")


def _tell_plan(plan: DispatchPlan, *, as_json: bool) -> None:
    if as_json:
        starts = [{"id": shown(job.id), "name": job.name} for job in plan.to_dispatch]
        skipped = [
            {"id": shown(job.id), "name": job.name, "reason": why} for job, why in plan.skipped
        ]
        emit({"dry_run": True, "would_start": starts, "skipped": skipped, "reason": plan.reason})
        return
    for job in plan.to_dispatch:
        print(shown(job.id))
    for job, why in plan.skipped[:MOST_NAMED]:
        say(f"{shown(job.id)} would wait: {why}")
    more = len(plan.skipped) - MOST_NAMED
    if more > 0:
        say(f"and {more} more would wait")
    say(f"would start {counted(len(plan.to_dispatch), 'job')}; nothing was changed")


@click.command()
@click.option("--reason", metavar="TEXT", help="Why, for those who wonder.")
@click.pass_obj
def pause(scope: Scope, reason: str | None) -> None:
    """Start nothing more; what runs goes on.

    A pause in force stays as it is.
    """
    client = scope.connect_to_change()
    in_force = client.pause(reason)
    because = f": {in_force.reason}" if in_force.reason else ""
    say(f"paused by {in_force.actor}{because}; `headway scheduler resume` ends it")


@click.command()
@click.pass_obj
def resume(scope: Scope) -> None:
    """End the pause, and those of single hosts."""
    client = scope.connect_to_change()
    seen = last_event(client)
    if not client.resume():
        say("it was not paused")
        return
    started = started_by(client, seen)
    say("resumed; " + (f"started {listed(started)}" if started else "nothing was started"))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def reset(scope: Scope, as_json: bool) -> None:
    """Forget launch failures and try again at once.

    Closes the breakers of all hosts and clears the strikes of jobs that could not be started. Jobs
    that were given up stay failed: `headway jobs retry` queues them again.
    """
    client = scope.connect_to_change()
    done = client.reset()
    if as_json:
        emit({"breakers": list(done.hosts), "jobs": [shown(each) for each in done.jobs]})
        return
    say(told_of(done, scheduler_status(client)["circuit_broken"]["count"]))
