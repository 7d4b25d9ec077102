"""`headway scheduler clear`: cancel slung work that waits."""

import click

from headway.cli.render import emit, jobs_and_runs, say
from headway.cli.scope import Scope
from headway.cli.step_wait import listed
from headway.core.model import shown, shown_run


@click.command()
@click.option("--subject", metavar="S", help="Only what is about this subject.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def clear(scope: Scope, subject: str | None, as_json: bool) -> None:
    """Cancel what is slung and waits; what runs is left.

    Work items are not touched, and can be slung again.
    """
    done = scope.connect_to_change().items.clear(subject)
    cleared = [*map(shown, done.cleared), *map(shown_run, done.cleared_runs)]
    jobs, runs = [*map(shown, done.running)], [*map(shown_run, done.running_runs)]
    if as_json:
        emit({"cleared": cleared, "running": [*jobs, *runs]})
        return
    if cleared:
        print(*cleared, sep="\n")
    about = f" of {subject}" if subject else ""
    counts = jobs_and_runs(len(done.cleared), len(done.cleared_runs))
    say(f"{counts}{about} cleared" if cleared else f"nothing{about} waits")
    for left, ends in ((jobs, "headway jobs cancel"), (runs, "headway workflows stop")):
        if left:
            say(f"left running: {listed(left)}; {ends} ends them")
