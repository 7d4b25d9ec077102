"""Slung work in the small model: items outside, and at most one open job for each of them."""

from direct_model import DirectModel
from graph_model import ACTIVE
from group_model import Group
from small_model import Job

OPEN, BLOCKED, CLOSED = "open", "blocked", "closed"


class SlingModel(DirectModel):
    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.items: dict[str, str] = {}
        self.noticed: set[int] = set()  # jobs that the last step has cancelled

    def open_about(self, subject: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.subject == subject and job.state in ACTIVE]

    def group_about(self, subject: str) -> Group | None:
        """The newest that tracks it and has not ended: parallel, and a failure stops nobody."""
        found = {job.group for job in self.jobs.values() if job.subject == subject}
        found |= {group.id for group in self.groups.values() if group.subject == subject}
        fitting = [
            group
            for group in self.groups.values()
            if group.id in found
            and not group.ended
            and (group.mode, group.on_failure) == ("parallel", "continue")
        ]
        return max(fitting, key=lambda group: group.id, default=None)

    def sling(self, subject: str, **fields: object) -> Job:
        job = self.submit(subject=subject, **fields)
        group = self.group_about(subject)
        if group is None:
            group = self.make_group("parallel", "continue")
            group.subject, group.closed = subject, True
        self.join(job, group)
        return job

    def may_rewind(self, job: Job) -> bool:
        """Not if another job about one of its subjects is open, or two of them would be."""
        again = [each for each in self.segment(job) if each.state not in ACTIVE and each.subject]
        subjects = [each.subject or "" for each in again]
        free = len({*subjects}) == len(subjects) and not any(map(self.open_about, subjects))
        return super().may_rewind(job) and free

    def holds_back(self, job: Job) -> str | None:
        objection = self.holds_back_inside(job)
        if objection is None and job.subject is not None and self.items[job.subject] != OPEN:
            return "wait"
        return objection or super().holds_back(job)

    def reasons(self, job: Job) -> dict[str, set[str]]:
        found = super().reasons(job)
        if job.subject is not None and self.items[job.subject] != OPEN:
            found["subject"] = {""}
        return found

    def _is_closed(self, job: Job) -> bool:
        """And nothing else is in its way but what is asked last."""
        closed = job.subject is not None and self.items[job.subject] == CLOSED
        return closed and self.holds_back_inside(job) is None

    def _block(self) -> None:
        """A job whose item is closed is cancelled when it is looked at."""
        while True:
            super()._block()
            closed = [job for job in self.having("waiting") if self._is_closed(job)]
            noticed = [job for job in closed if job.id in self.noticed]
            if not noticed:
                return
            for job in noticed:
                job.state = "cancelled"
                self.chain_over(job)

    def plan(self, seen: dict[int, int | None]) -> list[int]:
        """It is looked at, at the latest, when nothing else is in its way."""
        started = super().plan(seen)
        for job in self.having("waiting"):
            if self._is_closed(job) and not self.lacks(job, self._before(job)):
                assert not self.slots_for(job), f"job-{job.id} is about what is closed"
        return started
