"""`headway scheduler resume`: end the pause."""

import click

from headway.cli.render import say
from headway.cli.scope import Scope
from headway.cli.step_wait import listed, started_by


@click.command()
@click.pass_obj
def resume(scope: Scope) -> None:
    """End the pause, and those of single hosts."""
    client = scope.connect_to_change()
    seen = client.events.last()
    if not client.resume():
        say("it was not paused")
        return
    started = started_by(client, seen)
    say("resumed; " + (f"started {listed(started)}" if started else "nothing was started"))
