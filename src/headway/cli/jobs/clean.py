"""`headway jobs clean`: one ended job goes, with its files."""

import click

from headway.cli.jobs.gc import RemovalTally
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.core.model import shown


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def clean(scope: Scope, job: str, as_json: bool) -> None:
    """Remove one ended job, with its chain and its files.

    Exit 4 while it has not ended, or an active job refers to it.
    """
    client = scope.connect_to_change()
    removed = client.jobs.clean(client.jobs.find(job), trouble=say)
    tally = RemovalTally()
    tally.add(removed)
    if as_json:
        emit({**tally.document(), "left": list(removed.left)})
        return
    say(f"removed {', '.join(shown(each) for each in removed.jobs)}")
    for each in removed.left:
        say(f"kept {each}")
