"""`headway tokens ...`: who may speak to `headway serve`."""

import click

from headway.admin.tokens import TOKEN, check_token, token_document
from headway.base.errors import InvalidInputError
from headway.cli.options import DURATION
from headway.cli.render import age, emit, say, table
from headway.cli.scope import Scope
from headway.core.principals import ROLES


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--role",
    type=click.Choice(list(ROLES)),
    required=True,
    help="read; submit: also its own jobs; operate: also those of others; admin.",
)
@click.option("--agent", is_flag=True, help="It is no person: it approves nothing.")
@click.option("--expires", type=DURATION, metavar="30d", help="It counts no more after this time.")
@click.option(
    "--template",
    "templates",
    multiple=True,
    metavar="T",
    help="Makes jobs of these alone (repeat).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def add(
    scope: Scope,
    name: str,
    role: str,
    agent: bool,
    expires: int | None,
    templates: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make a token and print it, once: nobody can read it again.

    A submit token without --template is a shell as this user.
    """
    names = tuple(each for text in templates for each in text.split(",") if each)
    check_token(name, role, agent, names)  # before a home is made
    if expires == 0:
        raise InvalidInputError("--expires 0s: that token would never count")
    client = scope.connect_or_create()
    secret = client.tokens.add(name, role=role, agent=agent, lasts=expires, templates=names)
    if as_json:
        emit({"name": name, "role": role, "token": secret})
        return
    print(secret)
    say(f"token {name} may {role}; send it as Authorization: Bearer TOKEN")
    if role != "read" and not names:
        say("what it submits runs as you: it is a shell as this user")


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_tokens(scope: Scope, as_json: bool) -> None:
    """List the tokens and the sessions of browsers, without their secrets."""
    client = scope.connect()
    now = client.clock.now()
    found = [token_document(each, now) for each in client.tokens.list() if each.sort != "code"]
    if as_json:
        emit({"tokens": found})
        return
    if not found:
        say("no tokens; `headway tokens add NAME --role R` makes one")
        return
    rows = [
        [
            each["name"],
            each["sort"] if each["sort"] != TOKEN else each["kind"],
            each["role"],
            "yes" if each["holds"] else "no",
            age(each["used_at"], now) if each["used_at"] else "never",
            ",".join(each["templates"]),
        ]
        for each in found
    ]
    print(
        *table(["Name", "Kind", "Role", "Counts", "Used", "Templates"], rows, flexible=(0, 5)),
        sep="\n",
    )


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def revoke(scope: Scope, name: str, as_json: bool) -> None:
    """Let a token or a session count no more, from now on."""
    client = scope.connect_to_change()
    entry = client.tokens.revoke(name)
    if as_json:
        emit({"token": token_document(entry, client.clock.now())})
        return
    say(f"{name} counts no more; its streams end within a second")
