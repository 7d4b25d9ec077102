"""`headway mcp`: Headway's verbs as tools for agents."""

import os
import sys

import click

from headway.base.errors import InvalidInputError
from headway.cli.render import say
from headway.cli.scope import Scope


@click.command()
@click.option("--name", metavar="NAME", help="Who submits is mcp:NAME; else mcp.")
@click.option(
    "--submit",
    "submits",
    type=click.Choice(["approval", "free", "off"]),
    default="approval",
    help="What becomes of what it submits (approval: a person decides).",
)
@click.option(
    "--free-template",
    "free_templates",
    multiple=True,
    metavar="T",
    help="Jobs of this template need no approval.",
)
@click.pass_obj
def mcp(scope: Scope, name: str | None, submits: str, free_templates: tuple[str, ...]) -> None:
    """Give an agent this home as MCP tools, over stdin and stdout.

    An agent program starts it: claude mcp add headway -- headway mcp
    """
    from headway.mcp.caller import Opened, ToolCaller, agent
    from headway.mcp.tool import SubmitRule, Submits

    if name is not None:
        from headway.admin.tokens import NAME

        if not NAME.fullmatch(name):
            raise InvalidInputError(f"--name {name!r}: use letters, digits, '.', '_' and '-'")
    if free_templates and submits != Submits.APPROVAL:
        raise InvalidInputError(f"--free-template has no meaning with --submit {submits}")
    try:
        from headway.mcp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise InvalidInputError(
            "mcp needs what the extra `mcp` brings: pip install 'headway[mcp]'"
        ) from None

    def connect(makes_home: bool) -> Opened:
        """Agents look in many folders, so only what they submit makes a home."""
        if not makes_home:
            client = scope.connect_or_nothing()
            if not (client.home.store_url or os.path.exists(client.home.database)):
                return Opened(client, has_store=False)
            client.close()
        return Opened(scope.connect_or_create(), has_store=True)

    # A folder that is named and is no home is refused at once; an absent one may be made later.
    if os.path.isdir(scope.home or os.environ.get("HEADWAY_HOME") or ""):
        scope.connect_or_nothing().close()
    if sys.stdin is None or not sys.stdin.readable():
        raise InvalidInputError(
            "stdin cannot be read; an agent program starts this and speaks to it"
        )
    rule = SubmitRule(Submits(submits), free_templates)
    if sys.stdin.isatty():
        say("an agent program starts this and speaks to it; Ctrl-C ends it")
    serve(ToolCaller(connect, agent(name), rule), rule)
