"""The part of a step that ends slots which were lent and are not renewed."""

from headway.jobs.part import Part, StepContext
from headway.store.transaction import WriteTx

LOOK_AGAIN = 1.0


class LendingsPart(Part):
    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._lent = False

    def step(self, tx: WriteTx) -> None:
        if tx.now() >= self._context.granted_until and tx.claims.lendings():
            tx.claims.end_expired_lendings(tx.now())
        self._lent = bool(tx.claims.lendings())

    def delay(self) -> float | None:
        return LOOK_AGAIN if self._lent else None
