"""`headway init`: make the folder and the store, or say why that is not possible here."""

import os

import click

from headway.base.errors import InvalidInputError
from headway.base.home import find_home
from headway.base.host import OLDEST_KERNEL, kernel_version
from headway.cli.render import say
from headway.cli.scope import Scope
from headway.store.sqlite.filesystems import file_system, refuse_network_file_system


@click.command()
@click.pass_obj
def init(scope: Scope) -> None:
    """Make the .headway/ folder and the store.

    At the repository's root, else here. The first submit does the same. A folder that came with
    a checkout is completed, but not trusted: `headway trust` does that.
    """
    system = os.uname()
    if system.sysname != "Linux" or kernel_version(system.release) < OLDEST_KERNEL:
        raise InvalidInputError(
            f"Headway runs on Linux 5.4 or newer; this is {system.sysname} {system.release}"
        )
    home, existed = find_home(scope.home, os.environ, os.getcwd())
    above = home.path if existed else os.path.dirname(home.path)
    if os.path.isdir(above) and not scope.config_of(home)["store.unsafe_fs"]:
        refuse_network_file_system(above, file_system(above))
    client = scope.create()
    client.close()
    print(client.home.path)
    say("it was already there" if existed else "made; next: headway submit -- echo hello")
    if existed and client.config.untrusted:
        say("it came with what does not count yet; next: headway trust")
