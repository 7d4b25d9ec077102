"""The part of a worker's step that runs the helpers of targets."""

from headway.jobs.part import Part, StepContext
from headway.store.transaction import WriteTx
from headway.workitems.helpers import Helpers


class TargetHelpersPart(Part):
    def __init__(self, context: StepContext) -> None:
        self._context = context
        self.helpers = Helpers(context.home, context.config, context.clock)
        self._delay: float | None = None

    def step(self, tx: WriteTx) -> None:
        self.helpers.note_failures(tx, actor=self._context.worker_id)

    def committed(self) -> None:
        self._delay = None
        self._delay = self.helpers.run_for(self._context.served, self._context.store)

    def delay(self) -> float | None:
        return self._delay

    def close(self) -> None:
        self.helpers.close()
