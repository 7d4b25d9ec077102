"""What is to be kept running, and how that is written for systemd and for cron. Pure.

Both read a line by rules of their own before a program sees its words: systemd takes quotes, C
escapes and `%`, cron ends a command at a bare `%` and hands the rest to a shell. What neither can
carry without a doubt (control characters, bytes that are no UTF-8) is refused.
"""

import hashlib
import os
import re
import shlex
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from headway.base.errors import InvalidInputError
from headway.base.trust import STATE, VARIABLE

MARK = "# Made by `headway service install`; `headway service remove` takes it away."
STOPS_WITHIN = 90  # seconds that systemd gives a worker at least
STOPS_AFTER_GRACE = 30
_SECRET_PARTS = ("password", "sslpassword")

UNIT = """\
{mark}
[Unit]
Description=Headway {what} of {folder} ({name})
# A {what} that cannot come up is tried again for ever; {waits} for it.
StartLimitIntervalSec=0

[Service]
Type=exec
WorkingDirectory={folder}
{environment}\
ExecStart=:{command}
Restart=on-failure
RestartSec=10
TimeoutStopSec={stop_seconds}
{more}\
UMask=0077
IgnoreSIGPIPE=no

[Install]
WantedBy=default.target
"""
OF_A_WORKER = """\
# Jobs outlive the worker: a stop or a restart must not end them, nor one that used up its memory.
KillMode=process
OOMPolicy=continue
# Each job gets a control group inside of the unit's, and together they may be many.
Delegate=yes
TasksMax=infinity
"""
WORKER, SERVER = "worker", "server"
_WORDS = {WORKER: ("work", "--wait"), SERVER: ("serve", "--no-autostart")}
_WAITS = {WORKER: "jobs wait", SERVER: "programs wait"}
_LINES = {WORKER: OF_A_WORKER, SERVER: ""}


class ServicePlan(NamedTuple):
    """One process to keep: of which home, started how."""

    what: str  # a worker or a server
    name: str  # of the unit, and the mark of the line
    folder: str  # where it works
    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    log: str  # where cron sends what it says; systemd has its journal
    stop_seconds: int

    @property
    def unit(self) -> str:
        return f"{self.name}.service"


def make_plan(
    home: str,
    *,
    python: str,
    log: str,
    store_url: str | None,
    grace_seconds: int,
    environ: Mapping[str, str],
    what: str = WORKER,
) -> ServicePlan:
    """`store_url` is a store that config.toml does not name: it has a worker of its own. A server
    starts no worker: that would die with the server's unit."""
    if store_url and has_password(store_url):
        raise InvalidInputError(
            "the store's URL has a password, which a service would show to others; put the URL "
            "into config.toml (`headway config set store.url ...`) or the password into ~/.pgpass"
        )
    if not python:
        raise InvalidInputError("it is not known which Python runs here; start it by its full path")
    folder = os.path.dirname(home)
    plan = ServicePlan(
        what,
        service_name(home, store_url) + ("-web" if what == SERVER else ""),
        folder,
        (python, "-P", "-m", "headway", "--home", home, *_WORDS[what]),
        tuple(_environment(environ, store_url)),
        log,
        max(STOPS_WITHIN, grace_seconds + STOPS_AFTER_GRACE),
    )
    for text in (*plan.argv, folder, log, *(value for _, value in plan.environment)):
        _refuse_unwritable(text)
    return plan


def service_name(home: str, store_url: str | None = None) -> str:
    """A name that people recognise, and that no other home has."""
    place = os.path.basename(os.path.dirname(home)).lower()
    word = re.sub(r"[^a-z0-9]+", "-", place).strip("-")[:40].rstrip("-") or "project"
    identity = os.fsencode(home) + (b"\n" + os.fsencode(store_url) if store_url else b"")
    return f"headway-{word}-{hashlib.sha256(identity).hexdigest()[:8]}"


def has_password(url: str) -> bool:
    try:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        return bool(parts.password) or any(given.get(each) for each in _SECRET_PARTS)
    except ValueError:  # it cannot be told, so it might
        return True


def unit_text(plan: ServicePlan) -> str:
    """The unit file, as systemd 244 or newer reads it."""
    program, *words = plan.argv
    if re.search(r"[\"'\\]", program):
        raise InvalidInputError(f"systemd starts no program with quotes in its path: {program}")
    if plan.folder != plan.folder.strip() or plan.folder.endswith("\\"):
        raise InvalidInputError(f"systemd cannot work in a folder that ends so: {plan.folder!r}")
    variables = [_quoted(f"{name}={value}") for name, value in plan.environment]
    return UNIT.format(
        mark=MARK,
        what=plan.what,
        waits=_WAITS[plan.what],
        more=_LINES[plan.what],
        name=plan.name,
        folder=plan.folder.replace("%", "%%"),
        environment="".join(f"Environment={each}\n" for each in variables),
        command=" ".join([_quoted(program), *map(_quoted, words)]),
        stop_seconds=plan.stop_seconds,
    )


def _quoted(word: str) -> str:
    """One word by systemd's rules. The colon before the command has it leave `$` alone."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    plain = re.fullmatch(r"[A-Za-z0-9_@%+=:,./-]+", escaped)
    return escaped if plain else f'"{escaped}"'


def cron_line(plan: ServicePlan) -> str:
    """One line of a crontab, with its mark at the end: a comment for the shell that runs it."""
    if any("\\" in each for each in (*plan.argv, plan.folder, plan.log)):
        raise InvalidInputError(f"cron cannot be told of a path with a backslash: {plan.folder}")
    variables = [f"{name}={shlex.quote(value)}" for name, value in plan.environment]
    started = " ".join([*variables, "exec", shlex.join(plan.argv)])
    command = (
        f"umask 077; cd {shlex.quote(plan.folder)} && {started}"
        f" >>{shlex.quote(plan.log)} 2>&1 </dev/null"
    )
    return "@reboot " + command.replace("%", "\\%") + _mark_of(plan)


def is_ours(line: str, plan: ServicePlan) -> bool:
    return line.startswith("@reboot ") and line.endswith(_mark_of(plan))


def _mark_of(plan: ServicePlan) -> str:
    return f"  # {plan.name}"


def _environment(environ: Mapping[str, str], store_url: str | None) -> list[tuple[str, str]]:
    """What the worker itself needs: the way to git and to sources, to its own code, to its store,
    and to the record of trust. Jobs have the environment of their submitters.

    A worker decides by that record, as commands do: so what is trusted later counts at once, and
    what is revoked no more. Only who installs it with HEADWAY_TRUST=1 wants it to trust for ever.
    """
    found = []
    for name in ("PATH", "PYTHONPATH"):
        places = [each for each in environ.get(name, "").split(os.pathsep) if os.path.isabs(each)]
        if places:
            found.append((name, os.pathsep.join(places)))
    if store_url:
        found.append(("HEADWAY_STORE", store_url))
    if os.path.isabs(environ.get(STATE, "")):
        found.append((STATE, environ[STATE]))
    if environ.get(VARIABLE) == "1":
        found.append((VARIABLE, "1"))
    return found


def _refuse_unwritable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"a service cannot name what is not UTF-8: {text!r}") from None
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise InvalidInputError(f"a service cannot name what has control characters: {text!r}")
