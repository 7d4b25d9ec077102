"""The part of a worker's step that fires schedules."""

from headway.base.clock import SECOND
from headway.jobs.part import Part, StepContext
from headway.schedules.timekeeper import Timekeeper
from headway.store.transaction import WriteTx

LOOK_AGAIN = 1.0  # seconds, while another host has to fire what is due


class SchedulesPart(Part):
    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._timekeeper = Timekeeper(
            context.home,
            context.clock,
            shared=context.store.shared,
            actor=context.worker_id,
            host_id=context.host.id,
        )
        self._delay: float | None = None

    def step(self, tx: WriteTx) -> None:
        self._delay = None
        if not self._context.dispatching:
            return
        self._context.more |= self._timekeeper.step(tx)
        next_fire_at = tx.settings.marks()["next_fire_at"]
        if next_fire_at:
            self._delay = max(0, next_fire_at - tx.now()) / SECOND
            if self._timekeeper.left_to_others:
                self._delay = max(self._delay, LOOK_AGAIN)

    def committed(self) -> None:
        self._timekeeper.committed()

    def delay(self) -> float | None:
        return self._delay
