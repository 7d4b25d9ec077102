"""`headway jobs edit`: change a job that still waits."""

from typing import Any

import click

from headway.cli.options import DURATION, WHOLE_NUMBER, parse_env, parse_labels
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.core.model import shown
from headway.jobs.edit import Changes


class EditCommand(click.Command):
    """Says of an option that only `submit` has that it cannot be changed any more."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            from headway.cli.submit import submit

            if not any(error.option_name in each.opts for each in submit.params):
                raise
            raise click.UsageError(
                f"{error.option_name} cannot be changed; cancel the job and submit it anew.", ctx
            ) from None


@click.command(cls=EditCommand)
@click.argument("job", metavar="JOB")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[-- CMD ...]")
@click.option("--name", metavar="TEXT", help="Another name.")
@click.option("--slug", metavar="WORD", help="Another short name.")
@click.option("--label", multiple=True, metavar="K=V", help="Set a label (repeat).")
@click.option("--priority", type=WHOLE_NUMBER, metavar="N", help="Higher first.")
@click.option("--env", multiple=True, metavar="K[=V]", help="Set a variable (repeat).")
@click.option("--cwd", metavar="DIR", help="Where it runs.")
@click.option("--timeout", type=DURATION, metavar="1h", help="Kill it after this time.")
@click.option("--grace", type=DURATION, metavar="10s", help="Between TERM and KILL.")
@click.option("--shell", metavar="STRING", help="A line for /bin/sh instead of CMD.")
@click.option("--no-check", is_flag=True, help="Do not look for the program and directory.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def edit(scope: Scope, /, job: str, no_check: bool, as_json: bool, **options: Any) -> None:
    """Change a job that still waits.

    What is not named stays as it is. A job of another priority stands behind those that have it
    already. Exit 4 once the job runs or has ended.
    """
    changes = Changes(
        argv=tuple(options["argv"]),
        shell=options["shell"],
        name=options["name"],
        slug=options["slug"],
        labels=parse_labels(options["label"]),
        priority=options["priority"],
        env=parse_env(options["env"]),
        cwd=options["cwd"],
        timeout=options["timeout"],
        grace=options["grace"],
        check=not no_check,
    )
    if changes._replace(check=True) == Changes(labels={}, env={}):
        raise click.UsageError("What is to be changed? Give an option, or a command after --.")
    client = scope.connect_to_change()
    edited = client.jobs.edit(client.jobs.find(job), **changes._asdict())
    if as_json:
        emit({"job": client.document(edited.job.id), "changed": list(edited.fields)})
        return
    what = f"changed {', '.join(edited.fields)}" if edited.fields else "it was like that already"
    again = "; it must be approved again" if edited.asks_again else ""
    say(f"{shown(edited.job.id)}: {what}{again}")
