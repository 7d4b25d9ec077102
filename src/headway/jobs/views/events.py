"""Events by their numbers."""

from headway.base.epoch import shown_epoch
from headway.core.model import (
    shown,
)
from headway.jobs.context import Context


def started_since(context: Context, seq: int) -> list[str]:
    """The jobs that were started after the given event."""
    with context.store.read() as tx:
        return [
            shown(event.job_id)
            for event in tx.events.since(seq, 10_000)
            if event.kind == "running" and event.job_id is not None
        ]


def last_event(context: Context) -> int:
    with context.store.read() as tx:
        return tx.events.last()


def event_epoch(context: Context) -> str | None:
    """The epoch of the numbers of events; a restore begins another one."""
    with context.store.read() as tx:
        return shown_epoch(tx.settings.marks())
