"""`headway jobs move` and `headway jobs reorder`."""

import click

from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.core.model import shown
from headway.core.order import Place, Side
from headway.ordering import move as move_job
from headway.ordering import reorder as reorder_jobs
from headway.submission import parse_job_id


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--front", is_flag=True, help="Before all others of its priority.")
@click.option("--back", is_flag=True, help="Behind all others of its priority.")
@click.option("--before", metavar="OTHER", help="Right before this job.")
@click.option("--after", metavar="OTHER", help="Right behind this job.")
@click.option("--position", type=WHOLE_NUMBER, metavar="N", help="The N-th of its priority.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def move(
    scope: Scope,
    job: str,
    front: bool,
    back: bool,
    before: str | None,
    after: str | None,
    position: int | None,
    as_json: bool,
) -> None:
    """Let a waiting job stand elsewhere in the queue.

    It moves among the jobs that wait and have the same priority. Exit 4 if it runs or has ended,
    or if OTHER has another priority.
    """
    asked = [
        *([Place(Side.FRONT)] if front else []),
        *([Place(Side.BACK)] if back else []),
        *([Place(Side.BEFORE, parse_job_id(before))] if before is not None else []),
        *([Place(Side.AFTER, parse_job_id(after))] if after is not None else []),
        *([Place(Side.POSITION, position)] if position is not None else []),
    ]
    if len(asked) != 1:
        raise click.UsageError(
            "Where to? Give one of --front, --back, --before, --after and --position."
        )
    client = scope.connect_to_change()
    told = move_job(client, parse_job_id(job), asked[0])
    if as_json:
        emit({"job": client.document(told.job.id), "moved": told.moved})
    else:
        say(f"{shown(told.job.id)}: {'moved' if told.moved else 'it stood there already'}")


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB ...")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def reorder(scope: Scope, jobs: tuple[str, ...], as_json: bool) -> None:
    """Let waiting jobs take the order given.

    They share out the places that they have now; nobody else is moved. All of them wait and have
    the same priority, or nothing is changed (exit 4).
    """
    asked = [parse_job_id(each) for each in jobs]
    client = scope.connect_to_change()
    told = reorder_jobs(client, asked)
    moved = [shown(each.job.id) for each in told if each.moved]
    if as_json:
        emit({"jobs": [client.document(each) for each in asked], "moved": moved})
    else:
        say(f"moved {', '.join(moved)}" if moved else "they stood in this order already")
