"""`headway why JOB`: every objection to starting a job, and what would clear it."""

from typing import Any

import click

from headway.cli.render import age, emit, fields, how_it_ended, instant, say
from headway.cli.scope import Scope
from headway.core.states import Status
from headway.submission import parse_job_id
from headway.text import plain
from headway.units import show_duration
from headway.views import in_short_of
from headway.views import why as explain


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def why(scope: Scope, job: str, as_json: bool) -> None:
    """Say why a job does not run, and what would let it.

    Asks every gate, with the code that decides.
    """
    client = scope.connect()
    told = explain(client, parse_job_id(job))
    if as_json:
        emit(told)
        return
    now = client.now()
    if told["ended"]:
        print(f"{told['id']} has ended: {plain(how_it_ended(told['state'], told['reason']))}")
        return
    if told["state"] == Status.RUNNING:
        started = client.document(parse_job_id(job))["started_at"]
        print(
            f"{told['id']} is running, for {age(started, now)}" + (":" * bool(told["objections"]))
        )
        _print_each(told["objections"], now)
        _print_trouble(told)
        return
    _print_objections(told, now)
    _print_trouble(told)
    if not told["worker"]:
        say("no worker is there; `headway work` is one")


def _print_trouble(told: dict[str, Any]) -> None:
    if told["worker_trouble"]:
        say(f"{plain(in_short_of(told['worker_trouble']))}; it tries again")


def _print_objections(told: dict[str, Any], now: int) -> None:
    if not told["objections"]:
        next_step = "" if told["worker_trouble"] else ", the next step starts it"
        print(f"{told['id']} is {told['state']}; nothing stands in its way{next_step}")
    else:
        print(f"{told['id']} is {told['state']}:")
    _print_each(told["objections"], now)
    if told["place"] is not None:
        print(f"place {told['place']} of {told['queued']} in the queue")


def _print_each(objections: list[dict[str, Any]], now: int) -> None:
    for each in objections:
        until = instant(each["until"])
        left = (
            f"{show_duration((until - now) // 100_000 * 100_000)} left"
            if until and until > now
            else None
        )
        for line in fields(
            [
                (each["kind"], each["detail"]),
                ("", left),
                ("", each["remedy"] and f"-> {each['remedy']}"),
            ]
        ):
            print(line)
