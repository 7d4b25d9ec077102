"""`headway completion`: the script that makes a shell complete our commands."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    For bash: eval "$(headway completion bash)" in ~/.bashrc.
    """
    from headway.cli.main import cli

    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    print(found(cli, {}, "headway", "_HEADWAY_COMPLETE").source())
