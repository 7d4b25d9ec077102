"""`headway completion`: the script that makes a shell complete our commands."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash: eval "$(headway completion bash)" in ~/.bashrc.
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    print(found(ctx.find_root().command, {}, "headway", "_HEADWAY_COMPLETE").source())
