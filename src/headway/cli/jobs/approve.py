"""`headway jobs approve`: let a job run that asks for approval."""

import click

from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.cli.step_wait import listed, started_by
from headway.client import Client
from headway.core.model import JobId, shown


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def approve(scope: Scope, job: str, as_json: bool) -> None:
    """Let a job run that asks for approval.

    Before its turn, too: the gate is then open when the turn comes.
    """
    client = scope.connect_as_person()
    job_id = client.jobs.find(job)
    seen = client.events.last()
    client.jobs.approve(job_id)
    started = started_by(client, seen)
    if as_json:
        emit({"job": client.document(job_id), "started": started})
        return
    follows = _what_follows(client, job_id, started)
    say(f"approved {shown(job_id)} as {client.context.actor}; {follows}")


def _what_follows(client: Client, job_id: JobId, started: list[str]) -> str:
    if started:
        return f"started {listed(started)}"
    reason = client.jobs.why_not(job_id)
    return f"it does not start yet: {reason}" if reason else "nothing was started yet"
