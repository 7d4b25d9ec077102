"""The part of a step that stops runs whose time is over."""

from headway.base.clock import SECOND
from headway.jobs.part import Part, StepContext
from headway.jobs.routes import NEXT_DEADLINE
from headway.store.transaction import WriteTx
from headway.workflows.runs import TIMEOUT, stop_within


class RunDeadlinesPart(Part):
    """The next deadline is a mark, which every step knows anyway: no step asks for it."""

    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._left: float | None = None  # seconds until then

    def step(self, tx: WriteTx) -> None:
        deadline = tx.settings.marks()[NEXT_DEADLINE]
        if deadline and deadline <= tx.now():
            for record in tx.workflows.past_deadline():
                stop_within(tx, record, by=TIMEOUT, actor=self._context.worker_id)
            deadline = tx.workflows.next_deadline() or 0
            tx.settings.set_mark(NEXT_DEADLINE, deadline)
        self._left = (deadline - tx.now()) / SECOND if deadline else None

    def delay(self) -> float | None:
        return self._left
