"""The part of a step that renews the leases of this host's claims, in a store of several hosts.

A lease shows other hosts that this one still watches its claims.
"""

from headway.jobs.part import Part
from headway.store.transaction import WriteTx
from headway.worker.tools import LEASE, Tools

RENEW_EVERY = 5.0


class LeasesPart(Part):
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._next = self._before = tools.clock.monotonic()
        self._due = False

    def take_in(self) -> None:
        tools = self._tools
        self._before = self._next
        self._due = tools.store.shared and tools.now >= self._next and tools.is_busy()
        tools.has_duties |= self._due

    def step(self, tx: WriteTx) -> None:
        if self._due:
            self._next = self._tools.now + RENEW_EVERY
            tx.claims.renew_leases(self._tools.host.id, tx.now() + LEASE)

    def undo(self) -> None:
        self._next = self._before

    def delay(self) -> float | None:
        return self._next - self._tools.now if self._next > self._tools.now else None
