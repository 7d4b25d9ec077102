"""`headway jobs schedule`: the job graph as a table, a tree, a document or a picture."""

import os
import sys
from collections.abc import Iterable

import click

from headway.base.errors import InvalidInputError
from headway.base.text import plain
from headway.cli.options import WHOLE_NUMBER, completes
from headway.cli.render import emit, say, state_colour, table
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.model import JobId, shown
from headway.core.states import WAITING
from headway.jobs.views.graph.model import GraphSchedule

FORMATS = ("summary", "dag", "json", "mermaid", "dot", "svg")
HEADER = ("#", "Slug", "Name", "Status", "Wait", "Job")
NOTHING_THERE = "Outcome: No scheduled jobs"
TOP = 10
INTERVAL_MS = 500
LEAST_INTERVAL_MS = 100
MAX_DEPTH = 3


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also jobs that have ended.")
@click.option("--job", metavar="JOB", help="JOB first, and only its relatives.")
@click.option("--run", metavar="wf-N", help="All nodes of a workflow's run, and only these.")
@click.option(
    "--format",
    "as_format",
    metavar="F",
    shell_complete=completes(FORMATS),
    help=f"{', '.join(FORMATS)}.",
)
@click.option("--watch", is_flag=True, help="Show the summary live; q leaves.")
@click.option("--top", type=WHOLE_NUMBER, metavar="N", help="Only the first N; watch: 10.")
@click.option("--interval-ms", type=WHOLE_NUMBER, metavar="MS", help="Of the watch: 500.")
@click.option("--max-depth", type=WHOLE_NUMBER, metavar="N", help="Of the dag: 3.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.pass_obj
def schedule(
    scope: Scope,
    everything: bool,
    job: str | None,
    run: str | None,
    as_format: str | None,
    watch: bool,
    top: int | None,
    interval_ms: int | None,
    max_depth: int | None,
    as_json: bool,
) -> int:
    """Show what is to run, in which order it came, and what each job waits for.

    Active and blocked jobs, and failed ones that hold them back.
    """
    _at_least("--top", top, 1)
    _at_least("--interval-ms", interval_ms, LEAST_INTERVAL_MS)
    _at_least("--max-depth", max_depth, 1)
    chosen = _format(as_format, as_json)
    focus = None if job is None else _find(scope, job)
    if run is not None and (job is not None or watch):
        raise click.UsageError("--run goes without --job and --watch.")
    if watch:
        _refuse_to_watch(chosen)
        from headway.cli.jobs.watch import watch_schedule

        seconds = (interval_ms or INTERVAL_MS) / 1000
        return watch_schedule(
            scope.connect, everything=everything, focus=focus, top=top or TOP, interval=seconds
        )
    client = scope.connect_or_nothing()
    depth = (max_depth or MAX_DEPTH) if chosen == "dag" else 1
    loaded = client.jobs.graph(everything=everything, focus=focus, run=run, top=top, depth=depth)
    _print(loaded, chosen, depth)
    _say_what_is_missing(client, loaded, top)
    return 0


def _find(scope: Scope, job: str) -> JobId:
    with scope.connect_or_nothing() as client:
        return client.jobs.find(job)


def _at_least(flag: str, given: int | None, least: int) -> None:
    if given is not None and given < least:
        raise InvalidInputError(f"{flag} {given} is too small; the least is {least}")


def _format(given: str | None, as_json: bool) -> str:
    if given is not None and given not in FORMATS:
        raise InvalidInputError(f"--format {given!r} is not one of {', '.join(FORMATS)}")
    if as_json and given not in (None, "json"):
        raise InvalidInputError(f"--json and --format {given} exclude each other; give one")
    return "json" if as_json else given or "summary"


def _refuse_to_watch(chosen: str) -> None:
    if chosen != "summary":
        raise InvalidInputError(f"--watch shows the summary; leave --format {chosen} out")
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        raise InvalidInputError(
            "--watch needs stdout and stderr on a terminal; leave it out to print the summary once"
        )
    if os.environ.get("TERM", "dumb") in ("", "dumb", "unknown"):
        raise InvalidInputError(
            "--watch needs a terminal that can move its cursor; TERM says that this one cannot"
        )


def _print(loaded: GraphSchedule, chosen: str, depth: int) -> None:
    match chosen:
        case "json":
            from headway.jobs.views.graph.formats import document

            emit(document(loaded))
        case "mermaid" | "dot":
            from headway.jobs.views.graph import formats

            _print_lines(formats.mermaid(loaded) if chosen == "mermaid" else formats.dot(loaded))
        case "svg":
            from headway.jobs.views.graph.svg import svg

            for line in svg(loaded):
                print(line)
        case _ if not loaded.rows:
            print(NOTHING_THERE)
        case "dag":
            from headway.jobs.views.graph.dag import HEADER as DAG_HEADER
            from headway.jobs.views.graph.dag import dag

            print(DAG_HEADER)
            _print_lines(dag(loaded, max_depth=depth))
        case _:
            print("Schedule (Summary)")
            for line in summary(loaded):
                print(line)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(plain(line))


def summary(loaded: GraphSchedule) -> list[str]:
    """The table: one row per job."""
    rows = [
        [
            str(number),
            node.slug or "-",
            node.name,
            node.status.value,
            node.wait or "-",
            shown(node.id),
        ]
        for number, node in enumerate(loaded.rows, 1)
    ]
    colours = [state_colour(node.status) for node in loaded.rows]
    return table(HEADER, rows, flexible=(1, 2, 4), favoured=4, colours=colours, coloured=3)


def _say_what_is_missing(client: Client, loaded: GraphSchedule, top: int | None) -> None:
    if loaded.hidden:
        say(f"only the first {top} are shown (--top {top})")
    for job_id, trouble in sorted(loaded.unreadable.items()):
        say(f"{shown(job_id)} is left out: {trouble}")
    if any(node.status in WAITING for node in loaded.rows) and not client.context.worker_is_there():
        say("no worker is there, so nothing starts; `headway work` is one")
