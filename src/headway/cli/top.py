"""`headway top`: the whole home on one screen, live, with keys that act."""

import os
import sys

import click

from headway.base.clock import SECOND
from headway.base.errors import InvalidInputError
from headway.cli.options import DURATION
from headway.cli.render import emit, width
from headway.cli.scope import Scope

INTERVAL = SECOND // 2
LEAST_INTERVAL = SECOND // 4
MOST_PRINTED = 20  # rows of a pane without a terminal


@click.command()
@click.option(
    "--once", is_flag=True, help="Print one frame as text; so it does without a terminal."
)
@click.option("--interval", type=DURATION, metavar="1s", help="How often to look; 500ms.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def top(scope: Scope, once: bool, interval: int | None, as_json: bool) -> int:
    """Show what needs you, what runs, what waits and what has ended, live.

    Keys approve, reject, retry, cancel, pause and follow; ? lists them, q leaves.
    """
    if interval is not None and interval < LEAST_INTERVAL:
        raise InvalidInputError(f"--interval is too short; the least is {LEAST_INTERVAL // 1000}ms")
    if not as_json and not once and _is_live():
        from headway.cli.panes.live import show_live

        return show_live(scope, interval=(interval or INTERVAL) / SECOND)
    from headway.cli.panes.documents import overview_document, public_document
    from headway.cli.panes.frame import as_text

    with scope.connect() as client:
        document = overview_document(client)
        if as_json:
            emit({"top": public_document(document)})
        else:
            print("\n".join(as_text(document, width(), client.now(), most=MOST_PRINTED)))
    return 0


def _is_live() -> bool:
    """Whether there are a screen to draw on and keys to press."""
    can_be_drawn = os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")
    return sys.stdin.isatty() and sys.stdout.isatty() and can_be_drawn
