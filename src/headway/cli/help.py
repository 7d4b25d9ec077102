"""`headway help`: the help of the program, or of a command."""

import click


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND ...]")
@click.pass_context
def help_command(context: click.Context, words: tuple[str, ...]) -> None:
    """Print the help of a command; the same as COMMAND --help."""
    root = context.find_root()
    command, inner = root.command, root
    for at, word in enumerate(words):
        if not isinstance(command, click.Group):
            raise click.UsageError(f"{' '.join(words[:at])} has no commands of its own.", root)
        _, found, _ = command.resolve_command(inner, [word])
        assert found is not None  # noqa: S101 - what is not found was refused
        command, inner = found, click.Context(found, parent=inner, info_name=word)
    print(command.get_help(inner))
