"""`headway jobs list`."""

import click

from headway.cli.options import WHOLE_NUMBER, parse_labels
from headway.cli.render import age, emit, result, say, state_colour, table
from headway.cli.scope import Scope
from headway.core.states import API_STATUS, Status
from headway.errors import InvalidInputError

NO_LIMIT = 1 << 62


@click.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that ended before yesterday.")
@click.option("--state", multiple=True, metavar="S", help="Only in this exact state (repeat).")
@click.option("--status", multiple=True, metavar="S", help="Only with this API status (repeat).")
@click.option("--label", multiple=True, metavar="K=V", help="Only with this label (repeat).")
@click.option("--limit", type=WHOLE_NUMBER, metavar="N", help="Only the newest N.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_jobs(
    scope: Scope,
    everything: bool,
    state: tuple[str, ...],
    status: tuple[str, ...],
    label: tuple[str, ...],
    limit: int | None,
    as_json: bool,
) -> None:
    """List the active jobs and the last day's, oldest first."""
    _one_of("--state", state, list(Status))
    _one_of("--status", status, sorted(set(API_STATUS.values())))
    if limit is not None and limit < 1:
        raise InvalidInputError(f"--limit {limit} is less than 1")
    labels = parse_labels(label)
    client = scope.connect()
    documents = client.listing(
        everything=everything, states=state, statuses=status, labels=labels, limit=NO_LIMIT
    )
    left_out = max(0, len(documents) - limit) if limit else 0
    documents = documents[left_out:]
    if as_json:
        emit({"jobs": documents})
        return
    if not documents:
        filtered = "no such jobs" if state or status or label else "no jobs"
        say(
            filtered if everything else f"{filtered} are active or ended in the last day; try --all"
        )
        return
    now = client.clock.now()
    rows = [
        [each["id"], each["name"], each["state"], result(each), age(each["created_at"], now)]
        for each in documents
    ]
    colours = [state_colour(each["state"]) for each in documents]
    header = ["Job", "Name", "State", "Wait/Result", "Age"]
    for line in table(header, rows, flexible=(1, 3), colours=colours, coloured=2):
        print(line)
    if left_out:
        say(f"{left_out} older jobs are not shown (--limit {limit})")
    active = any(each["finished_at"] is None for each in documents)
    if active and not client.worker_is_there():
        say("no worker is there, so nothing starts; `headway work` is one")


def _one_of(flag: str, given: tuple[str, ...], known: list[str]) -> None:
    for word in given:
        if word not in known:
            raise InvalidInputError(f"{flag} {word!r} is not one of {', '.join(known)}")
