"""`headway jobs gc`: ended jobs that nobody needs go, with their files."""

import sys
from collections import Counter
from typing import Any

import click

from headway.base.errors import InvalidInputError
from headway.base.units import show_size
from headway.cli.options import WHOLE_NUMBER
from headway.cli.render import counted, emit, say
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.model import JobId, shown
from headway.core.retention import RetentionRule
from headway.jobs.retention import Removed

IN_LIMITS = "within the limits"


class RemovalTally:
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
    tally = RemovalTally()

    def progress(removed: Removed) -> None:
        tally.add(removed)
        _progress(tally)

    client.jobs.gc(_rule(days, keep), preview=dry_run, progress=progress, trouble=say)
    _progress(None)
    if dry_run:
        tally.kept[IN_LIMITS] = _ended(client) - len(tally.jobs) - sum(tally.kept.values())
    if as_json:
        emit({"dry_run": dry_run, **tally.document()})
        return
    if dry_run:
        print("\n".join(shown(each) for each in tally.jobs), end="\n" if tally.jobs else "")
    _print_result(tally, dry_run)


def _rule(days: int | None, keep: int | None) -> RetentionRule | None:
    for option, value in (("--days", days), ("--keep", keep)):
        if value is not None and value < 0:
            raise InvalidInputError(f"{option} {value} is less than nothing")
    return None if days is None and keep is None else RetentionRule(days, keep)


def _ended(client: Client) -> int:
    with client.context.store.read() as tx:
        return sum(tx.jobs.count_finished(0).values())


def _progress(tally: RemovalTally | None) -> None:
    """How far a long round is; nothing is left of it on the terminal."""
    if not sys.stderr.isatty():
        return
    details = f"{counted(len(tally.jobs), 'job')} ..." if tally else ""
    sys.stderr.write(f"\r\x1b[K{details}")
    sys.stderr.flush()


def _print_result(tally: RemovalTally, dry_run: bool) -> None:
    verb = "would remove" if dry_run else "removed"
    say(f"{verb} {counted(len(tally.jobs), 'job')}, {show_size(tally.log_bytes)} of logs")
    for why, count in sorted(tally.kept.items()):
        if count:
            say(f"kept {count}: {why}")
