"""`headway locks`: who holds which lock, and who waits for it."""

from typing import Any

import click

from headway.cli.render import age, emit, say, span, table
from headway.cli.scope import Scope
from headway.core.model import shown
from headway.core.states import Status


@click.command()
@click.option("--job", metavar="JOB", help="Only the locks that this job holds or waits for.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def locks(scope: Scope, job: str | None, as_json: bool) -> None:
    """Who holds which lock and for how long, and who waits for it, in order."""
    client = scope.connect()
    found = client.scheduler.locks()
    if job is not None:
        name = shown(client.job(client.jobs.find(job)).id)
        found = [each for each in found if name in _concerned(each)]
    if as_json:
        emit({"locks": found})
        return
    if not found:
        say("no lock is held or waited for" + (f" by {name}" if job is not None else ""))
        return
    now = client.now()
    rows = [row for each in found for row in _rows(each, now)]
    header = ["Lock", "Job", "Name", "Mode", "", "Since"]
    for line in table(header, rows, flexible=(0, 2)):
        print(line)


def _concerned(lock: dict[str, Any]) -> set[str]:
    return {each["job"] for each in (*lock["holders"], *lock["waiters"])}


def _rows(lock: dict[str, Any], now: int) -> list[list[str]]:
    rows = []
    for each in lock["holders"]:
        ended = each["state"] != Status.RUNNING
        state = "holds it; its processes linger" if ended else "holds it"
        rows.append(
            [lock["key"], each["job"], each["name"] or "", each["mode"], state, _held(each)]
        )
    for place, each in enumerate(lock["waiters"], 1):
        state = f"{_ordinal(place)} in line" + ("" if each["reserves"] else ", lacks more")
        since = age(each["since"], now)
        rows.append([lock["key"], each["job"], each["name"] or "", each["mode"], state, since])
    return rows


def _held(holder: dict[str, Any]) -> str:
    if holder["held_ms"] is None:
        return ""
    return span(holder["held_ms"] * 1000)


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
