"""`headway trust`: let what a folder names count, after having seen it."""

import os
import sys
from typing import Any

import click

from headway.admin.trust import TrustedPart, parts_of
from headway.base import trust as record
from headway.base.errors import ConflictError, NotFoundError
from headway.base.home import Home, find_home, refuse_no_home, refuse_unsafe
from headway.base.text import plain
from headway.cli.render import emit, fields, paint, say, table
from headway.cli.scope import Scope
from headway.jobs.actor import refuse_inside_job


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--revoke", is_flag=True, help="Trust this folder no more.")
@click.option("--list", "listed", is_flag=True, help="List the folders that you trust.")
@click.option("--json", "as_json", is_flag=True, help="Print one document, and do not ask.")
@click.pass_obj
def trust(scope: Scope, yes: bool, revoke: bool, listed: bool, as_json: bool) -> int:
    """Show what a .headway/ folder that came with a checkout would run, and let it count.

    Each file, setting and program is shown first. What is trusted is the folder, for you: what
    changes in it later, as by a pull, counts as well. A folder that Headway made here is trusted.
    """
    if sum((yes, revoke, listed)) > 1:
        raise click.UsageError("--yes, --revoke and --list exclude each other.")
    if listed:
        return _list(as_json=as_json)
    refuse_inside_job(os.environ, "revoke trust" if revoke else "trust a folder")
    home, exists = find_home(scope.home, os.environ, os.getcwd())
    if revoke:
        return _revoke(home, as_json=as_json)
    if not exists:
        raise NotFoundError(f"there is no {home.path} to be trusted; `headway init` makes one")
    refuse_unsafe(home.path)
    refuse_no_home(home.path)
    return _trust(home, yes=yes, as_json=as_json)


def _trust(home: Home, *, yes: bool, as_json: bool) -> int:
    parts = parts_of(home)
    refusal = record.why_not(home.path)
    recorded = _is_recorded(home)
    if yes and not recorded:
        if not as_json:
            _show(home, parts)
        record.record(home.path)
        refusal, recorded = record.why_not(home.path), True
    if as_json:
        emit({"trust": _document(home, parts, refusal, recorded=recorded)})
        return 0 if refusal is None else ConflictError.exit_code
    if yes and recorded:
        say(f"{home.path} is trusted")
        return 0
    _show(home, parts)
    if recorded:
        say(f"{home.path} is trusted already")
        return 0
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConflictError(
            f"nothing was recorded, for there is no terminal to ask on; to trust {home.path}: "
            "headway trust --yes"
        )
    if not click.confirm("Trust this folder?", err=True):
        say("nothing was recorded")
        return 1
    record.record(home.path)
    say(f"{home.path} is trusted; a worker that is there notices it within seconds")
    return 0


def _is_recorded(home: Home) -> bool:
    without = {name: value for name, value in os.environ.items() if name != record.VARIABLE}
    return record.is_trusted(home.path, without)


def _show(home: Home, parts: list[TrustedPart]) -> None:
    if not parts:
        print(plain(f"{home.path} holds nothing yet that needs trust"))
        return
    print(paint(plain(f"What trusting {home.path} allows:"), "bold"))
    for kind in dict.fromkeys(part.kind for part in parts):
        print(f"{kind}:")
        same = [(part.name, part.detail) for part in parts if part.kind == kind]
        print(*fields(same, indent="  "), sep="\n")


def _document(
    home: Home, parts: list[TrustedPart], refusal: str | None, *, recorded: bool
) -> dict[str, Any]:
    return {
        "home": home.path,
        "trusted": refusal is None,
        "recorded": recorded,
        "reason": refusal,
        "record": record.record_path(),
        "allows": [part._asdict() for part in parts],
    }


def _revoke(home: Home, *, as_json: bool) -> int:
    revoked = record.revoke(home.path)
    if as_json:
        emit({"home": home.path, "revoked": revoked})
    else:
        say(f"{home.path} is trusted no more" if revoked else f"{home.path} was not trusted")
    if os.environ.get(record.VARIABLE) == "1":
        say(f"{record.VARIABLE}=1 trusts every folder all the same")
    return 0


def _list(*, as_json: bool) -> int:
    known = [
        {"path": each.path, "recorded_at": each.at, "state": _state(each)}
        for each in record.entries()
        if each.user == os.geteuid()
    ]
    if as_json:
        emit({"record": record.record_path(), "trusted": known})
        return 0
    if not known:
        say(f"{record.record_path()} names no folder")
        return 0
    rows = [[plain(each["path"]), each["recorded_at"][:19], each["state"]] for each in known]
    print(*table(["Folder", "Recorded (UTC)", "State"], rows, flexible=(0,)), sep="\n")
    return 0


def _state(entry: record.TrustedFolder) -> str:
    if not os.path.lexists(entry.path):
        return "gone"
    without: dict[str, str] = {**os.environ, record.VARIABLE: ""}
    return "trusted" if record.is_trusted(entry.path, without) else "another folder now"
