"""`headway jobs approve`, `reject`, `approvals` and `repin`: what people decide."""

from typing import Any

import click

from headway.approving import approve as approve_job
from headway.approving import inbox
from headway.approving import reject as reject_job
from headway.approving import repin as repin_job
from headway.cli.render import age, counted, emit, fields, paint, say, width
from headway.cli.scope import Scope
from headway.cli.stepping import listed, started_by
from headway.client import Client
from headway.core.model import JobId, shown
from headway.submission import parse_job_id
from headway.text import plain, shortened
from headway.views import last_event, why_not


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def approve(scope: Scope, job: str, as_json: bool) -> None:
    """Let a job run that asks for approval.

    Before its turn, too: the gate is then open when the turn comes.
    """
    client = scope.connect_as_person()
    job_id = parse_job_id(job)
    seen = last_event(client)
    approve_job(client, job_id)
    started = started_by(client, seen)
    if as_json:
        emit({"job": client.document(job_id), "started": started})
        return
    say(f"approved {shown(job_id)} as {client.actor}; {_what_follows(client, job_id, started)}")


def _what_follows(client: Client, job_id: JobId, started: list[str]) -> str:
    if started:
        return f"started {listed(started)}"
    reason = why_not(client, job_id)
    return f"it does not start yet: {reason}" if reason else "nothing was started yet"


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--reason", metavar="TEXT", help="Why, for those who wonder.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def reject(scope: Scope, job: str, reason: str | None, as_json: bool) -> None:
    """End a job that asks for approval; it is blocked, and so is what depends on it."""
    client = scope.connect_as_person()
    decided = reject_job(client, parse_job_id(job), reason)
    if as_json:
        emit({"job": client.document(decided.id)})
        return
    say(f"{shown(decided.id)} is {decided.status}: {decided.reason}")


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def repin(scope: Scope, job: str, as_json: bool) -> None:
    """Move the pin of a waiting job to the commit that its branch is at now."""
    client = scope.connect_as_person()
    job_id = parse_job_id(job)
    old, new = repin_job(client, job_id)
    if as_json:
        emit({"job": client.document(job_id), "from": old.oid, "to": new.oid})
        return
    say(f"{shown(job_id)} is pinned to {new.branch} at {new.oid[:12]}, before at {old.oid[:12]}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def approvals(scope: Scope, as_json: bool) -> None:
    """What waits for a person: since when, and what it would run."""
    client = scope.connect()
    asking = inbox(client)
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
    say(f"{counted(waiting, 'job')} to decide: headway jobs approve JOB, or reject JOB")
    if not client.worker_is_there():
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
                ("turn", None if asked["now"] else not_yet),
                ("runs", asked["runs"]),
                ("in", asked["directory"]),
            ]
        ),
    ]
