"""`headway webhooks ...`: URLs that are told what happens, and what was sent to them."""

import sys
from typing import Any

import click

from headway.base.units import parse_instant, parse_since
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import age, emit, fields, moment, say, state_colour, table
from headway.cli.scope import Scope
from headway.core.webhooks import SCHEDULES, DeliveryState
from headway.webhooks.manage import check_endpoint

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one document.")
_STATE_COLOURS = {"delivered": "succeeded", "failed": "failed", "pending": "queued"}
FAILED = 1
MOST_READ = 1_000


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("url", metavar="URL")
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="What it gets (repeat); else ends."
)
@click.option(
    "--schedule",
    type=click.Choice(list(SCHEDULES)),
    default="quick",
    help="quick: 4 tries in 4 minutes (the default); standard: 10 tries in 75 hours.",
)
@_JSON
@click.pass_obj
def add(
    scope: Scope, name: str, url: str, types: tuple[str, ...], schedule: str, as_json: bool
) -> None:
    """Tell a URL what happens from now on, and print the secret that signs.

    Without --type it gets the ends of jobs. `job.*` is all that is about jobs, `*` is everything.
    """
    check_endpoint(scope.config_to_be(), name, url, types, schedule)  # before a home is made
    client = scope.connect_or_create()
    made = client.webhooks.add(name, url, types=types, schedule=schedule)
    if as_json:
        emit({"webhook": made})
        return
    print(made["secret"], flush=True)
    say(f"{name} gets {', '.join(made['types'])}; `headway webhooks test {name}` tries it")


@click.command("list")
@_JSON
@click.pass_obj
def list_endpoints(scope: Scope, as_json: bool) -> None:
    """List the endpoints, and how many deliveries each has."""
    found = scope.connect().webhooks.list()
    if as_json:
        emit({"webhooks": found})
        return
    if not found:
        say("nobody is told anything; `headway webhooks add NAME URL` adds an endpoint")
        return
    rows = [
        [
            each["name"],
            each["origin"] or "",
            each["state"] if each["signs_here"] else f"{each['state']}, no secret here",
            str(each["pending"]),
            str(each["failed"]),
            ", ".join(each["types"]),
        ]
        for each in found
    ]
    header = ["Name", "Where", "State", "Pending", "Failed", "Types"]
    print(*table(header, rows, flexible=(1, 5), favoured=1), sep="\n")


@click.command()
@click.argument("name", metavar="NAME")
@_JSON
@click.pass_obj
def show(scope: Scope, name: str, as_json: bool) -> None:
    """Show all about one endpoint, with its whole URL."""
    client = scope.connect()
    document = client.webhooks.show(name)
    if as_json:
        emit({"webhook": document})
        return
    now = client.now()
    print(f"{document['name']}  {document['id']}  {document['state']}")
    entries = [
        ("url", document["url"]),
        ("types", ", ".join(document["types"])),
        ("because", document["reason"]),
        ("not before", _ahead(document["held_until"], now)),
        ("schedule", document["schedule"]),
        ("secret", f"{document['fingerprint']}{'' if document['signs_here'] else ', not here'}"),
        ("old secret", _until(document["overlap_until"], now)),
        ("failures", f"{document['failures']} in a row" if document["failures"] else None),
        ("deliveries", _counts(document)),
        ("added", f"{moment(document['created_at'], now)} by {document['created_by']}"),
    ]
    print(*fields(entries), sep="\n")


@click.command()
@click.argument("name", metavar="NAME")
@_JSON
@click.pass_context
def test(context: click.Context, name: str, as_json: bool) -> None:
    """Send one signed request now, and say what came of it; exit 1 if it was not taken."""
    scope: Scope = context.obj
    tried = scope.connect().webhooks.test(name)
    if as_json:
        emit({"test": tried})
    elif tried["delivered"]:
        say(f"{name} took it: {tried['status_code']}, after {tried['seconds']} s")
    else:
        say(f"{name} did not take it: {tried['error']}")
    if not tried["delivered"]:
        context.exit(FAILED)


@click.command()
@click.argument("name", metavar="NAME")
@_JSON
@click.pass_obj
def pause(scope: Scope, name: str, as_json: bool) -> None:
    """Send nothing to an endpoint until it is resumed; deliveries wait, for 7 days at most."""
    client = scope.connect_to_change()
    done = client.webhooks.pause(name)
    _changed(client.webhooks.show(name), "paused", done, as_json)


@click.command()
@click.argument("name", metavar="NAME")
@_JSON
@click.pass_obj
def resume(scope: Scope, name: str, as_json: bool) -> None:
    """Send to an endpoint again that was paused, paused itself, or said that it is gone."""
    client = scope.connect_to_change()
    done = client.webhooks.resume(name)
    _changed(client.webhooks.show(name), "active", done, as_json)


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--overlap", default="24h", metavar="24h", help="So long the old one signs as well.")
@_JSON
@click.pass_obj
def rotate(scope: Scope, name: str | None, overlap: str, as_json: bool) -> None:
    """Give an endpoint a new secret and print it; without NAME, that of jobs' own URLs."""
    client = scope.connect_to_change()
    made = client.webhooks.rotate(name, overlap=overlap)
    if as_json:
        emit({"rotated": made})
        return
    print(made["secret"], flush=True)
    until = moment(made["overlap_until"], client.now())
    if until:
        say(f"the old secret of {made['name']} signs as well until {until}")


@click.command()
@click.argument("name", metavar="NAME")
@_JSON
@click.pass_obj
def remove(scope: Scope, name: str, as_json: bool) -> None:
    """Remove an endpoint with its deliveries and its secret."""
    document = scope.connect_to_change().webhooks.remove(name)
    if as_json:
        emit({"webhook": document})
        return
    lost = f"; {_deliveries(document['pending'])} will not be sent" if document["pending"] else ""
    say(f"{document['name']} is removed{lost}")


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@_JSON
@click.pass_obj
def secret(scope: Scope, name: str | None, as_json: bool) -> None:
    """Print the secret of an endpoint; without NAME, that which signs for jobs' own URLs."""
    found = scope.connect_to_change().webhooks.secret(name)
    if as_json:
        emit({"secret": found})
        return
    print(found)


@click.command("import")
@click.argument("name", metavar="[NAME]", required=False)
@_JSON
@click.pass_obj
def import_secret(scope: Scope, name: str | None, as_json: bool) -> None:
    """Bring a secret that another home has to this one; it is read from standard input."""
    client = scope.connect_to_change()
    brought = client.webhooks.import_(name, sys.stdin.read(MOST_READ).strip())
    if as_json:
        emit({"imported": brought})
        return
    say(f"this home signs for {brought['name']} now ({brought['fingerprint']})")


@click.command()
@click.option(
    "--state",
    type=click.Choice([each.value for each in DeliveryState]),
    help="Only those in this state.",
)
@click.option("--job", metavar="JOB", help="Only those of a job and its retries.")
@click.option("--since", metavar="TIME", help="Only those made since, as 2h or a time.")
@click.option("--limit", type=WHOLE_NUMBER, default=50, metavar="N", help="So many at most: 50.")
@_JSON
@click.pass_obj
def deliveries(
    scope: Scope,
    state: str | None,
    job: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List deliveries, the newest first: what was sent, and what came of it."""
    client = scope.connect()
    now = client.now()
    after = None if since is None else parse_since(since, now)
    found = client.webhooks.deliveries(state=state, job=job, since=after, limit=limit)
    if as_json:
        emit({"deliveries": found})
        return
    if not found:
        say("there are no such deliveries")
        return
    rows = [
        [
            each["id"],
            each["endpoint"] or each["origin"] or "",
            each["type"],
            each["job"] or "",
            each["state"],
            str(each["tries"]),
            _outcome(each, now),
        ]
        for each in found
    ]
    header = ["Delivery", "To", "Type", "Job", "State", "Tries", "Outcome"]
    colours = [state_colour(_STATE_COLOURS[each["state"]]) for each in found]
    print(*table(header, rows, flexible=(1, 6), colours=colours, coloured=4), sep="\n")


@click.command()
@click.argument("delivery", metavar="[DELIVERY]", required=False)
@click.option("--since", metavar="TIME", help="All that failed of those made since, as 2h.")
@_JSON
@click.pass_obj
def replay(scope: Scope, delivery: str | None, since: str | None, as_json: bool) -> None:
    """Send a delivery once more, or all that failed since a time; with the same id and body."""
    if (delivery is None) == (since is None):
        raise click.UsageError("Give a DELIVERY, or --since TIME.")
    client = scope.connect_to_change()
    if since is not None:
        number = client.webhooks.replay_since(parse_since(since, client.now()))
        if as_json:
            emit({"replayed": number})
            return
        say(f"{_deliveries(number)} will be sent again")
        for each in client.webhooks.list():
            if each["state"] == "disabled" and each["failed"]:
                name = each["name"]
                say(f"none of {name}, which is disabled; `headway webhooks resume {name}` first")
        return
    replayed = client.webhooks.replay(delivery or "")
    if as_json:
        emit({"delivery": replayed})
        return
    say(f"{replayed['id']} will be sent again")


def _changed(document: dict[str, Any], state: str, done: bool, as_json: bool) -> None:
    if as_json:
        emit({"webhook": document})
        return
    waiting = f"; {_deliveries(document['pending'])} pending" if document["pending"] else ""
    say(f"{document['name']} {'is' if done else 'was already'} {state}{waiting}")


def _deliveries(number: int) -> str:
    return "1 delivery" if number == 1 else f"{number} deliveries"


def _outcome(delivery: dict[str, Any], now: int) -> str:
    if delivery["state"] == "delivered":
        return f"{delivery['status_code']}, {age(delivery['ended_at'], now)} ago"
    following = f"; again {moment(delivery['next_at'], now)}" if delivery["next_at"] else ""
    return f"{delivery['error'] or 'not sent yet'}{following}"


def _counts(document: dict[str, Any]) -> str:
    return ", ".join(f"{document[state.value]} {state.value}" for state in DeliveryState)


def _ahead(text: str | None, now: int) -> str | None:
    """Nothing, once that is past."""
    return moment(text, now) if text is not None and parse_instant(text, now) > now else None


def _until(text: str | None, now: int) -> str | None:
    at = _ahead(text, now)
    return None if at is None else f"signs as well until {at}"
