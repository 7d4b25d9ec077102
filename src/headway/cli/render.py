"""What people read: tables that fit, relative times, colour where it is wanted.

Text from data never reaches the terminal as it is: what is not printable is written as an escape.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from headway.base.text import cells, fitted, plain
from headway.base.units import MICROSECONDS, parse_instant, show_duration
from headway.core.states import ACTIVE, Status

USUAL_WIDTH = 80
GAP = 2
LEAST_COLUMN = 8
LEAST_TEXT = 16  # of a text, before words of a few letters more give way
LEAST_STATE = 10
LEAST_TITLE = 3
LEAST_OF_ALL = 4
FAVOUR = 0.6
_COLOURS = {"green": "32", "yellow": "33", "red": "31", "bold": "1", "dim": "2"}


def say(message: str) -> None:
    """A message for people, on stderr."""
    sys.stderr.write(f"headway: {plain(message)}\n")
    sys.stderr.flush()


def emit(document: Mapping[str, Any]) -> None:
    """One versioned document on stdout."""
    print(json.dumps({"version": 1, **document}, indent=2))


def colourful() -> bool:
    return (
        sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") not in (None, "dumb")
    )


def paint(text: str, colour: str | None) -> str:
    if colour is None or not colourful():
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def state_colour(state: str) -> str | None:
    match state:
        case Status.SUCCEEDED:
            return "green"
        case Status.RUNNING:
            return "bold"
        case Status.SKIPPED | Status.CANCELLED:
            return "dim"
        case _:
            return None if state in ACTIVE else "red"


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def jobs_and_runs(jobs: int, runs: int) -> str:
    """`2 jobs`, `1 run`, `2 jobs and 1 run`"""
    if not runs:
        return counted(jobs, "job")
    return f"{counted(jobs, 'job')} and {counted(runs, 'run')}" if jobs else counted(runs, "run")


def width() -> int:
    import shutil

    return max(40, shutil.get_terminal_size((USUAL_WIDTH, 24)).columns)


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    flexible: Sequence[int],
    favoured: int | None = None,
    reluctant: Sequence[int] = (),
    colours: Sequence[str | None] = (),
    coloured: int = 0,
) -> list[str]:
    """Lines that fit the width: of the `flexible` columns the widest gives way, again and again;
    the `favoured` one counts for less than it is. Where little of them is left, the `reluctant`
    ones do. At last titles are cut.

    `colours` has one entry per row, for the column `coloured`.
    """
    rows = [[plain(cell) for cell in row] for row in rows]
    widths = _widths(header, rows, flexible, favoured, reluctant)
    header = [title[:room] for title, room in zip(header, widths, strict=True)]
    lines = [paint(_line(header, widths), "bold")]
    for number, row in enumerate(rows):
        paints = {coloured: colours[number]} if colours else {}
        lines.append(_line(row, widths, paints))
    return lines


def _widths(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    flexible: Sequence[int],
    favoured: int | None,
    reluctant: Sequence[int],
) -> list[int]:
    titles = [cells(title) for title in header]
    content = [max([0, *(cells(row[i]) for row in rows)]) for i in range(len(header))]
    widths = [max(pair) for pair in zip(titles, content, strict=True)]
    bare = [at for at in range(len(header)) if content[at] < titles[at]]
    below = [max(LEAST_TITLE, each) for each in content]

    def weight(at: int) -> tuple[float, int]:
        return widths[at] * (FAVOUR if at == favoured else 1), at

    # Who gives way, and down to where: texts, states, texts again, then titles wider than what
    # stands below, then texts.
    for columns, least in (
        (flexible, [LEAST_TEXT] * len(header)),
        (reluctant, [LEAST_STATE] * len(header)),
        (flexible, [LEAST_COLUMN] * len(header)),
        (bare, below),
        (flexible, [LEAST_OF_ALL] * len(header)),
    ):
        while sum(widths) + GAP * (len(widths) - 1) > width():
            willing = [at for at in columns if widths[at] > least[at]]
            if not willing:
                break
            widths[max(willing, key=weight)] -= 1
    return widths


def _line(
    row: Sequence[str], widths: Sequence[int], paints: Mapping[int, str | None] | None = None
) -> str:
    parts = []
    for index, (cell, room) in enumerate(zip(row, widths, strict=True)):
        text = fitted(cell, room)
        padding = " " * (room - cells(text))
        parts.append(paint(text, (paints or {}).get(index)) + padding)
    return (" " * GAP).join(parts).rstrip()


def fields(entries: Sequence[tuple[str, str | None]], *, indent: str = "  ") -> list[str]:
    """Named values, one per line, wrapped under themselves; those that are None are left out."""
    import textwrap

    shown = [(name, plain(value)) for name, value in entries if value is not None]
    room = max((len(name) for name, _ in shown), default=0)
    lines: list[str] = []
    for name, value in shown:
        lead = f"{indent}{name.ljust(room)}  "
        # Not at hyphens: a path or a command is there to be copied.
        wrapped = textwrap.wrap(value, width() - len(lead), break_on_hyphens=False) or [""]
        lines.append((lead + wrapped[0]).rstrip())
        lines += [" " * len(lead) + line for line in wrapped[1:]]
    return lines


def instant(text: str | None) -> int | None:
    """The instant of a document's time."""
    return None if text is None else parse_instant(text, 0)


def age(since: str | None, now: int) -> str:
    """One unit, as in `5m`; for a narrow column."""
    at = instant(since)
    return "" if at is None else span(max(0, now - at))


def span(passed: int) -> str:
    """One unit of a duration."""
    for unit in ("w", "d", "h", "m"):
        if passed >= MICROSECONDS[unit]:
            return f"{passed // MICROSECONDS[unit]}{unit}"
    return f"{passed // MICROSECONDS['s']}s"


def moment(text: str | None, now: int) -> str | None:
    """A time with its distance from now: `2026-11-15 08:42:53Z (3m ago)`."""
    at = instant(text)
    if at is None or text is None:
        return None
    details = f"{distance(now - at)} ago" if at <= now else f"in {distance(at - now)}"
    if abs(now - at) < MICROSECONDS["s"]:
        details = "now"
    return f"{text[:19].replace('T', ' ')}Z ({details})"


def distance(passed: int) -> str:
    """How far two instants are apart, in whole seconds."""
    return show_duration(passed - passed % MICROSECONDS["s"])


def to_the_second(text: str) -> str:
    """An instant of a document, whole, as people read it."""
    return f"{text[:19].replace('T', ' ')}Z"


def brief(reason: str) -> str:
    """A reason in as few words as a narrow column has room for: the job to look at comes first."""
    import re

    blocking = re.match(r"dependency failed for (?:job )?(\S+)", reason)
    if blocking:
        return f"blocked by {blocking[1]}"
    return reason.replace("waiting on job job-", "waiting on job-", 1)


def how_it_ended(state: str, reason: str | None) -> str:
    """The state and its reason, without saying the same word twice."""
    if not reason:
        return state
    return reason if reason.startswith(state) else f"{state}: {reason}"


def not_made(document: Mapping[str, Any]) -> str | None:
    """The files that a success was to make and did not, in a sentence; None if there are none."""
    run = document["run"] or {}
    if document["state"] != Status.SUCCEEDED or not run.get("not_produced"):
        return None
    return f"{document['id']} succeeded without making {', '.join(run['not_produced'])}"


def how_far(run: Mapping[str, Any] | None) -> str | None:
    """The progress that a running function has reported: `40% reading`."""
    progress = run and run["progress"]
    return f"{progress['fraction']:.0%} {progress['text']}".strip() if progress else None


def result(document: Mapping[str, Any]) -> str:
    """The few words of a list about why a job waits, or how it went."""
    if document["wait"] and document["finished_at"] is None:
        return str(document["wait"]["detail"])
    if document["state"] == Status.RUNNING:
        if document["cancel_requested_at"]:
            return "being cancelled"
        attempt = f"attempt {document['attempt']}" if document["attempt"] > 1 else ""
        return ", ".join(filter(None, [how_far(document["run"]), attempt]))
    if document["state"] == Status.SUCCEEDED and document["run"]:
        return f"in {show_duration(document['run']['duration_ms'] * 1000)}"
    return str(document["reason"] or "")
