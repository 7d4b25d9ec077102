"""`headway jobs reject`: end a job that asks for approval."""

import click

from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.core.model import shown


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--reason", metavar="TEXT", help="Why, for those who wonder.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def reject(scope: Scope, job: str, reason: str | None, as_json: bool) -> None:
    """End a job that asks for approval; it is blocked, and so is what depends on it."""
    client = scope.connect_as_person()
    decided = client.jobs.reject(client.jobs.find(job), reason)
    if as_json:
        emit({"job": client.document(decided.id)})
        return
    say(f"{shown(decided.id)} is {decided.status}: {decided.reason}")
