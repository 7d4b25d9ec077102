"""`headway groups create`, `list`, `show`, `close` and `cancel`."""

from typing import TYPE_CHECKING, Any

import click

from headway.base.clock import SECOND
from headway.base.errors import TimedOutError
from headway.base.text import plain
from headway.cli.graph_submit import read_graph_file
from headway.cli.missing_producers import needing_others, say_what_nobody_makes
from headway.cli.options import DURATION
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
from headway.client import Client
from headway.core.groups import POLICIES, GroupMode, GroupStatus, failed, shown_group
from headway.core.model import shown
from headway.core.states import Status
from headway.jobs.groups import (
    MOST_LISTED,
    MOST_MEMBERS,
    Plan,
)

if TYPE_CHECKING:
    from headway.cli.wait_lines import WaitLines

MOST_NAMED = 20  # members that did not succeed
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
    type=click.Choice([each.value for each in GroupMode]),
    default=GroupMode.SEQUENTIAL.value,
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
    if graph is not None:
        client, _, specs = read_graph_file(scope, graph)
        made, submitted = client.groups.submit_specifications(specs, plan)
        say_what_nobody_makes(client, needing_others(specs, submitted))
    else:
        client = scope.connect_or_create()
        ids = [client.jobs.find(each) for each in jobs]
        made = client.groups.create(plan, ids, stays_open=stays_open)
    if as_json:
        emit({"group": client.groups.show(shown_group(made.group))})
        return
    print(shown_group(made.group))


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that ended before yesterday.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_groups(scope: Scope, everything: bool, as_json: bool) -> None:
    """List the groups that have not ended and the last day's, oldest first."""
    client = scope.connect()
    found = client.groups.list(everything=everything)
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
            _standing(each),
            f"{each['done']} of {each['total']}",
            each["mode"],
            each["on_failure"],
            age(each["created_at"], now),
            each["name"] or "",
        ]
        for each in found
    ]
    colours = ["red" if each["stopped_by"] else _COLOURS[each["status"]] for each in found]
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
    document = client.groups.show(group)
    if as_json:
        emit({"group": document})
        return
    now = client.now()
    title = document["id"] + (f"  {plain(document['name'])}" if document["name"] else "")
    print(paint(title, "bold"))
    stopped_by = document["stopped_by"]
    stopped = stopped_by and f"{stopped_by} did not succeed; headway jobs retry {stopped_by}"
    others = "nobody joins while it is stopped" if stopped_by else "others may join"
    closed = moment(document["closed_at"], now) or f"no: {others}; headway groups close"
    entries = [
        ("status", _standing(document)),
        ("stopped", stopped),
        ("progress", _progress(document)),
        ("mode", document["mode"]),
        ("on failure", document["on_failure"]),
        ("subject", document["subject"]),
        ("created", f"{moment(document['created_at'], now)} by {document['created_by']}"),
        ("closed", closed),
        ("ended", moment(document["ended_at"], now)),
    ]
    print("\n".join(fields(entries)))
    _print_members(document["members"])
    if document["total"] > MOST_MEMBERS:
        say(f"only the first {MOST_MEMBERS} of {document['total']} members are shown")


@click.command()
@click.argument("group", metavar="GROUP")
@click.option("--timeout", type=DURATION, metavar="10s", help="Stop waiting, with exit code 124.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing; only the exit code tells.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def wait(scope: Scope, group: str, timeout: int | None, quiet: bool, as_json: bool) -> int:
    """Wait until all members of a group end; exit with their code.

    It is the first code that is not 0, in their order. Members that join meanwhile are awaited,
    too; the group need not be closed.
    """
    from headway.cli.wait_lines import WaitLines, say_what_hinders
    from headway.jobs.groups import wait as wait_for
    from headway.jobs.views.awaited import AwaitedJobs, awaited_members

    client = scope.connect()
    name = client.groups.show(group)["id"]

    def read(most: int) -> AwaitedJobs:
        return awaited_members(client.context, name, most=most)

    lines = WaitLines(client, read, quiet=quiet, bar=True)
    try:
        with lines.until_the_end():
            document = wait_for(
                client.context,
                name,
                timeout=None if timeout is None else timeout / SECOND,
                wonder=lambda job: say_what_hinders(client, job, lines),
                meanwhile=lines.refresh,
            )
    except TimedOutError as error:
        if quiet:
            return error.exit_code
        raise
    code = _say_how_it_ended(client, document, lines)
    if as_json:
        emit({"group": document})
    return code


def _say_how_it_ended(client: Client, document: dict[str, Any], lines: "WaitLines") -> int:
    """Name the first members that did not succeed; the code that the group stands for."""
    from headway.cli.wait_lines import end_of, summary

    unlucky = [each for each in document["members"] if each["state"] != Status.SUCCEEDED]
    ends = [end_of(client, client.jobs.find(each["job"])) for each in unlucky[:MOST_NAMED]]
    lines.say_ends(ends)
    counts = {Status(state): count for state, count in document["counts"].items()}
    more = sum(counts.values()) - counts.get(Status.SUCCEEDED, 0) - len(ends)
    if more:
        lines.say(f"and {more} more; headway groups show {document['id']}")
    lines.say(f"{document['id']}: {summary(counts)}")
    if document["stopped_by"]:
        lines.say(
            f"{document['id']} has stopped, nobody joins it; "
            f"headway jobs retry {document['stopped_by']}, or headway groups close"
        )
    elif not document["closed_at"]:
        lines.say(f"{document['id']} is open: others may join; headway groups close")
    first = next((each.code for each in ends if each.code), 0)
    return first or int(any(map(failed, counts)))


def _standing(document: dict[str, Any]) -> str:
    """Its status, and what that does not say: whether a member has stopped it, or others join."""
    open_still = " (open)" if document["closed_at"] is None else ""
    return f"{document['status']}{' (stopped)' if document['stopped_by'] else open_still}"


def _progress(document: dict[str, Any]) -> str:
    counts = ", ".join(f"{count} {state}" for state, count in document["counts"].items())
    done = f"{document['done']} of {document['total']} done"
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
    before, status = client.groups.close(group)
    name = shown_group(before.id)
    if as_json:
        emit({"group": client.groups.show(name)})
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
    found, done = client.groups.cancel(group)
    name = shown_group(found.id)
    if as_json:
        emit(
            {
                "group": client.groups.show(name),
                "cancelled": [shown(each.job_id) for each in done],
            }
        )
        return
    running = [shown(each.job_id) for each in done if each.was_running]
    verb = "is" if len(running) == 1 else "are"
    document = f"; {', '.join(running[:5])} {verb} ending" if running else ""
    say(f"cancelled {counted(len(done), 'job')} of {name}{document}")
