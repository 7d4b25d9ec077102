"""The job graph in the small model: artifacts, a pinned head, a person, rewinds, retention."""

from typing import Any

from small_model import ENDED, Job, Model

ACTIVE = ("waiting", "running")


class GraphModel(Model):
    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.head = "a"  # where the one branch is
        self.markers: set[tuple[str, int]] = set()  # artifact and who published it
        self.ever: set[tuple[str, int]] = set()  # also those that a rewind has withdrawn
        self.gone: dict[int, bool] = {}  # removed jobs: whether their chains had succeeded

    # -- gates ---------------------------------------------------------------------------------

    def predecessors(self, job: Job) -> list[str]:
        """What was satisfied when it was removed stays so; anything else is missing for ever."""
        return [
            self.last(self.jobs[each].chain).state
            if each in self.jobs
            else "succeeded"
            if self.gone[each]
            else "missing"
            for each in job.after
        ]

    def holds_back(self, job: Job) -> str | None:
        """In the order of the gates; the first that objects decides."""
        objection = self.holds_back_inside(job)
        if objection is None and job.pin is not None and job.pin != self.head:
            return "wait"
        return objection or ("wait" if job.approval == "pending" else None)

    def holds_back_inside(self, job: Job) -> str | None:
        """The same, without what can change unseen while a job waits for capacity."""
        objection = super().holds_back(job)
        for key in job.needs:
            objection = objection or self._lacks(key)
        return objection

    def misses(self, job: Job) -> bool:
        """Someone before it has not succeeded, or something that it needs is not there."""
        before = {*self.predecessors(job)} - {"succeeded"}
        return bool(before) or any(self._lacks(key) for key in job.needs)

    def _lacks(self, key: str) -> str | None:
        """There if anyone has published it; else it depends on those who make it."""
        if any(key == published for published, _ in self.markers):
            return None
        makers = {job.chain for job in self.jobs.values() if key in job.produces}
        return "wait" if any(self.last(each).state in ACTIVE for each in makers) else "never"

    def end(
        self, job: Job, ending: str, code: int | None = None, *, tree_gone: bool = True
    ) -> None:
        super().end(job, ending, code, tree_gone=tree_gone)
        if job.state == "succeeded":
            for key in job.produces:
                self.publish(job, key)

    def publish(self, job: Job, key: str) -> None:
        self.markers.add((key, job.id))
        self.ever.add((key, job.id))

    def reject(self, job: Job) -> None:
        job.state, job.approval = "blocked_by_approval", "rejected"
        self.chain_over(job)

    def ahead(self, job: Job) -> set[int]:
        """The chains whose turn comes before this job's, as far as they have not ended."""
        return set()

    def hopeless(self) -> set[int]:
        """Active jobs that could only wait for each other."""
        active = {job.id: job for job in self.jobs.values() if job.state in ACTIVE}
        lasts = {job.chain: number for number, job in active.items()}
        hopeful: set[int] = set()
        while True:
            more = {
                number
                for number, job in active.items()
                if all(
                    lasts.get(self.jobs[each].chain, 0) in {0, *hopeful}
                    for each in job.after
                    if each in self.jobs
                )
                and all(self._may_come(key, active, hopeful) for key in job.needs)
                and all(lasts[each] in hopeful for each in self.ahead(job))
            }
            if more == hopeful:
                return active.keys() - hopeful
            hopeful = more

    def _may_come(self, key: str, active: dict[int, Job], hopeful: set[int]) -> bool:
        makers = {number for number, job in active.items() if key in job.produces}
        return self._lacks(key) is None or not makers or bool(makers & hopeful)

    def awaited(self, chain: int) -> set[int]:
        """Also those who make what it needs and is not there."""
        makers = {
            job.chain
            for key in self.last(chain).needs
            if self._lacks(key) is not None
            for job in self.jobs.values()
            if key in job.produces and self.last(job.chain).state in ACTIVE
        }
        return super().awaited(chain) | makers

    # -- what comes after ----------------------------------------------------------------------

    def members(self, chain: int) -> list[Job]:
        return [job for job in self.jobs.values() if job.chain == chain]

    def made_by(self, chain: int) -> set[str]:
        """What a chain has announced, and what its jobs have published without that."""
        ids = {job.id for job in self.members(chain)}
        announced = {key for job in self.members(chain) for key in job.produces}
        return announced | {key for key, by in self.ever if by in ids}

    def following(self, chain: int) -> set[int]:
        """The chains that come right after this one."""
        ids, made = {job.id for job in self.members(chain)}, self.made_by(chain)
        return {
            job.chain for job in self.jobs.values() if ids & set(job.after) or made & set(job.needs)
        }

    def segment(self, job: Job) -> list[Job]:
        """A job and all that follows from it: the nearest first, of those the oldest."""
        chains, near = [job.chain], [job.chain]
        while near:
            near = sorted({each for chain in near for each in self.following(chain)} - {*chains})
            chains += near
        return [self.last(chain) for chain in chains]

    def may_rewind(self, job: Job) -> bool:
        states = {each.state for each in self.segment(job)}
        return "running" not in states and states != {"succeeded"}

    def rewind(self, job: Job) -> Job:
        """Run it again with all that follows from it; the new root."""
        members = self.segment(job)
        chains = {each.chain for each in members}
        mine = {each.id for chain in chains for each in self.members(chain)}
        self.markers = {(key, by) for key, by in self.markers if by not in mine}
        again = [each for each in members if each.state in ENDED]
        for each in members:
            if each.state in ENDED:
                continue
            each.not_before, each.strikes, each.retries_used = each.requested, 0, 0
            each.approval = each.approval and "pending"
        for each in again:
            new = self.retry(each)
            new.approval = each.approval and "pending"
        return self.last(job.chain)

    # -- what may go ---------------------------------------------------------------------------

    def may_go(self) -> set[int]:
        """The chains that have ended and that nobody refers to any more."""
        active = [job for job in self.jobs.values() if job.state in ACTIVE]
        needed = {key for job in active for key in job.needs}
        named = {each for job in active for each in job.after}
        awaited = {chain for _, chain, _ in self.loans.values()}
        return {
            chain
            for chain in {job.chain for job in self.jobs.values()} - awaited
            if self.last(chain).state in ENDED
            and not {job.id for job in self.members(chain)} & (named | self.unproven)
            and not self.made_by(chain) & needed
        }

    def remove(self, chains: set[int]) -> set[int]:
        ids = {job.id for job in self.jobs.values() if job.chain in chains}
        for chain in chains:
            succeeded = self.last(chain).state == "succeeded"
            self.gone |= {job.id: succeeded for job in self.members(chain)}
        self.jobs = {number: job for number, job in self.jobs.items() if number not in ids}
        self.markers = {(key, by) for key, by in self.markers if by not in ids}
        self.ever = {(key, by) for key, by in self.ever if by not in ids}
        self.once_promised -= ids
        return ids

    def picture(self) -> dict[str, Any]:
        return {**super().picture(), "markers": self.markers}
