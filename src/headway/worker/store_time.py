"""Instants of this host's clock as instants of the store's.

A supervisor and a function host know only their machine's clock, which may be wrong. Instants in a
store that several hosts share must be those of the one clock that all of them have.
"""

from typing import NamedTuple

from headway.base.clock import SECOND, Clock
from headway.store.store import Store
from headway.store.transaction import WriteTx

AGREE = SECOND  # clocks that differ by less are the same, as far as waiting goes


class HostTime(NamedTuple):
    """How this host's clock stands to the store's, in one transaction."""

    ahead: int  # so far is the store's clock before ours
    now: int  # by the store's

    def of(self, at: int, since: int) -> int:
        """An instant of ours by the store's clock. Nothing ended before it was started, nor in
        times to come, whatever was done to either clock in between."""
        return max(since, min(at + self.ahead, self.now))

    def waits_from(self, ended_at: int) -> int:
        """The instant from which a job that ended then waits for its next try. If the clocks do not
        agree, ours may have been set since."""
        return ended_at if abs(self.ahead) < AGREE else self.now


class StoreTime:
    """How the clocks of a host and of a store stand to each other."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def __call__(self, tx: WriteTx) -> HostTime | None:
        """None: it is the same clock, as with a store in a file."""
        if not self._store.shared:
            return None
        now = tx.now()  # known from here on, and with it what time it is there
        least = self._store.present() - self._clock.now()
        most = least + self._store.clock_error()
        return HostTime(min(max(0, least), most), now)  # 0 if they may be the same
