"""`headway targets ...`: where slung work goes, and what it becomes there."""

import shlex
from typing import Any

import click

from headway.cli.named_command import NamedCommand
from headway.cli.options import DURATION, WHOLE_NUMBER, parse_env
from headway.cli.render import emit, fields, say, table
from headway.cli.run import given_params
from headway.cli.scope import Scope
from headway.core.targets import Target
from headway.jobs.specification import parse_lock, split_command
from headway.workitems.targets import (
    target_document,
)


@click.command(cls=NamedCommand)
@click.argument("target_name", metavar="NAME")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD ...")
@click.option("--name", metavar="NAME", help="Its name, if it is not given as NAME.")
@click.option("--prefix", metavar="P", help="Subjects that begin so belong to it.")
@click.option("--cwd", metavar="DIR", help="Where it runs; else in the project.")
@click.option("--env", multiple=True, metavar="K[=V]", help="A variable (repeat).")
@click.option("--resource", multiple=True, metavar="R", help="A resource it uses (repeat).")
@click.option("--lock", multiple=True, metavar="KEY[:shared]", help="Hold a lock (repeat).")
@click.option("--timeout", type=DURATION, metavar="1h", help="Kill a job after this time.")
@click.option("--retries", type=WHOLE_NUMBER, default=0, metavar="N", help="Automatic retries.")
@click.option("--helper", metavar="CMD", help="Run this after work was started for it.")
@click.option("--workflow", metavar="NAME", help="Start a run of a workflow, not a command.")
@click.option("--set", "given", multiple=True, metavar="K=V", help="A parameter of it (repeat).")
@click.option("--replace", is_flag=True, help="Give a target of that name this recipe.")
@click.pass_obj
def add(
    scope: Scope,
    /,
    target_name: str,
    argv: tuple[str, ...],
    name: str | None,
    given: tuple[str, ...],
    replace: bool,
    **options: Any,
) -> None:
    """Make a target: a name with a recipe for its subjects.

    The recipe is a command, or a workflow. {subject}, {title}, {target}, {args} and names given
    with --var stand for what is slung, in words of the command and in values of --set. Parameters
    of a workflow with these names get them without --set.
    """
    if name not in (None, target_name):
        raise click.UsageError(f"It has two names, {target_name} and {name}; give one.")
    for lock in options["lock"]:
        parse_lock(lock)
    helper = options["helper"]
    target = Target(
        name=target_name,
        argv=argv,
        prefix=options["prefix"],
        cwd=options["cwd"],
        env=parse_env(options["env"]),
        resources=tuple(dict.fromkeys(options["resource"])),
        locks=tuple(options["lock"]),
        timeout=options["timeout"],
        retries=options["retries"],
        helper=split_command(helper, "--helper") if helper is not None else (),
        workflow=options["workflow"],
        params=given_params(given),
    )
    made = scope.connect_or_create().targets.add(target, replace=replace)
    say(f"target {made.name}: {_recipe(made)}")


def _recipe(target: Target) -> str:
    """Its command, or its workflow with the values for it."""
    if target.workflow is None:
        return shlex.join(target.argv)
    values = (f"{name}={value}" for name, value in target.params.items())
    return shlex.join(["workflow", target.workflow, *values])


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_targets(scope: Scope, as_json: bool) -> None:
    """List the targets."""
    found = scope.connect().targets.list()
    if as_json:
        emit({"targets": [target_document(each) for each in found]})
        return
    if not found:
        say("there is no target; headway targets add makes one")
        return
    rows = [[each.name, each.prefix or "", _recipe(each)] for each in found]
    print(*table(["Target", "Prefix", "Command"], rows, flexible=(2,)), sep="\n")


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def show(scope: Scope, name: str, as_json: bool) -> None:
    """Show all about one target."""
    target = scope.connect().targets.show(name)
    document = target_document(target)
    if as_json:
        emit({"target": document})
        return
    print(target.name)
    entries = [
        ("prefix", document["prefix"]),
        ("command", shlex.join(target.argv) or None),
        ("workflow", target.workflow),
        ("params", ", ".join(f"{name}={value}" for name, value in target.params.items()) or None),
        ("asks for", ", ".join(document["placeholders"]) or None),
        ("directory", document["cwd"]),
        ("variables", ", ".join(document["env"]) or None),
        ("resources", ", ".join(document["resources"]) or None),
        ("locks", ", ".join(document["locks"]) or None),
        ("timeout", document["timeout"]),
        ("retries", str(document["retries"]) if document["retries"] else None),
        ("helper", shlex.join(target.helper) or None),
        ("made", f"{document['created_at']} by {document['created_by']}"),
    ]
    print(*fields(entries), sep="\n")


@click.command()
@click.argument("name", metavar="NAME")
@click.pass_obj
def remove(scope: Scope, name: str) -> None:
    """Remove a target; what was slung to it stays as it is."""
    scope.connect_to_change().targets.remove(name)
    say(f"target {name} is removed")
