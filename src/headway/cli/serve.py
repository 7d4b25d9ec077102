"""`headway serve`: HTTP for this home."""

import json
import os
import sys
from contextlib import suppress

import click

from headway.base.errors import ConflictError, InvalidInputError
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import say
from headway.cli.scope import Scope
from headway.client import Client, connect
from headway.jobs.settings import find_setting
from headway.jobs.views.documents import VERSION

_PORT = find_setting("web.port")._replace(key="--port")


@click.command()
@click.option("--port", type=WHOLE_NUMBER, metavar="N", help="The port; else web.port, 7433 ...")
@click.option("--unix", is_flag=True, help="Listen on the socket run/web.sock instead.")
@click.option("--host", metavar="ADDRESS", help="Another address than this machine's own.")
@click.option("--allow-remote", is_flag=True, help="With --host: others may connect.")
@click.option("--no-autostart", is_flag=True, help="Start no worker; one is kept otherwise.")
@click.option("--json", "as_json", is_flag=True, help="Print one line about where it is.")
@click.pass_obj
def serve(
    scope: Scope,
    port: int | None,
    unix: bool,
    host: str | None,
    allow_remote: bool,
    no_autostart: bool,
    as_json: bool,
) -> None:
    """Serve this home over HTTP: the API under /api/v1, event streams, metrics.

    Programs need a token: headway tokens add NAME --role R. Ctrl-C ends it; jobs go on.
    """
    try:
        from headway.web.server import LOOPBACK, Listen, Server, log_to_stderr
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("uvicorn", "h11", "jinja2", "markupsafe"):
            raise
        raise InvalidInputError(
            "serve needs what the extra `web` brings: pip install 'headway[web]'"
        ) from None
    if unix and (host is not None or port is not None):
        raise InvalidInputError("--unix listens on no port; leave out --port and --host")
    client = scope.connect_or_create()
    _refuse_remote(client, host, allow_remote)
    port = client.config["web.port"] if port is None else _PORT.read(port)
    listen = Listen((host,) if host else LOOPBACK, port or None, unix)
    home, store = client.home.path, client.home.store_url
    # A worker that a service's process starts would die with that service.
    starts_none = no_autostart or os.environ.get("SYSTEMD_EXEC_PID") == str(os.getpid())
    settled = {"worker.autostart": False} if starts_none else {}

    log_to_stderr()

    def ready(server: Server) -> None:
        _say_where(client, server, host, as_json=as_json)

    Server(client, lambda: connect(home=home, store_url=store), listen, settled).run(ready)
    client.close()


def _refuse_remote(client: Client, host: str | None, allow_remote: bool) -> None:
    if host is None or host in ("127.0.0.1", "::1"):
        return
    if not allow_remote or not client.config["web.origins"]:
        raise InvalidInputError(
            f"{host} can be reached by others: give --allow-remote, and set web.origins to the "
            "names that it is reached by; a proxy or `ssh -L` needs neither"
        )


def _say_where(client: Client, server: "Server", host: str | None, *, as_json: bool) -> None:  # type: ignore[name-defined]  # noqa: F821
    place = server.place
    assert place is not None  # noqa: S101
    if as_json:
        said = {"version": VERSION, "url": place.url, "socket": place.socket, "pid": place.pid}
        print(json.dumps(said), flush=True)  # one line, for who waits until it listens
        return
    name = "127.0.0.1" if host in (None, "0.0.0.0", "::") else host  # noqa: S104
    where = place.socket or f"http://{f'[{name}]' if ':' in name else name}:{place.port}"
    say(f"serving {client.home.path} at {where}; Ctrl-C ends it")
    if place.url is not None and sys.stderr.isatty():
        with suppress(ConflictError):  # inside a job nobody signs in
            code = client.tokens.login_code(host=place.name)
            say(f"sign in: {place.url}/login#{code}")
