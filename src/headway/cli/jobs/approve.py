"""`headway jobs approve`: let jobs run that ask for approval."""

import click

from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.cli.step_wait import listed, started_by
from headway.client import Client
from headway.core.approvals import approval_rule
from headway.core.model import JobId, shown


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB ...")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def approve(scope: Scope, jobs: tuple[str, ...], as_json: bool) -> None:
    """Let jobs run that ask for approval; all that are named, or none.

    Before their turn, too: the gate is then open when the turn comes.
    """
    client = scope.connect_as_person()
    job_ids = [client.jobs.find(each) for each in jobs]
    seen = client.events.last()
    approved = [each.id for each in client.jobs.approve_all(job_ids)]
    started = started_by(client, seen)
    if as_json:
        documents = [client.document(each) for each in approved]
        one = {"job": documents[0]} if len(documents) == 1 else {}
        emit({**one, "jobs": documents, "started": started})
        return
    for each in approved:
        question = approval_rule(client.job(each)).question
        if question is not None:
            say(f"{shown(each)}: {question}")
    names = listed([shown(each) for each in approved])
    follows = _what_follows(client, approved, started)
    say(f"approved {names} as {client.context.actor}; {follows}")


def _what_follows(client: Client, job_ids: list[JobId], started: list[str]) -> str:
    if started:
        return f"started {listed(started)}"
    if len(job_ids) > 1:
        return "nothing was started yet"
    reason = client.jobs.why_not(job_ids[0])
    return f"it does not start yet: {reason}" if reason else "nothing was started yet"
