"""Commands that store a command under a name: `add NAME -- CMD ...`, or `add --name NAME -- CMD`.

The name stands before the dashes. Where it is missing, the first word of the command would be taken
for it, and what would run is not what was meant.
"""

import click

from headway.cli.options import JobCommand


class NamedCommand(click.Command):
    """A click command whose first argument is a NAME, and whose second is a CMD."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing and not {"-h", "--help"} & set(args):
            args = self._with_name_first(ctx, args)
        return super().parse_args(ctx, args)

    def _with_name_first(self, ctx: click.Context, args: list[str]) -> list[str]:
        cut = args.index("--") if "--" in args else len(args)
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args[:cut]))
        name, argv = (argument.name or "" for argument in self._arguments())
        named = given.get("name")
        if isinstance(given.get(name), str):
            if args[0].startswith("-") and given.get(argv) and cut == len(args):
                raise click.UsageError(self._advice(f"{given[name]!r} could be the command."), ctx)
            return args
        if not isinstance(named, str):
            raise click.UsageError(self._advice("The name is missing."), ctx)
        ctx.meta[NAMED_BY_OPTION] = True
        return [named, *args]

    def _arguments(self) -> list[click.Argument]:
        return [each for each in self.params if isinstance(each, click.Argument)]

    def _advice(self, problem: str) -> str:
        return f"{problem} Write the name first, and the command after --: NAME -- CMD ..."


class NamedJobCommand(NamedCommand, JobCommand):
    """The same, with the job's options."""


NAMED_BY_OPTION = "headway.cli.named_by_option"


def is_named_by_option(ctx: click.Context) -> bool:
    """Whether `--name` is the name itself, not that of the jobs."""
    return NAMED_BY_OPTION in ctx.meta
