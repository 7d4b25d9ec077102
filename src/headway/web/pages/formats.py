"""How values look in a page: times, spans, states. Pure, but for the zone of this machine.

A time is shown in the zone of the server; its tooltip has all of it in UTC. An element with
`data-tick` changes with the time, and the script keeps it up to date.
"""

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from shlex import join
from typing import Any

from markupsafe import Markup

from headway.base.errors import InvalidInputError
from headway.base.units import show_duration
from headway.core.states import Status
from headway.schedules.timing.zones import zone_of
from headway.web.pages.escapes import visible

SECOND = 1_000_000
DAY = 86_400
# state: the class that gives it its colour and its shape. The word always stands beside.
KINDS: Mapping[str, str] = {
    Status.QUEUED: "idle",
    Status.WAITING_ON_DEPS: "idle",
    Status.WAITING_ON_LOCKS: "idle",
    Status.WAITING_ON_APPROVAL: "ask",
    Status.RUNNING: "run",
    Status.SUCCEEDED: "good",
    Status.FAILED: "bad",
    Status.SKIPPED: "off",
    Status.CANCELLED: "off",
    Status.BLOCKED_BY_DEPENDENCY: "stop",
    Status.BLOCKED_BY_APPROVAL: "stop",
    "blocked": "stop",
    "open": "run",
    "unreached": "off",
    "pending": "idle",
    "delivered": "good",
    "active": "good",
    "paused": "ask",
    "disabled": "off",
    "up": "good",
    "gone": "off",
    "completed": "good",
    "error": "bad",
    "warning": "ask",
    "ok": "good",
}
WORDS: Mapping[str, str] = {
    Status.WAITING_ON_DEPS: "waits for jobs",
    Status.WAITING_ON_LOCKS: "waits for locks",
    Status.WAITING_ON_APPROVAL: "needs approval",
    Status.BLOCKED_BY_DEPENDENCY: "blocked",
    Status.BLOCKED_BY_APPROVAL: "rejected",
}


def state(word: str | None) -> Markup:
    """A state: colour, shape and word."""
    text = str(word or "unknown")
    kind = KINDS.get(text.lower(), "idle")
    shown = WORDS.get(text, text.replace("_", " ").lower())
    return Markup('<span class="state {}">{}</span>').format(kind, shown)


def moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def when(text: str | None, now: int) -> Markup:
    """A time of day, with the date unless it is today."""
    at = moment(text)
    if at is None:
        return Markup("&ndash;")
    local, today = at.astimezone(), _moment(now).astimezone()
    near = abs((local - today).total_seconds()) < 180 * DAY
    form = "%H:%M:%S" if local.date() == today.date() else "%d %b %H:%M" if near else "%Y-%m-%d"
    return _time(at, local.strftime(form))


def clock(text: str | None) -> Markup:
    """The time of the day alone."""
    at = moment(text)
    return Markup("&ndash;") if at is None else _time(at, at.astimezone().strftime("%H:%M"))


def whole(text: str | None) -> Markup:
    """A time with its date and its zone."""
    at = moment(text)
    if at is None:
        return Markup("&ndash;")
    return _time(at, at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z"))


def ago(text: str | None, now: int) -> Markup:
    """How long ago, which the script counts on."""
    at = moment(text)
    if at is None:
        return Markup("&ndash;")
    passed = now - int(at.timestamp() * SECOND)
    shown = f"in {span(-passed)}" if passed < -SECOND else f"{span(max(0, passed))} ago"
    return _time(at, shown, tick="ago")


def since(text: str | None, now: int) -> Markup:
    """For how long already."""
    at = moment(text)
    if at is None:
        return Markup("&ndash;")
    return _time(at, span(max(0, now - int(at.timestamp() * SECOND))), tick="since")


def span(micros: float | None) -> str:
    """A span in words that do not flicker: whole seconds, the two largest units."""
    if micros is None:
        return "–"
    whole_seconds = int(micros) // SECOND * SECOND
    return show_duration(whole_seconds if whole_seconds >= SECOND else int(micros))


def seconds(number: float | None) -> str:
    return "–" if number is None else span(number * SECOND)


def took(run: Mapping[str, Any] | None, now: int) -> Markup | str:
    """How long a run took, or takes already."""
    if not run or not run.get("started_at"):
        return "–"
    if run.get("duration_ms") is not None:
        return span(run["duration_ms"] * 1000)
    return since(run["started_at"], now)


def between(begin: str, end: str | None) -> str:
    """How long it was from one instant to another; nothing while the other is to come."""
    if end is None:
        return ""
    passed = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    return span(max(0.0, passed.total_seconds()) * SECOND)


def setting(value: Any) -> str:
    """A value as `config.toml` has it; text without quotes."""
    if isinstance(value, str):
        return value or "none"
    if value is None:
        return "none"
    return json.dumps(value, ensure_ascii=False)


def _time(at: datetime, text: str, *, tick: str = "") -> Markup:
    utc = at.astimezone(UTC)
    mark = Markup(' data-tick="{}"').format(tick) if tick else ""
    return Markup('<time datetime="{}" title="{}"{}>{}</time>').format(
        utc.isoformat(timespec="seconds"), utc.strftime("%Y-%m-%d %H:%M:%S UTC"), mark, text
    )


def _moment(now: int) -> datetime:
    return datetime.fromtimestamp(now / SECOND, UTC)


@cache
def local_zone() -> str:
    """The name of this machine's zone, if it says one that is known."""
    said = os.environ.get("TZ", "").removeprefix(":")
    if not said:
        with suppress(OSError):
            said = os.readlink("/etc/localtime").rpartition("zoneinfo/")[2]
    with suppress(InvalidInputError):
        zone_of(said or "UTC")
        return said or "UTC"
    return "UTC"


def command(params: Mapping[str, Any]) -> str:
    """What a job runs, in a line, the whole of it."""
    if params.get("shell"):
        return str(params["shell"])
    if params.get("argv"):
        return join(map(str, params["argv"]))
    for word in ("task", "function", "runner", "operation", "prompt"):
        if params.get(word):
            return f"{word} {params[word]}"
    return ""


def link_jobs(text: str | None) -> Markup:
    """Words that name jobs, each a link."""
    made = visible(text or "")
    return Markup(  # noqa: S704 - of an escaped text, and digits
        re.sub(r"\bjob-([1-9][0-9]{0,17})\b", r'<a href="/ui/jobs/job-\1">job-\1</a>', str(made))
    )
