"""`headway jobs tail`: the end of a job's output, or all that comes."""

from itertools import takewhile
from typing import NamedTuple

import click

from headway.base.errors import InvalidInputError, NotFoundError
from headway.cli.attend import (
    ChainOutput,
    copy_to_the_end,
    is_elsewhere,
    open_output,
    say_if_elsewhere,
)
from headway.cli.follow import STREAMS, Output
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import say
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.model import Job, shown
from headway.jobs.wait import Waiter, lending

LINES = 20
NOT_HERE = NotFoundError.exit_code  # of output that is on another host


@click.command()
@click.argument("job", metavar="JOB")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job, and its retries, end.")
@click.option(
    "-n", "--lines", type=WHOLE_NUMBER, default=LINES, metavar="N", help="So many lines (20)."
)
@click.option("--stdout", "stream", flag_value="stdout", help="Only what it wrote to stdout.")
@click.option("--stderr", "stream", flag_value="stderr", help="Only what it wrote to stderr.")
@click.option("--this", "this_only", is_flag=True, help="Not the last of its chain but this job.")
@click.option("--raw", is_flag=True, help="Of an agent, print its stream and no readable lines.")
@click.pass_obj
def tail(
    scope: Scope, job: str, follow: bool, lines: int, stream: str | None, this_only: bool, raw: bool
) -> int:
    """Show the end of a job's output, or follow it.

    Its stdout goes to stdout and its stderr to stderr. Of a job that was retried, the last one's.
    Exit 3 if its output is on another host.
    """
    if lines < 0:
        raise InvalidInputError(f"--lines {lines} is less than 0")
    shown_output = show_output(scope, job, stream, this_only=this_only, raw=raw)
    shown_output.output.skip_to_last(lines)
    return follow_output(shown_output) if follow else print_output(shown_output)


class ShownOutput(NamedTuple):
    """The output of a job that is to be shown."""

    client: Client
    waiter: Waiter
    output: Output
    chain: ChainOutput


def show_output(
    scope: Scope, job: str, stream: str | None, *, this_only: bool, raw: bool
) -> ShownOutput:
    client = scope.connect()
    waiter = Waiter(client.context, client.jobs.find(job), this_only=this_only)
    streams = (stream,) if stream else STREAMS
    output = open_output(client, waiter.job, streams, raw=raw)
    return ShownOutput(client, waiter, output, ChainOutput(client, output, streams, raw=raw))


def print_output(shown_output: ShownOutput) -> int:
    """Print what is there now; returns the exit code."""
    client, waiter, output, _ = shown_output
    elsewhere = say_if_elsewhere(client, waiter.job)
    _say_if_not_started(client, waiter.job)
    output.end()
    return NOT_HERE if elsewhere else 0


def follow_output(shown_output: ShownOutput) -> int:
    """Print what is there and what comes, until the job ends; returns the exit code."""
    client, waiter, _, chain = shown_output
    say_if_elsewhere(client, waiter.job)
    with lending(client.context, waiter.job) as renew:
        chain.pump(waiter.job)
        copy_to_the_end(client, waiter, chain, renew)
    _say_if_not_started(client, waiter.job)
    return NOT_HERE if is_elsewhere(client, waiter.job) else 0


def _say_if_not_started(client: Client, job: Job) -> None:
    """What keeps it, or kept it, and which job of its chain has output."""
    if job.started_at is not None:
        return
    name = shown(job.id)
    before = takewhile(lambda each: each["id"] != name, client.jobs.chain(job.id))
    with_output = [each["id"] for each in before if each["started_at"]]
    output = f"; see `headway jobs tail --this {with_output[-1]}`" if with_output else ""
    say(f"{name} was not started ({job.status}); `headway why {name}` says why{output}")
