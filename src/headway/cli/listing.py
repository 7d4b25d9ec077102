"""`headway jobs list`."""

from typing import Any

import click

from headway.cli.fielded import as_block, as_document, as_table, chosen_fields, chosen_format
from headway.cli.options import WHOLE_NUMBER, parse_labels
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.client import MOST_LISTED, Client
from headway.core.model import shown
from headway.core.states import API_STATUS, Status
from headway.errors import InvalidInputError
from headway.fields import LIST_FIELDS, QUEUE_FIELDS
from headway.units import parse_since


@click.command("list")
@click.option("--queue", is_flag=True, help="What waits, in the order of dispatch.")
@click.option("--all", "everything", is_flag=True, help="Also those that ended before yesterday.")
@click.option("--state", multiple=True, metavar="S", help="Only in this exact state (repeat).")
@click.option("--status", multiple=True, metavar="S", help="Only with this API status (repeat).")
@click.option("--label", multiple=True, metavar="K=V", help="Only with this label (repeat).")
@click.option("--group", multiple=True, metavar="G", help="Only of this group (repeat).")
@click.option("--subject", multiple=True, metavar="S", help="Only about this subject (repeat).")
@click.option("--since", metavar="TIME", help="Only those submitted since, as 2h or a time.")
@click.option("--name", metavar="GLOB", help="Only with such a name, as 'build*'.")
@click.option("--limit", type=WHOLE_NUMBER, metavar="N", help="Only the newest N.")
@click.option("--fields", metavar="A,B", help="What to show, with commas between.")
@click.option("--format", "as_format", metavar="F", help="table, block or json.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_jobs(
    scope: Scope,
    /,
    queue: bool,
    everything: bool,
    limit: int | None,
    fields: str | None,
    as_format: str | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """List the active jobs and the last day's, oldest first.

    With --queue, what waits, in the order in which it will be started.
    """
    asked = _asked(filters)
    if queue and (everything or filters["since"] is not None):
        raise click.UsageError("--queue shows what waits now: it takes no --all and no --since.")
    if limit is not None and limit < 1:
        raise InvalidInputError(f"--limit {limit} is less than 1")
    client = scope.connect()
    now = client.now()
    if filters["since"] is not None:
        asked["since"] = parse_since(filters["since"], now)
    usual = QUEUE_FIELDS if queue else client.config["display.lists.jobs.fields"]
    names = chosen_fields(fields, usual)
    chosen = chosen_format(as_format, client.config["display.lists.jobs.format"], as_json=as_json)
    if queue:
        documents = _queue(client, asked, limit or MOST_LISTED)
    else:
        documents = client.listing(everything=everything, limit=limit or MOST_LISTED, **asked)
    if chosen == "json":
        # `--json` alone is the whole document, whatever is configured.
        kept = () if as_json and fields is None else names
        emit({"jobs": [as_document(each, kept, now) for each in documents]})
    elif not documents and queue:
        say("no such jobs wait" if any(asked.values()) else "nothing waits")
    elif not documents:
        _say_that_nothing_is_there(everything, asked)
    elif chosen == "block":
        for number, each in enumerate(documents):
            print(*([""] if number else []), *as_block(each, names, now), sep="\n")
    else:
        for line in as_table(documents, names or LIST_FIELDS, now):
            print(line)
    missing = "later" if queue else "older"
    _say_what_is_missing(client, documents, limit, missing=missing, quiet=chosen == "json")


def _queue(client: Client, asked: dict[str, Any], limit: int) -> list[dict[str, Any]]:
    from headway.lineup import line_up
    from headway.listing import Query

    found = line_up(client, Query(**asked), limit=limit, most=max(limit, MOST_LISTED))
    client.left_out = found.more
    if found.stands is not None and found.documents:
        say(f"nothing starts now: {found.stands}")
    return found.documents


def _asked(filters: dict[str, Any]) -> dict[str, Any]:
    """The query's words; raises at the first that is unknown."""
    _one_of("--state", filters["state"], list(Status))
    _one_of("--status", filters["status"], sorted(set(API_STATUS.values())))
    return {
        "states": filters["state"],
        "statuses": filters["status"],
        "labels": parse_labels(filters["label"]),
        "groups": filters["group"],
        "subjects": filters["subject"],
        "name": filters["name"],
    }


def _one_of(flag: str, given: tuple[str, ...], known: list[str]) -> None:
    for word in given:
        if word not in known:
            raise InvalidInputError(f"{flag} {word!r} is not one of {', '.join(known)}")


def _say_that_nothing_is_there(everything: bool, asked: dict[str, Any]) -> None:
    filtered = "no such jobs" if any(asked.values()) else "no jobs"
    if everything or "since" in asked:
        say(filtered)
    else:
        say(f"{filtered} are active or ended in the last day; try --all")


def _say_what_is_missing(
    client: Client,
    documents: list[dict[str, Any]],
    limit: int | None,
    *,
    missing: str,
    quiet: bool,
) -> None:
    if client.left_out:
        more = f"--limit {limit}" if limit else f"--limit N shows more than {MOST_LISTED}"
        say(f"{missing} jobs are not shown ({more})")
    for job_id, trouble in sorted(client.unreadable.items()):
        say(f"{shown(job_id)} is left out: {trouble}")
    active = any(each["finished_at"] is None for each in documents)
    if active and not quiet and not client.worker_is_there():
        say("no worker is there, so nothing starts; `headway work` is one")
