"""Reservations that nobody renewed: first their processes on this host are ended, then their rows
are removed.

In this order, because the slot is free once the row is gone. A process that dies in between leaves
the row, and the next check ends the processes again. docs/protocols.md, section 13.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from headway.core.reservations import Reservation, may_go
from headway.store.new_jobs import Event
from headway.store.transaction import WriteTx
from headway.supervise.direct import KILL_AGAIN_SECONDS, end_direct


def end_overdue(standing: Iterable[Reservation], host_id: str, now: int) -> list[Reservation]:
    """Kill what the overdue ones have left here, and say which may be removed: those of which
    nothing is left, or which have stood for too long. For the others one comes again."""
    return [
        each
        for each in standing
        if may_go(each, host_id, now, partial(_nothing_left, each, host_id))
    ]


def _nothing_left(reservation: Reservation, host_id: str) -> bool:
    if reservation.host_id != host_id:
        return False  # nobody can know from here
    return end_direct(reservation.token, seconds=KILL_AGAIN_SECONDS)


def remove_expired(tx: WriteTx, ended: Sequence[Reservation], *, actor: str) -> list[Reservation]:
    """The slots, or the places in line, are free; but for those that were renewed meanwhile."""
    removed = tx.reservations.expire([each.token for each in ended])
    tx.events.add((Event("expired", None, {"id": each.name}) for each in removed), actor=actor)
    return removed
