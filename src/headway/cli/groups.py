"""`headway groups create`, `list`, `show`, `close` and `cancel`."""

from typing import Any

import click

from headway.cli.graph import read_graph_file
from headway.cli.render import (
    age,
    counted,
    emit,
    fields,
    moment,
    paint,
    say,
    state_colour,
    table,
)
from headway.cli.scope import Scope
from headway.core.groups import POLICIES, GroupStatus, Mode, shown_group
from headway.core.model import shown
from headway.grouping import (
    MOST_LISTED,
    MOST_MEMBERS,
    Plan,
    document,
    listing,
    submit_specs_as_group,
)
from headway.grouping import cancel as cancel_group
from headway.grouping import close as close_it
from headway.grouping import create as create_group
from headway.submission import parse_job_id
from headway.text import plain

_COLOURS = {
    GroupStatus.COMPLETED: "green",
    GroupStatus.PARTIAL: "red",
    GroupStatus.CANCELLED: "dim",
    GroupStatus.RUNNING: "bold",
}


@click.command()
@click.option("--name", metavar="TEXT", help="A name for people; free again when it has ended.")
@click.option(
    "--mode",
    type=click.Choice([each.value for each in Mode]),
    default=Mode.SEQUENTIAL.value,
    help="One member after the other (the default), or side by side.",
)
@click.option(
    "--on-failure",
    type=click.Choice(list(POLICIES)),
    default="stop",
    help="What becomes of the rest: cancelled (the default), run, or skipped.",
)
@click.option(
    "--jobs", "from_jobs", is_flag=True, help="Of these waiting jobs, in this order; then closed."
)
@click.option("--graph", metavar="FILE", help="Of the jobs of a file, as submit --graph; closed.")
@click.option("--open", "stays_open", is_flag=True, help="With --jobs: others may join later.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.argument("jobs", nargs=-1, metavar="[JOB ...]")
@click.pass_obj
def create(
    scope: Scope,
    name: str | None,
    mode: str,
    on_failure: str,
    from_jobs: bool,
    graph: str | None,
    stays_open: bool,
    as_json: bool,
    jobs: tuple[str, ...],
) -> None:
    """Make a group and print its id.

    An empty one is open: submit jobs with --group, and close it with the last. One that is made of
    jobs is whole.
    """
    if bool(jobs) != from_jobs:
        raise click.UsageError("Name the jobs of the group behind --jobs.")
    if graph is not None and from_jobs:
        raise click.UsageError("Give --jobs or --graph, not both.")
    if stays_open and not from_jobs:
        raise click.UsageError("--open goes with --jobs; an empty group is open anyway.")
    plan = Plan(mode, on_failure, name)
    ids = [parse_job_id(each) for each in jobs]
    if graph is not None:
        client, _, specs = read_graph_file(scope, graph)
        made, _ = submit_specs_as_group(client, specs, plan)
    else:
        client = scope.connect_or_create()
        made = create_group(client, plan, ids, stays_open=stays_open)
    if as_json:
        emit({"group": document(client, shown_group(made.group))})
        return
    print(shown_group(made.group))


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that ended before yesterday.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_groups(scope: Scope, everything: bool, as_json: bool) -> None:
    """List the groups that have not ended and the last day's, oldest first."""
    client = scope.connect()
    found = listing(client, everything=everything)
    if as_json:
        emit({"groups": found})
        return
    if not found:
        say("no groups" if everything else "no groups run or ended in the last day; try --all")
        return
    now = client.now()
    rows = [
        [
            each["id"],
            each["status"] + ("" if each["closed_at"] else " (open)"),
            f"{each['done']} of {each['total']}",
            each["mode"],
            each["on_failure"],
            age(each["created_at"], now),
            each["name"] or "",
        ]
        for each in found
    ]
    colours = [_COLOURS[GroupStatus(each["status"])] for each in found]
    header = ["Group", "Status", "Done", "Mode", "On failure", "Age", "Name"]
    for line in table(header, rows, flexible=(6,), colours=colours, coloured=1):
        print(line)
    if len(found) == MOST_LISTED:
        say(f"only the newest {MOST_LISTED} are shown")


@click.command()
@click.argument("group", metavar="GROUP")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def show(scope: Scope, group: str, as_json: bool) -> None:
    """Show how far a group is, and its members in their order."""
    client = scope.connect()
    told = document(client, group)
    if as_json:
        emit({"group": told})
        return
    now = client.now()
    title = told["id"] + (f"  {plain(told['name'])}" if told["name"] else "")
    print(paint(title, "bold"))
    closed = moment(told["closed_at"], now) or "no: others may join; headway groups close"
    entries = [
        ("status", told["status"]),
        ("progress", _progress(told)),
        ("mode", told["mode"]),
        ("on failure", told["on_failure"]),
        ("subject", told["subject"]),
        ("created", f"{moment(told['created_at'], now)} by {told['created_by']}"),
        ("closed", closed),
        ("ended", moment(told["ended_at"], now)),
    ]
    print("\n".join(fields(entries)))
    _print_members(told["members"])
    if told["total"] > MOST_MEMBERS:
        say(f"only the first {MOST_MEMBERS} of {told['total']} members are shown")


def _progress(told: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in told["counts"].items())
    done = f"{told['done']} of {told['total']} done"
    return f"{done}: {counts}" if counts else "no members"


def _print_members(members: list[dict[str, Any]]) -> None:
    if not members:
        return
    rows = [
        [
            str(each["sequence_number"]),
            each["job"],
            each["state"],
            each["name"] or "",
            each["wait"]["detail"] if each["wait"] else each["reason"] or "",
        ]
        for each in members
    ]
    colours = [state_colour(each["state"]) for each in members]
    header = ["#", "Job", "State", "Name", "Wait/Result"]
    for line in table(header, rows, flexible=(3, 4), favoured=4, colours=colours, coloured=2):
        print(line)


@click.command()
@click.argument("group", metavar="GROUP")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def close(scope: Scope, group: str, as_json: bool) -> None:
    """Let nobody join a group any more; when its members have ended, it ends."""
    client = scope.connect_to_change()
    before, status = close_it(client, group)
    name = shown_group(before.id)
    if as_json:
        emit({"group": document(client, name)})
        return
    already = " already" if before.closed_at is not None else ""
    say(f"{name} is closed{already}; it is {status}")


@click.command()
@click.argument("group", metavar="GROUP")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def cancel(scope: Scope, group: str, as_json: bool) -> None:
    """Cancel what has not ended of a group, and close it; running members are told to end."""
    client = scope.connect_to_change()
    found, done = cancel_group(client, group)
    name = shown_group(found.id)
    if as_json:
        emit({"group": document(client, name), "cancelled": [shown(each.job_id) for each in done]})
        return
    running = [shown(each.job_id) for each in done if each.was_running]
    verb = "is" if len(running) == 1 else "are"
    told = f"; {', '.join(running[:5])} {verb} ending" if running else ""
    say(f"cancelled {counted(len(done), 'job')} of {name}{told}")
