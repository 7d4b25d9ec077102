"""`headway jobs retry`: run a failed job again, and all that follows from it."""

from collections.abc import Mapping
from typing import Any

import click

from headway.cli.render import emit, say, to_the_second
from headway.cli.scope import Scope
from headway.cli.step_wait import listed, started_by
from headway.client import Client
from headway.core.model import JobId, shown
from headway.jobs.references import job_of_run


@click.command()
@click.argument("job", metavar="JOB|RUN")
@click.option("--again", is_flag=True, help="Also if it succeeded, and all that follows from it.")
@click.option("--dry-run", is_flag=True, help="Say what would be run again; change nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def retry(scope: Scope, job: str, again: bool, dry_run: bool, as_json: bool) -> None:
    """Run a failed segment again: the job, and everything that follows from it.

    Each of them that has ended gets a new job in its chain, however often it was tried; the old
    one stays as it is. Those that wait are put back to the start; times given with --at or --delay
    stay. What the set has made counts as missing until it is made again; what came before is not
    touched.
    """
    client = scope.connect() if dry_run else scope.connect_to_change()
    asked = client.jobs.find(job_of_run(job))
    retry_job(client, asked, again=again, dry_run=dry_run, as_json=as_json)


def retry_job(client: Client, asked: JobId, *, again: bool, dry_run: bool, as_json: bool) -> None:
    jobs = client.jobs
    if dry_run:
        planned = (jobs.preview_repeat if again else jobs.preview_retry)(asked).document([])
        if as_json:
            emit(planned)
        else:
            print("\n".join(planned["retry_set"]))
            say(f"would run again: {listed(planned['retry_set'])}{_times(planned)}")
            _say_if_blocked_again(planned)
        return
    seen = client.events.last()
    rewound = (jobs.repeat if again else jobs.retry)(asked)
    document = rewound.document(started_by(client, seen))
    if as_json:
        emit(document)
        return
    print(shown(rewound.new_root), flush=True)
    started = document["restarted"]
    say(
        f"queued again: {listed(document['reset'])}; "
        + (f"started {listed(started)}" if started else "nothing was started yet")
        + _times(document)
    )
    _say_if_blocked_again(document)


def _say_if_blocked_again(document: Mapping[str, Any]) -> None:
    """What came before is not touched by a retry, so what blocked the job blocks it again."""
    before = document.get("blocked_by")
    if before is not None:
        say(
            f"it is blocked again, by {before}; "
            f"`headway jobs retry {before}` runs both, and all between them"
        )


def _times(document: Mapping[str, Any]) -> str:
    """The times that were given to some of them, and that still count."""
    kept = document.get("not_before", {})
    words = [f"{job} not before {to_the_second(at)}" for job, at in kept.items()]
    return f"; {listed(words)}" if words else ""
