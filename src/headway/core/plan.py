"""May it start? One job at a time (`decide`), many in order (`plan`), and in words (`explain`).

`plan` folds `decide` over jobs in dispatch order: what one of them takes (a slot, a lock) or
reserves is gone for the next. So locks, slots and limits are plain arithmetic.
"""

from collections.abc import Iterable
from typing import NamedTuple, assert_never

from headway.core import capacity as admission
from headway.core import wait_words as say
from headway.core.agents import is_of_runner, reserve
from headway.core.facts import Facts, Holder, LockView, Reserver
from headway.core.gates import GATES
from headway.core.gates.graph import too_old
from headway.core.model import Block, Job, JobId, Objection, Question, Wait, WaitKind, lock_topic
from headway.core.states import Move


class Start(NamedTuple):
    """It may start; `borrows` names the waiting job whose slot it runs in."""

    borrows: JobId | None = None


class Hold(NamedTuple):
    """It waits. The first objection is shown; the job is parked under all of them.

    An `expected` one passes every gate, and starts if one more probe gives the same answer.
    Meanwhile its locks and its slot are kept for it, or others would take them each time.
    """

    waits: tuple[Wait, ...]
    expected: bool = False

    @property
    def shown(self) -> Wait:
        return self.waits[0]

    @property
    def for_capacity(self) -> bool:
        return any(wait.for_capacity for wait in self.waits)

    @property
    def reserves(self) -> bool:
        """Only a job that lacks nothing but locks may make others wait for it."""
        return self.expected or (len(self.waits) == 1 and self.shown.kind is WaitKind.LOCKS)

    @property
    def until(self) -> int | None:
        """Not the instant of a rate: the step keeps that once, for all that wait for it."""
        timed = (
            wait for wait in self.waits if wait.kind is not WaitKind.RATE or is_of_runner(wait)
        )
        return min((wait.until for wait in timed if wait.until is not None), default=None)

    @property
    def asks(self) -> tuple[Question, ...]:
        """The questions whose answers could change the decision."""
        return tuple(question for wait in self.waits for question in wait.asks)

    def topics(self, job: Job) -> tuple[str, ...]:
        topics = (topic for wait in self.waits for topic in wait.topics)
        if self.reserves:
            kept = (lock_topic(lock.key) for lock in job.locks)
            return tuple(dict.fromkeys((*kept, *topics)))
        return tuple(topics)


Decision = Start | Hold | Block


def decide(job: Job, facts: Facts) -> Decision:
    """May this job start now?"""
    waits: list[Wait] = []
    for gate in GATES:
        if waits and not gate.shared:
            break
        objection = gate.check(job, facts)
        match objection:
            case Block():
                return objection
            case Wait():
                waits.append(objection)
                if not gate.shared:
                    break
            case None:
                pass
            case _:
                assert_never(objection)
    if waits:
        return Hold(tuple(waits))
    stale = too_old(job, facts) if job.repo or job.needs or job.subject else None
    if stale is not None:
        return Hold((stale,), expected=True)
    return Start(admission.borrows(job, facts.capacity))


def explain(job: Job, facts: Facts) -> tuple[Objection, ...]:
    """Every objection of every gate, in gate order."""
    answers = (gate.check(job, facts) for gate in GATES)
    return tuple(answer for answer in answers if answer is not None)


class Planned(NamedTuple):
    job: Job
    decision: Decision


class Batch(NamedTuple):
    """One pass starts at most `most`, of which `left` are still to come."""

    most: int
    left: int

    def wait(self) -> Wait:
        """Why one that passes every gate does not start in this pass."""
        words = say.pass_is_full(self.most)
        return Wait(WaitKind.CAPACITY, words.detail, for_capacity=True, remedy=words.remedy)


def plan(
    jobs: Iterable[Job],
    facts: Facts,
    *,
    limit: int | None = None,
    batch: Batch | None = None,
) -> tuple[Planned, ...]:
    """Decide for each job in dispatch order, at most `limit` of them starting: those after the last
    permitted start are left out, they were not checked.

    In a `batch` all are decided. A job that may start beyond it is held by capacity, and counts
    there for those behind it. It takes its locks only when it starts.
    """
    locks = dict(facts.locks)
    facts = facts._replace(locks=locks)
    planned = []
    started = 0
    for job in sorted(jobs, key=lambda each: each.order):
        if limit is not None and started >= limit:
            break
        decision = decide(job, facts)
        if batch is not None and started >= batch.left and _would_start(decision):
            lender = admission.borrows(job, facts.capacity)
            facts = facts._replace(capacity=admission.enter(job, facts.capacity, lender))
            planned.append(Planned(job, Hold((batch.wait(),))))
            continue
        planned.append(Planned(job, decision))
        match decision:
            case Start():
                started += 1
                facts = facts._replace(
                    capacity=admission.enter(job, facts.capacity, decision.borrows),
                    budgets=reserve(job, facts.budgets),
                )
                for lock in job.locks:
                    view = locks.get(lock.key, LockView())
                    holder = Holder(job.id, lock.mode)
                    locks[lock.key] = view._replace(holders=(*view.holders, holder))
            case Hold():
                if decision.reserves:
                    _reserve(job, locks)
                if decision.expected:
                    started += 1
                    lender = admission.borrows(job, facts.capacity)
                    facts = facts._replace(capacity=admission.enter(job, facts.capacity, lender))
            case Block():
                pass
            case _:
                assert_never(decision)
    return tuple(planned)


def _would_start(decision: Decision) -> bool:
    return isinstance(decision, Start) or (isinstance(decision, Hold) and decision.expected)


def _reserve(job: Job, locks: dict[str, LockView]) -> None:
    for lock in job.locks:
        view = locks.get(lock.key, LockView())
        reserver = Reserver(job.id, lock.mode, job.order)
        locks[lock.key] = view._replace(reservers=(*view.reservers, reserver))


MOVE_FOR_WAIT = {
    WaitKind.DEPENDENCIES: Move.WAIT_ON_DEPS,
    WaitKind.PINNED_HEAD: Move.WAIT_ON_DEPS,
    WaitKind.PRECONDITIONS: Move.WAIT_ON_DEPS,
    WaitKind.GROUP: Move.WAIT_ON_DEPS,
    WaitKind.SUBJECT: Move.WAIT_ON_DEPS,
    WaitKind.APPROVAL: Move.WAIT_ON_APPROVAL,
    WaitKind.LOCKS: Move.WAIT_ON_LOCKS,
}


def move_for(wait: Wait) -> Move:
    """The move that shows this wait: its own state, or plain queued."""
    return MOVE_FOR_WAIT.get(wait.kind, Move.WAIT)
