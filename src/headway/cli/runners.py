"""`headway runners ...`: the agent programs that jobs can use."""

import os
import shlex
from typing import Any

import click

from headway.base.home import Home, find_home, is_home, refuse_no_home
from headway.base.units import show_duration
from headway.cli.render import emit, fields, paint, say, table
from headway.cli.scope import Scope
from headway.jobs.views.runners import (
    all_runners,
    default_path,
    one_runner,
    runner_document,
)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_runners(scope: Scope, as_json: bool) -> None:
    """List the runners, and which of their programs are here."""
    home = _home(scope)
    found = all_runners(home.path, scope.config_of(home), default_path(os.environ))
    parked = _parked(scope)
    documents = [runner_document(each, parked=parked.get(each.name)) for each in found]
    if as_json:
        emit({"runners": documents})
        return
    rows = [[each["name"], _from(each), each["program"] or "", _state(each)] for each in documents]
    print(*table(["Runner", "From", "Program", "State"], rows, flexible=(3,)), sep="\n")


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def show(scope: Scope, name: str, as_json: bool) -> None:
    """Show one runner: its file, its program and how that is called."""
    home = _home(scope)
    config = scope.config_of(home)
    document = one_runner(name, home.path, config, os.environ)
    document["parked"] = _parked(scope).get(name)
    if as_json:
        emit({"runner": document})
        return
    print(paint(name, "bold"))
    print(*fields(_about(document)), sep="\n")


@click.command()
@click.argument("name", metavar="NAME")
@click.pass_obj
def resume(scope: Scope, name: str) -> None:
    """Let jobs of a parked runner start again."""
    client = scope.connect_to_change()
    say(f"{name} may go on" if client.runners.resume(name) else f"{name} was not parked")


def _home(scope: Scope) -> Home:
    """Where one would be made, if there is none: the shipped runners need no folder."""
    home, exists = find_home(scope.home, os.environ, os.getcwd())
    if exists:
        refuse_no_home(home.path)
    return home


def _parked(scope: Scope) -> dict[str, dict[str, Any]]:
    """Those of the store, if there is a home."""
    home, exists = find_home(scope.home, os.environ, os.getcwd())
    if not exists or not is_home(home.path):
        return {}
    scope.be_quiet()
    return scope.connect().runners.parked()


def _about(document: dict[str, Any]) -> list[tuple[str, str | None]]:
    words = [shlex.join(each) if isinstance(each, list) else each for each in document["argv"]]
    times = ", ".join(
        f"{name.replace('_', ' ')} {'none' if value is None else show_duration(int(value * 1e6))}"
        for name, value in document["timeouts"].items()
    )
    return [
        ("file", document["file"] + (" (shipped)" if document["built_in"] else "")),
        ("program", _state(document)),
        ("parked", _since(document)),
        ("version", document["version"]),
        ("tested with", document["tested"]),
        ("command", " ".join(words)),
        ("prompt", f"by {document['prompt']}"),
        ("parser", document["parser"]),
        ("denied tools", "fail the job" if document["denials"] == "fail" else "are only listed"),
        ("variables", ", ".join(document["env_pass"]) or None),
        ("sets", ", ".join(document["env"]) or None),
        ("timeouts", times),
    ]


def _since(document: dict[str, Any]) -> str | None:
    if document["parked"] is None:
        return None
    until = document["parked"]["until"]
    return f"{f'until {until}' if until else 'until resumed'}: {document['parked']['reason']}"


def _from(document: dict[str, Any]) -> str:
    return "shipped" if document["built_in"] else ".headway/runners"


def _state(document: dict[str, Any]) -> str:
    if document["error"]:  # all of it would hide what the others are
        return f"broken: headway runners show {document['name']}"
    if document["parked"] is not None:
        return f"parked {_since(document)}"
    if document["program"] is None:
        return "named by each job"
    if document["found"] is None:
        return f"not installed: no program {document['program']!r} on PATH"
    if document["found_without_submitter"] is None:
        return f"{document['found']}; not on the PATH of jobs that nobody submits"
    return str(document["found"])
