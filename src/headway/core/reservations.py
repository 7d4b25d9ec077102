"""A slot for a caller outside of the queue: what is known of one, and how long it stands.

Its holder renews it. One that is not renewed in time is gone, so a holder that dies without a word
keeps the queue waiting no longer than that.
"""

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


def removable_at(reservation: Reservation, host_id: str) -> int:
    """When this host may look after one that nobody renews. If nobody is there to end what it has
    left on its own host, others do not wait for that forever."""
    return reservation.expires_at if reservation.host_id == host_id else given_up_at(reservation)


def given_up_at(reservation: Reservation) -> int:
    """When it goes even if something of it may be left."""
    return reservation.expires_at + STANDS_BESIDES


def renewal_period(expiry: int) -> int:
    """How often a holder renews what stands this long without: two may fail in a row."""
    return expiry * 3 // 10
