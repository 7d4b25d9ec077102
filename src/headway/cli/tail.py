"""`headway jobs tail`: the end of a job's output, or all that comes."""

import click

from headway.cli.exec import PATIENCE, ChainOutput, say_if_elsewhere, say_why
from headway.cli.following import STREAMS, Output
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import say
from headway.cli.scope import Scope
from headway.core.model import Job, shown
from headway.errors import InvalidInputError
from headway.submission import parse_job_id
from headway.waiting import Waiter, lending

LINES = 20


@click.command()
@click.argument("job", metavar="JOB")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job, and its retries, end.")
@click.option(
    "-n", "--lines", type=WHOLE_NUMBER, default=LINES, metavar="N", help="So many lines (20)."
)
@click.option("--stdout", "stream", flag_value="stdout", help="Only what it wrote to stdout.")
@click.option("--stderr", "stream", flag_value="stderr", help="Only what it wrote to stderr.")
@click.option("--this", "this_only", is_flag=True, help="Not the last of its chain but this job.")
@click.pass_obj
def tail(
    scope: Scope, job: str, follow: bool, lines: int, stream: str | None, this_only: bool
) -> int:
    """Show the end of a job's output, or follow it.

    Its stdout goes to stdout and its stderr to stderr. Of a job that was retried, the last one's.
    """
    if lines < 0:
        raise InvalidInputError(f"--lines {lines} is less than 0")
    client = scope.connect()
    waiter = Waiter(client, parse_job_id(job), this_only=this_only)
    streams = (stream,) if stream else STREAMS
    output = Output(client.home, waiter.job.id, streams)
    output.skip_to_last(lines)
    say_if_elsewhere(client, waiter.job)
    if not follow:
        _say_if_not_started(waiter.job)
        output.end()
        return 0
    chain = ChainOutput(client, output, streams)
    with lending(client, waiter.job) as renew:
        chain.pump(waiter.job)
        wonder_at = client.clock.monotonic() + PATIENCE
        while not waiter.ended:
            renew()
            if wonder_at and client.clock.monotonic() >= wonder_at:
                wonder_at = 0.0
                say_why(client, waiter.job)
            waiter.pause()
            chain.pump(waiter.job)
        chain.end(waiter.job)
    return 0


def _say_if_not_started(job: Job) -> None:
    if job.started_at is not None:
        return
    before = f"; see `headway jobs tail --this {shown(job.retry_of or 0)}`"
    say(f"{shown(job.id)} was not started ({job.status})" + (before if job.retry_of else ""))
