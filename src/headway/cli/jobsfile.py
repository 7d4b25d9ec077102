"""`headway jobsfile ...`: check the file of periodic jobs, see how its entries stand."""

import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from headway.base.errors import InvalidInputError
from headway.base.trust import NEXT_STEP, is_trusted
from headway.base.units import MICROSECONDS, show_duration
from headway.cli.render import emit, fields, instant, moment, say, table
from headway.cli.scope import Scope
from headway.cli.service import say_what_keeps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.schedules.jobsfile.model import Entry
    from headway.schedules.jobsfile.problems import Problem

FEW_PROBLEMS = 5  # where they are not what was asked for


@click.command()
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def check(scope: Scope, file: str | None, as_json: bool) -> int:
    """Say all that is wrong with a jobs file; FILE, - for stdin, or that of the home.

    Where a home is, the programs, functions and conditions that it names are looked for; to find
    functions, the modules of a trusted home are imported. Nothing else is run.
    """
    from headway.schedules.jobsfile.reader import JobsFileError, read_jobs_file

    name, content = _content(scope, file)
    problems = []
    missing: Sequence[Problem] = ()
    entries: Sequence[Entry] = ()
    try:
        entries = read_jobs_file(content)
        missing = _missing(scope, content)
    except JobsFileError as error:
        problems = error.problems
    if as_json:
        emit(
            {
                "path": name,
                "valid": not problems,
                "entries": [entry.name for entry in entries],
                "problems": [problem.document() for problem in problems],
                "missing": [problem.document() for problem in missing],
            }
        )
    elif not problems and not missing:
        say(f"{name}: {_entries(len(entries))}, nothing is wrong")
    for problem in () if as_json else (*problems, *missing):
        say(f"{name}: {problem}")
    if file is None and not is_trusted(os.path.dirname(os.path.abspath(name))):
        say(f"{name} is not trusted, and nothing of it runs; {NEXT_STEP}")
    elif file is None and not (as_json or problems or missing) and _has_enabled(entries):
        say_what_keeps(scope)
    return InvalidInputError.exit_code if problems or missing else 0


def _has_enabled(entries: "Sequence[Entry]") -> bool:
    return any(entry.enabled for entry in entries)


def _missing(scope: Scope, content: bytes) -> "Sequence[Problem]":
    """What a good file names and is not there."""
    from headway.base.home import find_home
    from headway.schedules.jobsfile.absences import absences

    home, exists = find_home(scope.home, os.environ, os.getcwd())
    return (
        absences(content, home, scope.config_of(home)) if exists else absences(content, None, None)
    )


def _content(scope: Scope, file: str | None) -> tuple[str, bytes]:
    """What the file is called, and what stands in it."""
    from headway.base.home import find_home, refuse_no_home
    from headway.schedules.jobsfile.model import FILE
    from headway.schedules.jobsfile.nodes import LARGEST_FILE
    from headway.schedules.jobsfile.reader import file_content

    if file == "-":
        return "stdin", sys.stdin.buffer.read(LARGEST_FILE + 1)
    home, exists = find_home(scope.home, os.environ, os.getcwd())
    if exists and file is None:
        refuse_no_home(home.path)
    path = file or os.path.relpath(os.path.join(home.path, FILE))
    return path, file_content(path)


@click.command()
def schema() -> None:
    """Print the JSON Schema of a jobs file, for editors."""
    from headway.schedules.jobsfile.schema import schema_document

    print(json.dumps(schema_document(), indent=2, ensure_ascii=False))


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_entries(scope: Scope, as_json: bool) -> None:
    """List the entries that count, when they ran and will run, and what holds them back.

    While the file is broken these are the entries of the last good one.
    """

    client = scope.connect()
    details = client.jobsfile.list()
    details["jobs_file"]["missing"] = client.jobsfile.missing()
    now = client.now()
    if as_json:
        emit(details)
        return
    _say_of_file(details, now)
    entries = details["entries"]
    if not entries:
        return
    if details["jobs_file"]["state"] != "untrusted" and any(each["enabled"] for each in entries):
        say_what_keeps(scope)
    rows = [
        [
            each["name"],
            each["type"],
            _when(each),
            _last(each, now),
            _next(each, now),
            _state(each),
        ]
        for each in entries
    ]
    header = ["Name", "Type", "When", "Last run", "Next", "State"]
    states = [_colour(each) for each in entries]
    lines = table(header, rows, flexible=(0, 2, 3), colours=states, coloured=5)
    held = [(each["name"], _reason(each, now)) for each in entries if each["held"]]
    for line in [*lines, *(["", "Held back:"] if held else []), *fields(held)]:
        print(line)


def _say_of_file(details: dict[str, Any], now: int) -> None:
    """What is wrong with it, or missing, and what that means for its entries."""
    file, count = details["jobs_file"], len(details["entries"])
    path = os.path.relpath(file["path"])
    problems = [*file["problems"], *file["missing"]]
    more = len(problems) - FEW_PROBLEMS
    for problem in problems[:FEW_PROBLEMS]:
        where = f"line {problem['line']}: " + (f"{problem['key']}: " if problem["key"] else "")
        say(f"{path}: {where}{problem['text']}")
    if more > 0:
        say(f"{path}: and {more} more; `headway jobsfile check` tells all")
    if file["state"] == "broken" and file["loaded_at"] is None:
        say(f"{path} is broken, and there was no good one before it; nothing of it runs")
    elif file["state"] == "broken":
        since = moment(file["loaded_at"], now)
        say(f"{path} is broken; the last good set of {_entries(count)} runs on, read {since}")
    elif file["state"] == "untrusted":
        say(f"{path} is not trusted, and nothing of it runs; {NEXT_STEP}")
    elif file["state"] == "missing":
        say(f"there is no {path}; `headway jobsfile schema` tells what it may say")
    elif not count:
        say(f"{path} has no entries")
    elif details["worker"] and not file["taken_over"]:
        say(f"{path} has changed; the worker takes it over within seconds")
    if file["poll"] and file["poll"]["trouble"]:
        say(f"the last poll failed, {moment(file['poll']['at'], now)}: {file['poll']['trouble']}")


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _when(entry: dict[str, Any]) -> str:
    if entry["cron"] is not None:
        zone = entry["timezone"]
        return f"{entry['cron']} {zone}" if zone != "UTC" else str(entry["cron"])
    others = [
        f"{entry[key]} {word}"
        for key, word in (("interval_active", "active"), ("interval_idle", "idle"))
        if entry[key] is not None
    ]
    return f"every {entry['interval']}" + (f" ({', '.join(others)})" if others else "")


def _last(entry: dict[str, Any], now: int) -> str:
    last = entry["last_run"]
    if last is None:
        return "never"
    how = "" if last["status"] == "succeeded" else f"{last['status'] or 'ended'} "
    return f"{how}{_distance(last['ended_at'], now)} ago"


def _next(entry: dict[str, Any], now: int) -> str:
    at = instant(entry["next_at"])
    if at is None:
        return "-"
    return "now" if at <= now else f"in {_distance(entry['next_at'], now)}"


def _distance(text: str, now: int) -> str:
    second = MICROSECONDS["s"]
    passed = abs(now - (instant(text) or now)) // second
    return show_duration(passed * second) if passed else "0s"


def _state(entry: dict[str, Any]) -> str:
    if entry["active_job"] is not None:
        return f"{entry['active_job']} is active"
    if not entry["enabled"]:
        return "disabled"
    return "held back" if entry["held"] else ""


def _reason(entry: dict[str, Any], now: int) -> str:
    """In full: it may be longer than a column has room for."""
    return f"{entry['held']['reason']} (since {_distance(entry['held']['at'], now)})"


def _colour(entry: dict[str, Any]) -> str | None:
    if entry["active_job"] is not None:
        return "bold"
    if not entry["enabled"]:
        return "dim"
    return "yellow" if entry["held"] else None
