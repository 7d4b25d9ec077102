"""`headway jobs status`: the state of one job."""

import click

from headway.cli.render import (
    emit,
)
from headway.cli.scope import Scope


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def status(scope: Scope, job: str, as_json: bool) -> None:
    """Print the state of a job."""
    client = scope.connect()
    document = client.document(client.jobs.find(job))
    if not as_json:
        print(document["state"])
        return
    run = document["run"] or {}
    emit(
        {
            "id": document["id"],
            "state": document["state"],
            "status": document["status"],
            "exit_code": run.get("exit_code"),
        }
    )
