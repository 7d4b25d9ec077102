"""`headway scheduler run`: one planning step now."""

import click

from headway.base.errors import InvalidInputError, WorkerPresentError
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import counted, emit, say
from headway.cli.scope import Scope
from headway.cli.step_wait import MOST_NAMED, started_by
from headway.core.dispatch import DispatchPlan
from headway.core.model import shown
from headway.jobs.settings import store_setting


@click.command()
@click.option("--batch", type=WHOLE_NUMBER, metavar="N", help="Start at most N jobs.")
@click.option("--dry-run", is_flag=True, help="Only say what would be started.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def run(scope: Scope, batch: int | None, dry_run: bool, as_json: bool) -> None:
    """Do one planning step now.

    With a worker there, it is the worker who steps. Prints the ids of the started jobs.
    """
    if batch is not None and batch < 1:
        raise InvalidInputError(f"--batch {batch} is less than 1")
    client = scope.connect() if dry_run else scope.connect_to_change()
    limit = batch or store_setting(client.scheduler.settings(), "scheduler.batch_size")
    if dry_run:
        _print_plan(client.scheduler.dry_run(limit), as_json=as_json)
        return
    worker = client.context.worker_is_there()
    busy = False
    if worker:
        started = started_by(client, client.events.last())
    else:
        from headway.worker.one_pass import single_step

        try:
            ids = single_step(
                client.context.store,
                client.home,
                client.config,
                client.context.host,
                client.clock,
                limit=limit,
            )
            started = [f"job-{each}" for each in ids]
        except WorkerPresentError:
            busy, started = True, []
    if as_json:
        emit({"dry_run": False, "worker": worker, "busy": busy, "started": started})
        return
    for job_id in started:
        print(job_id)
    if busy:
        say("another step is running; nothing to do")
    elif not started:
        say(f"started nothing: {client.scheduler.status()['reason'] or 'no job may start now'}")


def _print_plan(plan: DispatchPlan, *, as_json: bool) -> None:
    if as_json:
        starts = [{"id": shown(job.id), "name": job.name} for job in plan.to_dispatch]
        skipped = [
            {"id": shown(job.id), "name": job.name, "reason": why} for job, why in plan.skipped
        ]
        emit({"dry_run": True, "would_start": starts, "skipped": skipped, "reason": plan.reason})
        return
    for job in plan.to_dispatch:
        print(shown(job.id))
    for job, why in plan.skipped[:MOST_NAMED]:
        say(f"{shown(job.id)} would wait: {why}")
    more = len(plan.skipped) - MOST_NAMED
    if more > 0:
        say(f"and {more} more would wait")
    say(f"would start {counted(len(plan.to_dispatch), 'job')}; nothing was changed")
