"""Events by their numbers."""

from typing import Any

from headway.base.epoch import shown_epoch
from headway.base.units import show_instant
from headway.core.model import shown
from headway.core.states import API_STATUS
from headway.jobs.context import Context
from headway.store.new_jobs import Event


def started_since(context: Context, seq: int) -> list[str]:
    """The jobs that were started after the given event."""
    with context.store.read() as tx:
        return [
            shown(event.job_id)
            for event in tx.events.since(seq, 10_000)
            if event.kind == "running" and event.job_id is not None
        ]


def events_since(context: Context, seq: int, limit: int) -> list[dict[str, Any]]:
    """The documents of the next events after a number, in the order of their commits."""
    with context.store.read() as tx:
        return [event_document(each) for each in tx.events.since(seq, limit)]


def event_document(event: Event) -> dict[str, Any]:
    """`status` is what the event made of its job, in the words of programs."""
    return {
        "seq": event.seq,
        "at": show_instant(event.at),
        "kind": event.kind,
        "status": _STATUS.get(event.kind),
        "actor": event.actor or None,
        "job": None if event.job_id is None else shown(event.job_id),
        "data": dict(event.data),
    }


_STATUS = {str(status): word for status, word in API_STATUS.items()}


def last_event(context: Context) -> int:
    with context.store.read() as tx:
        return tx.events.last()


def event_epoch(context: Context) -> str | None:
    """The epoch of the numbers of events; a restore begins another one."""
    with context.store.read() as tx:
        return shown_epoch(tx.settings.marks())
