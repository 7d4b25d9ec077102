"""`headway jobs retry` and `headway jobs cancel`."""

from collections.abc import Mapping
from typing import Any

import click

from headway.cli.render import emit, say, to_the_second
from headway.cli.scope import Scope
from headway.cli.stepping import listed, started_by
from headway.client import Client
from headway.core.model import JobId, shown
from headway.core.states import Status
from headway.submission import parse_job_id, parse_job_or_run
from headway.views import last_event
from headway.waiting import Waiter

BEYOND_GRACE = 12.0  # after 10 s without an answer the worker ends the supervisor itself
CONFLICT = 4


@click.command()
@click.argument("job", metavar="JOB|RUN")
@click.option("--dry-run", is_flag=True, help="Say what would be run again; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def retry(scope: Scope, job: str, dry_run: bool, as_json: bool) -> None:
    """Run a failed segment again: the job, and everything that follows from it.

    Each of them that has ended gets a new job in its chain, however often it was tried; the old
    one stays as it is. Those that wait are put back to the start; times given with --at or --delay
    stay. What the set has made counts as missing until it is made again; what came before is not
    touched.
    """
    client = scope.connect() if dry_run else scope.connect_to_change()
    retry_job(client, parse_job_or_run(job), dry_run=dry_run, as_json=as_json)


def retry_job(client: Client, asked: JobId, *, dry_run: bool, as_json: bool) -> None:
    from headway.rewinding import preview, rewind

    if dry_run:
        planned = preview(client, asked).document([])
        if as_json:
            emit(planned)
        else:
            print("\n".join(planned["retry_set"]))
            say(f"would run again: {listed(planned['retry_set'])}{_times(planned)}")
        return
    seen = last_event(client)
    rewound = rewind(client, asked)
    document = rewound.document(started_by(client, seen))
    if as_json:
        emit(document)
        return
    print(shown(rewound.new_root), flush=True)
    started = document["restarted"]
    say(
        f"queued again: {listed(document['reset'])}; "
        + (f"started {listed(started)}" if started else "nothing was started yet")
        + _times(document)
    )


def _times(document: Mapping[str, Any]) -> str:
    """The times that were given to some of them, and that still count."""
    kept = document.get("not_before", {})
    words = [f"{job} not before {to_the_second(at)}" for job, at in kept.items()]
    return f"; {listed(words)}" if words else ""


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB ...")
@click.option("--downstream", is_flag=True, help="Also all that comes after them.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def cancel(scope: Scope, jobs: tuple[str, ...], downstream: bool, as_json: bool) -> int:
    """Cancel jobs and wait until they have ended.

    All processes of a running job get TERM, and KILL after its grace. Final for the chain. Exit 4
    if a job ended by itself first.
    """
    client = scope.connect_to_change()
    asked = [parse_job_id(each) for each in jobs]
    results = client.cancel_downstream(asked) if downstream else client.cancel(asked)
    code = 0
    for each in results:
        if each.job_id != each.asked_for:
            say(f"{shown(each.asked_for)} has a later job in its chain, {shown(each.job_id)}")
        if each.cleaned:
            say(f"{shown(each.job_id)} had ended before; its worktree is cleaned away now")
        elif not _await_cancelled(client, each.job_id):
            code = CONFLICT
    if as_json:
        emit({"jobs": [client.document(each.job_id) for each in results]})
    return code


def _await_cancelled(client: Client, job_id: JobId) -> bool:
    waiter = Waiter(client, job_id, this_only=True)
    grace = waiter.job.params.get("grace_seconds", 10.0)
    job = waiter.until_ended(timeout=grace + BEYOND_GRACE)
    if job.status is Status.CANCELLED:
        say(f"{shown(job_id)} is cancelled")
        return True
    say(f"{shown(job_id)} ended by itself first: {job.status}")
    return False
