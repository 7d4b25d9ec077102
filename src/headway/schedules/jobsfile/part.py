"""The part of a worker's step that makes the jobs of the jobs file."""

from headway.jobs.part import Part, StepContext
from headway.schedules.jobsfile.rounds import Rounds
from headway.store.transaction import WriteTx


class JobsFilePart(Part):
    def __init__(self, context: StepContext) -> None:
        self._context = context
        self.rounds = Rounds(
            context.home,
            context.config,
            context.host,
            context.clock,
            worker_id=context.worker_id,
            shared=context.store.shared,
            in_thread=context.in_thread,
            say=context.say,
        )
        if context.in_thread:
            self.rounds.background.wake_up.watch(context.watchlist)

    def take_in(self) -> None:
        self.rounds.notice()

    def step(self, tx: WriteTx) -> None:
        self.rounds.ended(self._context.makers)
        self._context.makers.clear()
        if self._context.dispatching:
            self.rounds.step(tx)

    def committed(self) -> None:
        self.rounds.committed()

    def delay(self) -> float | None:
        return self.rounds.next_in() if self._context.dispatching else None

    def close(self) -> None:
        self.rounds.close()
