"""What people do to the queue: limits, rates, places, ageing, groups."""

from typing import Any

import pytest
from group_model import Group
from hypothesis import note
from hypothesis import strategies as st
from small_model import SECOND, Job
from stories import ASKED, RESOURCES, Stories
from storytelling import A_NUMBER, act

from headway.base.errors import ConflictError, InvalidInputError, InvalidOperationError
from headway.core.order import Place, Side
from headway.jobs import groups as grouping
from headway.jobs import order as ordering
from headway.jobs.edit import Changes, edit

LIMITED = ("type:command", "type:other", "target:t", *(f"resource:{each}" for each in RESOURCES))
LIMITS = (None, None, 2, 1, 1, 1, 0)
SIDES = ("front", "back", "before", "after", "position")
PLANS = st.tuples(
    st.sampled_from(("sequential", "sequential", "parallel")),
    st.sampled_from(("stop", "continue", "skip")),
).map(lambda each: grouping.Plan(*each))


class QueueStories(Stories):
    """All that may happen to a store: to its jobs, and to the queue as a whole."""

    # -- capacity ------------------------------------------------------------------------------

    @act(2, key=st.sampled_from(LIMITED), value=st.sampled_from((*LIMITS, "as used")))
    def limit(self, key: str, value: int | str | None) -> None:
        """Set in the middle, also below what runs; or so that nothing is left."""
        value = self.model.used(key) if value == "as used" else value
        note(f"limit {key}: {value}")
        self._set_limit(key, value)

    @act(value=st.sampled_from((None, "1/4s", "2/70s")))
    def rate(self, value: str | None) -> None:
        self._set_limit("rate:r", value)

    # -- places --------------------------------------------------------------------------------

    @act(
        3,
        when=lambda self: self.waiting(),
        which=A_NUMBER,
        side=st.sampled_from(SIDES),
        other=A_NUMBER,
        times=st.sampled_from((1, 1, 1, 9)),
    )
    def move(self, which: int, side: str, other: int, times: int) -> None:
        """One after the other to the same place, until there is no room left."""
        for each in range(times):
            waiting = self.waiting()
            job, beside = waiting[(which + each) % len(waiting)], waiting[other % len(waiting)]
            if times > 1 and (job is beside or job.level != beside.level):
                continue
            self._move(job, side, beside if each or which % 5 else self._job(other), other)

    def _move(self, job: Job, side: str, other: Job, number: int) -> None:
        named = other.id if side in ("before", "after") else 1 + number % 4
        note(f"move job-{job.id} {side} {named}")
        place = Place(Side(side), named)
        if side in ("before", "after"):
            if other is job:
                with pytest.raises(InvalidInputError):
                    ordering.move(self.client.context, job.id, place)
                return
            if other.state != "waiting" or other.level != job.level:
                with pytest.raises(InvalidOperationError):
                    ordering.move(self.client.context, job.id, place)
                return
        assert ordering.move(self.client.context, job.id, place).moved is self.model.move(
            job, side, named
        )
        self._adopt([job.id])

    @act(2, when=lambda self: self.waiting(), picked=st.lists(A_NUMBER, min_size=2, max_size=4))
    def reorder(self, picked: list[int]) -> None:
        waiting = self.waiting()
        level = waiting[picked[0] % len(waiting)].level
        line = self.model.line(level)
        ids = list(dict.fromkeys(line[each % len(line)] for each in picked))
        note(f"reorder {ids}")
        ordering.reorder(self.client.context, ids)
        self.model.reorder(ids)
        self._adopt(ids)

    @act(when=lambda self: self.waiting(), which=A_NUMBER)
    def change_priority(self, which: int) -> None:
        """It stands last among those that have it."""
        job = self.waiting()[which % len(self.waiting())]
        wanted = 1 - job.priority
        note(f"job-{job.id}: priority {wanted}")
        edit(self.client.context, job.id, Changes(priority=wanted))
        job.level, job.priority = job.level + wanted - job.priority, wanted
        self.model.move(job, "back", 0)
        self._adopt([job.id])

    @act(seconds=st.sampled_from((0, 2, 30)))
    def age(self, seconds: int) -> None:
        self.client.set_setting("scheduler.ageing", f"{seconds}s")
        self.model.set_ageing(seconds * SECOND)

    # -- groups --------------------------------------------------------------------------------

    @act(2, plan=PLANS)
    def make_group(self, plan: grouping.Plan) -> None:
        made = grouping.create(self.client.context, plan)
        assert made.group == self.model.make_group(plan.mode, plan.on_failure).id

    @act(
        3,
        when=lambda self: self.waiting(),
        plan=PLANS,
        picked=st.lists(A_NUMBER, min_size=1, max_size=3),
        stays_open=st.booleans(),
    )
    def group_waiting_jobs(self, plan: grouping.Plan, picked: list[int], stays_open: bool) -> None:
        jobs = self.waiting() if picked[0] % 4 else sorted(self.model.jobs.values(), key=_by_id)
        chosen = list({jobs[each % len(jobs)].id: None for each in picked})
        members = [self.model.jobs[each] for each in chosen]
        note(f"{plan.mode} group of {chosen}")
        group = self.model.make_group(plan.mode, plan.on_failure)
        before = {job.id: (job.group, job.turn) for job in members}
        try:
            grouping.create(self.client.context, plan, chosen, stays_open=stays_open)
        except ConflictError:
            assert any(job.group or job.state != "waiting" for job in members)
        except InvalidInputError as error:
            for job in members:
                self.model.join(job, group)
            assert "a cycle" in str(error) and self.model.hopeless()
        else:
            assert not any(job.group or job.state != "waiting" for job in members)
            self._join(members, group)
            if not stays_open:
                self.model.close(group)
            return
        for job in members:
            job.group, job.turn = before[job.id]
        del self.model.groups[group.id]
        self.model.next_group = group.id

    def _join(self, members: list[Job], group: Group) -> None:
        for job in members:
            self.model.join(job, group)

    @act(3, plan=PLANS, batch=st.lists(ASKED, min_size=1, max_size=3))
    def submit_group(self, plan: grouping.Plan, batch: list[dict[str, Any]]) -> None:
        """All of it in one call."""
        asked = [self._request(**{**each, "place": None}) for each in batch]
        group = self.model.make_group(plan.mode, plan.on_failure)
        jobs = [self.model.submit(**fields) for _, fields in asked]
        self._join(jobs, group)
        note(f"{plan.mode} group-{group.id} of {[job.id for job in jobs]}: {batch}")
        try:
            grouping.submit_specs_as_group(self.client.context, [spec for spec, _ in asked], plan)
        except InvalidInputError as error:
            assert "a cycle" in str(error) and self.model.hopeless()
            self._take_back(jobs)
            del self.model.groups[group.id]
            self.model.next_group = group.id
            return
        self.model.close(group)

    @act(when=lambda self: self.model.groups, which=A_NUMBER)
    def close_group(self, which: int) -> None:
        group = self._group(which)
        assert group is not None
        _, status = grouping.close(self.client.context, f"group-{group.id}")
        self.model.close(group)
        assert status == self.model.status_of(group)

    @act(when=lambda self: self.model.groups, which=A_NUMBER)
    def cancel_group(self, which: int) -> None:
        group = self._group(which)
        assert group is not None
        note(f"cancel group-{group.id}")
        if self.model.status_of(group) != "RUNNING":
            with pytest.raises(ConflictError):
                grouping.cancel(self.client.context, f"group-{group.id}")
            return
        grouping.cancel(self.client.context, f"group-{group.id}")
        self.model.cancel_group(group)


def _by_id(job: Job) -> int:
    return job.id
