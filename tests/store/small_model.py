"""What the store should hold, worked out a second time in the words of docs/concepts.md.

It shares no line with `headway.core`: plain dicts and sets, every question answered by looking at
everything. It is slow and simple, so that where the two disagree the reader can tell who is right.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

SECOND = 1_000_000
ENDED = (
    "succeeded",
    "failed",
    "skipped",
    "cancelled",
    "blocked_by_dependency",
    "blocked_by_approval",
)
STRIKES = (1 * SECOND, 5 * SECOND)  # the third failure to launch is the last


@dataclass
class Job:
    id: int
    chain: int
    created: int
    place: Fraction  # where it stands among those of its level; only the order says anything
    priority: int = 0
    level: int = 0  # the priority that it has come to by its age
    after: tuple[int, ...] = ()
    locks: dict[str, str] = field(default_factory=dict)
    not_before: int | None = None
    requested: int | None = None  # by its submitter
    retries: int = 0
    retry_base: int = 0
    retry_on: tuple[str, ...] = ()
    retry_of: int | None = None
    attempt: int = 1
    retries_used: int = 0
    state: str = "waiting"
    run: tuple[str | None, int | None] | None = None  # the status and exit code of its run
    cancelling: bool = False
    strikes: int = 0
    lender: int | None = None
    probe: bool = False
    starts: int = 0
    undone: int = 0
    needs: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    pin: str | None = None  # the commit that the one branch must be at
    approval: str | None = None  # "pending" or "approved"; None: nobody is asked
    kind: str = "command"
    resources: tuple[str, ...] = ()
    target: str | None = None
    rates: tuple[str, ...] = ()
    group: int | None = None
    turn: int = 0  # its place in its group
    subject: str | None = None  # the work item that it was slung for

    @property
    def order(self) -> tuple[int, Fraction, int, int]:
        return (-self.level, self.place, self.created, self.id)


class Model:
    def __init__(self, now: int) -> None:
        self.now = now
        self.jobs: dict[int, Job] = {}
        self.next_id = 1
        self.max_active = 1
        self.paused = False
        self.unproven: set[int] = set()  # ended, but their process trees may live
        self.loans: dict[str, tuple[int, int, int]] = {}  # token: lender, chain, until
        self.trouble: tuple[int, int] | None = None  # failures in a row, when to try again
        self.promised: set[int] = set()  # by the last plan: who has locks kept for it
        self.once_promised: set[int] = set()  # by any plan

    # -- looking -------------------------------------------------------------------------------

    def having(self, state: str) -> list[Job]:
        found = [job for job in self.jobs.values() if job.state == state]
        return sorted(found, key=lambda job: job.order)

    def last(self, chain: int) -> Job:
        return max(
            (job for job in self.jobs.values() if job.chain == chain), key=lambda job: job.id
        )

    def predecessors(self, job: Job) -> list[str]:
        """The state of the last job of each chain that this one comes after."""
        return [self.last(self.jobs[each].chain).state for each in job.after]

    def holds_back(self, job: Job) -> str | None:
        """What is in its way but locks and slots: "never" if that cannot change, else "wait"."""
        if not self.is_due(job):
            return "wait"
        before = set(self.predecessors(job))
        if before & {*ENDED[1:], "missing"}:
            return "never"
        return "wait" if before - {"succeeded"} else None

    def held(self) -> set[tuple[str, int, str]]:
        """Locks are held while the job runs and until its process tree is proven gone."""
        holders = [each.id for each in self.having("running")] + list(self.unproven)
        return {
            (key, each, mode) for each in holders for key, mode in self.jobs[each].locks.items()
        }

    def is_due(self, job: Job) -> bool:
        return job.not_before is None or job.not_before <= self.now

    def is_shut(self) -> bool:
        """Paused, or the host cannot start processes and it is not yet time to try one more."""
        if self.paused or self.trouble is None:
            return self.paused
        return self.now < self.trouble[1] or any(job.probe for job in self.having("running"))

    def occupied(self) -> int:
        """Running jobs, without those in a slot whose holder still lends it."""
        lending = {lender for lender, _, _ in self.loans.values()}
        return sum(job.lender not in lending for job in self.having("running"))

    def lenders(self, job: Job) -> set[int]:
        """Who waits for this job's chain and lends it a slot that carries nobody yet."""
        taken = {each.lender for each in self.having("running")}
        return {
            lender
            for lender, chain, _ in self.loans.values()
            if lender not in taken and job.chain in self._awaited(chain)
        }

    def _awaited(self, chain: int) -> set[int]:
        found, ahead = {chain}, [chain]
        while ahead:
            new = self.awaited(ahead.pop()) - found
            found |= new
            ahead += new
        return found

    def awaited(self, chain: int) -> set[int]:
        """The chains that this one itself still waits for."""
        others = {self.jobs[each].chain for each in self.last(chain).after if each in self.jobs}
        return {each for each in others if self.last(each).state in ("waiting", "running")}

    def slots_for(self, job: Job) -> set[int | None]:
        """Whose slot it may have now: None is a slot of its own; empty, there is none."""
        if self.is_shut():
            return set()
        if self.max_active <= 0 or self.occupied() < self.max_active:
            return {None}
        return set(self.lenders(job)) if self.occupied() == self.max_active else set()

    def lacks(self, job: Job, promised: list[Job]) -> bool:
        """A lock is held by someone in the way, or promised to one before it in the order."""
        wanted_by = [(key, mode) for key, _, mode in self.held()]
        wanted_by += [lock for each in promised for lock in each.locks.items()]
        return any(
            key == other and "exclusive" in (mode, others)
            for key, mode in job.locks.items()
            for other, others in wanted_by
        )

    def picture(self) -> dict[str, Any]:
        """All of it, as `stories.picture` shows the store."""
        running = self.having("running")
        return {
            "jobs": {
                job.id: (
                    job.state,
                    (job.chain, job.retry_of, job.attempt, job.retries_used),
                    job.not_before,
                    job.cancelling,
                    job.strikes,
                    job.approval,
                )
                for job in self.jobs.values()
            },
            "order": [(job.id, job.level) for job in self.having("waiting")],
            "runs": {job.id: job.run for job in self.jobs.values() if job.run is not None},
            "locks": self.held(),
            "claims": {job.id: (job.lender, job.probe) for job in running},
            "slots": {job.id: job.lender for job in running},
            "unproven": self.unproven,
            "loans": sorted(self.loans.values()),
            "paused": self.paused,
            "max_active": self.max_active,
            "trouble": self.trouble,
        }

    # -- acting --------------------------------------------------------------------------------

    def submit(self, **fields: Any) -> Job:
        """Behind all jobs that there are."""
        number = self._new_id()
        level = self.level_of(fields.get("priority", 0), self.now)
        place = max((job.place for job in self.jobs.values()), default=Fraction(0)) + 1
        self.jobs[number] = Job(number, number, self.now, place, level=level, **fields)
        return self.jobs[number]

    def level_of(self, priority: int, born: int) -> int:
        return priority

    def retry(self, job: Job, *, used: int = 0, not_before: int | None = None) -> Job:
        """A new job in the place of the old one, with the same work to do; the chain is as old as
        its first job."""
        number = self._new_id()
        self.jobs[number] = replace(
            job,
            id=number,
            created=self.now,
            level=self.level_of(job.priority, self.jobs[job.chain].created),
            not_before=max((at for at in (not_before, job.requested) if at), default=None),
            retry_of=job.id,
            attempt=job.attempt + 1,
            retries_used=used,
            state="waiting",
            run=None,
            cancelling=False,
            strikes=0,
            lender=None,
            probe=False,
            starts=0,
            undone=0,
        )
        return self.jobs[number]

    def _new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def plan(self, seen: dict[int, int | None]) -> list[int]:
        """Who starts now, in order. `seen` is who did, and in whose slot: it decides where there is
        a choice of slots, and where `_kept_back` leaves it open."""
        self.loans = {token: loan for token, loan in self.loans.items() if loan[2] >= self.now}
        self._block()
        started, promised, kept_back = [], [], []
        for job in self.having("waiting"):
            if self.holds_back(job) is not None:
                continue
            slots = self.slots_for(job)
            if self.lacks(job, promised):
                promised += [job] if slots else []
            elif slots and job.id not in seen and self._kept_back(job):
                kept_back.append(job)
            elif slots:
                self._start(job, seen.get(job.id) if slots != {None} else None)
                assert job.lender in slots, f"job-{job.id} is in the slot of {job.lender}"
                started.append(job.id)
        for job in kept_back:
            assert self._keeps(job) or not self.slots_for(job), f"job-{job.id} could have started"
        self.promised = {job.id for job in promised}
        self.once_promised |= self.promised
        return started

    def _kept_back(self, job: Job) -> bool:
        """A liberty of a planner that looks only at what changed: a promise stands until the one
        who has it is looked at again, though it could not start any more."""
        return self._keeps(job)

    def _keeps(self, job: Job) -> bool:
        before = [each for each in self.having("waiting") if each.order < job.order]
        return self.lacks(job, [each for each in before if each.id in self.once_promised])

    def _block(self) -> None:
        """A job that can never start ends."""
        while True:
            never = [job for job in self.having("waiting") if self.holds_back(job) == "never"]
            if not never:
                return
            for job in never:
                if job.state == "waiting":
                    job.state = "blocked_by_dependency"
                    self.chain_over(job)

    def _start(self, job: Job, lender: int | None) -> None:
        job.state, job.run, job.lender = "running", (None, None), lender
        job.probe = self.trouble is not None
        job.starts += 1

    def end(
        self, job: Job, ending: str, code: int | None = None, *, tree_gone: bool = True
    ) -> None:
        """`exited` with a code, `signal`, `cancelled`, or `unknown`: nobody saw how it ended."""
        if ending == "exited" and code == 0:
            state, ran = "succeeded", ("COMPLETED", code)
        elif ending == "cancelled" or (ending == "unknown" and job.cancelling):
            state, ran = "cancelled", ("FAILED", 143)
        else:
            state, ran = "failed", ("FAILED", code)
        self._over(job, state, ran)
        if not tree_gone:
            self.unproven.add(job.id)
        word = str(code) if ending == "exited" else ending
        again = not job.retry_on or word in job.retry_on
        if state == "failed" and again and not job.cancelling and job.retries_used < job.retries:
            wait = min(3600 * SECOND, job.retry_base * 2**job.retries_used)
            self.retry(job, used=job.retries_used + 1, not_before=self.now + wait)
        else:
            self.chain_over(job)

    def chain_over(self, job: Job) -> None:
        """The last job of a chain has ended."""

    def _over(self, job: Job, state: str, run: tuple[str | None, int | None] | None) -> None:
        job.state, job.run = state, run
        self.loans = {token: loan for token, loan in self.loans.items() if loan[0] != job.id}
        if job.probe and run is not None:
            self.trouble = None

    def undo(self, job: Job) -> None:
        """Nothing was started: back to the queue, or the end if someone cancelled it."""
        if job.cancelling:
            self._over(job, "cancelled", None)
            self.chain_over(job)
            return
        job.state, job.run, job.lender, job.probe = "waiting", None, None, False
        job.undone += 1

    def cannot_launch(self, job: Job) -> None:
        """Its program cannot be executed: the third time in a row it fails."""
        if job.cancelling:
            self.undo(job)
        elif job.strikes == len(STRIKES):
            self._over(job, "failed", ("FAILED", 127))
            self.chain_over(job)
        else:
            job.not_before = self.now + STRIKES[job.strikes]
            if job.retry_of is None:
                job.requested = None  # that time has come, and is forgotten
            job.strikes += 1
            self.undo(job)

    def host_fails(self, job: Job) -> None:
        """Counts against no job; all wait, and one at a time is tried after 1, 2, 4 ... 60 s."""
        if not job.cancelling:
            failures = (self.trouble[0] if self.trouble else 0) + 1
            self.trouble = (failures, self.now + min(60, 2 ** (failures - 1)) * SECOND)
        self.undo(job)

    def cancel(self, job: Job) -> None:
        if job.state == "waiting":
            job.state = "cancelled"
            self.chain_over(job)
        else:
            job.cancelling = True

    def reset(self) -> None:
        self.trouble = None
        for job in self.having("waiting"):
            if job.strikes:
                job.strikes, job.not_before = 0, None
