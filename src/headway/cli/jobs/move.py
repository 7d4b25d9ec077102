"""`headway jobs move`: a waiting job stands elsewhere in the queue."""

import click

from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.core.model import shown
from headway.core.order import Place, Side


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
    if front + back + sum(each is not None for each in (before, after, position)) != 1:
        raise click.UsageError(
            "Where to? Give one of --front, --back, --before, --after and --position."
        )
    client = scope.connect_to_change()
    if before is not None:
        place = Place(Side.BEFORE, client.jobs.find(before))
    elif after is not None:
        place = Place(Side.AFTER, client.jobs.find(after))
    elif position is not None:
        place = Place(Side.POSITION, position)
    else:
        place = Place(Side.FRONT if front else Side.BACK)
    details = client.jobs.move(client.jobs.find(job), place)
    if as_json:
        emit({"job": client.document(details.job.id), "moved": details.moved})
    else:
        say(f"{shown(details.job.id)}: {'moved' if details.moved else 'it stood there already'}")
