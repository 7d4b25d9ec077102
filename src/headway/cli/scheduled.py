"""`headway scheduler list` and `headway scheduler clear`: slung work as it stands."""

from typing import Any

import click

from headway.cli.render import age, counted, emit, say, table
from headway.cli.scope import Scope
from headway.cli.stepping import listed
from headway.core.model import shown
from headway.scheduled import clear as clear_scheduled
from headway.scheduled import scheduled


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_scheduled(scope: Scope, as_json: bool) -> None:
    """What is slung, by target, and what blocks it."""
    client = scope.connect()
    found = scheduled(client)
    if as_json:
        emit({"targets": found})
        return
    if not found:
        say("nothing is slung; headway sling SUBJECT makes jobs of work items")
        return
    now = client.now()
    for each in found:
        print(f"{each['target'] or 'no target'} ({counted(len(each['jobs']), 'job')})")
        rows = [_row(job, now) for job in each["jobs"]]
        header = ["  Subject", "Job", "State", "Place", "Title", "", "Age"]
        print(*table(header, rows, flexible=(0, 4, 5), favoured=5), sep="\n")


def _row(job: dict[str, Any], now: int) -> list[str]:
    mark = "blocked: " if job["blocked"] and not job["reason"].startswith("blocked") else ""
    return [
        f"  {job['subject']}",
        job["job"],
        job["state"],
        str(job["place"] or ""),
        job["title"] or "",
        mark + (job["reason"] or ""),
        age(job["since"], now),
    ]


@click.command()
@click.option("--subject", metavar="S", help="Only what is about this subject.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def clear(scope: Scope, subject: str | None, as_json: bool) -> None:
    """Cancel what is slung and waits; what runs is left.

    Work items are not touched, and can be slung again.
    """
    done = clear_scheduled(scope.connect_to_change(), subject)
    cleared, running = ([shown(job) for job in jobs] for jobs in done)
    if as_json:
        emit({"cleared": cleared, "running": running})
        return
    if cleared:
        print(*cleared, sep="\n")
    about = f" of {subject}" if subject else ""
    say(f"{counted(len(cleared), 'job')}{about} cleared" if cleared else f"nothing{about} waits")
    if running:
        say(f"left running: {listed(running)}; headway jobs cancel ends them")
