"""`headway jobs wait`: wait until jobs end."""

import click

from headway.cli.exec import report
from headway.cli.options import DURATION
from headway.cli.render import emit
from headway.cli.scope import Scope
from headway.clock import SECOND
from headway.submission import parse_job_id
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
        job = Waiter(client, job_id, this_only=this_only).until_ended(timeout=left)
        codes.append(report(client, job))
        documents.append(client.document(job.id))
    if as_json:
        emit({"jobs": documents})
    return next((code for code in codes if code), 0)
