"""Scenes of the visiting test in which the slots of a schedule are due."""

from stage import Stage, work

from harness import wait_for
from headway.base.clock import SECOND
from headway.core.states import Status

HOUR = 3600 * SECOND


def worker_dies_firing(stage: Stage, point: str) -> None:
    """Nobody looked for five hours: one job and one row for the rest, whoever dies on the way."""
    stage.client.schedules.add(
        every="1h", shell=f"{stage.entry('start', 'a')}; {stage.entry('end', 'a')}"
    )
    _let_five_hours_pass(stage)
    stage.dies_at(point, work)
    worker = stage.actor(work)
    wait_for(lambda: stage.rows("select id from jobs"), what="the slot to fire")
    stage.called("a", 1)
    stage.until_ended(1)
    stage.leave(worker)
    stage.check_settled()
    assert stage.status(1) is Status.SUCCEEDED and len(stage.rows("select id from jobs")) == 1
    slots = stage.client.schedules.slots("schedule-1")
    assert [(each["outcome"], each["slots"]) for each in slots] == [("fired", 1), ("skipped", 4)]


def _let_five_hours_pass(stage: Stage) -> None:
    """By moving the beginning of the schedule."""
    with stage.client.context.store.write() as tx:
        (schedule,) = tx.schedules.all()
        begin = tx.now() - 5 * HOUR - SECOND
        document = {**schedule.document, "rule": {"every": HOUR, "anchor": begin}}
        tx.schedules.put(
            schedule._replace(
                document=document,
                changed_at=begin,
                looked_at=begin,
                next_slot=begin + HOUR,
                next_fire_at=begin + HOUR,
            )
        )
        tx.schedules.note_next_fire()
