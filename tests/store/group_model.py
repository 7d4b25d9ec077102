"""Groups in the small model: turns, what a failure means for the rest, an end that is told."""

from dataclasses import dataclass
from typing import Any

from graph_model import ACTIVE, GraphModel
from small_model import ENDED, Job


@dataclass
class Group:
    id: int
    mode: str
    on_failure: str
    closed: bool = False
    ended: bool = False
    told: int = 0  # how often it has come to its end
    subject: str | None = None  # what it was slung from


class GroupModel(GraphModel):
    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.groups: dict[int, Group] = {}
        self.next_group = 1
        self.starting: set[int] = set()  # those that a step starts before it looks at ends

    # -- looking -------------------------------------------------------------------------------

    def in_group(self, group: int) -> list[Job]:
        """The last job of each member, in the order of their turns."""
        chains = {job.chain for job in self.jobs.values() if job.group == group}
        return sorted((self.last(chain) for chain in chains), key=lambda job: job.turn)

    def _goes_in_turn(self, job: Job) -> bool:
        return job.group is not None and self.groups[job.group].mode == "sequential"

    def ahead(self, job: Job) -> set[int]:
        if not self._goes_in_turn(job):
            return set()
        members = self.in_group(job.group or 0)
        return {each.chain for each in members if each.turn < job.turn and each.state in ACTIVE}

    def holds_back_inside(self, job: Job) -> str | None:
        return super().holds_back_inside(job) or ("wait" if self.ahead(job) else None)

    def awaited(self, chain: int) -> set[int]:
        """Also those whose turn comes before."""
        return super().awaited(chain) | self.ahead(self.last(chain))

    def following(self, chain: int) -> set[int]:
        job = self.last(chain)
        if not self._goes_in_turn(job):
            return super().following(chain)
        members = self.in_group(job.group or 0)
        return super().following(chain) | {each.chain for each in members if each.turn > job.turn}

    def status_of(self, group: Group) -> str:
        states = [each.state for each in self.in_group(group.id)]
        if not group.closed or {*states} & {*ACTIVE}:
            return "RUNNING"
        if states and {*states} <= {"succeeded", "skipped"}:
            return "COMPLETED"
        ran = any(job.group == group.id and job.run for job in self.jobs.values())
        return "PARTIAL" if ran else "CANCELLED"

    def takes_members(self, group: Group) -> bool:
        """Not when it is closed, and not when it has stopped."""
        failed = {each.state for each in self.in_group(group.id)} & _FAILURES
        return not group.closed and not (failed and group.on_failure != "continue")

    # -- acting --------------------------------------------------------------------------------

    def make_group(self, mode: str, on_failure: str) -> Group:
        group = Group(self.next_group, mode, on_failure)
        self.groups[group.id] = group
        self.next_group += 1
        return group

    def join(self, job: Job, group: Group) -> None:
        turns = [each.turn for each in self.jobs.values() if each.group == group.id]
        job.group, job.turn = group.id, max(turns, default=0) + 1

    def close(self, group: Group) -> None:
        group.closed = True
        self._perhaps_ended(group)

    def cancel_group(self, group: Group) -> None:
        """All together: one that ends does not decide about another."""
        members = [each for each in self.in_group(group.id) if each.state in ACTIVE]
        group.closed = True
        waiting = [each for each in members if each.state == "waiting"]
        for each in waiting:
            each.state = "cancelled"
        for each in waiting:
            self.chain_over(each)
        for each in members:
            each.cancelling = each.cancelling or each.state == "running"
        self._perhaps_ended(group)

    def chain_over(self, job: Job) -> None:
        super().chain_over(job)
        group = self.groups.get(job.group or 0)
        if group is None:
            return
        if job.state in _FAILURES and group.on_failure != "continue":
            rest = [each for each in self.in_group(group.id) if self._is_rest(group, job, each)]
            for each in rest:
                each.state = "cancelled" if group.on_failure == "stop" else "skipped"
            for each in rest:
                self.chain_over(each)
        self._perhaps_ended(group)

    def _is_rest(self, group: Group, job: Job, each: Job) -> bool:
        """In a sequential group those behind it; what runs or is being tried again is left."""
        behind = group.mode == "parallel" or each.turn > job.turn
        again = each.retries_used or (
            each.retry_of and each.not_before not in (None, each.requested)
        )
        begun = each.state != "waiting" or again or each.id in self.starting
        return behind and not begun

    def _perhaps_ended(self, group: Group) -> None:
        active = any(each.state in ACTIVE for each in self.in_group(group.id))
        if group.closed and not active and not group.ended:
            group.ended = True
            group.told += 1

    def plan(self, seen: dict[int, int | None]) -> list[int]:
        """Of a parallel group one may start in the step in which another ends without a run."""
        self.starting = {*seen}
        started = super().plan(seen)
        self.starting = set()
        return started

    def rewind(self, job: Job) -> Job:
        groups = {each.group for each in self.segment(job)} - {None}
        root = super().rewind(job)
        for each in groups:
            self.groups[each or 0].ended = False
        return root

    def may_go(self) -> set[int]:
        """Nothing of a group that has not ended."""
        needed = {job.chain for job in self.jobs.values() if job.group and self._goes_on(job.group)}
        return super().may_go() - needed

    def _goes_on(self, group: int) -> bool:
        return not self.groups[group].ended

    def remove(self, chains: set[int]) -> set[int]:
        touched = {job.group for job in self.jobs.values() if job.chain in chains} - {None}
        ids = super().remove(chains)
        for each in touched:
            if not self.in_group(each or 0):
                del self.groups[each or 0]
        return ids

    def picture(self) -> dict[str, Any]:
        return {
            **super().picture(),
            "groups": {
                group.id: (
                    (group.mode, group.on_failure, group.closed, group.ended),
                    self.status_of(group),
                    [(job.chain, job.id, job.turn) for job in self.in_group(group.id)],
                )
                for group in self.groups.values()
            },
        }


_FAILURES = {*ENDED} - {"succeeded", "skipped"}
