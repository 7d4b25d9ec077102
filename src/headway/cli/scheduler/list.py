"""`headway scheduler list`: slung work as it stands."""

from typing import Any

import click

from headway.cli.render import age, emit, jobs_and_runs, say, table
from headway.cli.scope import Scope


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_scheduled(scope: Scope, as_json: bool) -> None:
    """What is slung, by target, and what blocks it."""
    client = scope.connect()
    found = client.items.list()
    if as_json:
        emit({"targets": found})
        return
    if not found:
        say("nothing is slung; headway sling SUBJECT makes jobs of work items")
        return
    now = client.now()
    for each in found:
        runs = sum(job["run"] is not None for job in each["jobs"])
        counts = jobs_and_runs(len(each["jobs"]) - runs, runs)
        print(f"{each['target'] or 'no target'} ({counts})")
        rows = [_row(job, now) for job in each["jobs"]]
        header = ["  Subject", "Job", "State", "Place", "Title", "", "Age"]
        print(*table(header, rows, flexible=(0, 4, 5), favoured=5), sep="\n")


def _row(job: dict[str, Any], now: int) -> list[str]:
    mark = "blocked: " if job["blocked"] and not job["reason"].startswith("blocked") else ""
    return [
        f"  {job['subject']}",
        job["job"] if job["run"] is None else f"{job['run']} {job['job']}",
        job["state"],
        str(job["place"] or ""),
        job["title"] or "",
        mark + (job["reason"] or ""),
        age(job["since"], now),
    ]
