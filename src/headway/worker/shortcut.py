"""A faster way for some jobs, beside the general one. `ShortcutPart` itself takes none of them.

It has the same rows to write as the general way. What it does not take, the parts of the step do.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from headway.core.facts import Capacity
from headway.core.model import JobId
from headway.functions.pool.host import Returned
from headway.jobs.part import Part, StepContext
from headway.store.transaction import WriteTx


class ShortcutPart(Part):
    def __init__(self, context: StepContext) -> None:
        self._context = context
        self.started: list[JobId] = []  # by the last fast step

    def fast_step(self) -> float | None:
        """Make a fast step in the place of a full one; the seconds until something is due. None: a
        full step is needed."""
        return None

    def write(self, *, undisturbed: bool) -> AbstractContextManager[WriteTx]:
        """The transaction of a full step. `undisturbed`: as far as is known, nothing has happened
        but that functions returned and jobs were added."""
        return self._context.store.write_soon()

    def was_wrong(self) -> None:
        """That transaction raised `OthersWroteError`."""

    def settle(self, tx: WriteTx, returned: Sequence[Returned]) -> Sequence[Returned]:
        """Settle calls that only returned. Gives back those that are left to be settled."""
        return returned

    def start(self, tx: WriteTx, capacity: Capacity, limit: int | None) -> tuple[int, bool]:
        """Start jobs before the planner does; how many, and whether any is left for it."""
        return 0, True

    def go_on(self, delay: float) -> None:
        """The full step is over, and nothing is due before this delay."""
