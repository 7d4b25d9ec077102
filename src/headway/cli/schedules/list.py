"""`headway schedules list`: what fires when, and what was missed."""

import os
from typing import Any

import click

from headway.cli.render import (
    age,
    emit,
    how_it_ended,
    instant,
    say,
    span,
    state_colour,
    table,
)
from headway.cli.scope import Scope

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
    found = client.schedules.list()
    there = client.context.worker_is_there()
    if as_json:
        emit({"schedules": found, "worker": there})
        return
    if not found:
        say("there are no schedules; `headway schedules add --every 1h -- CMD ...` makes one")
        return
    now = client.now()
    some = any(each["workflow"] for each in found)
    rows = [
        [
            each["name"],
            *([_workflow(each)] if some else []),
            each["in_words"],
            age(each["last_slot"], now) or "-",
            _next(each, now),
            _outcome(each),
            str(each["missed"]["slots"]) if each["missed"] else "",
        ]
        for each in found
    ]
    colours = [state_colour((each["last_job"] or {}).get("state") or "") for each in found]
    header = ["Name", *(["Workflow"] if some else []), "When", "Last", "Next", "Outcome", "Missed"]
    when, outcome = header.index("When"), header.index("Outcome")
    flexible = (*range(when + 1), outcome)
    for line in table(
        header, rows, flexible=flexible, favoured=when, colours=colours, coloured=outcome
    ):
        print(line)
    if not there and any(each["enabled"] and each["next_slot"] for each in found):
        say(NO_WORKER)


def _workflow(document: dict[str, Any]) -> str:
    return os.path.basename(document["workflow"] or "").removesuffix(".toml")


def _next(document: dict[str, Any], now: int) -> str:
    if not document["enabled"]:
        return "disabled"
    at = instant(document["next_fire_at"])
    if at is None:
        return "never"
    return "due" if at <= now else f"in {span(at - now)}"


def _outcome(document: dict[str, Any]) -> str:
    run = document["last_run"]
    if run is not None:
        return f"{run['id']} is running" if run["state"] == "running" else str(run["state"])
    if document["active_job"]:
        return f"{document['active_job']} is active"
    last = document["last_job"]
    return how_it_ended(last["state"] or "", last["reason"]) if last else ""
