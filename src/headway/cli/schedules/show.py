"""`headway schedules show`: all about one schedule, and its last slots."""

import shlex
from collections.abc import Sequence
from typing import Any

import click

from headway.base.text import plain
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import (
    counted,
    emit,
    fields,
    how_it_ended,
    moment,
    paint,
    say,
    table,
)
from headway.cli.schedules.list import NO_WORKER
from headway.cli.scope import Scope


@click.command()
@click.argument("schedule", metavar="NAME")
@click.option(
    "--slots", type=WHOLE_NUMBER, default=10, metavar="N", help="How many of its slots: 10."
)
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def show(scope: Scope, schedule: str, slots: int, as_json: bool) -> None:
    """Show all about one schedule, and what became of its last slots."""
    client = scope.connect()
    document = client.schedules.show(schedule)
    past = client.schedules.slots(schedule, slots)
    if as_json:
        emit({"schedule": document, "slots": past})
        return
    now = client.now()
    state = "" if document["enabled"] else "  disabled"
    title = (
        document["name"]
        if document["name"] == document["id"]
        else f"{document['name']}  {document['id']}"
    )
    print(f"{paint(plain(title), 'bold')}{state}")
    print("\n".join(fields([*_timing(document, now), *_work(document), *_history(document, now)])))
    _print_slots(past)
    if document["enabled"] and document["next_slot"] and not client.context.worker_is_there():
        say(NO_WORKER)


def _timing(document: dict[str, Any], now: int) -> list[tuple[str, str | None]]:
    rule = document["rule"] or {}
    jitter = f", up to {document['jitter']} later" if document["jitter"] not in (None, "0s") else ""
    return [
        ("when", f"{document['in_words']}{jitter}"),
        ("cron", rule.get("cron")),
        (
            "next",
            moment(document["next_fire_at"], now) or ("never" if document["enabled"] else None),
        ),
        ("catch up", f"{document['catch_up']}, within {document['window']}"),
        ("overlap", document["overlap"]),
    ]


def _work(document: dict[str, Any]) -> list[tuple[str, str | None]]:
    job = document["job"] or {}
    command = shlex.join(job["argv"]) if job.get("argv") else job.get("shell")
    rest = [(word, value) for word, value in job.items() if word not in ("argv", "shell")]
    return [
        ("template", document["template"]),
        ("workflow", document["workflow"]),
        *(("parameter", f"{name}={value}") for name, value in document["params"].items()),
        ("command", command),
        *((word.replace("_", " "), _written(value)) for word, value in rest),
    ]


def _history(document: dict[str, Any], now: int) -> list[tuple[str, str | None]]:
    last, missed, run = document["last_job"], document["missed"], document["last_run"]
    return [
        ("last run", run and f"{run['id']}, {run['state']}"),
        ("last slot", moment(document["last_slot"], now)),
        (
            "last job",
            f"{last['id']}, {how_it_ended(last['state'] or '', last['reason'])}"
            if last and not run
            else None,
        ),
        ("active job", document["active_job"]),
        (
            "missed",
            missed
            and f"{counted(missed['slots'], 'slot')}, the last {moment(missed['last_at'], now)}: "
            f"{missed['reason']}",
        ),
        ("added", f"{moment(document['created_at'], now)} by {document['created_by']}"),
    ]


def _print_slots(past: Sequence[dict[str, Any]]) -> None:
    if not past:
        return
    rows = [
        [_range(each), str(each["slots"]), each["outcome"], each["job"] or "", each["reason"] or ""]
        for each in past
    ]
    print()
    for line in table(["Slot", "Slots", "Outcome", "Job", "Reason"], rows, flexible=(0, 4)):
        print(line)


def _range(slot: dict[str, Any]) -> str:
    first, last = _minute(slot["slot"]), _minute(slot["last_slot"])
    if first == last:
        return f"{first}Z"
    return f"{first} to {last[11:] if first[:10] == last[:10] else last}Z"


def _minute(text: str) -> str:
    seconds = "" if text[17:19] == "00" else text[16:19]
    return f"{text[:10]} {text[11:16]}{seconds}"


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}={text}" for key, text in value.items())
    return shlex.join(map(str, value)) if isinstance(value, list) else str(value)
