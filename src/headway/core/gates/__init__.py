"""The gates: what a job must pass before it starts, in the order that is contract.

A gate is a pure function `(job, facts) -> None | Wait | Block`, declared together with the events
that can change its answer. To add one: write the function, load its fact, add its line to `GATES`.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from headway.core import capacity as admission
from headway.core import wait_words as say
from headway.core.facts import Facts, LockView, Predecessor
from headway.core.gates.agents import allowed
from headway.core.gates.graph import (
    approved,
    artifacts_present,
    head_pinned,
    preconditions_hold,
)
from headway.core.gates.routes import routed, when_holds
from headway.core.groups import turn_in_group
from headway.core.model import (
    FUNCTION,
    TASKS_TOPIC,
    Block,
    Job,
    Lock,
    Objection,
    Wait,
    WaitKind,
    chain_topic,
    lock_topic,
)
from headway.core.states import ACTIVE, Status
from headway.core.subjects import subject_ready


class Wake(StrEnum):
    """The events that can change a gate's answer."""

    TIME_CAME = "time_came"
    CHAIN_ENDED = "chain_ended"
    ROUTE_DECIDED = "route_decided"  # a node that it waits for has ended, or a run before its own
    ARTIFACT_CHANGED = "artifact_changed"  # published, withdrawn, or a producer came or ended
    ANOTHER_ANSWER = "another_answer"  # a probe gave another answer than before
    MEMBER_ENDED = "member_ended"  # the chain before it in its group
    DECIDED = "decided"  # a person approved
    REPINNED = "repinned"
    RUNNER_RESUMED = "runner_resumed"  # a person says that a parked runner may go on
    AGENT_ENDED = "agent_ended"  # one of its workflow run, which spent something of the budget
    LOCK_RELEASED = "lock_released"
    LOCK_GIVEN_UP = "lock_given_up"  # a reserving waiter ended, changed or objects elsewhere
    SLOT_FREED = "slot_freed"
    SLOT_LENT = "slot_lent"
    RESUMED = "resumed"
    LIMIT_CHANGED = "limit_changed"
    HOST_RECOVERED = "host_recovered"


class Gate(NamedTuple):
    """`shared` gates are about what jobs compete for. A job is parked under all that it lacks
    there, so `decide` asks every one of them instead of stopping at the first objection."""

    check: Callable[[Job, Facts], Objection | None]
    woken_by: frozenset[Wake]
    shared: bool = False

    @property
    def name(self) -> str:
        return self.check.__name__


def due(job: Job, facts: Facts) -> Objection | None:
    """Not before its time: a delay, a fixed time, or the backoff of a retry or a failed launch."""
    if job.not_before is None or job.not_before <= facts.now:
        return None
    kind = WaitKind.TIME if job.launch_wait is None else job.launch_wait
    words = say.not_its_time(job) if job.launch_wait is None else say.not_launched(job)
    return Wait(kind, words.detail, until=job.not_before, remedy=words.remedy)


def after_met(job: Job, facts: Facts) -> Objection | None:
    """Every predecessor's chain has succeeded."""
    waits = None
    for predecessor in facts.predecessors.get(job.id, ()):
        objection = _unmet(predecessor)
        if isinstance(objection, Block):
            return objection
        waits = waits or objection
    return waits


def _unmet(predecessor: Predecessor) -> Objection | None:
    declared, status = predecessor.declared, predecessor.status
    if predecessor.error is not None:
        return _never(say.unreadable_dependency(declared, predecessor.error))
    if status is None:
        return _never(say.missing_dependency(declared))
    run = predecessor.repeated_by
    if run is None and _is_met(predecessor):
        return None
    if run is None and status not in ACTIVE:
        return _never(say.failed_dependency(declared, status))
    words = say.waits_on_job(declared) if run is None else say.may_repeat(declared, run)
    topics = (chain_topic(predecessor.chain),)
    return Wait(WaitKind.DEPENDENCIES, words.detail, topics=topics, remedy=words.remedy)


def _is_met(predecessor: Predecessor) -> bool:
    if predecessor.accepts is None:
        return predecessor.status is Status.SUCCEEDED
    return predecessor.outcome in predecessor.accepts


def _never(words: say.Words) -> Block:
    return Block(WaitKind.DEPENDENCIES, words.detail, remedy=words.remedy)


def locks_free(job: Job, facts: Facts) -> Objection | None:
    """All of its locks can be had together, and no one before it in the order waits for them."""
    lacking = []
    for lock in job.locks:
        obstacle = _obstacle(job, lock, facts.locks.get(lock.key, LockView()))
        if obstacle is not None:
            lacking.append((lock.key, obstacle))
    if not lacking:
        return None
    words = say.locks(lacking)
    return Wait(
        WaitKind.LOCKS,
        words.detail,
        topics=tuple(lock_topic(key) for key, _ in lacking),
        remedy=words.remedy,
    )


def _obstacle(job: Job, lock: Lock, view: LockView) -> str | None:
    for holder in view.holders:
        if holder.job_id != job.id and lock.conflicts_with(holder.mode):
            return say.held_lock(holder.job_id)
    for reserver in view.reservers:
        if reserver.order < job.order and lock.conflicts_with(reserver.mode):
            return say.promised_lock(reserver.job_id)
    return None


def slot_free(job: Job, facts: Facts) -> Objection | None:
    """There is capacity: no pause, a healthy host, a free slot, room under every limit."""
    return (
        _unknown_type(job, facts)
        or _unknown_task(job, facts)
        or _elsewhere(job, facts)
        or admission.objection(job, facts.capacity, facts.now)
    )


def _unknown_type(job: Job, facts: Facts) -> Objection | None:
    """A newer program submitted it; its own worker will know what to do."""
    if job.type in facts.types or job.has_command:
        return None
    words = say.unknown_type(job)
    return Wait(WaitKind.TASK, words.detail, remedy=words.remedy)


def _unknown_task(job: Job, facts: Facts) -> Objection | None:
    """Its function must have been imported by someone who can call it."""
    if job.type != FUNCTION:
        return None
    task, tasks = job.params.get("task"), facts.tasks
    name = str(task)
    if tasks is None:
        words = say.no_worker_for(name)
    elif task in tasks.names and tasks.trouble is None:
        return None
    elif task in tasks.elsewhere and task not in tasks.names:
        # It keeps its place: a host that knows it searches there.
        return Wait(WaitKind.CAPACITY, say.left_to_a_host(name), for_capacity=True)
    elif task in tasks.once and task not in tasks.names:
        words = say.task_known_once(name, tasks.once[name])
    elif tasks.trouble is not None:
        words = say.not_imported(name, tasks.trouble)
    else:
        words = say.unknown_task(name, tasks)
    return Wait(WaitKind.TASK, words.detail, topics=(TASKS_TOPIC,), remedy=words.remedy)


def _elsewhere(job: Job, facts: Facts) -> Objection | None:
    """A job that belongs to a host is started there. Planners see only jobs of their own; this is
    the answer for those who ask from elsewhere."""
    if job.queue in facts.queues:
        return None
    words = say.other_host(facts.hosts.get(job.queue, job.queue))
    return Wait(WaitKind.TARGET, words.detail, remedy=words.remedy)


GATES: tuple[Gate, ...] = (
    Gate(due, frozenset({Wake.TIME_CAME})),
    Gate(after_met, frozenset({Wake.CHAIN_ENDED})),
    Gate(routed, frozenset({Wake.ROUTE_DECIDED})),
    Gate(when_holds, frozenset()),
    Gate(artifacts_present, frozenset({Wake.ARTIFACT_CHANGED, Wake.ANOTHER_ANSWER})),
    Gate(turn_in_group, frozenset({Wake.MEMBER_ENDED})),
    Gate(subject_ready, frozenset({Wake.ANOTHER_ANSWER})),
    Gate(head_pinned, frozenset({Wake.ANOTHER_ANSWER, Wake.REPINNED})),
    Gate(preconditions_hold, frozenset({Wake.ANOTHER_ANSWER})),
    Gate(approved, frozenset({Wake.DECIDED, Wake.TIME_CAME})),
    Gate(allowed, frozenset({Wake.TIME_CAME, Wake.RUNNER_RESUMED, Wake.AGENT_ENDED})),
    Gate(locks_free, frozenset({Wake.LOCK_RELEASED, Wake.LOCK_GIVEN_UP}), shared=True),
    Gate(
        slot_free,
        frozenset(
            {
                Wake.SLOT_FREED,
                Wake.SLOT_LENT,
                Wake.RESUMED,
                Wake.LIMIT_CHANGED,
                Wake.HOST_RECOVERED,
                Wake.TIME_CAME,
            }
        ),
        shared=True,
    ),
)
