"""`headway logs`: all that a job wrote."""

import click

from headway.cli.jobs.tail import follow_output, print_output, show_output
from headway.cli.scope import Scope


@click.command()
@click.argument("job", metavar="JOB")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job, and its retries, end.")
@click.option("--stdout", "stream", flag_value="stdout", help="Only what it wrote to stdout.")
@click.option("--stderr", "stream", flag_value="stderr", help="Only what it wrote to stderr.")
@click.option("--this", "this_only", is_flag=True, help="Not the last of its chain but this job.")
@click.option("--raw", is_flag=True, help="Of an agent, print its stream and no readable lines.")
@click.pass_obj
def logs(
    scope: Scope, job: str, follow: bool, stream: str | None, this_only: bool, raw: bool
) -> int:
    """Print all that a job wrote, or follow it.

    Its stdout goes to stdout and its stderr to stderr. Of a job that was retried, the last one's.
    Exit 3 if its output is on another host. `headway tail` prints only the end.
    """
    shown_output = show_output(scope, job, stream, this_only=this_only, raw=raw)
    return follow_output(shown_output) if follow else print_output(shown_output)
