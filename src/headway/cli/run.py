"""`headway run`: start a workflow."""

from typing import Any

import click

from headway.base.errors import InvalidInputError
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.client import Client
from headway.workflows.mistakes import WorkflowError


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("inputs", nargs=-1, metavar="[INPUT ...]")
@click.option("--set", "given", multiple=True, metavar="K=V", help="A parameter (repeat).")
@click.option("--after", multiple=True, metavar="JOB", help="Not before this job (repeat).")
@click.option("--key", metavar="TEXT", help="The same key starts one run.")
@click.option("--priority", type=int, default=0, metavar="N", help="Of all its jobs.")
@click.option("--require-approval", is_flag=True, help="A person must agree before it starts.")
@click.option("--follow", is_flag=True, help="Show how it goes until it ends.")
@click.option("--check", "only_check", is_flag=True, help="Say what is wrong; write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def run(
    scope: Scope,
    name: str,
    inputs: tuple[str, ...],
    given: tuple[str, ...],
    after: tuple[str, ...],
    key: str | None,
    priority: int,
    require_approval: bool,
    follow: bool,
    only_check: bool,
    as_json: bool,
) -> int:
    """Start a workflow, and print the id of its run.

    NAME is a file of .headway/workflows without its ending, or a path. INPUTs are the parameters
    that the file lists as its inputs, in that order.
    """
    from headway.workflows.files import read_file, refuse_untrusted
    from headway.workflows.start import RunRequest, compile_run, start

    client = scope.connect() if only_check else scope.connect_or_create()
    context = client.context
    file = read_file(client.home, name, context.folder)
    if not only_check:
        refuse_untrusted(client.home, file)
    request = RunRequest(
        words=inputs,
        params=_given(given),
        after=tuple(client.jobs.find(each) for each in after),
        key=key,
        priority=priority,
        require_approval=require_approval,
    )
    try:
        manifest = compile_run(context, file, request)
    except WorkflowError as error:
        return refused(error)
    for note in manifest.notes:
        say(f"{file.path}: {note}")
    if only_check:
        say(f"{file.path}: nothing is wrong; {len(manifest.nodes)} jobs")
        return 0
    try:
        started = start(context, manifest, request)
    except WorkflowError as error:
        return refused(error)
    document = client.workflows.run(started.run)
    if as_json and not follow:
        emit({"run": document})
        return 0
    print(document["id"], flush=True)
    return follow_run(client, started.run) if follow else 0


def refused(error: WorkflowError) -> int:
    """A line for each mistake, with its place in the file."""
    for mistake in error.mistakes:
        say(f"{error.file}: {mistake.placed}")
    if error.count > 1:
        more = (
            f", the first {len(error.mistakes)} above" if error.count > len(error.mistakes) else ""
        )
        say(f"{error.file}: {error.count} things are wrong{more}; nothing was started")
    return error.exit_code


def _given(words: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InvalidInputError(f"--set {word!r} is not K=V")
        if name in found:
            raise InvalidInputError(f"--set gives '{name}' twice")
        found[name] = value
    return found


def follow_run(client: Client, run: int) -> int:
    """A line for each node that starts or ends; the exit code of the run's end."""
    from headway.cli.workflow_runs import exit_code, how_it_ended

    seen: dict[str, str] = {}

    def show(document: dict[str, Any]) -> None:
        for node in document["nodes"]:
            if node["started_at"] is None and node["outcome"] is None:
                continue
            state = node["outcome"] or "running"
            if seen.get(node["id"]) != state:
                seen[node["id"]] = state
                said = node["reason"] if node["outcome"] else None
                why = f": {said.removeprefix('skipped: ')}" if said else ""
                say(f"{node['id']} ({node['job']}) {state}{why}")

    ended = client.workflows.wait(run, meanwhile=show)
    say(how_it_ended(ended))
    return exit_code(ended)
