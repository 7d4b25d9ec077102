"""`headway stop`: end the background worker."""

import click

from headway.cli.render import counted, emit, say
from headway.cli.scope import Scope
from headway.core.model import shown
from headway.jobs.worker_stop import StoppedWorker

MOST_NAMED = 5


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def stop(scope: Scope, as_json: bool) -> None:
    """End the background worker; running jobs go on.

    It waits for them for worker.grace and leaves the rest to the next worker, which the next
    submit starts. A worker in the foreground, or of a service, is left alone (exit 4).
    """
    stopped = scope.connect_or_nothing().scheduler.stop_worker()
    if as_json:
        emit({"stopped": stopped is not None, "pid": stopped.pid if stopped else None})
    elif stopped is None:
        say("no worker is there")
    else:
        say(f"the worker (pid {stopped.pid}) has ended{_left(stopped)}")


def _left(stopped: StoppedWorker) -> str:
    names = [shown(each) for each in stopped.running[:MOST_NAMED]]
    if len(stopped.running) > MOST_NAMED:
        names.append(f"{len(stopped.running) - MOST_NAMED} more")
    verb = "goes" if len(names) == 1 else "go"
    running = f"; {', '.join(names)} {verb} on" if names else ""
    waits = "waits" if stopped.queued == 1 else "wait"
    queued = f"; {counted(stopped.queued, 'job')} {waits}" if stopped.queued else ""
    return f"{running}{queued}; the next submit, or `headway work`, starts another"
