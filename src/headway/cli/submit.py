"""`headway submit`: queue a command, print its id."""

import os
from typing import Any

import click

from headway.cli.options import describes_a_job, may_use_a_template, request_from
from headway.cli.scope import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.adding import Submitted
    from headway.client import Client
    from headway.submission import Request


@click.command(context_settings={"allow_interspersed_args": False})
@describes_a_job
@may_use_a_template
@click.option(
    "--graph", metavar="FILE", help="Queue all jobs of a file, or of - for stdin, as one."
)
@click.option("--follow", is_flag=True, help="Then stream its output, as exec does.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_context
def submit(
    context: click.Context, /, graph: str | None, follow: bool, as_json: bool, **options: Any
) -> int:
    """Queue a command and print its id.

    What was printed is stored: it survives a crash and runs without you.
    """
    scope: Scope = context.obj
    if graph is not None:
        from headway.cli.graph import submit_graph

        _refuse_options_of_one(context)
        return submit_graph(scope, graph, as_json=as_json)
    client, submitted = submit_job(scope, options)
    if as_json:
        from headway.cli.render import emit

        emit({"created": submitted.created, "job": client.document(submitted.job_id)})
    else:
        print(f"job-{submitted.job_id}", flush=True)
    if follow:
        from headway.cli.exec import follow_to_the_end

        return follow_to_the_end(client, submitted.job_id, on_interrupt="ask")
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


def submit_job(scope: Scope, options: dict[str, Any]) -> "tuple[Client, Submitted]":
    from headway.clock import SystemClock

    template, params = options.pop("template"), options.pop("param")
    if template is not None:
        from headway.cli.templated import submit_from_template

        client = scope.connect_to_change()
        context = click.get_current_context()
        return client, submit_from_template(client, context, template, params, options)
    if params:
        raise click.UsageError("--param is about a template; name it with --template.")
    request = request_from(options, now=SystemClock().now())
    _check_before_a_home_is_made(scope, request)
    client = scope.connect_or_create()
    return client, client.submit(request)


def _check_before_a_home_is_made(scope: Scope, request: "Request") -> None:
    """A first submit that is refused leaves nothing behind, not even the folder."""
    from headway.home import find_home

    here = os.getcwd()
    if find_home(scope.home, os.environ, here)[1]:
        return
    from headway.errors import NotFoundError
    from headway.submission import specify

    specify(request, environ=os.environ, working_directory=here)
    if request.after:
        raise NotFoundError(f"there is no job-{request.after[0]}; nothing was ever submitted here")
