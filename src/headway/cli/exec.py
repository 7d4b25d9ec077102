"""`headway exec`: submit, stream the output, exit with the job's code."""

from typing import Any

import click

from headway.cli.attend import follow_to_the_end
from headway.cli.options import JobCommand, describes_a_job, may_use_a_template
from headway.cli.scope import Scope
from headway.cli.standard_input import is_kept
from headway.cli.submit import submit_job


@click.command("exec", cls=JobCommand, context_settings={"allow_interspersed_args": False})
@describes_a_job
@may_use_a_template
@click.option(
    "--on-interrupt",
    type=click.Choice(["ask", "detach", "cancel"]),
    default="ask",
    help="What Ctrl-C does; ask needs a terminal and is detach without one.",
)
@click.option("--raw", is_flag=True, help="Of an agent, print its stream and no readable lines.")
@click.pass_obj
def exec_command(scope: Scope, /, on_interrupt: str, raw: bool, **options: Any) -> int:
    """Submit, stream the output, exit with the job's code.

    Follows the job over its retries. 128+N for a signal, 124 for a timeout, 143 cancelled,
    10 blocked, 0 skipped. It reads all of a stdin that is a pipe or a file, and keeps it for the
    job: in a loop that reads lines, add < /dev/null.
    """
    client, submitted = submit_job(scope, options, reads_stdin=is_kept)
    return follow_to_the_end(client, submitted.job_id, on_interrupt=on_interrupt, raw=raw)
