"""`headway schedules trigger`: make one of a schedule's jobs now."""

import click

from headway.cli.render import emit
from headway.cli.scope import Scope
from headway.core.model import shown, shown_run


@click.command()
@click.argument("schedule", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def trigger(scope: Scope, schedule: str, as_json: bool) -> None:
    """Make one of a schedule's jobs now and print its id; its slots come as before.

    Also if the schedule is disabled. While its last job is active, --overlap of the schedule says
    what happens: with skip this exits 4.
    """
    client = scope.connect_to_change()
    made = client.schedules.trigger(schedule)
    if as_json:
        emit({"schedule": client.schedules.show(schedule), "job": client.document(made.job_id)})
        return
    run = client.job(made.job_id).workflow_run
    print(shown(made.job_id) if run is None else shown_run(run))
