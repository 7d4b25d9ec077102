"""`headway scheduler clear`: cancel slung work that waits."""

import click

from headway.cli.render import counted, emit, say
from headway.cli.scope import Scope
from headway.cli.step_wait import listed
from headway.core.model import shown


@click.command()
@click.option("--subject", metavar="S", help="Only what is about this subject.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def clear(scope: Scope, subject: str | None, as_json: bool) -> None:
    """Cancel what is slung and waits; what runs is left.

    Work items are not touched, and can be slung again.
    """
    done = scope.connect_to_change().items.clear(subject)
    cleared, running = ([shown(job) for job in jobs] for jobs in done)
    if as_json:
        emit({"cleared": cleared, "running": running})
        return
    if cleared:
        print(*cleared, sep="\n")
    about = f" of {subject}" if subject else ""
    say(f"{counted(len(cleared), 'job')}{about} cleared" if cleared else f"nothing{about} waits")
    if running:
        say(f"left running: {listed(running)}; headway jobs cancel ends them")
