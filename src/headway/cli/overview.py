"""`headway` alone: how things stand, and what one might do next."""

from textwrap import wrap

from headway.base.errors import NotFoundError
from headway.base.home import without_password
from headway.base.text import ending, plain
from headway.base.units import MICROSECONDS
from headway.cli.render import fields, say, width
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.states import Status


def overview(scope: Scope) -> None:
    try:
        client = scope.connect()
    except NotFoundError as error:
        say(str(error))
        _next(
            ("headway submit -- echo hello", "queue a command"),
            ("headway exec -- echo hello", "run one and watch it"),
            ("headway --help", "every command"),
        )
        return
    scope.say_if_outer(client.home)
    paused = print_state(client)
    _next(
        ("headway jobs list", "the active jobs and the last day's"),
        ("headway scheduler resume", "end the pause")
        if paused
        else ("headway submit -- CMD", "queue a command"),
        ("headway why JOB", "why a job does not run"),
    )


def print_state(client: Client) -> bool:
    """Where this is, what runs and waits, and what keeps it; returns whether it is paused."""
    document = client.scheduler.status()
    with client.context.store.read() as tx:
        ended = tx.jobs.count_finished(tx.now() - MICROSECONDS["d"])
    failed = sum(
        count for status, count in ended.items() if status not in (Status.SUCCEEDED, Status.SKIPPED)
    )
    cap = "no cap" if document["mode"] == "direct" else f"of {document['max_active']}"
    print(f"{document['active']} running ({cap}), {document['queued_total']} waiting")
    print(f"{sum(ended.values())} ended in the last day, {failed} of them without success")
    print(f"worker: {'there' if document['worker'] else 'none'}")
    _print_place("home", client.home.path)
    if client.home.store_url is not None:
        _print_place("store", without_password(client.home.store_url))
    if document["queued_total"] and document["reason"]:
        print(*wrap(f"nothing starts: {document['reason']}", width()), sep="\n")
    for each in document["unusable_settings"]:
        print(*wrap(f"setting: {each['problem']}; {each['next']}", width()), sep="\n")
    return bool(document["paused"])


def _print_place(name: str, place: str) -> None:
    print(f"{name}: {ending(plain(place), width() - len(name) - 2)}")


def _next(*commands: tuple[str, str]) -> None:
    print()
    print("\n".join(fields(commands)))
