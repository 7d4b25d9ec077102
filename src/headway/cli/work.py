"""`headway work`: a worker in the foreground; with --background, the one that commands start."""

import os
import sys
from contextlib import suppress
from datetime import datetime

import click

from headway.base.clock import SECOND
from headway.base.text import plain
from headway.cli.options import WHOLE_NUMBER
from headway.cli.scope import Scope
from headway.jobs.settings import SETTINGS, Config, store_setting
from headway.worker.process import TRUST, Worker, WorkerMode


@click.command()
@click.option("--app", "modules", multiple=True, metavar="MODULE", help="Run its tasks (repeat).")
@click.option(
    "--processes", type=WHOLE_NUMBER, metavar="N", help="So many processes run functions (1)."
)
@click.option("--threads", type=WHOLE_NUMBER, metavar="M", help="Each so many at once (1).")
@click.option("--wait", "patient", is_flag=True, help="Beside another worker, wait for its end.")
@click.option("--background", is_flag=True, hidden=True)
@click.pass_obj
def work(
    scope: Scope,
    modules: tuple[str, ...],
    processes: int | None,
    threads: int | None,
    patient: bool,
    background: bool,
) -> None:
    """Be the worker, in the foreground.

    Ctrl-C stops it: it waits for running jobs for worker.grace and leaves the rest to run on.
    A background worker hands over; beside another foreground one it exits 4.
    """
    client = scope.connect_to_change() if background else scope.connect_or_create()
    if client.home.store_url:  # so that those it starts find the same store
        os.environ["HEADWAY_STORE"] = client.home.store_url
    given = {
        "app.modules": ",".join(modules) or None,
        "app.processes": processes,
        "app.threads": threads,
    }
    read = {key: SETTINGS[key].read(value) for key, value in given.items() if value is not None}
    config = client.config.changed(read)
    clock = client.clock

    def say(message: str) -> None:
        now = datetime.fromtimestamp(clock.now() / SECOND).astimezone()
        with suppress(OSError):  # a full disk under the log must not end the worker
            sys.stderr.write(f"{now:%Y-%m-%d %H:%M:%S} {plain(message)}\n")
            sys.stderr.flush()

    advice = unused_places(
        config, store_setting(client.scheduler.settings(), "scheduler.max_active")
    )
    if advice is not None and not background:
        say(advice)
    ending = Worker(
        client.context.store,
        client.home,
        config,
        client.context.host,
        clock,
        mode=WorkerMode.BACKGROUND if background else WorkerMode.FOREGROUND,
        say=say,
        patient=patient,
    ).run()
    client.close()
    if ending == TRUST:  # a process that knows nothing of before reads everything anew
        say("what this folder names is trusted now, or no more: beginning anew")
        os.execv(sys.executable, sys.orig_argv)


def unused_places(config: Config, cap: int) -> str | None:
    """The advice if more processes or threads are asked for than can ever be busy at once."""
    places = config["app.processes"] * config["app.threads"]
    if not config["app.modules"] or not 0 < cap < places:
        return None
    return (
        f"there are {places} places for functions, but scheduler.max_active is {cap}; "
        f"headway config set scheduler.max_active {places} lets all of them run"
    )
