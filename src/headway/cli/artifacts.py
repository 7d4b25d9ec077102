"""`headway artifacts ...`: what jobs make for each other."""

import json
from typing import Any

import click

from headway.base.text import plain
from headway.cli.render import age, emit, fields, moment, paint, say, table
from headway.cli.scope import Scope
from headway.core.model import shown
from headway.jobs.artifacts import (
    parse_data,
    read_data,
)

LONGEST_DATA = 2000
_COLOURS = {"present": "green", "withdrawn": "yellow"}


@click.command()
@click.argument("type_", metavar="TYPE")
@click.argument("key", metavar="KEY")
@click.option("--data", metavar="FILE", help="JSON to go with it, at most 1 MiB; - is stdin.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def publish(scope: Scope, type_: str, key: str, data: str | None, as_json: bool) -> None:
    """Say, inside a running job, that custom:TYPE:KEY is there.

    Published again, it carries the data that is given then.
    """
    payload = parse_data(read_data(data), f"--data {data}") if data is not None else None
    artifact, job_id = scope.connect_to_change().artifacts.publish(type_, key, payload)
    if as_json:
        emit({"artifact": artifact, "published_by": shown(job_id)})
        return
    say(f"{shown(job_id)} published {artifact}")


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_artifacts(scope: Scope, as_json: bool) -> None:
    """What jobs have published, and what active jobs make or need."""
    client = scope.connect()
    found, left_out = client.artifacts.list()
    if as_json:
        emit({"artifacts": found, "left_out": left_out})
        return
    if not found:
        say("no job has published anything, and no active job makes or needs an artifact")
        return
    now = client.now()
    rows = [
        [
            each["artifact"],
            each["state"],
            ", ".join(dict.fromkeys(filter(None, [each["published_by"], *each["producers"]]))),
            ", ".join(each["consumers"]),
            age(each["published_at"], now),
        ]
        for each in found
    ]
    header = ["Artifact", "State", "Made by", "Needed by", "Age"]
    colours = [_COLOURS.get(each["state"]) for each in found]
    for line in table(header, rows, flexible=(0, 2, 3), colours=colours, coloured=1):
        print(line)
    if left_out:
        say(f"{left_out} more are not shown; headway artifacts show ARTIFACT knows them")


@click.command()
@click.argument("artifact", metavar="ARTIFACT")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def show(scope: Scope, artifact: str, as_json: bool) -> None:
    """Show one artifact: what it carries, who made it, who needs it."""
    client = scope.connect()
    document = client.artifacts.show(artifact)
    if as_json:
        emit(document)
        return
    now = client.now()
    state = paint(document["state"], _COLOURS.get(document["state"]))
    print(f"{paint(plain(document['artifact']), 'bold')}  {state}")
    for line in fields(
        [
            ("repository", document["repo"]),
            ("trouble", document["trouble"]),
            ("published", moment(document["published_at"], now)),
            ("by", document["published_by"]),
            ("withdrawn", moment(document["withdrawn_at"], now)),
            *(("made by", _job(each)) for each in document["producers"]),
            *(("needed by", _job(each)) for each in document["consumers"]),
        ]
    ):
        print(line)
    if document["data"] is not None:
        text = json.dumps(document["data"], ensure_ascii=False, indent=2)
        cut = f"{text[:LONGEST_DATA]}\n... (all: --json)" if len(text) > LONGEST_DATA else text
        print("\n".join(plain(line) for line in cut.split("\n")))


def _job(job: dict[str, Any]) -> str:
    return f"{job['id']} {job['name']} ({job['state']})"
