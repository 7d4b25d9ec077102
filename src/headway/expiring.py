"""Reservations that nobody renewed: first what they left on this host is ended, then they go.

In this order, because the slot is free once the row is gone: who dies in between leaves the row,
and the next one to look ends the processes again. docs/protocols.md, section 13.
"""

from collections.abc import Iterable, Sequence

from headway.core.reservations import Reservation, given_up_at, removable_at
from headway.store.base import Event, WriteTx
from headway.supervise.direct import KILL_AGAIN_SECONDS, end_direct


def end_overdue(standing: Iterable[Reservation], host_id: str, now: int) -> list[Reservation]:
    """Kill what the overdue ones have left here, and say which may be removed: those of which
    nothing is left, or which have stood for too long. For the others one comes again."""
    return [
        each
        for each in standing
        if removable_at(each, host_id) <= now
        and (_nothing_left(each, host_id) or given_up_at(each) <= now)
    ]


def _nothing_left(reservation: Reservation, host_id: str) -> bool:
    if reservation.host_id != host_id:
        return False  # nobody can tell from here
    return end_direct(reservation.token, seconds=KILL_AGAIN_SECONDS)


def remove_expired(tx: WriteTx, ended: Sequence[Reservation], *, actor: str) -> list[Reservation]:
    """The slots, or the places in line, are free; but for those that were renewed meanwhile."""
    removed = tx.expire_reservations([each.token for each in ended])
    tx.add_events((Event("expired", None, {"id": each.name}) for each in removed), actor=actor)
    return removed
