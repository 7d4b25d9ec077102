"""`headway scheduler reset`: forget launch failures and try again at once."""

import click

from headway.cli.render import emit, say
from headway.cli.scheduler.launch_failures import describe_reset
from headway.cli.scope import Scope
from headway.core.model import shown


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def reset(scope: Scope, as_json: bool) -> None:
    """Forget launch failures and try again at once.

    Closes the breakers of all hosts and clears the strikes of jobs that could not be started. Jobs
    that were given up stay failed: `headway jobs retry` queues them again.
    """
    client = scope.connect_to_change()
    done = client.scheduler.reset()
    if as_json:
        emit({"breakers": list(done.hosts), "jobs": [shown(each) for each in done.jobs]})
        return
    say(describe_reset(done, client.scheduler.status()["circuit_broken"]["count"]))
