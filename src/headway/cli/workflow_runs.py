"""`headway workflows runs`, `wait` and `stop`, and how a run is shown."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from headway.base.clock import SECOND
from headway.base.text import plain
from headway.cli.options import DURATION
from headway.cli.render import age, emit, fields, moment, paint, say, state_colour, table
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.routes import RunState
from headway.workflows.runs import EXIT_CODES, run_id

_COLOURS = {"succeeded": "green", "failed": "red", "blocked": "red", "cancelled": "dim"}
MANY = 8  # instances of a node that are shown as one line


@click.command("runs")
@click.option("--all", "everything", is_flag=True, help="Also those that ended before yesterday.")
@click.option(
    "--state", type=click.Choice([each.value for each in RunState]), help="Only in this state."
)
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def runs(scope: Scope, everything: bool, state: str | None, as_json: bool) -> None:
    """List the runs that have not ended and the last day's, the newest first."""
    client = scope.connect()
    found = client.workflows.runs(everything=everything)
    found = [each for each in found if state in (None, each["state"])]
    if as_json:
        emit({"runs": found})
        return
    if not found:
        say("no runs" if everything else "no runs of the last day; try --all")
        return
    now = client.now()
    rows = [
        [each["id"], each["workflow"], each["state"], _progress(each), age(each["created_at"], now)]
        for each in found
    ]
    colours = [_COLOURS.get(each["state"], "bold") for each in found]
    for line in table(
        ["Run", "Workflow", "State", "Nodes", "Age"],
        rows,
        flexible=(1, 3),
        colours=colours,
        coloured=2,
    ):
        print(line)


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--timeout", type=DURATION, metavar="10s", help="Stop waiting, with exit code 124.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def wait(scope: Scope, run: str, timeout: int | None, as_json: bool) -> int:
    """Wait until a run ends.

    Exits with 0 if it succeeded, 1 failed, 10 blocked, 143 cancelled.
    """
    client = scope.connect()
    seconds = None if timeout is None else timeout / SECOND
    document = client.workflows.wait(run_id(run), timeout=seconds)
    if as_json:
        emit({"run": document})
    else:
        say(how_it_ended(document))
    return exit_code(document)


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--now", "everything", is_flag=True, help="Its `finally` is cancelled, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def stop(scope: Scope, run: str, everything: bool, as_json: bool) -> None:
    """Cancel all of a run but its `finally`; what runs is told to end."""
    client = scope.connect_to_change()
    number = run_id(run)
    before = client.workflows.run(number)
    document = client.workflows.stop(number, everything=everything)
    if as_json:
        emit({"run": document})
    elif before["ended_at"] is not None:
        say(how_it_ended(before))
    else:
        say(f"{document['id']} is stopped; headway workflows wait {document['id']}")


def exit_code(document: dict[str, Any]) -> int:
    return EXIT_CODES[RunState(document["state"])]


def how_it_ended(document: dict[str, Any]) -> str:
    why = f": {document['reason']}" if document["reason"] else ""
    return f"{document['id']} {document['state']}{why}"


def show_run(client: Client, run: str, *, as_json: bool) -> None:
    """A run and its nodes; the first cause of a failure stands at the top."""
    number = run_id(run)
    document = client.workflows.run(number)
    if as_json:
        emit({"run": {**document, "manifest": client.workflows.manifest(number)}})
        return
    now = client.now()
    print(paint(f"{document['id']}  {plain(document['workflow'])}", "bold"))
    params = ", ".join(f"{name}={value}" for name, value in document["params"].items())
    entries = [
        ("state", document["state"]),
        ("reason", document["reason"]),
        ("next", _next_step(document)),
        ("params", params or None),
        ("started", f"{moment(document['created_at'], now)} by {document['created_by']}"),
        ("deadline", moment(document["deadline"], now)),
        ("ended", moment(document["ended_at"], now)),
    ]
    print("\n".join(fields(entries)))
    rows, colours = [], []
    for node in folded(document["nodes"]):
        rows.append([node["id"], node["job"], node["state"], node["said"]])
        colours.append(state_colour(node["state"]))
    header = ["Node", "Job", "State", "Wait/Result"]
    for line in table(header, rows, flexible=(0, 3), favoured=3, colours=colours, coloured=2):
        print(line)


def _next_step(document: dict[str, Any]) -> str | None:
    """The command that continues a run that did not go well."""
    bad = [each for each in document["nodes"] if each["outcome"] in ("failed", "blocked")]
    if document["ended_at"] is None or not bad:
        return None
    first = min(bad, key=lambda each: each["finished_at"] or "")
    return f"headway jobs retry {first['job']}"


def folded(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A node with many instances is one line, with counts."""
    counts = Counter(each["node"] for each in nodes)
    seen: set[str] = set()
    for node in nodes:
        name = node["node"]
        if counts[name] <= MANY:
            said = node["wait"]["detail"] if node["wait"] else node["reason"]
            yield {**node, "said": said or ""}
        elif name not in seen:
            seen.add(name)
            inside = [each for each in nodes if each["node"] == name]
            states = Counter(each["state"] for each in inside)
            yield {
                "id": f"{name} x{len(inside)}",
                "job": f"{inside[0]['job']} ...",
                "state": states.most_common(1)[0][0],
                "said": ", ".join(f"{count} {state}" for state, count in states.items()),
            }


def _progress(document: dict[str, Any]) -> str:
    return ", ".join(f"{count} {state}" for state, count in document["counts"].items())
