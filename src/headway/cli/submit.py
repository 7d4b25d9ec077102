"""`headway submit`: queue a command, print its id."""

import os
from collections.abc import Callable
from typing import Any

import click

from headway.cli.options import (
    JobCommand,
    asks_for_stdin,
    describes_a_job,
    may_use_a_template,
    request_from,
)
from headway.cli.scope import NO_CHECK, Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.client import Client
    from headway.jobs.insert import Submitted
    from headway.jobs.request import Request


OF_A_POLICY = ("retry_base", "retry_cap", "retry_jitter", "retry_on")


@click.command(cls=JobCommand, context_settings={"allow_interspersed_args": False})
@describes_a_job
@may_use_a_template
@click.option(
    "--graph", metavar="FILE", help="Queue all jobs of a file, or of - for stdin, as one."
)
@click.option("--follow", is_flag=True, help="Then stream its output, as exec does.")
@click.option("--raw", is_flag=True, help="With --follow: of an agent, print its stream.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_context
def submit(
    context: click.Context,
    /,
    graph: str | None,
    follow: bool,
    raw: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Queue a command and print its id.

    What was printed is stored: it survives a crash and runs without you.
    """
    scope: Scope = context.obj
    if graph is not None:
        from headway.cli.graph_submit import submit_graph

        _refuse_options_of_one(context)
        return submit_graph(scope, graph, as_json=as_json)
    if raw and not follow:
        raise click.UsageError("--raw is about the output; give --follow, too.")
    client, submitted = submit_job(scope, options, reads_stdin=asks_for_stdin)
    if as_json:
        from headway.cli.render import emit

        emit({"created": submitted.created, "job": client.document(submitted.job_id)})
    else:
        print(f"job-{submitted.job_id}", flush=True)
    if follow:
        from headway.cli.attend import follow_to_the_end

        return follow_to_the_end(client, submitted.job_id, on_interrupt="ask", raw=raw)
    client.close()
    return 0


def _refuse_options_of_one(context: click.Context) -> None:
    """What describes one job stands in the file."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and name not in ("graph", "as_json"):
            what = parameter.opts[0] if isinstance(parameter, click.Option) else "command"
            raise click.UsageError(f"--graph takes no {what}: each job of the file has its own.")


def submit_job(
    scope: Scope, options: dict[str, Any], *, reads_stdin: "Callable[[Request], bool]"
) -> "tuple[Client, Submitted]":
    """Submit what the options describe; `reads_stdin` says whether it takes our stdin along."""
    from headway.base.clock import SystemClock

    template, params = options.pop("template"), options.pop("param")
    if template is not None:
        from headway.cli.template_options import request_from_template

        client = scope.connect_to_change()
        context = click.get_current_context()
        request = request_from_template(client, context, template, params, options)
        if reads_stdin(request):
            request = _with_stdin(request)
        _say_if_never_retried(request)
        return client, _submit(client, request)
    if params:
        raise click.UsageError("--param is about a template; name it with --template.")
    request = request_from(options, now=SystemClock().now())
    if reads_stdin(request):
        _check(request._replace(stdin=None))  # before the submitter has to end its input
        request = _with_stdin(request)
    _check_before_a_home_is_made(scope, request)
    client = scope.connect_or_create()
    _say_if_never_retried(request)
    return client, _submit(client, request)


def _say_if_never_retried(request: "Request") -> None:
    """Options of a policy without any retry."""
    if request.retries:
        return
    context = click.get_current_context()
    typed = click.core.ParameterSource.COMMANDLINE
    given = [name for name in OF_A_POLICY if context.get_parameter_source(name) is typed]
    if given:
        from headway.cli.render import say

        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        say(f"nothing is retried without --retries N; this has no effect: {options}")


def _submit(client: "Client", request: "Request") -> "Submitted":
    submitted = client.submit(request)
    if request.at is not None and request.at <= client.now():
        from headway.cli.render import say

        say(f"the time of --at has passed; job-{submitted.job_id} starts at once")
    if request.needs:
        from headway.cli.missing_producers import say_what_nobody_makes

        say_what_nobody_makes(client, [submitted.job_id])
    return submitted


def _with_stdin(request: "Request") -> "Request":
    from headway.cli.standard_input import read

    return read(request)


def _check_before_a_home_is_made(scope: Scope, request: "Request") -> None:
    """A first submit that is refused leaves nothing behind, not even the folder."""
    from headway.base.home import find_home

    if find_home(scope.home, os.environ, os.getcwd())[1]:
        return
    from headway.base.errors import NotFoundError

    _check(request)
    if request.after:
        first = request.after[0]
        called = first if isinstance(first, str) else f"job-{first}"
        raise NotFoundError(f"there is no {called}; nothing was ever submitted here")


def _check(request: "Request") -> None:
    from headway.jobs.specification import specify

    specify(request, environ=os.environ, working_directory=os.getcwd(), no_check=NO_CHECK)
