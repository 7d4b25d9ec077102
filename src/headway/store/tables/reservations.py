"""Reservations: slots for direct calls, outside of the queue."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core.model import JobId
from headway.core.reservations import Reservation
from headway.store.access import Table
from headway.store.rows import dump_reservation, load_reservation


class ReservationsReader(Table):
    """Reservations as a read transaction shows them."""

    def all(self) -> list[Reservation]:
        """As a rule there are none, which the state knows."""
        state = self._present()
        if state.reservations is None:
            state.reservations = [load_reservation(row) for row in self._db.all("reservations")]
        return list(state.reservations)

    def by_token(self, token: str) -> Reservation | None:
        row = self._db.one("reservation_by_token", token=token)
        return load_reservation(row) if row else None


class ReservationsTable(ReservationsReader):
    """Reservations as a write transaction changes them."""

    def take_id(self) -> int:
        return int(self._db.all("take_reservation_id")[0][0])

    def add(self, reservation: Reservation) -> None:
        self._db.send("add_reservation", **dump_reservation(reservation))

    def grant(self, token: str, inside: JobId | None) -> bool:
        """Give it a slot, its own or that of the running job; False if it waits no more."""
        return (
            self._db.change("grant_reservation", token=token, at=self._db.now, inside=inside) == 1
        )

    def renew(self, token: str, until: int) -> bool:
        """False if it is gone."""
        return self._db.change("renew_reservation", token=token, expires_at=until) == 1

    def release(self, reservation: Reservation) -> bool:
        """Give it up, with what it lends; False if it was gone before."""
        released = self._db.change("release_reservation", token=reservation.token) == 1
        self._end_their_lendings([reservation])
        return released

    def expire(self, tokens: Sequence[str]) -> list[Reservation]:
        """Remove those of these whose time has passed, and say which."""
        if not tokens:
            return []
        listed = self._db.json(list(tokens))
        rows = self._db.all("expire_reservations", now=self._db.now, tokens=listed)
        expired = sorted(load_reservation(row) for row in rows)
        self._end_their_lendings(expired)
        return expired

    def _end_their_lendings(self, gone: Sequence[Reservation]) -> None:
        if gone:
            ids = self._db.json([each.occupant for each in gone])
            self._db.send("end_lendings_of_jobs", ids=ids)
