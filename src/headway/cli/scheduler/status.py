"""`headway scheduler status`: mode, cap, slots, and why nothing starts now."""

from typing import Any

import click

from headway.base.text import plain
from headway.cli.render import age, counted, emit, fields, moment
from headway.cli.scheduler.launch_failures import trouble_fields
from headway.cli.scope import Scope

SLOT_LINES = 4  # of `scheduler status`: mode, cap, used, free


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def status(scope: Scope, as_json: bool) -> None:
    """Mode, cap, slots, and why nothing starts now."""
    client = scope.connect()
    document = client.scheduler.status()
    if as_json:
        emit(document)
        return
    now = client.now()
    direct = document["mode"] == "direct"
    paused = (
        f"by {document['paused_by']}, {moment(document['paused_at'], now)}"
        if document["paused"]
        else "no"
    )
    if document["paused_reason"]:
        paused += f": {document['paused_reason']}"
    waiting = ", ".join(f"{count} {state}" for state, count in document["waiting"].items())
    last = moment(document["last_dispatch_at"], now)
    lines = fields(
        [
            ("mode", document["mode"]),
            ("cap", "none" if direct else str(document["max_active"])),
            ("used", str(document["active"])),
            ("free", "any" if document["free"] is None else str(document["free"])),
            ("jobs file", _entries(document["jobs_file"])),
            ("waiting", waiting or None),
            ("paused", paused),
            *(("paused", _paused_host(each, now)) for each in document["paused_hosts"]),
            ("last start", last and f"{last}, {counted(document['last_dispatch_count'], 'job')}"),
            *(("limit", _limit(each)) for each in document["limits"]),
            *(("rate", _rate(each, now)) for each in document["rates"]),
            *(
                ("setting", f"{each['problem']}; {each['next']}")
                for each in document["unusable_settings"]
            ),
            ("pressure", document["pressure"]),
            *trouble_fields(document, now),
            ("worker", _worker(document, now)),
            *(("elsewhere", _elsewhere(each, now)) for each in document["elsewhere"]),
            *(("functions", _functions(each)) for each in document["functions"]),
            *(("direct", _direct(each, now)) for each in document["reservations"]),
            ("nothing starts", document["reason"]),
        ],
        indent="",
    )
    queued = f"Queued: {document['queued_total']} total, {document['queued_ready']} ready"
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


def _worker(document: dict[str, Any], now: int) -> str:
    trouble = document["worker_trouble"]
    if not document["worker"] or trouble is None:
        return "there" if document["worker"] else "none"
    since = moment(trouble["since"], now)
    return f"there; it cannot {trouble['what']} since {since}: {plain(trouble['error'])}"


def _limit(limit: dict[str, Any]) -> str:
    waiting = f", {limit['waiting']} waiting" if limit["waiting"] else ""
    return f"{limit['kind']} {limit['name']}: {limit['used']} of {limit['limit']} used{waiting}"


def _rate(rate: dict[str, Any], now: int) -> str:
    document = f"{rate['name']}: {rate['used']} of {rate['limit']} used"
    if rate["waiting"]:
        document += f", {rate['waiting']} waiting"
    return f"{document}; more {moment(rate['until'], now)}" if rate["until"] else document


def _elsewhere(other: dict[str, Any], now: int) -> str:
    who = f"{other['host'] or other['host_id']} ({other['home']})"
    document = f"{counted(len(other['running']), 'job')} on {who}"
    if not other["expired"]:
        return document
    since = moment(other["expired_at"], now)
    return f"{document}; nobody there looks after {other['expired']} since {since}"


def _functions(host: dict[str, Any]) -> str:
    where = f" on {host['host']}" if host["host"] else ""
    if host["trouble"]:
        return f"{host['trouble']}{where}"
    return f"{', '.join(host['tasks'])}{where}"


def _direct(call: dict[str, Any], now: int) -> str:
    since = age(call["granted_at"] or call["requested_at"], now)
    note = f" ({call['note']})" if call["note"] else ""
    document = f"{call['id']} of {call['holder']}{note}, {call['state']} for {since}"
    if call["expired"]:
        return f"{document}; not renewed in time"
    return f"{document}; {call['wait']}" if call["wait"] else document
