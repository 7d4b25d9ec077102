"""`headway jobs show`: all about one job, its chain and its events."""

import json
import os
import shlex
from textwrap import wrap
from typing import Any

import click

from headway.base.text import cells, plain
from headway.base.units import MICROSECONDS, show_duration, show_instant, show_size
from headway.cli.field_output import as_block, as_document, as_table, chosen_fields, chosen_format
from headway.cli.options import completes
from headway.cli.render import (
    GAP,
    emit,
    fields,
    how_far,
    how_it_ended,
    moment,
    paint,
    state_colour,
    table,
    to_the_second,
    width,
)
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.model import AGENT, FUNCTION, GATE, ApprovalState
from headway.core.states import Status
from headway.jobs.references import parse_job_id
from headway.jobs.views.fields import FORMATS, written
from headway.store.new_jobs import Event

LAST_EVENTS = 12
USUAL_TYPES = ("command", FUNCTION, AGENT)
LONGEST_VALUE = 2000


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--fields", metavar="A,B", help="What to show, with commas between.")
@click.option(
    "--format",
    "as_format",
    metavar="F",
    shell_complete=completes(FORMATS),
    help="block, table or json.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def show(scope: Scope, job: str, fields: str | None, as_format: str | None, as_json: bool) -> None:
    """Show all about one job: its chain and its events."""
    client = scope.connect()
    configured = client.config["display.lists.jobs_show.fields"]
    # `--json` alone is the whole document, whatever is configured.
    names = chosen_fields(fields, () if as_json else configured)
    style = client.config["display.lists.jobs_show.format"]
    chosen = chosen_format(as_format, style, as_json=as_json)
    job_id = client.jobs.find(job)
    document = client.document(job_id)
    now = client.now()
    match chosen:
        case "json" if names:
            emit({"job": as_document(document, names, now)})
        case "json":
            emit(_whole(client, document))
        case "table":
            lines = as_table([document], names or client.config["display.lists.jobs.fields"], now)
            print(*lines, sep="\n")
        case _ if names:
            print(*as_block(document, names, now), sep="\n")
        case _:
            lines = _lines(client, document, client.jobs.tries(job_id), client.jobs.history(job_id))
            print(*lines, sep="\n")


def _whole(client: Client, document: dict[str, Any]) -> dict[str, Any]:

    job_id = parse_job_id(document["id"])
    return {
        "job": document,
        "chain": client.jobs.tries(job_id),
        "events": [_event_document(each) for each in client.jobs.history(job_id)],
        "event_epoch": client.events.epoch(),
    }


def _lines(
    client: Client, document: dict[str, Any], chain: list[dict[str, Any]], events: list[Event]
) -> list[str]:
    now = client.now()
    lines = _title(document)
    own = next(each for each in chain if each["id"] == document["id"])
    lines += fields(_about(document, own, now))
    if document["run"]:
        run = about_run(document["run"], now)
        if document["type"] == FUNCTION:
            run += _about_call(document)
        elif document["type"] in (AGENT, GATE):
            from headway.cli.agent_options import about_work

            run += about_work(document["run"]["result"])
        lines += ["", paint("Run", "bold"), *fields(run)]
    if len(chain) > 1:
        lines += ["", paint("Chain", "bold"), *_chain_table(chain)]
    lines += ["", paint("Events", "bold")]
    if len(events) > LAST_EVENTS:
        lines.append(f"  ({len(events) - LAST_EVENTS} earlier ones: --json)")
    return lines + _event_table([_event_row(each, now) for each in events[-LAST_EVENTS:]])


def _event_table(rows: list[list[str]]) -> list[str]:
    """What an event says is never cut: it goes below where there is no room for it."""
    beside = [max(cells(plain(row[at])) for row in rows) for at in range(3)] if rows else []
    room = width() - sum(beside) - 3 * GAP
    below = [cells(plain(row[3])) > room for row in rows]
    shown = [[*row[:3], "" if apart else row[3]] for row, apart in zip(rows, below, strict=True)]
    header, *lines = table(["  Time", "By", "Event", ""], shown, flexible=(1,))
    indent = " " * 4
    drawn = [header]
    for line, row, apart in zip(lines, rows, below, strict=True):
        drawn.append(line)
        if apart:
            wrapped = wrap(plain(row[3]), width() - len(indent), break_on_hyphens=False)
            drawn += [indent + each for each in wrapped]
    return drawn


def _title(document: dict[str, Any]) -> list[str]:
    """The id with the name, and how it stands, wrapped under themselves."""
    lead = f"{document['id']}  "
    name = wrap(plain(document["name"]), width() - len(lead)) or [""]
    how = how_it_ended(document["state"], document["reason"])
    details = plain(how.removeprefix(document["state"]))
    state, *rest = wrap(document["state"] + details, width() - 2)
    said = state.removeprefix(document["state"])
    colour = state_colour(document["state"])
    return [
        f"{paint(document['id'], 'bold')}  {name[0]}",
        *(" " * len(lead) + line for line in name[1:]),
        f"  {paint(document['state'], colour)}{said}",
        *(f"  {line}" for line in rest),
    ]


def _chain_table(chain: list[dict[str, Any]]) -> list[str]:
    """Each try: how it ended, when and why; of one that waits, until when."""
    rows = [
        [f"  {each['id']}", _of(each), each["state"], _when(each), _cause(each)] for each in chain
    ]
    colours = [state_colour(each["state"]) for each in chain]
    header = ["  Job", "Attempt", "State", "Ended", "Cause"]
    return table(header, rows, flexible=(4,), colours=colours, coloured=2)


def _of(entry: dict[str, Any]) -> str:
    return f"{entry['attempt']} of {entry['executions']}"


def _when(entry: dict[str, Any]) -> str:
    ended: str | None = entry["finished_at"]
    return to_the_second(ended) if ended else ""


def _cause(entry: dict[str, Any]) -> str:
    if entry["reason"]:
        return str(entry["reason"])
    if entry["finished_at"] is None and entry["started_at"] is None and entry["not_before"]:
        return f"not before {to_the_second(entry['not_before'])}"
    return ""


def _about(document: dict[str, Any], own: dict[str, Any], now: int) -> list[tuple[str, str | None]]:
    params = document["params"]
    wait = document["wait"]
    waits = wait and document["finished_at"] is None

    def of(name: str) -> str | None:
        return written(name, document[name])

    return [
        ("command", shlex.join(params["argv"]) if params.get("argv") else None),
        ("shell", params.get("shell")),
        ("task", params.get("task")),
        *(_about_agent(params["agent"]) if params.get("agent") else ()),
        ("arguments", _arguments(params.get("args"))),
        ("directory", params.get("cwd")),
        ("stdin", params.get("stdin") or _kept(params.get("input"))),
        ("variables", ", ".join(params.get("env") or ()) or None),
        ("timeout", _seconds(params.get("timeout_seconds"))),
        ("idle timeout", _seconds(params.get("idle_seconds"))),
        ("waits for", f"{wait['kind']}: {wait['detail']}" if waits else None),
        ("waited on", of("waited_on")),
        ("slug", document["slug"]),
        ("template", document["template_id"]),
        ("schedule", document["schedule_id"]),
        ("labels", of("labels")),
        ("group", _member(document)),
        ("subject", of("subject")),
        ("target", document["target"]),
        ("type", document["type"] if document["type"] not in USUAL_TYPES else None),
        ("resources", of("resources")),
        ("rates", of("rates")),
        ("webhooks", of("webhooks")),
        ("priority", str(document["priority"]) if document["priority"] else None),
        ("after", of("after")),
        ("needs", of("needs")),
        ("produces", of("produces")),
        ("pinned head", of("pinned_head")),
        ("conditions", of("preconditions")),
        ("approval", _approval(document)),
        ("locks", of("locks")),
        ("workflow", _node(document["workflow"])),
        ("worktree", of("worktree")),
        ("runs in", document["execution_root"]),
        ("not cleaned", (document["worktree"] or {}).get("retry_cleanup_error")),
        ("attempt", _attempt(own)),
        ("retry of", document["retry_of"]),
        ("submitted", f"{moment(document['created_at'], now)} by {document['submitted_by']}"),
        ("not before", moment(document["not_before"], now)),
        ("cancel asked", moment(document["cancel_requested_at"], now)),
        ("ended", moment(document["finished_at"], now) if not document["run"] else None),
    ]


def _kept(given: dict[str, Any] | None) -> str | None:
    """What it reads, where that was given with the submit."""
    from headway.base.units import show_size

    return f"{show_size(given['bytes'])}, kept with the job" if given else None


def _about_agent(agent: dict[str, Any]) -> list[tuple[str, str | None]]:
    from headway.cli.agent_options import about_agent

    return about_agent(agent)


def _node(about: dict[str, Any] | None) -> str | None:
    """Which node of which run it is, and what it came to."""
    if about is None:
        return None
    parts = [f"{about['run_id']} ({about['template_id']})", f"node {about['node_id']}"]
    parts += [f"pass {about['pass']}"] if about["pass"] != 1 else []
    return ", ".join([*parts, *filter(None, [about["outcome"]])])


def _member(document: dict[str, Any]) -> str | None:
    if document["group_id"] is None:
        return None
    return f"{document['group_id']}, member {document['sequence_number']}"


def about_run(run: dict[str, Any], now: int) -> list[tuple[str, str | None]]:
    code = run["exit_code"]
    duration = run["duration_ms"]
    return [
        ("started", moment(run["started_at"], now)),
        ("ended", moment(run["finished_at"], now)),
        ("took", show_duration(duration * 1000) if duration is not None else None),
        ("exit code", str(code) if code is not None else None),
        ("signal", run["signal"]),
        ("error", run["error"]),
        ("stdout", run["stdout_path"]),
        ("stderr", run["stderr_path"]),
        ("not kept", show_size(run["dropped_bytes"]) if run["dropped_bytes"] else None),
        ("patch", _patch(run)),
        ("not made", ", ".join(run["not_produced"]) or None),
    ]


def _patch(run: dict[str, Any]) -> str | None:
    """Where it is, or why it could not be saved."""
    if run["patch"] is None:
        return None
    if not run["patch"]["saved"]:
        return f"not saved: {run['patch']['error']}"
    path = os.path.join(os.path.dirname(run["stdout_path"]), "command.patch")
    return f"{path} ({show_size(run['patch']['bytes'])})"


def _about_call(document: dict[str, Any]) -> list[tuple[str, str | None]]:
    run = document["run"]
    returned = _shortened(_json(run["result"]))
    return [
        ("progress", how_far(run) if document["finished_at"] is None else None),
        (
            "result",
            returned if document["state"] == Status.SUCCEEDED else None,
        ),
    ]


def _arguments(arguments: dict[str, Any] | None) -> str | None:
    if not arguments:
        return None
    return _shortened(", ".join(f"{name}={_json(value)}" for name, value in arguments.items()))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}... (all: --json)"


def _approval(document: dict[str, Any]) -> str | None:
    """A job that has ended waits for nobody, though nobody has decided."""
    approval = document["approval"]
    if approval and approval["state"] == ApprovalState.PENDING and document["finished_at"]:
        return "was not decided"
    return written("approval", approval)


def _attempt(entry: dict[str, Any]) -> str | None:
    return _of(entry) if entry["executions"] > 1 else None


def _seconds(seconds: float | None) -> str | None:
    return None if seconds is None else show_duration(round(seconds * 1_000_000))


def _event_document(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "at": show_instant(event.at),
        "actor": event.actor,
        "kind": event.kind,
        "data": dict(event.data),
    }


def _event_row(event: Event, now: int) -> list[str]:
    data = event.data
    details = data.get("detail") or ", ".join(
        f"{name} {_clock(value, now) if name == 'not_before' else value}"
        for name, value in data.items()
        if value is not None
    )
    return [f"  {_clock(event.at, now)}", event.actor, event.kind, details]


def _clock(at: int, now: int) -> str:
    """The time, with its day if that is not near."""
    time = (show_instant(at) or "")[:19].replace("T", " ")
    return f"{time[11:] if abs(now - at) < MICROSECONDS['h'] * 12 else time}Z"
