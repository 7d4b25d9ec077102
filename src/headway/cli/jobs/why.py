"""`headway why JOB`: every objection to starting a job, and what would clear it."""

from typing import Any

import click

from headway.base.text import plain
from headway.base.units import show_duration
from headway.cli.render import age, emit, fields, how_it_ended, instant, say
from headway.cli.scope import Scope
from headway.core.states import Status
from headway.jobs.worker_trouble import in_short_of


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def why(scope: Scope, job: str, as_json: bool) -> None:
    """Say why a job does not run, and what would let it.

    Asks every gate, with the code that decides.
    """
    client = scope.connect()
    details = client.jobs.why(client.jobs.find(job))
    if as_json:
        emit(details)
        return
    now = client.now()
    if details["ended"]:
        print(
            f"{details['id']} has ended: {plain(how_it_ended(details['state'], details['reason']))}"
        )
        if details["remedy"]:
            print(f"  -> {plain(details['remedy'])}")
        return
    if details["state"] == Status.RUNNING:
        started = client.document(client.jobs.find(job))["started_at"]
        print(
            f"{details['id']} is running, for {age(started, now)}"
            + (":" * bool(details["objections"]))
        )
        _print_each(details["objections"], now)
        _print_trouble(details)
        return
    _print_objections(details, now)
    _print_trouble(details)
    if not details["worker"]:
        say("no worker is there; `headway work` is one")


def _print_trouble(details: dict[str, Any]) -> None:
    if details["worker_trouble"]:
        say(f"{plain(in_short_of(details['worker_trouble']))}; it tries again")


def _print_objections(details: dict[str, Any], now: int) -> None:
    if not details["objections"]:
        next_step = "" if details["worker_trouble"] else ", the next step starts it"
        print(f"{details['id']} is {details['state']}; nothing stands in its way{next_step}")
    else:
        print(f"{details['id']} is {details['state']}:")
    _print_each(details["objections"], now)
    if details["place"] is not None:
        print(f"place {details['place']} of {details['queued']} in the queue")


def _print_each(objections: list[dict[str, Any]], now: int) -> None:
    """All of them in one grid."""
    entries: list[tuple[str, str | None]] = []
    for each in objections:
        until = instant(each["until"])
        left = (
            f"{show_duration((until - now) // 100_000 * 100_000)} left"
            if until and until > now
            else None
        )
        remedy = each["remedy"] and f"-> {each['remedy']}"
        entries += [(each["kind"], each["detail"]), ("", left), ("", remedy)]
    for line in fields(entries):
        print(line)
