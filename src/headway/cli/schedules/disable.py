"""`headway schedules disable`: a schedule fires no more until it is enabled."""

import click

from headway.cli.render import emit, say
from headway.cli.scope import Scope


@click.command()
@click.argument("schedule", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def disable(scope: Scope, schedule: str, as_json: bool) -> None:
    """Let a schedule fire no more until it is enabled; jobs that it made go on."""
    client = scope.connect_to_change()
    done = client.schedules.disable(schedule)
    document = client.schedules.show(schedule)
    if as_json:
        emit({"schedule": document})
        return
    goes_on = f"; {document['active_job']} goes on" if document["active_job"] else ""
    say(f"{document['name']} {'is' if done else 'was already'} disabled{goes_on}")
