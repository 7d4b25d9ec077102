"""`headway jobs reorder`: waiting jobs take the order given."""

import click

from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.core.model import shown


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB ...")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def reorder(scope: Scope, jobs: tuple[str, ...], as_json: bool) -> None:
    """Let waiting jobs take the order given.

    They share out the places that they have now; nobody else is moved. All of them wait and have
    the same priority, or nothing is changed (exit 4).
    """
    client = scope.connect_to_change()
    asked = [client.jobs.find(each) for each in jobs]
    details = client.jobs.reorder(asked)
    moved = [shown(each.job.id) for each in details if each.moved]
    if as_json:
        emit({"jobs": [client.document(each) for each in asked], "moved": moved})
    else:
        say(f"moved {', '.join(moved)}" if moved else "they stood in this order already")
