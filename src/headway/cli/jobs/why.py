"""`headway why JOB`: every objection to starting a job, and what would clear it."""

from typing import Any

import click

from headway.base.text import plain
from headway.base.units import show_duration
from headway.cli.render import age, emit, fields, how_it_ended, instant, say
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.routes import NodeOutcome
from headway.core.states import Status
from headway.jobs.references import RUN_ID
from headway.jobs.worker_trouble import in_short_of
from headway.workflows.runs import run_id


@click.command()
@click.argument("job", metavar="JOB|wf-N")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def why(scope: Scope, job: str, as_json: bool) -> None:
    """Say why a job does not run, and what would let it.

    Asks every gate, with the code that decides. Of a node of a workflow run it names each edge and
    what came along it; of a whole run the first cause.
    """
    client = scope.connect()
    if RUN_ID.fullmatch(job):
        _print_run(client, job, as_json=as_json)
        return
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
        _print_edges(details)
        return
    if details["state"] == Status.RUNNING:
        started = client.document(client.jobs.find(job))["started_at"]
        print(
            f"{details['id']} is running, for {age(started, now)}"
            + (":" * bool(details["objections"]))
        )
        _print_each(details["objections"], now)
        _print_edges(details)
        _print_trouble(details)
        return
    _print_objections(details, now)
    _print_edges(details)
    _print_trouble(details)
    if not details["worker"]:
        say("no worker is there; `headway work` is one")


def _print_run(client: Client, run: str, *, as_json: bool) -> None:
    details = client.workflows.why(run_id(run))
    if as_json:
        emit(details)
        return
    state = f"has ended: {details['state']}" if details["ended"] else f"is {details['state']}"
    print(f"{details['id']} {state}" + (":" * bool(details["detail"] or details["running"])))
    name = f"{details['node']} ({details['job']})"
    entries: list[tuple[str, str | None]] = []
    if details["ended"] and details["detail"]:
        entries += [("cause", f"{name} {details['detail']}")]
    elif details["detail"]:
        entries += [("waits", details["detail"])]
    now = client.now()
    for each in details["running"]:
        running = f"{each['node']} ({each['job']})"
        entries.append(("runs", f"{running}, for {age(each['since'], now)}"))
    entries.append(("", details["remedy"] and f"-> {details['remedy']}"))
    if not details["ended"]:
        entries.append(("trouble", details["reason"]))
    for line in fields(entries):
        print(line)


def _print_edges(details: dict[str, Any]) -> None:
    """Each edge of a node, and what came along it."""
    entries: list[tuple[str, str | None]] = []
    for each in details.get("edges", ()):
        wanted = "ended" if len(each["accepts"]) == len(NodeOutcome) else ", ".join(each["accepts"])
        came = each["outcome"] or "not decided yet"
        led = {None: "", True: ": taken", False: ": not taken"}[each["taken"]]
        some = ", ".join(each["jobs"][:3]) + (" ..." if len(each["jobs"]) > 3 else "")
        entries.append(("edge", f"{each['node']} ({some}) {came}; on {wanted}{led}"))
    for line in fields(entries):
        print(line)


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
