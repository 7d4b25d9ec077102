"""`headway schedules add`: make jobs at certain times."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import click

from headway.base.units import EPOCH
from headway.cli.options import SECTIONS, JobCommand, describes_jobs_of_a_schedule
from headway.cli.render import distance, emit, say
from headway.cli.scope import Scope
from headway.cli.template_options import given_values, given_words
from headway.core.fire import CatchUp, Overlap, Schedule
from headway.jobs.graph_file import is_agent
from headway.schedules.timing.zones import zone_of


class ScheduleCommand(JobCommand):
    """The help begins with what a schedule says of itself."""

    sections: Mapping[str, tuple[str, ...]] = {
        "Schedule": (
            *("cron", "every", "at", "timezone", "name", "template", "param", "catch_up", "window"),
            *("overlap", "jitter", "replace", "disabled"),
        ),
        **SECTIONS,
    }


@click.command(cls=ScheduleCommand)
@click.option("--name", metavar="WORD", help="Its name; else its id.")
@click.option("--cron", metavar="EXPR", help="At the times of a cron expression, as '30 2 * * *'.")
@click.option("--every", metavar="10m", help="Again and again, this far apart, counted from now.")
@click.option("--at", metavar="TIME", help="Once: 22:30, 2026-11-15T22:30 or +10m.")
@click.option("--timezone", default="UTC", metavar="ZONE", help="Whose clock is meant: UTC.")
@click.option("--template", metavar="NAME", help="Make its jobs of a template.")
@click.option("--param", multiple=True, metavar="K=V", help="A parameter of it (repeat).")
@click.option(
    "--catch-up",
    type=click.Choice([each.value for each in CatchUp]),
    default=CatchUp.LATEST.value,
    help="What was missed: the latest slot fires (the default), all do, or none.",
)
@click.option("--window", default="24h", metavar="24h", help="What is older is not caught up.")
@click.option(
    "--overlap",
    type=click.Choice([each.value for each in Overlap]),
    help="While its last job is active: skip the slot (the default), queue, or replace the job.",
)
@click.option("--jitter", default="0s", metavar="30s", help="Fire up to this much later.")
@click.option("--replace", is_flag=True, help="Take the place of one of this name.")
@click.option("--disabled", is_flag=True, help="Let it not fire until it is enabled.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@describes_jobs_of_a_schedule
@click.pass_context
def add(
    context: click.Context,
    /,
    name: str | None,
    cron: str | None,
    every: str | None,
    at: str | None,
    timezone: str,
    template: str | None,
    param: tuple[str, ...],
    catch_up: str,
    window: str,
    overlap: str | None,
    jitter: str,
    replace: bool,
    disabled: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Make jobs at certain times, and print the schedule's id.

    When: one of --cron, --every and --at. What: --template, or a command after --. Its jobs run in
    the project's folder unless --cwd is given, and are retried 3 times unless --retries says
    otherwise.
    """
    if [cron, every, at].count(None) != 2:
        raise click.UsageError("When? Give one of --cron EXPR, --every 10m and --at TIME.")
    words = given_words(context, options)
    if template is None and not (words.get("argv") or "shell" in words or is_agent(words)):
        raise click.UsageError("What is to run? Give --template NAME, or a command after --.")
    if template is None and param:
        raise click.UsageError("--param is about a template; name it with --template.")
    params = given_values(param)
    _check_rule(cron, timezone)
    scope: Scope = context.obj
    client = scope.connect_or_create()
    made = client.schedules.add(
        name=name,
        cron=cron,
        every=every,
        at=at,
        timezone=timezone,
        template=template,
        params=params,
        catch_up=catch_up,
        window=window,
        overlap=overlap,
        jitter=jitter,
        replace=replace,
        enabled=not disabled,
        **words,
    )
    if as_json:
        emit({"schedule": client.schedules.show(made.shown)})
        return
    from headway.cli.service import say_if_not_kept

    print(made.shown, flush=True)
    _say_next(made, timezone, client.now())
    say_if_not_kept(scope)


def _say_next(made: Schedule, timezone: str, now: int) -> None:
    """On the clock that was meant: who thinks of another finds out before it fires."""
    if made.next_slot is None:
        return
    local = (EPOCH + timedelta(microseconds=made.next_slot)).astimezone(zone_of(timezone).info)
    clock = "%H:%M:%S" if local.second else "%H:%M"
    far = distance(made.next_slot - now)
    say(f"fires next on {local:%a %Y-%m-%d} at {local:{clock}} {timezone} (in {far})")


def _check_rule(cron: str | None, timezone: str) -> None:
    """Before a home is made for what cannot be."""
    if cron is not None:
        from headway.schedules.timing.rules import parse_cron

        parse_cron(cron, timezone)
