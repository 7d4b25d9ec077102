"""`headway templates ...`: stored jobs with defaults."""

import shlex
from typing import Any

import click

from headway.base.text import plain
from headway.cli.named_command import NamedJobCommand, is_named_by_option
from headway.cli.options import describes_a_template
from headway.cli.render import age, emit, fields, moment, paint, say, table
from headway.cli.scope import Scope
from headway.cli.template_options import given_words, parse_params
from headway.jobs.graph_file import is_agent
from headway.jobs.stored_templates import template_document
from headway.jobs.templates import add_template


@click.command(cls=NamedJobCommand)
@click.argument("template", metavar="NAME")
@click.option(
    "--param",
    multiple=True,
    metavar="NAME[=DEFAULT]",
    help="A parameter, {NAME} in the command (repeat).",
)
@click.option("--replace", is_flag=True, help="Take the place of one of this name.")
@describes_a_template
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_context
def add(
    context: click.Context,
    /,
    template: str,
    param: tuple[str, ...],
    replace: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Store a job with its options under a name; `submit --template NAME` makes jobs of it.

    Retries are 3 unless --retries says otherwise. Jobs have copies: replacing a template changes
    none that was made before. Without NAME, --name is the template's.
    """
    words = given_words(context, options)
    if is_named_by_option(context):
        del words["name"]
    if not words.get("argv") and "shell" not in words and not is_agent(words):
        raise click.UsageError("What is to run? Give a command after --, or --shell STRING.")
    scope: Scope = context.obj
    client = scope.connect_or_create()
    made = add_template(
        client.context, template, params=parse_params(param), replace=replace, **words
    )
    if as_json:
        emit({"template": template_document(made)})
        return
    say(f"template {template} is stored; `headway submit --template {template}` makes a job of it")


@click.command("list")
@click.option("--all", "archived", is_flag=True, help="Also those that are archived.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_templates(scope: Scope, archived: bool, as_json: bool) -> None:
    """List the templates that make jobs."""
    client = scope.connect()
    found = client.templates.list(archived=archived)
    if as_json:
        emit({"templates": found})
        return
    if not found:
        say("there are no templates; `headway templates add NAME -- CMD ...` makes one")
        return
    now = client.now()
    rows = [
        [
            each["name"],
            _command(each["job"]),
            ", ".join(_parameters(each)),
            str(each["job"]["retries"]),
            "archived" if each["archived_at"] else age(each["created_at"], now),
        ]
        for each in found
    ]
    header = ["Name", "Command", "Parameters", "Retries", "Age"]
    for line in table(header, rows, flexible=(0, 1, 2)):
        print(line)


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def show(scope: Scope, name: str, as_json: bool) -> None:
    """Show one template: its command, parameters and options."""
    client = scope.connect()
    document = client.templates.show(name)
    if as_json:
        emit({"template": document})
        return
    now = client.now()
    state = "  archived" if document["archived_at"] else ""
    print(f"{paint(plain(document['name']), 'bold')}{state}")
    job = document["job"]
    rest = [word for word in job if word not in ("argv", "shell")]
    for line in fields(
        [
            ("command", _command(job)),
            *(("parameter", each) for each in _parameters(document)),
            *((word.replace("_", " "), _written(job[word])) for word in rest),
            ("added", f"{moment(document['created_at'], now)} by {document['created_by']}"),
            ("archived", moment(document["archived_at"], now)),
        ]
    ):
        print(line)


@click.command()
@click.argument("name", metavar="NAME")
@click.pass_obj
def archive(scope: Scope, name: str) -> None:
    """Let a template make no more jobs; those that it made go on."""
    done = scope.connect_to_change().templates.archive(name)
    say(f"template {name} {'is' if done else 'was already'} archived; it makes no jobs")


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}={text}" for key, text in value.items())
    return shlex.join(map(str, value)) if isinstance(value, list) else str(value)


def _command(job: dict[str, Any]) -> str:
    if is_agent(job):
        return f"{job.get('runner') or 'agent'}: {' '.join(str(job.get('prompt')).split())}"
    return shlex.join(job["argv"]) if job.get("argv") else str(job["shell"])


def _parameters(document: dict[str, Any]) -> list[str]:
    return [
        name if default is None else f"{name}={default}"
        for name, default in document["params"].items()
    ]
