"""The part of a step that turns the loops of runs, and stops runs whose time is over."""

from functools import partial

from headway.base.clock import SECOND
from headway.jobs.loops import settle_runs
from headway.jobs.part import Part, StepContext
from headway.jobs.routes import NEXT_DEADLINE, UNSETTLED_RUNS
from headway.store.records import RunRecord
from headway.store.transaction import WriteTx
from headway.workflows.fans import expand_fans
from headway.workflows.runs import end_time


class RunsPart(Part):
    """Whether there is anything to do is in marks, which every step knows anyway: no step asks."""

    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._left: float | None = None  # seconds until then

    def step(self, tx: WriteTx) -> None:
        marks = tx.settings.marks()
        if marks[UNSETTLED_RUNS]:
            settle_runs(tx, actor=self._context.worker_id, expand=partial(self._expand, tx))
        deadline = marks[NEXT_DEADLINE]
        if deadline and deadline <= tx.now():
            for record in tx.workflows.past_deadline():
                end_time(tx, record, actor=self._context.worker_id)
            deadline = tx.workflows.next_deadline() or 0
            tx.settings.set_mark(NEXT_DEADLINE, deadline)
        self._left = (deadline - tx.now()) / SECOND if deadline else None

    def _expand(self, tx: WriteTx, record: RunRecord) -> None:
        context = self._context
        place, host, actor = context.home.worktrees, context.host, context.worker_id
        expand_fans(tx, record, host=host, worktrees=place, actor=actor)

    def delay(self) -> float | None:
        return self._left
