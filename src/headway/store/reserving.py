"""The verbs about slots that are lent, and those for callers outside of the queue."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core.model import JobId
from headway.core.reservations import Reservation
from headway.store.base import Lending
from headway.store.changing import Changing
from headway.store.graphreading import GraphReadTx
from headway.store.rows import dump_reservation, load_reservation


class ReservingReadTx(GraphReadTx):
    def reservations(self) -> list[Reservation]:
        """As a rule there are none, which the state knows."""
        state = self._present()
        if state.reservations is None:
            state.reservations = [load_reservation(row) for row in self._all("reservations")]
        return list(state.reservations)

    def reservation(self, token: str) -> Reservation | None:
        row = self._one("reservation_by_token", token=token)
        return load_reservation(row) if row else None


class ReservingWriteTx(ReservingReadTx, Changing):
    def take_reservation_id(self) -> int:
        return int(self._all("take_reservation_id")[0][0])

    def reserve(self, reservation: Reservation) -> None:
        self._tell("add_reservation", **dump_reservation(reservation))

    def grant(self, token: str, inside: JobId | None) -> bool:
        return self._run("grant_reservation", token=token, at=self._now, inside=inside) == 1

    def renew_reservation(self, token: str, until: int) -> bool:
        return self._run("renew_reservation", token=token, expires_at=until) == 1

    def release(self, reservation: Reservation) -> bool:
        released = self._run("release_reservation", token=reservation.token) == 1
        self._end_their_lendings([reservation])
        return released

    def expire_reservations(self, tokens: Sequence[str]) -> list[Reservation]:
        if not tokens:
            return []
        listed = self._database.json(list(tokens))
        rows = self._all("expire_reservations", now=self._now, tokens=listed)
        expired = sorted(load_reservation(row) for row in rows)
        self._end_their_lendings(expired)
        return expired

    def lend(self, token: str, lending: Lending) -> None:
        self._tell(
            "lend",
            token=token,
            job_id=lending.job_id,
            chain=lending.chain,
            expires_at=lending.expires_at,
        )

    def end_lending(self, token: str) -> None:
        self._tell("end_lending", token=token)

    def end_expired_lendings(self, now: int) -> None:
        self._tell("end_expired_lendings", now=now)

    def _end_their_lendings(self, gone: Sequence[Reservation]) -> None:
        if gone:
            ids = self._database.json([each.occupant for each in gone])
            self._tell("end_lendings_of_jobs", ids=ids)
