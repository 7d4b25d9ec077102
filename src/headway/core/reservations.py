"""A slot for a caller outside of the queue: what is known of one, and how long it stands.

Its holder renews it. One that is not renewed in time is gone, so a holder that dies without a word
keeps the queue waiting no longer than that. When it expires, and when it may be removed, is decided
here; `jobs.expiry` ends its processes and removes its row.
"""

from collections.abc import Callable
from typing import NamedTuple

from headway.core.model import JobId


class Reservation(NamedTuple):
    """Asked for, then granted. `inside` is the occupant whose slot it borrows, if any: a running
    job, or another of these by its number below zero."""

    id: int
    token: str
    holder: str
    note: str
    host_id: str
    pid: int
    requested_at: int
    expires_at: int
    granted_at: int | None = None
    inside: JobId | None = None
    occupies: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"direct-{self.id}"

    @property
    def waits(self) -> bool:
        return self.granted_at is None

    @property
    def occupant(self) -> JobId:
        """How it is named where a slot is lent, beside jobs: by its number below zero."""
        return -self.id


# How much longer one stands on whose processes nobody has told that they are gone: where it was
# made they are ended before it is removed.
STANDS_BESIDES = 20_000_000  # microseconds


def is_expired(reservation: Reservation, now: int) -> bool:
    """Whether nobody has renewed it in time."""
    return reservation.expires_at <= now


def removable_at(reservation: Reservation, host_id: str) -> int:
    """When this host may remove one that nobody renews. If nobody ends its processes on its own
    host, others do not wait for that forever."""
    return reservation.expires_at if reservation.host_id == host_id else given_up_at(reservation)


def given_up_at(reservation: Reservation) -> int:
    """When it goes even if something of it may be left."""
    return reservation.expires_at + STANDS_BESIDES


def may_go(reservation: Reservation, host_id: str, now: int, is_gone: Callable[[], bool]) -> bool:
    """Whether this host may remove it now. `is_gone` ends its processes here, and says whether
    nothing of them is left; it is asked only of one that is past its time."""
    if removable_at(reservation, host_id) > now:
        return False
    return is_gone() or given_up_at(reservation) <= now


def renewal_period(expiry: int) -> int:
    """How often a holder renews what stands this long without: two may fail in a row."""
    return expiry * 3 // 10
