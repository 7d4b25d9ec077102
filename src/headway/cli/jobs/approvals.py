"""`headway jobs approvals`: what waits for a person, and what it would run."""

from typing import Any

import click

from headway.base.text import plain, shortened
from headway.cli.render import age, counted, emit, fields, paint, say, width
from headway.cli.scope import Scope

BEFORE_ITS_TURN = "nothing has to be decided now, but it can be"


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def approvals(scope: Scope, as_json: bool) -> None:
    """What waits for a person: since when, and what it would run."""
    client = scope.connect()
    asking = client.jobs.approvals()
    if as_json:
        emit({"approvals": asking})
        return
    if not asking:
        say("nothing waits for a person")
        return
    now = client.now()
    for each in asking:
        print("\n".join(_entry(each, now)))
    waiting = sum(each["now"] for each in asking)
    how = "headway jobs approve JOB, or reject JOB"
    say(f"{counted(waiting, 'job')} to decide: {how}" if waiting else f"{BEFORE_ITS_TURN}: {how}")
    if not client.context.worker_is_there():
        say("no worker is there, so nothing starts; `headway work` is one")


def _entry(asked: dict[str, Any], now: int) -> list[str]:
    head = f"{asked['id']}  {plain(asked['name'])}"
    since = f"{age(asked['requested_at'], now)} ago"
    wait = asked["wait"]
    not_yet = f"not yet: {wait['detail']}" if wait else "not yet: its turn has not come"
    return [
        paint(shortened(head, width()), "bold"),
        *fields(
            [
                ("asked", f"{since} by {asked['requested_by'] or 'its submitter'}"),
                ("question", asked["question"]),
                ("of", asked["workflow_run"]),
                ("agreed", _agreed(asked)),
                ("may agree", ", ".join(asked["approvers"]) or None),
                ("turn", None if asked["now"] else not_yet),
                ("runs", asked["runs"] or None),
                ("in", asked["directory"]),
            ]
        ),
    ]


def _agreed(asked: dict[str, Any]) -> str | None:
    """Where several must agree, who has."""
    if asked["needed"] == 1:
        return None
    who = ", ".join(asked["approved_by"])
    return f"{len(asked['approved_by'])} of {asked['needed']}" + (f": {who}" if who else "")
