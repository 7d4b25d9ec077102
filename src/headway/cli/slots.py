"""`headway schedules list` and `show`: what fires when, what became of it, and what was missed."""

import shlex
from typing import Any

import click

from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import (
    age,
    counted,
    emit,
    fields,
    how_it_ended,
    instant,
    moment,
    paint,
    say,
    span,
    state_colour,
    table,
)
from headway.cli.scope import Scope
from headway.text import plain

NO_WORKER = (
    "no worker is there, so nothing fires; `headway work` is one, and `headway service install` "
    "keeps one"
)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_schedules(scope: Scope, as_json: bool) -> None:
    """List the schedules: when they fire, how it went, and what was missed."""
    client = scope.connect()
    found = client.schedules()
    there = client.worker_is_there()
    if as_json:
        emit({"schedules": found, "worker": there})
        return
    if not found:
        say("there are no schedules; `headway schedules add --every 1h -- CMD ...` makes one")
        return
    now = client.now()
    rows = [
        [
            each["name"],
            each["in_words"],
            age(each["last_slot"], now) or "-",
            _next(each, now),
            _outcome(each),
            str(each["missed"]["slots"]) if each["missed"] else "",
        ]
        for each in found
    ]
    colours = [state_colour((each["last_job"] or {}).get("state") or "") for each in found]
    header = ["Name", "When", "Last", "Next", "Outcome", "Missed"]
    for line in table(header, rows, flexible=(0, 1, 4), favoured=1, colours=colours, coloured=4):
        print(line)
    if not there and any(each["enabled"] and each["next_slot"] for each in found):
        say(NO_WORKER)


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
    told = client.schedule(schedule)
    past = client.schedule_slots(schedule, slots)
    if as_json:
        emit({"schedule": told, "slots": past})
        return
    now = client.now()
    state = "" if told["enabled"] else "  disabled"
    title = told["name"] if told["name"] == told["id"] else f"{told['name']}  {told['id']}"
    print(f"{paint(plain(title), 'bold')}{state}")
    print("\n".join(fields([*_timing(told, now), *_work(told), *_history(told, now)])))
    _print_slots(past)
    if told["enabled"] and told["next_slot"] and not client.worker_is_there():
        say(NO_WORKER)


def _timing(told: dict[str, Any], now: int) -> list[tuple[str, str | None]]:
    rule = told["rule"] or {}
    jitter = f", up to {told['jitter']} later" if told["jitter"] not in (None, "0s") else ""
    return [
        ("when", f"{told['in_words']}{jitter}"),
        ("cron", rule.get("cron")),
        ("next", moment(told["next_fire_at"], now) or ("never" if told["enabled"] else None)),
        ("catch up", f"{told['catch_up']}, within {told['window']}"),
        ("overlap", told["overlap"]),
    ]


def _work(told: dict[str, Any]) -> list[tuple[str, str | None]]:
    job = told["job"] or {}
    command = shlex.join(job["argv"]) if job.get("argv") else job.get("shell")
    rest = [(word, value) for word, value in job.items() if word not in ("argv", "shell")]
    return [
        ("template", told["template"]),
        *(("parameter", f"{name}={value}") for name, value in told["params"].items()),
        ("command", command),
        *((word.replace("_", " "), _written(value)) for word, value in rest),
    ]


def _history(told: dict[str, Any], now: int) -> list[tuple[str, str | None]]:
    last, missed = told["last_job"], told["missed"]
    return [
        ("last slot", moment(told["last_slot"], now)),
        ("last job", last and f"{last['id']}, {how_it_ended(last['state'] or '', last['reason'])}"),
        ("active job", told["active_job"]),
        (
            "missed",
            missed
            and f"{counted(missed['slots'], 'slot')}, the last {moment(missed['last_at'], now)}: "
            f"{missed['reason']}",
        ),
        ("added", f"{moment(told['created_at'], now)} by {told['created_by']}"),
    ]


def _print_slots(past: list[dict[str, Any]]) -> None:
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


def _next(told: dict[str, Any], now: int) -> str:
    if not told["enabled"]:
        return "disabled"
    at = instant(told["next_fire_at"])
    if at is None:
        return "never"
    return "due" if at <= now else f"in {span(at - now)}"


def _outcome(told: dict[str, Any]) -> str:
    if told["active_job"]:
        return f"{told['active_job']} is active"
    last = told["last_job"]
    return how_it_ended(last["state"] or "", last["reason"]) if last else ""


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}={text}" for key, text in value.items())
    return shlex.join(map(str, value)) if isinstance(value, list) else str(value)
