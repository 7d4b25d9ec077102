"""`headway sling`: make jobs of work items."""

from collections.abc import Sequence

import click

from headway.base.errors import InvalidInputError
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import emit, jobs_and_runs, say
from headway.cli.scope import Scope
from headway.workitems.sling import Scheduled, Slung, Wish, slung_document

NOTHING_WAS_SCHEDULED = 4


@click.command("sling")
@click.argument("words", nargs=-1, required=True, metavar="SUBJECT ... [TARGET]")
@click.option("--on", metavar="TEMPLATE", help="Run this template on it, not the recipe.")
@click.option("--force", is_flag=True, help="Though it is in progress, or of another target.")
@click.option("--args", metavar="TEXT", help="What the recipe has {args} for.")
@click.option("--var", multiple=True, metavar="K=V", help="What it has {K} for (repeat).")
@click.option("--priority", type=WHOLE_NUMBER, default=0, metavar="N", help="Higher first.")
@click.option("--dry-run", is_flag=True, help="Only say what would be scheduled.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def sling_command(
    scope: Scope,
    words: tuple[str, ...],
    on: str | None,
    force: bool,
    args: str | None,
    var: Sequence[str],
    priority: int,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Make jobs of work items, groups or trees of them.

    Prints the id of each job, or of each run if its target has a workflow. A subject that has an
    open job or run keeps that one.
    """
    wish = Wish(words, force, args, _variables(var), priority, on)
    client = scope.connect() if dry_run else scope.connect_to_change()
    slung = client.items.sling(wish, rehearse=dry_run)
    if as_json:
        emit({"dry_run": dry_run, **slung_document(slung)})
    else:
        _print_result(slung, dry_run=dry_run)
    return 0 if slung.scheduled or slung.already or not slung.skipped else NOTHING_WAS_SCHEDULED


def _variables(entries: Sequence[str]) -> dict[str, str]:
    variables = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            raise InvalidInputError(f"--var {entry!r} is not of the form NAME=VALUE")
        variables[name] = value
    return variables


def _print_result(slung: Slung, *, dry_run: bool) -> None:
    for trouble in slung.troubles:
        say(f"warning: {trouble}")
    for left_out in slung.skipped:
        say(f"skipped {left_out.subject}: {left_out.reason}")
    for each in slung.already:
        print(each.shown)
        if not slung.scheduled and len(slung.already) == 1:
            say(f"{each.subject} is already scheduled as {each.shown}")
    for each in slung.scheduled:
        print(each.subject if dry_run else each.shown)
    runs = sum(each.workflow is not None for each in slung.scheduled)
    counts = [
        jobs_and_runs(len(slung.scheduled) - runs, runs)
        + (" would be" if dry_run else "")
        + " scheduled",
        f"{len(slung.already)} already scheduled" if slung.already else "",
        f"{len(slung.skipped)} skipped" if slung.skipped else "",
        f"{len(slung.troubles)} unreadable" if slung.troubles else "",
        f"{slung.closed} closed" if slung.closed else "",
    ]
    say(", ".join(filter(None, counts)) + f"; {_mode(slung, slung.scheduled)}")


def _mode(slung: Slung, new: Sequence[Scheduled]) -> str:
    if not new:
        return "nothing new"
    if slung.direct:
        return "direct: what may run starts now"
    return f"deferred: at most {slung.max_active} at a time"
