"""The seam's verbs about reservations."""

from collections.abc import Sequence
from typing import Protocol

from headway.core.model import JobId
from headway.core.reservations import Reservation


class ReadsReservations(Protocol):
    def reservations(self) -> list[Reservation]:
        """All that stand, also those that are due to expire, in the order of getting slots."""

    def reservation(self, token: str) -> Reservation | None: ...


class WritesReservations(Protocol):
    def take_reservation_id(self) -> int: ...
    def reserve(self, reservation: Reservation) -> None: ...
    def grant(self, token: str, inside: JobId | None) -> bool:
        """Give it a slot, its own or that of the running job; False if it waits no more."""

    def renew_reservation(self, token: str, until: int) -> bool:
        """False if it is gone."""

    def release(self, reservation: Reservation) -> bool:
        """Give it up, with what it lends; False if it was gone before."""

    def expire_reservations(self, tokens: Sequence[str]) -> list[Reservation]:
        """Remove those of these whose time has passed, and say which."""
