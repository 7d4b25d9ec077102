"""`headway jobs wait`: wait until jobs end."""

import click

from headway.cli.exec import report
from headway.cli.options import DURATION
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.client import Client
from headway.clock import SECOND
from headway.core.model import Job, shown
from headway.errors import TimedOutError
from headway.submission import parse_job_id
from headway.views import not_importable, why_not
from headway.waiting import Waiter


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB ...")
@click.option("--timeout", type=DURATION, metavar="10s", help="Stop waiting, with exit code 124.")
@click.option("--this", "this_only", is_flag=True, help="Do not go on with the job's retries.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def wait(
    scope: Scope, jobs: tuple[str, ...], timeout: int | None, this_only: bool, as_json: bool
) -> int:
    """Wait until jobs end; exit with their code.

    Of several jobs it is the first code that is not 0, in the given order.
    """
    client = scope.connect()
    ids = [parse_job_id(each) for each in jobs]
    for job_id in ids:
        client.job(job_id)
    deadline = None if timeout is None else client.clock.monotonic() + timeout / SECOND
    codes, documents = [], []
    for job_id in ids:
        left = None if deadline is None else deadline - client.clock.monotonic()
        job = _ended(client, Waiter(client, job_id, this_only=this_only), left)
        codes.append(report(client, job))
        documents.append(client.document(job.id))
    if as_json:
        emit({"jobs": documents})
    return next((code for code in codes if code), 0)


def _ended(client: Client, waiter: Waiter, timeout: float | None) -> Job:
    """The job at its end. What is in the way is said if it is not reached, and before that if
    nobody can call its function."""

    def wonder(job: Job) -> None:
        cause = not_importable(client, job.id)
        if cause:
            say(f"{shown(job.id)} is not run: {cause}")

    try:
        return waiter.until_ended(timeout=timeout, wonder=wonder)
    except TimedOutError as error:
        cause = why_not(client, waiter.job.id)
        raise TimedOutError(f"{error}: {cause}" if cause else str(error)) from None
