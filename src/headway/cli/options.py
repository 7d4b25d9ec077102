"""The options that describe a job, shared by `submit` and `exec`, and how they become a request.

Words are checked here and in `jobs.specification`, before anything is made: bad input exits 5.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from headway.base.errors import InvalidInputError
from headway.base.units import parse_duration
from headway.core.model import Rate
from headway.jobs.references import parse_reference
from headway.jobs.request import Request
from headway.jobs.specification import parse_lock, split_command, when

Command = TypeVar("Command", bound=Callable[..., Any])


def completes(words: Sequence[str]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What a shell is offered for an option that takes one of these words."""

    def offer(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return offer


class WholeNumber(click.ParamType):  # type: ignore[type-arg]
    """An integer; anything else is invalid input, not a misuse of the command."""

    name = "n"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Any:
        try:
            return int(value)
        except ValueError:
            raise InvalidInputError(f"{_flag(param)} {value!r} is not a whole number") from None


class Duration(click.ParamType):  # type: ignore[type-arg]
    """A duration such as 90s, as microseconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | Any:
        return value if isinstance(value, int) else parse_duration(value, _flag(param))


def _flag(param: click.Parameter | None) -> str:
    return param.opts[0] if param else "value"


WHOLE_NUMBER = WholeNumber()
DURATION = Duration()

_OF_AGENTS = (
    *("runner", "prompt", "prompt_file", "model", "max_turns", "allowed_tool", "budget"),
    "max_tokens",
)
# The sections of the help, and the options of each; any other is under Options.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Command": (
        *("shell", "cwd", "env", "stdin", "name", "slug", "label", "timeout"),
        *("idle_timeout", "grace", "on_finish", "webhook", "template", "param", "graph"),
    ),
    "When it may run": (
        *("delay", "at", "after", "needs", "produces", "require_approval", "require"),
    ),
    "Order": ("priority", "position", "front", "group", "last"),
    "Capacity": ("lock", "resource", "rate", "type_", "target", "subject", "any_host"),
    "Git": ("worktree", "save_patch", "pin_head"),
    "Retries": (
        *("retries", "retry_base", "retry_cap", "retry_jitter", "retry_on", "skip_exit_code"),
    ),
    "Agents": _OF_AGENTS,
}
OF_ONE_JOB = ("after", "at", "key", "group", "last", "position", "front", "subject")
_OPTIONS = (
    click.option("--name", metavar="TEXT", help="A name for people; else the command."),
    click.option("--slug", metavar="WORD", help="A name to call it by: letters, digits, . _ -"),
    click.option("--label", multiple=True, metavar="K=V", help="A label (repeat)."),
    click.option("--priority", type=WHOLE_NUMBER, default=0, metavar="N", help="Higher first."),
    click.option(
        "--position", type=WHOLE_NUMBER, metavar="N", help="Its place in its priority, from 1."
    ),
    click.option("--front", is_flag=True, help="Before all others of its priority."),
    click.option("--group", metavar="GROUP", help="A member of this group."),
    click.option("--last", is_flag=True, help="The last of its group: close it."),
    click.option("--type", "type_", metavar="WORD", help="What limits by type go by."),
    click.option("--resource", multiple=True, metavar="R", help="It uses this resource (repeat)."),
    click.option(
        "--rate", multiple=True, metavar="KEY[=N/min]", help="Not more starts than this (repeat)."
    ),
    click.option("--target", metavar="NAME", help="The target that it runs for."),
    click.option("--subject", metavar="TEXT", help="The work item that it is about."),
    click.option(
        "--after", multiple=True, metavar="JOB|wf-N", help="Only after its success (repeat)."
    ),
    click.option(
        "--needs", multiple=True, metavar="ART", help="Only once this artifact is there (repeat)."
    ),
    click.option(
        "--produces", multiple=True, metavar="ART", help="What its success makes (repeat)."
    ),
    click.option("--require-approval", is_flag=True, help="Only after a person has approved it."),
    click.option(
        "--pin-head",
        metavar="[BRANCH]",
        is_flag=False,
        flag_value="",
        help="Only while BRANCH, or what is checked out, is at its present commit.",
    ),
    click.option(
        "--require",
        multiple=True,
        metavar="WHAT",
        help="clean_worktree, branch_exists[:B] or custom:ID must hold (repeat).",
    ),
    click.option(
        "--worktree",
        metavar="[BASE]",
        is_flag=False,
        flag_value="",
        help="Run it in a git worktree of its own, on its own branch from BASE or the head.",
    ),
    click.option("--save-patch", is_flag=True, help="Keep what it changed as command.patch."),
    click.option("--lock", multiple=True, metavar="KEY[:shared]", help="Hold a lock (repeat)."),
    click.option("--delay", type=DURATION, default=0, metavar="10s", help="Not before then."),
    click.option("--at", metavar="TIME", help="Not before then: 22:30, 2026-11-15T22:30 or +10m."),
    click.option("--timeout", type=DURATION, metavar="1h", help="Kill it after this time."),
    click.option(
        "--idle-timeout", type=DURATION, metavar="10m", help="Kill it if it is silent so long."
    ),
    click.option(
        "--grace", type=DURATION, default="10s", metavar="10s", help="Between TERM and KILL."
    ),
    click.option("--retries", type=WHOLE_NUMBER, default=0, metavar="N", help="Automatic retries."),
    click.option(
        "--retry-base", type=DURATION, default="10s", metavar="10s", help="Doubles each time."
    ),
    click.option(
        "--retry-cap", type=DURATION, default="1h", metavar="1h", help="At most this long."
    ),
    click.option(
        "--retry-jitter",
        type=click.FloatRange(0, 1),
        default=0.0,
        metavar="0.1",
        help="Add at most this part of the delay by chance.",
    ),
    click.option(
        "--retry-on",
        multiple=True,
        metavar="WORD",
        help="Retry only on: exit codes, signal, timeout, unknown (repeat, or with commas).",
    ),
    click.option(
        "--skip-exit-code",
        type=WHOLE_NUMBER,
        multiple=True,
        metavar="N",
        help="This exit code means skipped (repeat).",
    ),
    click.option(
        "--env", multiple=True, metavar="K[=V]", help="A variable; K alone takes yours (repeat)."
    ),
    click.option("--cwd", metavar="DIR", help="Where it runs; else here."),
    click.option("--stdin", metavar="FILE", help="What it reads, - for your stdin; else nothing."),
    click.option("--shell", metavar="STRING", help="A line for /bin/sh instead of CMD."),
    click.option("--runner", metavar="NAME", help="A coding agent does it: claude, codex ..."),
    click.option("--prompt", metavar="TEXT", help="What the agent is told to do."),
    click.option("--prompt-file", metavar="FILE", help="The same, from a file."),
    click.option("--model", metavar="M", help="The model that the agent uses."),
    click.option("--max-turns", type=WHOLE_NUMBER, metavar="N", help="So many turns; else 10."),
    click.option(
        "--allowed-tool",
        multiple=True,
        metavar="T",
        help="A tool the agent may use (repeat); else Read, Grep, Glob.",
    ),
    click.option("--budget", metavar="USD", help="The agent may cost this much."),
    click.option("--max-tokens", type=WHOLE_NUMBER, metavar="N", help="It may use so many tokens."),
    click.option("--key", metavar="KEY", help="Submit only once under this key."),
    click.option("--on-finish", metavar="CMD", help="A command to queue when it has ended."),
    click.option(
        "--webhook", multiple=True, metavar="URL", help="Tell this URL of its end (repeat)."
    ),
    click.option("--any-host", is_flag=True, help="Any host of the store may run it."),
    click.option("--no-check", is_flag=True, help="Do not look for the program and directory."),
)


class JobCommand(click.Command):
    """A command that takes the job's options; its help has them in sections."""

    sections = SECTIONS

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = (each for each in self.get_params(ctx) if isinstance(each, click.Option))
        records = {each.name: each.get_help_record(ctx) for each in options}
        for title, names in self.sections.items():
            known = [record for name in names if (record := records.pop(name, None))]
            if known:
                with formatter.section(title):
                    formatter.write_dl(known)
        with formatter.section("Options"):
            formatter.write_dl([record for record in records.values() if record])


def describes_a_job(command: Command) -> Command:
    """Give a command the job's options and the CMD argument."""
    command = click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[--] CMD ...")(
        command
    )
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def describes_a_template(command: Command) -> Command:
    """The same for what is stored. What is about one job is taken all the same, to be refused with
    a word about when to give it, but not offered."""
    command = describes_a_job(command)
    for option in vars(command)["__click_params__"]:
        if option.name in OF_ONE_JOB:
            option.hidden = True
    return command


def describes_jobs_of_a_schedule(command: Command) -> Command:
    """The same, without what a schedule says of itself: its name, and when. What needs a repository
    when it fires is refused with the reason, so it is taken but not offered."""
    command = describes_a_template(command)
    options = vars(command)["__click_params__"]
    options[:] = [option for option in options if option.name not in ("name", "at")]
    for option in (each for each in options if isinstance(each, click.Option)):
        option.hidden |= option.name in ("worktree", "pin_head", "save_patch")
        if option.name == "cwd":
            option.help = "Where its jobs run; else in the project's folder."
        elif option.name == "require":
            option.help = "custom:ID must hold (repeat)."
    return command


def may_use_a_template(command: Command) -> Command:
    """Give a command that makes a job the options to make it from a template."""
    for option in (
        click.option(
            "--param", multiple=True, metavar="K=V", help="A parameter of the template (repeat)."
        ),
        click.option("--template", metavar="NAME", help="Take what is not given from a template."),
    ):
        command = option(command)
    return command


def request_from(options: Mapping[str, Any], *, now: int) -> Request:
    """The request that the options describe. Raises on the first that is wrong."""
    agent = None
    if any(options[each] for each in _OF_AGENTS):
        from headway.cli.agent_options import agent_of

        agent = agent_of(options)
    if not options["argv"] and options["shell"] is None and agent is None:
        raise click.UsageError("What is to run? Give a command after --, or --shell STRING.")
    given = {name: options[name] for name in Request._fields if name in options}
    given |= {field: read(options[option]) for option, (field, read) in _READ.items()}
    given |= {"at": None, **when(options["delay"], options["at"], now, "--at")}
    return Request(**given | {"agent": agent, "position": _position(options)})


def asks_for_stdin(request: Request) -> bool:
    """Whether `--stdin -` was given."""
    return request.stdin == "-"


def _rates(entries: Sequence[str]) -> tuple[Rate, ...]:
    if not entries:
        return ()
    from headway.jobs.quotas import parse_rate

    return tuple(parse_rate(each) for each in entries)


def _position(options: Mapping[str, Any]) -> int | None:
    position: int | None = options["position"]
    if not options["front"]:
        return position
    if position is not None:
        raise InvalidInputError("give --position or --front, not both")
    return 1


def parse_labels(entries: Sequence[str]) -> dict[str, str]:
    labels = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not equals:
            raise InvalidInputError(f"--label {entry!r} is not of the form KEY=VALUE")
        labels[key] = value
    return labels


def parse_env(entries: Sequence[str]) -> dict[str, str]:
    env = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not equals:
            if name not in os.environ:
                raise InvalidInputError(
                    f"--env {name}: you have no such variable; use {name}=VALUE"
                )
            value = os.environ[name]
        env[name] = value
    return env


def _words(entries: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for each in entries for word in each.split(","))


# option: (the field of a request, how it is read). Any other has the same name and value there.
_READ: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "label": ("labels", parse_labels),
    "after": ("after", lambda texts: tuple(map(parse_reference, texts))),
    "lock": ("locks", lambda texts: tuple(parse_lock(each) for each in texts)),
    "retry_on": ("retry_on", _words),
    "skip_exit_code": ("skip_exit_codes", tuple),
    "env": ("env", parse_env),
    "on_finish": ("on_finish", split_command),
    "no_check": ("check", lambda skipped: not skipped),
    "type_": ("type", lambda word: word),
    "resource": ("resources", tuple),
    "rate": ("rates", _rates),
    "webhook": ("webhooks", tuple),
}
