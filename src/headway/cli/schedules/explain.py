"""`headway schedules explain`: a rule in words, and when it fires, also for one that is no
schedule yet. Then it needs no home."""

import textwrap
from datetime import datetime
from typing import Any

import click

from headway.base.clock import SystemClock
from headway.base.errors import InvalidInputError
from headway.base.units import parse_duration, parse_instant
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import emit, instant, paint, say, width
from headway.cli.scope import Scope
from headway.schedules.timing.rules import Every, Once, TimingRule, parse_cron, rule_of
from headway.schedules.timing.upcoming import Upcoming, upcoming
from headway.schedules.timing.words import in_words
from headway.schedules.timing.zones import zone_of, zones_version

MOST_SHOWN = 1_000


@click.command()
@click.argument("schedule", required=False, metavar="[NAME]")
@click.option("--cron", metavar="EXPR", help="A cron expression instead of a schedule.")
@click.option("--timezone", default="UTC", metavar="ZONE", help="Whose clock is meant: UTC.")
@click.option("--every", metavar="10m", help="An interval instead, counted from --from.")
@click.option("--at", metavar="TIME", help="A single time instead.")
@click.option("--from", "start", metavar="TIME", help="What comes after this; else after now.")
@click.option("--count", type=WHOLE_NUMBER, default=10, metavar="N", help="How many slots: 10.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def explain(
    scope: Scope,
    /,
    schedule: str | None,
    cron: str | None,
    timezone: str,
    every: str | None,
    at: str | None,
    start: str | None,
    count: int,
    as_json: bool,
) -> None:
    """Say a rule in words, and when it fires next, on the clock of its zone and in UTC.

    What is odd because clocks change is told below its slot.
    """
    if [schedule, cron, every, at].count(None) != 3:
        raise click.UsageError("Of what? Give a schedule's NAME, or --cron, --every or --at.")
    if cron is None and at is None and timezone != "UTC":
        raise click.UsageError("--timezone goes with --cron and --at; a schedule has its own.")
    if not 1 <= count <= MOST_SHOWN:
        raise InvalidInputError(f"--count {count} is not between 1 and {MOST_SHOWN}")
    now = SystemClock().now()
    after = now if start is None else parse_instant(start, now, what="--from")
    if after < 0:
        raise InvalidInputError(f"--from {start} lies before 1970; give a later time")
    document: dict[str, Any] | None = None
    rule: TimingRule
    if schedule is not None:
        document = scope.connect().schedules.show(schedule)
        rule = _rule_of(document)
    elif cron is not None:
        rule = parse_cron(cron, timezone)
    elif every is not None:
        rule = Every(parse_duration(every, "--every"), after)
    else:
        rule = Once(parse_instant(at or "", now, zone_of(timezone).info, what="--at"))
    slots = upcoming(rule, after, count)
    if as_json:
        shown = [{"local": each.local, "utc": each.utc, "odd": each.odd} for each in slots]
        words = {"in_words": in_words(rule), "zones": zones_version(), "slots": shown}
        emit({"schedule": document, **words})
        return
    print(paint(in_words(rule), "bold"))
    for slot in slots:
        print("\n".join(_lines(slot)))
    _say_the_rest(document, slots, count)


def _rule_of(document: dict[str, Any]) -> TimingRule:
    """The rule of a document, in which times and durations are texts."""
    said = document["rule"]
    if said is None:
        raise InvalidInputError(f"{document['name']} cannot be explained: {document['in_words']}")
    if "every" in said:
        return Every(parse_duration(said["every"]), instant(said["anchor"]) or 0)
    return Once(instant(said["at"]) or 0) if "at" in said else rule_of(said)


def _lines(slot: Upcoming) -> list[str]:
    local = datetime.fromisoformat(slot.local)
    seconds = "%H:%M:%S" if local.second or local.microsecond else "%H:%M"
    utc = f"{datetime.fromisoformat(slot.utc):%Y-%m-%d {seconds}}Z"
    lines = [f"  {local:%a %Y-%m-%d {seconds}} {slot.local[-6:]}   {utc}"]
    if slot.odd:
        lead = "      "
        lines += [lead + line for line in textwrap.wrap(slot.odd, width() - len(lead))]
    return lines


def _say_the_rest(document: dict[str, Any] | None, slots: list[Upcoming], count: int) -> None:
    if len(slots) < count:
        say("nothing comes after that" if slots else "it does not fire any more")
    if document is None:
        return
    if not document["enabled"]:
        say(f"{document['name']} is disabled: nothing of this fires")
    if document["jitter"] not in (None, "0s"):
        say(f"each fires up to {document['jitter']} later (--jitter)")
