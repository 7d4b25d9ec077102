"""`headway schedules enable`: a schedule fires from now on."""

import click

from headway.cli.render import emit, say
from headway.cli.scope import Scope


@click.command()
@click.argument("schedule", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def enable(scope: Scope, schedule: str, as_json: bool) -> None:
    """Let a schedule fire from now on; what it missed while disabled is not made up for."""
    client = scope.connect_to_change()
    done = client.schedules.enable(schedule)
    document = client.schedules.show(schedule)
    if as_json:
        emit({"schedule": document})
        return
    following = (
        f"its next slot is {_minute(document['next_slot'])}"
        if document["next_slot"]
        else "none comes"
    )
    say(f"{document['name']} {'is' if done else 'was already'} enabled; {following}")


def _minute(text: str) -> str:
    return f"{text[:19].replace('T', ' ')}Z"
