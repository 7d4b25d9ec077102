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

NAME_BEFORE_COMMAND = "headway.cli.name_before_command"


class ScheduleCommand(JobCommand):
    """The help begins with what a schedule says of itself. It may have a NAME before the dashes, as
    templates and targets do; without dashes a word is the command."""

    sections: Mapping[str, tuple[str, ...]] = {
        "Schedule": (
            *("cron", "every", "at", "timezone", "name", "template", "workflow", "param"),
            *("catch_up", "window", "overlap", "jitter", "replace", "disabled"),
        ),
        **SECTIONS,
    }

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing and not {"-h", "--help"} & set(args):
            self._find_name(ctx, args)
        return super().parse_args(ctx, args)

    def _find_name(self, ctx: click.Context, args: list[str]) -> None:
        cut = args.index("--") if "--" in args else len(args)
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args[:cut]))
        words = given.get("argv")
        before = words if isinstance(words, tuple) else ()
        command_is_elsewhere = any(isinstance(given.get(each), str) for each in _COMMANDS)
        if not before or (cut == len(args) and not command_is_elsewhere):
            return
        name, *more = before
        if more:
            raise click.UsageError(
                f"{name!r} and {more[0]!r} stand before the command; give one NAME, and the "
                "command after --",
                ctx,
            )
        if given.get("name") not in (None, name) and isinstance(given.get("name"), str):
            raise click.UsageError(f"It has two names, {name} and {given['name']}; give one.", ctx)
        ctx.meta[NAME_BEFORE_COMMAND] = name


_COMMANDS = (
    "shell",
    "template",
    "workflow",
    "prompt",
    "prompt_file",
)  # what may stand for a command


@click.command(cls=ScheduleCommand)
@click.option("--name", metavar="WORD", help="Its name; else NAME, its workflow, or its id.")
@click.option("--cron", metavar="EXPR", help="At the times of a cron expression, as '30 2 * * *'.")
@click.option("--every", metavar="10m", help="Again and again, this far apart, counted from now.")
@click.option("--at", metavar="TIME", help="Once: 22:30, 2026-11-15T22:30 or +10m.")
@click.option("--timezone", default="UTC", metavar="ZONE", help="Whose clock is meant: UTC.")
@click.option("--template", metavar="NAME", help="Make its jobs of a template.")
@click.option("--workflow", metavar="NAME", help="Start a run of a workflow instead.")
@click.option("--param", "--set", multiple=True, metavar="K=V", help="A parameter (repeat).")
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
    help="While its last job or run is active: skip the slot (the default), queue, or replace it.",
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
    workflow: str | None,
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

    When: one of --cron, --every and --at. What: --template, --workflow, or a command after --. A
    word before the dashes is its name. Its jobs run in the project's folder unless --cwd is given,
    and are retried 3 times unless --retries says otherwise.
    """
    if NAME_BEFORE_COMMAND in context.meta:
        name, options["argv"] = context.meta[NAME_BEFORE_COMMAND], options["argv"][1:]
    if [cron, every, at].count(None) != 2:
        raise click.UsageError("When? Give one of --cron EXPR, --every 10m and --at TIME.")
    words = given_words(context, options)
    stands_for_command = template is not None or workflow is not None
    if not stands_for_command and not (words.get("argv") or "shell" in words or is_agent(words)):
        raise click.UsageError(
            "What is to run? Give --template NAME, --workflow NAME, or a command after --."
        )
    if not stands_for_command and param:
        raise click.UsageError("--param is about a template or a workflow; name it.")
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
        workflow=workflow,
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
