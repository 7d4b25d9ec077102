"""`headway jobs gc` and `headway jobs clean`: ended jobs go, with their files."""

import sys
from collections import Counter
from typing import Any

import click

from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import counted, emit, say
from headway.cli.scope import Scope
from headway.client import Client
from headway.collecting import Collector, Removed
from headway.core.model import JobId, shown
from headway.core.retention import Rule
from headway.errors import InvalidInputError
from headway.submission import parse_job_id
from headway.units import show_size

IN_LIMITS = "within the limits"


class Tally:
    """What a round has removed, or would remove, so far."""

    def __init__(self) -> None:
        self.jobs: list[JobId] = []
        self.log_bytes = 0
        self.kept: Counter[str] = Counter()

    def add(self, removed: Removed) -> None:
        self.jobs += removed.jobs
        self.log_bytes += removed.log_bytes
        self.kept.update(str(each.why) for each in removed.kept.values())

    def document(self) -> dict[str, Any]:
        return {
            "jobs": [shown(each) for each in self.jobs],
            "log_bytes": self.log_bytes,
            "kept": dict(sorted(self.kept.items())),
        }


@click.command()
@click.option("--days", type=WHOLE_NUMBER, metavar="N", help="What ended more than N days ago.")
@click.option("--keep", type=WHOLE_NUMBER, metavar="N", help="All but the newest N ended jobs.")
@click.option("--dry-run", is_flag=True, help="Say what would go and what stays, and why.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def gc(scope: Scope, days: int | None, keep: int | None, dry_run: bool, as_json: bool) -> None:
    """Remove ended jobs that nobody needs, with their files.

    Without a number it does what the worker does every hour, by scheduler.retention_days and
    scheduler.retention_jobs. Nothing goes that an active job refers to.
    """
    client = scope.connect() if dry_run else scope.connect_to_change()
    collector = _collector(client, _rule(days, keep))
    tally = Tally()
    while (removed := collector.preview() if dry_run else collector.step()) is not None:
        tally.add(removed)
        _progress(tally)
    _progress(None)
    if dry_run:
        tally.kept[IN_LIMITS] = _ended(client) - len(tally.jobs) - sum(tally.kept.values())
    elif tally.jobs:
        client.wake()  # logs that are gone may let others start
    if as_json:
        emit({"dry_run": dry_run, **tally.document()})
        return
    if dry_run:
        print("\n".join(shown(each) for each in tally.jobs), end="\n" if tally.jobs else "")
    _tell(tally, dry_run)


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def clean(scope: Scope, job: str, as_json: bool) -> None:
    """Remove one ended job, with its chain and its files.

    Exit 4 while it has not ended, or an active job refers to it.
    """
    client = scope.connect_to_change()
    removed = _collector(client, None).clean(parse_job_id(job))
    client.wake()
    tally = Tally()
    tally.add(removed)
    if as_json:
        emit(tally.document())
        return
    say(f"removed {', '.join(shown(each) for each in removed.jobs)}")


def _rule(days: int | None, keep: int | None) -> Rule | None:
    for option, value in (("--days", days), ("--keep", keep)):
        if value is not None and value < 0:
            raise InvalidInputError(f"{option} {value} is less than nothing")
    return None if days is None and keep is None else Rule(days, keep)


def _collector(client: Client, rule: Rule | None) -> Collector:
    return Collector(
        client.store, client.home, client.host.id, actor=client.actor, rule=rule, trouble=say
    )


def _ended(client: Client) -> int:
    with client.store.read() as tx:
        return sum(tx.count_finished(0).values())


def _progress(tally: Tally | None) -> None:
    """How far a long round is, for who looks; nothing is left of it on the terminal."""
    if not sys.stderr.isatty():
        return
    told = f"{counted(len(tally.jobs), 'job')} ..." if tally else ""
    sys.stderr.write(f"\r\x1b[K{told}")
    sys.stderr.flush()


def _tell(tally: Tally, dry_run: bool) -> None:
    verb = "would remove" if dry_run else "removed"
    say(f"{verb} {counted(len(tally.jobs), 'job')}, {show_size(tally.log_bytes)} of logs")
    for why, count in sorted(tally.kept.items()):
        if count:
            say(f"kept {count}: {why}")
