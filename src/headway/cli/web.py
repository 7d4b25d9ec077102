"""`headway web login`: a link that signs a browser in."""

from urllib.parse import urlsplit

import click

from headway.base.errors import InvalidInputError, NotFoundError
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.principals import ROLES


@click.command()
@click.option(
    "--role", type=click.Choice(list(ROLES)), default="operate", help="What it may do (operate)."
)
@click.option("--plain", is_flag=True, help="For 127.0.0.1, where the name is not known.")
@click.option("--origin", metavar="URL", help="One of web.origins, for a browser behind a proxy.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def login(scope: Scope, role: str, plain: bool, origin: str | None, as_json: bool) -> None:
    """Print a link that signs a browser in, once, within five minutes."""
    from headway.web.place import place_of

    if plain and origin is not None:
        raise InvalidInputError("--plain is for this machine, --origin for others; give one")
    client = scope.connect_as_person()
    place = place_of(client.home)
    if place is None:
        raise NotFoundError("no server of this home is there; `headway serve` starts one")
    if place.port is None and origin is None:
        raise NotFoundError(
            f"the server of this home listens on {place.socket} alone, where no browser comes; "
            "give --origin for one behind a proxy, or serve without --unix"
        )
    base = _known(client, origin) or f"http://{'127.0.0.1' if plain else place.name}:{place.port}"
    code = client.tokens.login_code(role=role, host=urlsplit(base).hostname or "")
    link = f"{base}/login#{code}"
    if as_json:
        emit({"url": link, "role": role})
        return
    print(link)
    say(f"it signs one browser in with the role {role}, within five minutes")


def _known(client: Client, origin: str | None) -> str | None:
    """The origin, if the server is reached by it: a code is good under one name alone."""
    known = client.config["web.origins"]
    if origin is None or origin in known:
        return origin
    there = ", ".join(known) or "empty"
    raise InvalidInputError(f"{origin} is none of web.origins, which is {there}")
