"""`headway backup`: a copy of the store that is whole, whoever writes meanwhile."""

import os

import click

from headway.base.units import show_size
from headway.cli.render import say
from headway.cli.scope import Scope


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--replace", is_flag=True, help="Take the place of an earlier backup.")
@click.pass_obj
def backup(scope: Scope, file: str, replace: bool) -> None:
    """Write a consistent copy of the store to a new FILE.

    It is one SQLite file, whichever store it comes from. Plain copying of a database file misses
    what is still in its log. `headway restore FILE` goes back to it. With --replace the old backup
    stays until the new one is whole; what is no backup is refused.
    """
    client = scope.connect_to_store()
    path = client.admin.backup(file, replace=replace)
    print(path)
    say(f"{show_size(os.path.getsize(path))} written")
