"""`headway` alone: how things stand, and what one might do next."""

from headway.cli.render import say
from headway.cli.scope import Scope
from headway.errors import NotFoundError


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
    from headway.core.states import Status
    from headway.units import MICROSECONDS
    from headway.views import scheduler_status

    told = scheduler_status(client)
    with client.store.read() as tx:
        ended = tx.count_finished(tx.now() - MICROSECONDS["d"])
    failed = sum(
        count for status, count in ended.items() if status not in (Status.SUCCEEDED, Status.SKIPPED)
    )
    cap = "no cap" if told["mode"] == "direct" else f"of {told['max_active']}"
    print(f"{told['active']} running ({cap}), {told['queued_total']} waiting")
    print(f"{sum(ended.values())} ended in the last day, {failed} of them without success")
    print(f"worker: {'there' if told['worker'] else 'none'}")
    if told["queued_total"] and told["reason"]:
        print(f"nothing starts: {told['reason']}")
    _next(
        ("headway jobs list", "the active jobs and the last day's"),
        ("headway scheduler resume", "end the pause")
        if told["paused"]
        else ("headway submit -- CMD", "queue a command"),
        ("headway why JOB", "why a job does not run"),
    )


def _next(*commands: tuple[str, str]) -> None:
    print()
    for command, about in commands:
        print(f"  {command:<30} {about}")
