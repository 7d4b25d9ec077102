"""`headway jobs list`."""

from typing import TYPE_CHECKING, Any

import click

from headway.base.errors import InvalidInputError
from headway.base.units import parse_since
from headway.cli.field_output import as_block, as_document, as_table, chosen_fields, chosen_format
from headway.cli.options import WHOLE_NUMBER, completes, parse_labels
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.model import shown
from headway.core.states import API_STATUS, Status
from headway.jobs.views.fields import FORMATS, LIST_FIELDS, QUEUE_FIELDS
from headway.jobs.views.search import MOST_LISTED

if TYPE_CHECKING:
    from headway.jobs.views.queue import Lineup
    from headway.jobs.views.search import SearchResult


@click.command("list")
@click.option("--queue", is_flag=True, help="The waiting jobs, in the order of dispatch.")
@click.option("--all", "everything", is_flag=True, help="Also those that ended before yesterday.")
@click.option("--state", multiple=True, metavar="S", help="In this state, as running (repeat).")
@click.option(
    "--status", multiple=True, metavar="S", help="With this API status, as FAILED (repeat)."
)
@click.option("--label", multiple=True, metavar="K=V", help="Only with this label (repeat).")
@click.option("--group", multiple=True, metavar="G", help="Only of this group (repeat).")
@click.option("--subject", multiple=True, metavar="S", help="Only about this subject (repeat).")
@click.option("--run", multiple=True, metavar="wf-N", help="Only of this run (repeat).")
@click.option("--since", metavar="TIME", help="Only those submitted since, as 2h or a time.")
@click.option("--name", metavar="GLOB", help="Only with such a name, as 'build*'.")
@click.option("--limit", type=WHOLE_NUMBER, metavar="N", help="Only the newest N.")
@click.option("--fields", metavar="A,B", help="What to show, with commas between.")
@click.option(
    "--format",
    "as_format",
    metavar="F",
    shell_complete=completes(FORMATS),
    help="table, block or json.",
)
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
    found: SearchResult | Lineup
    if queue:
        found = client.jobs.queue(limit=limit, **asked)
        if found.stands is not None and found.documents:
            say(f"nothing starts now: {found.stands}")
    else:
        found = client.jobs.list(everything=everything, limit=limit, **asked)
    documents = found.documents
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
    _say_what_is_missing(client, found, limit, missing=missing, quiet=chosen == "json")


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
        "runs": filters["run"],
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
    found: "SearchResult | Lineup",
    limit: int | None,
    *,
    missing: str,
    quiet: bool,
) -> None:
    if found.more:
        more = f"--limit {limit}" if limit else f"--limit N shows more than {MOST_LISTED}"
        say(f"{missing} jobs are not shown ({more})")
    for job_id, trouble in sorted(found.unreadable.items()):
        say(f"{shown(job_id)} is left out: {trouble}")
    active = any(each["finished_at"] is None for each in found.documents)
    if active and not quiet and not client.context.worker_is_there():
        say("no worker is there, so nothing starts; `headway work` is one")
