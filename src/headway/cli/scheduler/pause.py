"""`headway scheduler pause`: start nothing more; what runs goes on."""

import click

from headway.cli.render import say
from headway.cli.scope import Scope


@click.command()
@click.option("--reason", metavar="TEXT", help="Why, for those who wonder.")
@click.pass_obj
def pause(scope: Scope, reason: str | None) -> None:
    """Start nothing more; what runs goes on.

    A pause in force stays as it is.
    """
    client = scope.connect_to_change()
    in_force = client.pause(reason)
    because = f": {in_force.reason}" if in_force.reason else ""
    before = "already " if reason is not None and in_force.reason != reason else ""
    say(f"{before}paused by {in_force.actor}{because}; `headway scheduler resume` ends it")
