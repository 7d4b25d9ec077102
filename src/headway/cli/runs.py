"""`headway runs ...`: the executions of jobs. A run has the number of its job."""

import click

from headway.base.text import plain
from headway.cli.jobs.retry import retry_job
from headway.cli.jobs.show import about_run
from headway.cli.render import emit, fields, paint
from headway.cli.scope import Scope
from headway.jobs.views.details import parse_run_id


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def show(scope: Scope, run: str, as_json: bool) -> None:
    """Show one execution of a job: its times, exit code, error and logs."""
    client = scope.connect()
    document = client.document(client.jobs.run(parse_run_id(run)).id)
    if as_json:
        emit({"job": document["id"], "run": document["run"]})
        return
    print(f"{paint(document['run']['run_id'], 'bold')}  {plain(document['name'])}")
    for line in fields(about_run(document["run"], client.now())):
        print(line)


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--again", is_flag=True, help="Also if it succeeded, and all that follows from it.")
@click.option("--dry-run", is_flag=True, help="Say what would be run again; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def retry(scope: Scope, run: str, again: bool, dry_run: bool, as_json: bool) -> None:
    """Run the job of an execution again, however often it was tried.

    The same as jobs retry: the job, and everything that follows from it, with a fresh budget of
    automatic retries.
    """
    client = scope.connect() if dry_run else scope.connect_to_change()
    job_id = client.jobs.run(parse_run_id(run)).id
    retry_job(client, job_id, again=again, dry_run=dry_run, as_json=as_json)
