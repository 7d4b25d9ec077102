"""`headway status`: how things stand, or the state of one job."""

import click

from headway.cli.render import emit
from headway.cli.scope import Scope


@click.command()
@click.argument("job", metavar="[JOB]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_context
def status(context: click.Context, job: str | None, as_json: bool) -> None:
    """How things stand; of a job, its state.

    With --json the same as scheduler status, or as jobs status JOB.
    """
    if job is not None:
        from headway.cli.jobs.status import status as status_of_job

        context.invoke(status_of_job, job=job, as_json=as_json)
        return
    scope: Scope = context.obj
    client = scope.connect()
    if as_json:
        emit(client.scheduler.status())
        return
    from headway.cli.overview import print_state

    print_state(client)
