"""`headway jobs cancel`: cancel jobs and wait until they have ended."""

import click

from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.model import JobId, shown
from headway.core.states import Status
from headway.jobs.wait import Waiter

BEYOND_GRACE = 12.0  # after 10 s without an answer the worker ends the supervisor itself


CONFLICT = 4


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
    asked = [client.jobs.find(each) for each in jobs]
    results = client.jobs.cancel_downstream(asked) if downstream else client.cancel(asked)
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
    waiter = Waiter(client.context, job_id, this_only=True)
    grace = waiter.job.params.get("grace_seconds", 10.0)
    job = waiter.until_ended(timeout=grace + BEYOND_GRACE)
    if job.status is Status.CANCELLED:
        say(f"{shown(job_id)} is cancelled")
        return True
    say(f"{shown(job_id)} ended by itself first: {job.status}")
    return False
