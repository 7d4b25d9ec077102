"""`headway workflows ...`: check files of steps, look at them, draw them, and begin one."""

import json
import re
from typing import Any

import click

from headway.base.errors import InvalidInputError
from headway.base.text import plain
from headway.base.trust import NEXT_STEP, is_trusted
from headway.base.units import show_duration
from headway.cli.render import counted, emit, fields, paint, say, table, width
from headway.cli.scope import Scope
from headway.client import Client
from headway.workflows.drawing.forms import FORMATS
from headway.workflows.new_file import STARTERS, USUAL_STARTER

IS_RUN = re.compile(r"wf-[0-9]+")
BLOCKED = 10  # the exit code of a strict audit that found something


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_workflows(scope: Scope, as_json: bool) -> None:
    """List the workflows of the home, and which of them are broken."""
    client = scope.connect_or_nothing()
    found = client.workflows.list()
    if as_json:
        emit({"workflows": found})
        return
    if not found:
        say("no workflows; `headway workflows init NAME` writes one to begin with")
        return
    rows = [
        [
            each["name"],
            "-" if each["mistakes"] else str(each["nodes"]),
            f"broken: {counted(each['mistakes'], 'mistake')}"
            if each["mistakes"]
            else each["description"],
        ]
        for each in found
    ]
    colours = ["red" if each["mistakes"] else None for each in found]
    header = ["Workflow", "Nodes", "Description"]
    for line in table(header, rows, flexible=(0, 2), colours=colours, coloured=2):
        print(line)
    if any(each["mistakes"] for each in found):
        say("`headway workflows check` says what is wrong")
    _say_if_untrusted(client)


@click.command()
@click.argument("names", metavar="[NAME ...]", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def check(scope: Scope, names: tuple[str, ...], as_json: bool) -> int:
    """Say all that is wrong with workflow files, each mistake with line and column.

    NAME is one of the home, or the path of a file; without it, all of the home are checked. The
    files are only read: nothing of them runs.
    """
    client = scope.connect_or_nothing()
    found = client.workflows.check(names)
    wrong = [each for each in found if not each["valid"]]
    if as_json:
        emit({"valid": not wrong, "workflows": found})
        return InvalidInputError.exit_code if wrong else 0
    if not found:
        say("no workflows; `headway workflows init NAME` writes one to begin with")
    for each in found:
        for mistake in each["mistakes"]:
            say(f"{each['path']}: {_placed(mistake)}")
        for note in each["notes"]:
            say(f"{each['path']}: {note}")
        if each["valid"]:
            say(f"{each['path']}: {counted(each['nodes'], 'node')}, nothing is wrong")
    _say_if_untrusted(client)
    return InvalidInputError.exit_code if wrong else 0


def _placed(mistake: dict[str, Any]) -> str:
    if mistake["line"] is None:
        return str(mistake["text"])
    return f"{mistake['text']} (line {mistake['line']}, column {mistake['column']})"


def _say_if_untrusted(client: Client) -> None:
    path = client.home.path
    if client.workflows.list() and not is_trusted(path):
        say(f"{path} is not trusted, and nothing of its workflows runs; {NEXT_STEP}")


@click.command()
@click.argument("name", metavar="NAME|wf-N")
@click.option(
    "--set", "given", multiple=True, metavar="K=V", help="A parameter, for the manifest of a run."
)
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def show(scope: Scope, name: str, given: tuple[str, ...], as_json: bool) -> None:
    """Show what a workflow takes and what its nodes do.

    With --set, --json has also the manifest: every node as a run of these values would have it.
    """
    client = scope.connect_or_nothing()
    if IS_RUN.fullmatch(name):
        from headway.cli.run_view import show_run

        show_run(client, name, as_json=as_json)
        return
    document = client.workflows.show(name, _values(given) if given else None)
    if as_json:
        emit({"workflow": document})
        return
    print(paint(plain(document["name"]), "bold"))
    timeout = document["timeout"]
    entries = [
        ("about", document["description"] or None),
        ("file", document["path"]),
        ("version", document["version"]),
        ("inputs", ", ".join(document["inputs"]) or None),
        ("timeout", show_duration(timeout) if timeout is not None else None),
        ("budget", _budget(document["budget"])),
        ("finally", ", ".join(document["finally"]) or None),
    ]
    print("\n".join(fields(entries)))
    _print_params(document["params"])
    print()
    rows = [
        [each["id"], _does(each), _instances(each), ", ".join(map(_edge, each["edges"]))]
        for each in document["nodes"]
        if each["id"] not in document["finally"]
    ]
    rows += [
        [each["id"], _does(each), _instances(each), "all others have ended"]
        for each in document["nodes"]
        if each["id"] in document["finally"]
    ]
    for line in table(["Node", "Does", "Jobs", "After"], rows, flexible=(0, 1, 3)):
        print(line)
    for note in document["notes"]:
        say(note)


def _values(given: tuple[str, ...]) -> dict[str, str]:
    values = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--set {each}: give it as K=V.")
        if name in values:
            raise click.UsageError(f"--set {name} is given twice.")
        values[name] = value
    return values


def _budget(budget: dict[str, float]) -> str | None:
    words = {"usd": "${:g}", "tokens": "{:,} tokens"}
    return ", ".join(words[key].format(amount) for key, amount in budget.items()) or None


def _print_params(params: list[dict[str, Any]]) -> None:
    if not params:
        return
    print()
    rows = []
    for each in params:
        kind = each["type"]
        if each["choices"]:
            kind = " | ".join(map(_written, each["choices"]))
        elif each["pattern"] is not None:
            kind = f"{kind} {each['pattern']}"
        default = "must be given" if each["required"] else _written(each["default"])
        rows.append([each["name"], kind, default, each["help"]])
    for line in table(["Parameter", "Type", "Default", "Meaning"], rows, flexible=(1, 2, 3)):
        print(line)


def _written(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _does(node: dict[str, Any]) -> str:
    return str(node["executor_operation"] or node["control_policy"])


def _instances(node: dict[str, Any]) -> str:
    return "each" if node["instances"] is None else str(node["instances"])


def _edge(edge: dict[str, Any]) -> str:
    outcomes = ", ".join(edge["on"])
    return str(edge["node"]) + ("" if outcomes == "succeeded" else f" ({outcomes})")


@click.command()
@click.argument("name", metavar="NAME|wf-N")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    help="Text (the default), a picture, or for Mermaid or Graphviz.",
)
@click.pass_obj
def graph(scope: Scope, name: str, form: str) -> None:
    """Draw a workflow, or a run with its present states.

    A line follows the one above it; what other outcomes than success lead to says so. In a picture
    such edges are dashed. Loops are marked with how often they go back.
    """
    for line in scope.connect_or_nothing().workflows.graph(name, form, width=width()):
        print(line)


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--strict", is_flag=True, help="Exit with 10 if a need has no producer.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def audit(scope: Scope, name: str, strict: bool, as_json: bool) -> int:
    """Show what the nodes of a workflow make, need and lock, and how loops go back."""
    document = scope.connect_or_nothing().workflows.audit(name)
    code = BLOCKED if strict and document["untethered"] else 0
    if as_json:
        emit({"audit": document})
        return code
    made = [[each["artifact"], each["outcome"], each["node"]] for each in document["produces"]]
    _section("Artifacts", ["Artifact", "On", "Made by"], made, flexible=(0, 2))
    missing = [[each["artifact"], each["node"]] for each in document["untethered"]]
    _section("Needs that no node here meets", ["Artifact", "Needed by"], missing, flexible=(0, 1))
    loops = [
        [
            each["head"],
            "; ".join(
                f"{source['node']} on {', '.join(source['on'])} x{source['times']}"
                for source in each["sources"]
            ),
            ", ".join(each["body"]),
        ]
        for each in document["loops"]
    ]
    _section("Loops", ["Back to", "From", "Repeats"], loops, flexible=(1, 2))
    roots = {each["node"]: each["root"] for each in document["roots"]}
    locks = []
    for each in document["locks"]:
        node, root = each["node"], roots[each["node"]] or "."
        for lock in each["locks"] or ["none"]:
            locks.append([node, root, lock])
            node = root = ""  # one line a lock
    title = "Where nodes work, and what they lock"
    _section(title, ["Node", "Root", "Locks"], locks, flexible=(0, 2))
    for note in document["notes"]:
        say(note)
    return code


def _section(
    title: str, header: list[str], rows: list[list[str]], *, flexible: tuple[int, ...]
) -> None:
    if not rows:
        return
    print(paint(title, "bold"))
    for line in table(header, rows, flexible=flexible):
        print(line)
    print()


@click.command()
def schema() -> None:
    """Print the JSON Schema of a workflow file, for editors."""
    from headway.workflows.schema import schema_document

    print(json.dumps(schema_document(), indent=2, ensure_ascii=False))


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--from",
    "starter",
    type=click.Choice(list(STARTERS)),
    help="What to begin with: the one that is called NAME, else build.",
)
@click.pass_obj
def init(scope: Scope, name: str, starter: str | None) -> None:
    """Write a workflow file to begin with, and print its path.

    build, agent and nightly stand alone; draft, approve and merge are three stages of one change.
    A file that is there is never overwritten. The schema for editors is written beside it.
    """
    starter = starter or (name if name in STARTERS else USUAL_STARTER)
    path = scope.connect_or_create().workflows.init(name, starter)
    print(path)
    say(f"made of the starter {starter}; next: headway workflows check {name}")
