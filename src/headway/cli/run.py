"""`headway run`: start a workflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from headway.base.errors import InvalidInputError
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.core.model import shown_run
from headway.workflows.mistakes import Mistake, WorkflowError
from headway.workflows.model import Manifest, WorkflowFile

if TYPE_CHECKING:
    from headway.client import Client
    from headway.jobs.context import Context
    from headway.workflows.start import RunRequest, StartedRun

MOST_REPEATED = 1000


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("inputs", nargs=-1, metavar="[INPUT ...]")
@click.option("--set", "given", multiple=True, metavar="K=V", help="A parameter (repeat).")
@click.option("--after", multiple=True, metavar="JOB|wf-N", help="Only after this (repeat).")
@click.option("--repeat", type=WHOLE_NUMBER, default=1, metavar="N", help="N runs in a row.")
@click.option("--key", metavar="TEXT", help="The same key starts one run.")
@click.option("--priority", type=WHOLE_NUMBER, default=0, metavar="N", help="Of all its jobs.")
@click.option("--subject", metavar="TEXT", help="The work item that it is about.")
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
    repeat: int,
    key: str | None,
    priority: int,
    subject: str | None,
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
    from headway.workflows.start import (
        RunRequest,
        compile_run,
        resolve_after,
        start_repeated,
    )

    if not 1 <= repeat <= MOST_REPEATED:
        raise InvalidInputError(f"--repeat {repeat} is not between 1 and {MOST_REPEATED}")
    if repeat > 1 and subject is not None:
        raise InvalidInputError(
            f"--repeat {repeat} --subject {subject}: one run at a time may be about a subject; "
            "leave one of the two out"
        )
    client = scope.connect() if only_check else scope.connect_or_create()
    context = client.context
    file = read_file(client.home, name, context.folder)
    if not only_check:
        refuse_untrusted(client.home, file)
    jobs, runs = resolve_after(context, after)
    request = RunRequest(
        words=inputs,
        params=given_params(given),
        after=jobs,
        after_runs=runs,
        key=key,
        priority=priority,
        require_approval=require_approval,
        subject=subject,
    )
    if only_check:
        return _check(context, file, request, as_json=as_json)
    try:
        manifest = compile_run(context, file, request)
        _say_notes(file, manifest)
        seen = client.events.last()
        started = start_repeated(context, manifest, request, repeat)
    except WorkflowError as error:
        return refused(error)
    if not as_json:
        for each in started:
            print(shown_run(each.run), flush=True)
    code = _followed(client, started, seen) if follow else 0
    if as_json:
        documents = [client.workflows.run(each.run) for each in started]
        emit({"run": documents[0], **({"runs": documents} if repeat > 1 else {})})
    return code


def _check(context: Context, file: WorkflowFile, request: RunRequest, *, as_json: bool) -> int:
    """Say what is wrong, or that nothing is."""
    from headway.workflows.start import check_run, compile_run

    try:
        manifest = compile_run(context, file, request)
        check_run(context, manifest)
    except WorkflowError as error:
        if not as_json:
            return refused(error)
        emit(_checked(file, error.mistakes, 0, ()))
        return error.exit_code
    if as_json:
        emit(_checked(file, (), len(manifest.nodes), manifest.notes))
        return 0
    _say_notes(file, manifest)
    say(f"{file.path}: nothing is wrong; {len(manifest.nodes)} jobs")
    return 0


def _say_notes(file: WorkflowFile, manifest: Manifest) -> None:
    for note in manifest.notes:
        say(f"{file.path}: {note}")


def _followed(client: Client, started: Sequence[StartedRun], seen: int) -> int:
    """Show the runs one after the other, until their ends or until the reader leaves."""
    from headway.cli.run_news import DETACHED, follow_run

    code = 0
    for each in started:
        code = follow_run(client, each.run, since=seen) or code
        if code == DETACHED:
            break
    return code


def _checked(
    file: WorkflowFile, mistakes: Sequence[Mistake], jobs: int, notes: Sequence[str]
) -> dict[str, Any]:
    """What a check has found, as `workflows check` tells it."""
    from headway.workflows.documents import mistake_document

    found = {
        "name": file.name,
        "path": file.path,
        "valid": not mistakes,
        "jobs": jobs,
        "mistakes": [mistake_document(each) for each in mistakes],
        "notes": list(notes),
    }
    return {"valid": not mistakes, "workflow": found}


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


def given_params(words: tuple[str, ...]) -> dict[str, str]:
    """What `--set K=V` gives."""
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InvalidInputError(f"--set {word!r} is not K=V")
        if name in found:
            raise InvalidInputError(f"--set gives '{name}' twice")
        found[name] = value
    return found
