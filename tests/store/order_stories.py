"""What people do to the order of a queue: moves, reorders, other priorities.

The model knows the order as that of a plain list. The numbers by which it is kept are the store's
own affair: the model takes them over, after it has seen that they say the same.
"""

from hypothesis import note
from hypothesis import strategies as st
from small_model import Job
from storytelling import Told, act

from headway.core.order import Place, Side
from headway.editing import Changes, edit
from headway.ordering import move, reorder

A_NUMBER = st.integers(0, 1 << 16)


class OrderStories(Told):
    def _peers(self, job: Job) -> list[Job]:
        """The others that wait and have its priority, in order."""
        return [each for each in self.waiting() if each.priority == job.priority and each != job]

    def _now_stand(self, expected: list[Job]) -> None:
        """These are the waiting jobs of one priority, in this order."""
        with self.store.read() as tx:
            rows = tx.jobs([job.id for job in expected]) if expected else {}
        in_order = sorted(rows, key=lambda each: rows[each].order)
        assert in_order == [job.id for job in expected]
        for job in expected:
            job.place = rows[job.id].position

    @act(
        when=lambda story: story.waiting(),
        which=A_NUMBER,
        how=st.sampled_from((*Side, "reorder", "priority")),
    )
    def change_order(self, which: int, how: str) -> None:
        waiting = self.waiting()
        job = waiting[which % len(waiting)]
        if how == "reorder":
            self._reorder(job, which)
        elif how == "priority":
            note(f"job-{job.id}: another priority")
            edit(self.client, job.id, Changes(priority=1 - job.priority))
            job.priority = 1 - job.priority
            self._now_stand([*self._peers(job), job])
        else:
            self._move(job, Side(how), which // 7)

    def _move(self, job: Job, side: Side, which: int) -> None:
        others = self._peers(job)
        at = which % len(others) if others else 0
        if not others and side in (Side.BEFORE, Side.AFTER):
            side = Side.FRONT
        number = others[at].id if side in (Side.BEFORE, Side.AFTER) else at + 1
        index = {Side.FRONT: 0, Side.BACK: len(others), Side.AFTER: at + 1}.get(side, at)
        note(f"job-{job.id}: {side} {number}")
        move(self.client, job.id, Place(side, number))
        self._now_stand([*others[:index], job, *others[index:]])

    def _reorder(self, job: Job, which: int) -> None:
        peers = sorted([*self._peers(job), job], key=lambda each: each.order)
        chosen = peers[which // 5 % len(peers) :]
        wanted = chosen[::-1] if which % 2 else [*chosen[1:], *chosen[:1]]
        note(f"reordered: {[each.id for each in wanted]}")
        reorder(self.client, [each.id for each in wanted])
        left = iter(wanted)
        self._now_stand([next(left) if each in chosen else each for each in peers])
