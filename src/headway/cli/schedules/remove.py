"""`headway schedules remove`: a schedule goes; the jobs that it made stay."""

import click

from headway.cli.render import emit, say
from headway.cli.scope import Scope


@click.command()
@click.argument("schedule", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def remove(scope: Scope, schedule: str, as_json: bool) -> None:
    """Remove a schedule with the record of its slots; jobs that it made stay."""
    client = scope.connect_to_change()
    document = client.schedules.show(schedule)
    client.schedules.remove(schedule)
    if as_json:
        emit({"schedule": document})
        return
    goes_on = f"; {document['active_job']} goes on" if document["active_job"] else ""
    say(f"{document['name']} is removed{goes_on}")
