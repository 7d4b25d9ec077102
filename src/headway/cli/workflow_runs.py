"""`headway workflows runs`, `wait`, `stop` and `retry`."""

from collections.abc import Mapping
from typing import Any

import click

from headway.base.clock import SECOND
from headway.cli.options import DURATION
from headway.cli.render import age, emit, say, table
from headway.cli.run_news import IdleRun, follow_run, say_if_paused
from headway.cli.run_view import COLOURS, how_run_ended, progress
from headway.cli.scope import Scope
from headway.cli.step_wait import listed, started_by
from headway.core.model import shown_run
from headway.core.routes import RunState
from headway.workflows.runs import exit_code, run_id


@click.command("runs")
@click.option("--all", "everything", is_flag=True, help="Also those that ended before yesterday.")
@click.option(
    "--state", type=click.Choice([each.value for each in RunState]), help="Only in this state."
)
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def runs(scope: Scope, everything: bool, state: str | None, as_json: bool) -> None:
    """List the runs that have not ended and the last day's, the newest first."""
    client = scope.connect()
    found = client.workflows.runs(everything=everything)
    found = [each for each in found if state in (None, each["state"])]
    if as_json:
        emit({"runs": found})
        return
    if not found:
        say("no runs" if everything else "no runs of the last day; try --all")
        return
    now = client.now()
    subjects = any(each["subject"] for each in found)
    rows = [
        [
            each["id"],
            each["workflow"],
            each["state"],
            progress(each),
            age(each["created_at"], now),
            *([each["subject"] or ""] if subjects else []),
        ]
        for each in found
    ]
    colours = [COLOURS.get(each["state"]) for each in found]
    for line in table(
        ["Run", "Workflow", "State", "Nodes", "Age", *(["Subject"] if subjects else [])],
        rows,
        flexible=(1, 3, 5) if subjects else (1, 3),
        colours=colours,
        coloured=2,
    ):
        print(line)


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--follow", is_flag=True, help="Show how it goes until it ends.")
@click.option("--timeout", type=DURATION, metavar="10s", help="Stop waiting, with exit code 124.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def wait(scope: Scope, run: str, follow: bool, timeout: int | None, as_json: bool) -> int:
    """Wait until a run ends.

    Exits with 0 if it succeeded, 1 failed, 10 blocked, 124 timed out, 143 cancelled.
    """
    client = scope.connect()
    number = run_id(run)
    seconds = None if timeout is None else timeout / SECOND
    if follow and not as_json:
        client.workflows.run(number)
        return follow_run(client, number, since=client.events.last(), timeout=seconds)
    idle = IdleRun(client, lambda: say_if_paused(client, number))
    document = client.workflows.wait(number, timeout=seconds, meanwhile=idle.look)
    if as_json:
        emit({"run": document})
    else:
        say(how_run_ended(document, client.now()))
    return exit_code(document)


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--now", "everything", is_flag=True, help="Its `finally` is cancelled, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def stop(scope: Scope, run: str, everything: bool, as_json: bool) -> None:
    """Cancel all of a run but its `finally`; what runs is told to end."""
    client = scope.connect_to_change()
    number = run_id(run)
    before = client.workflows.run(number)
    document = client.workflows.stop(number, everything=everything)
    if as_json:
        emit({"run": document})
    elif before["ended_at"] is not None:
        say(how_run_ended(before, client.now()))
    else:
        say(f"{document['id']} is stopped; headway workflows wait {document['id']}")


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--from", "node", metavar="NODE", help="This node and all after it, also if good.")
@click.option("--budget-usd", type=float, metavar="USD", help="What its agents may spend, in all.")
@click.option("--budget-tokens", type=int, metavar="N", help="And in tokens, in all.")
@click.option("--dry-run", is_flag=True, help="Say what would be run again; change nothing.")
@click.option("--follow", is_flag=True, help="Show how it goes until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def retry(
    scope: Scope,
    run: str,
    node: str | None,
    budget_usd: float | None,
    budget_tokens: int | None,
    dry_run: bool,
    follow: bool,
    as_json: bool,
) -> int:
    """Run what failed of a run again, and all that follows from it.

    Every node that failed, was blocked or cancelled by itself begins anew; what went well stays.
    The run goes on as it was made, whatever its file says by now. A stop is forgotten, its timeout
    counts from now, and its loops may go back as often as at first.
    """
    client = scope.connect() if dry_run else scope.connect_to_change()
    number = run_id(run)
    seen = client.events.last()
    retried = client.workflows.retry(
        number,
        from_node=node,
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        dry_run=dry_run,
    )
    if dry_run:
        planned = retried.document([])
        if as_json:
            emit(planned)
        else:
            print("\n".join(retried.nodes))
            say(f"would run again: {listed(list(retried.nodes))}")
            _say_if_blocked_again(planned)
        return 0
    if follow and not as_json:
        print(shown_run(number), flush=True)
        return follow_run(client, number, since=seen)
    document = retried.document(started_by(client, seen))
    if as_json:
        emit(document)
        return 0
    print(shown_run(number), flush=True)
    started = document["restarted"]
    say(
        f"queued again: {listed(list(retried.nodes))}; "
        + (f"started {listed(started)}" if started else "nothing was started yet")
    )
    _say_if_blocked_again(document)
    return 0


def _say_if_blocked_again(document: Mapping[str, Any]) -> None:
    """What came before is not touched, so what blocked the node blocks it again."""
    before = document.get("blocked_by")
    if before is not None:
        say(f"{document['from'][0]} is blocked again, by {before}; retry from there")
