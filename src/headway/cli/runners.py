"""`headway runners ...`: the agent programs that jobs can use."""

import os
import shlex
from typing import Any

import click

from headway.cli.render import emit, fields, paint, table
from headway.cli.scope import Scope
from headway.errors import InvalidInputError, NotFoundError
from headway.home import Home, find_home, refuse_no_home
from headway.runners.files import load_runner, runner_names
from headway.runners.looking import (
    all_runners,
    default_path,
    look_at_runner,
    runner_document,
    version_of,
)
from headway.units import show_duration


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_runners(scope: Scope, as_json: bool) -> None:
    """List the runners, and which of their programs are here."""
    home = _home(scope)
    found = all_runners(home.path, scope.config_of(home), default_path(os.environ))
    documents = [runner_document(each) for each in found]
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
    if name not in runner_names(home.path):
        load_runner(name, home.path)  # says why it does not count, if it is there
        there = ", ".join(runner_names(home.path))
        raise NotFoundError(f"there is no runner {name!r}; there are {there}")
    seen = look_at_runner(name, home.path, config, default_path(os.environ))
    if seen.runner is None:
        raise InvalidInputError(seen.error or name)
    version = version_of(seen.runner, os.environ) if seen.found else None
    told = runner_document(seen, version)
    if as_json:
        emit({"runner": told})
        return
    print(paint(name, "bold"))
    print(*fields(_about(told)), sep="\n")


def _home(scope: Scope) -> Home:
    """Where one would be made, if there is none: the shipped runners need no folder."""
    home, exists = find_home(scope.home, os.environ, os.getcwd())
    if exists:
        refuse_no_home(home.path)
    return home


def _about(told: dict[str, Any]) -> list[tuple[str, str | None]]:
    words = [shlex.join(each) if isinstance(each, list) else each for each in told["argv"]]
    times = ", ".join(
        f"{name.replace('_', ' ')} {'none' if value is None else show_duration(int(value * 1e6))}"
        for name, value in told["timeouts"].items()
    )
    return [
        ("file", told["file"] + (" (shipped)" if told["built_in"] else "")),
        ("program", _state(told)),
        ("version", told["version"]),
        ("tested with", told["tested"]),
        ("command", " ".join(words)),
        ("prompt", f"by {told['prompt']}"),
        ("parser", told["parser"]),
        ("denied tools", "fail the job" if told["denials"] == "fail" else "are only listed"),
        ("variables", ", ".join(told["env_pass"]) or None),
        ("sets", ", ".join(told["env"]) or None),
        ("timeouts", times),
    ]


def _from(told: dict[str, Any]) -> str:
    return "shipped" if told["built_in"] else ".headway/runners"


def _state(told: dict[str, Any]) -> str:
    if told["error"]:  # all of it would hide what the others are
        return f"broken: headway runners show {told['name']}"
    if told["program"] is None:
        return "named by each job"
    if told["found"] is None:
        return f"not installed: no program {told['program']!r} on PATH"
    if told["found_without_submitter"] is None:
        return f"{told['found']}; not on the PATH of jobs that nobody submits"
    return str(told["found"])
