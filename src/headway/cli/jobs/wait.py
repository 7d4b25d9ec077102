"""`headway jobs wait`: wait until jobs end."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from headway.base.clock import SECOND
from headway.base.errors import TimedOutError
from headway.cli.options import DURATION
from headway.cli.render import emit
from headway.cli.scope import Scope
from headway.cli.wait_lines import WaitLines, end_of, say_what_hinders, summary
from headway.client import Client
from headway.core.model import Job
from headway.core.states import Status
from headway.jobs.wait import Waiter

if TYPE_CHECKING:
    from headway.jobs.views.awaited import AwaitedJobs


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB ...")
@click.option("--timeout", type=DURATION, metavar="10s", help="Stop waiting, with exit code 124.")
@click.option("--this", "this_only", is_flag=True, help="Do not go on with the job's retries.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing; only the exit code tells.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def wait(
    scope: Scope,
    jobs: tuple[str, ...],
    timeout: int | None,
    this_only: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Wait until jobs end; exit with their code.

    Of several jobs it is the first code that is not 0, in the given order. On a terminal it shows
    how far each is; at the end it names those that did not succeed.
    """
    client = scope.connect()
    ids = [client.jobs.find(each) for each in jobs]
    for job_id in ids:
        client.job(job_id)

    def read(most: int) -> AwaitedJobs:
        from headway.jobs.views.awaited import awaited_jobs

        return awaited_jobs(client.context, ids, this_only=this_only, most=most)

    lines = WaitLines(client, read, quiet=quiet, bar=len(set(ids)) > 1)
    deadline = None if timeout is None else client.clock.monotonic() + timeout / SECOND
    ends = []
    try:
        with lines.until_the_end():
            for job_id in ids:
                left = None if deadline is None else deadline - client.clock.monotonic()
                waiter = Waiter(client.context, job_id, this_only=this_only)
                ends.append(end_of(client, _ended(client, waiter, left, lines).id))
    except TimedOutError as error:
        if quiet:
            return error.exit_code
        raise
    lines.say_ends(ends)
    states = {each.document["id"]: Status(each.document["state"]) for each in ends}
    if len(states) > 1:
        lines.say(summary(Counter(states.values())))
    if as_json:
        emit({"jobs": [each.document for each in ends]})
    return next((each.code for each in ends if each.code), 0)


def _ended(client: Client, waiter: Waiter, timeout: float | None, lines: WaitLines) -> Job:
    """The job at its end. What is in the way is said if it is not reached, and before that if
    nothing is started, or nobody can call its function."""
    try:
        return waiter.until_ended(
            timeout=timeout,
            wonder=lambda job: say_what_hinders(client, job, lines),
            meanwhile=lines.refresh,
        )
    except TimedOutError as error:
        cause = client.jobs.why_not(waiter.job.id)
        raise TimedOutError(f"{error}: {cause}" if cause else str(error)) from None
