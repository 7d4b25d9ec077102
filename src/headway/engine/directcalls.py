"""Direct calls, as the worker looks after them: those that nobody renews are ended and removed.

Who held one is dead or silent, and so may be who had to end its processes with it.
"""

from headway.clock import SECOND
from headway.core.reservations import Reservation, removable_at
from headway.expiring import end_overdue
from headway.store.base import ReadTx, Store

LOOK_AGAIN = 0.5


class DirectCalls:
    def __init__(self, store: Store, host_id: str) -> None:
        self._store = store
        self._host_id = host_id
        self._standing: list[Reservation] = []  # as the last step saw them

    def remember(self, standing: list[Reservation]) -> None:
        self._standing = standing

    def end_overdue(self, granted_until: int) -> list[Reservation]:
        """Those that do not hold up the queue any longer, their processes ended."""
        if not self._standing or min(self._due(granted_until)) > self._store.present():
            return []
        with self._store.read() as tx:
            standing, now = tx.reservations(), tx.now()  # most were renewed since
        return end_overdue(standing, self._host_id, now)

    def look(self, tx: ReadTx, granted_until: int) -> list[float]:
        """Remember those that there are, and when to come again: once nobody has renewed one, and a
        little later if something of it was left then."""
        before, self._standing = self._standing, tx.reservations()
        again = LOOK_AGAIN if before else 0.0
        return [max(again, (due - tx.now()) / SECOND) for due in self._due(granted_until)]

    def _due(self, granted_until: int) -> list[int]:
        return [max(removable_at(each, self._host_id), granted_until) for each in self._standing]
