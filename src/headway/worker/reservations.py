"""The part of a step that ends and removes direct calls that are not renewed.

The process that held one is dead or silent. So may be the one that had to end its processes.
"""

from headway.base.clock import SECOND
from headway.core.reservations import Reservation, removable_at
from headway.jobs.expiry import end_overdue, remove_expired
from headway.jobs.part import Part, StepContext
from headway.store.transaction import ReadTx, WriteTx

LOOK_AGAIN = 0.5


class ReservationsPart(Part):
    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._standing: list[Reservation] = []  # as the last step saw them
        self._overdue: list[Reservation] = []
        self._delays: list[float] = []

    def remember(self, tx: ReadTx) -> None:
        self._standing = tx.reservations.all()

    def take_in(self) -> None:
        self._overdue = self._end_overdue()
        self._context.has_duties |= bool(self._overdue)

    def step(self, tx: WriteTx) -> None:
        if self._overdue:
            remove_expired(tx, self._overdue, actor=self._context.worker_id)
        before, self._standing = self._standing, tx.reservations.all()
        # Something of a removed one may be left: it is checked a little later.
        again = LOOK_AGAIN if before else 0.0
        self._delays = [max(again, (due - tx.now()) / SECOND) for due in self._due()]

    def delay(self) -> float | None:
        return min(self._delays, default=None)

    def _end_overdue(self) -> list[Reservation]:
        """Those that hold up the queue no longer, their processes ended."""
        store = self._context.store
        if not self._standing or min(self._due()) > store.present():
            return []
        with store.read() as tx:
            standing, now = tx.reservations.all(), tx.now()  # most were renewed since
        return end_overdue(standing, self._context.host.id, now)

    def _due(self) -> list[int]:
        host_id, granted_until = self._context.host.id, self._context.granted_until
        return [max(removable_at(each, host_id), granted_until) for each in self._standing]
