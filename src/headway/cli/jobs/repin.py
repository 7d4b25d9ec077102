"""`headway jobs repin`: move a waiting job's pin to the present commit."""

import click

from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.core.model import shown


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def repin(scope: Scope, job: str, as_json: bool) -> None:
    """Move the pin of a waiting job to the commit that its branch is at now."""
    client = scope.connect_as_person()
    job_id = client.jobs.find(job)
    old, new = client.jobs.repin(job_id)
    if as_json:
        emit({"job": client.document(job_id), "from": old.oid, "to": new.oid})
        return
    say(f"{shown(job_id)} is pinned to {new.branch} at {new.oid[:12]}, before at {old.oid[:12]}")
