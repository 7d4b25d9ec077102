"""The gates: what a job must pass before it starts, in the order that is contract.

A gate is a pure function `(job, facts) -> None | Wait | Block`, declared together with the events
that can change its answer. To add one: write the function, load its fact, add its line to `GATES`.
"""

from collections.abc import Callable
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple

from headway.core import admission
from headway.core.facts import IMPORTING, NO_HOST, Facts, LockView, Predecessor
from headway.core.graphgates import (
    approved,
    artifacts_present,
    head_pinned,
    preconditions_hold,
)
from headway.core.groups import turn_in_group
from headway.core.model import (
    EARLIER_LIVES,
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
    shown,
)
from headway.core.states import ACTIVE, Status
from headway.core.subjects import subject_ready


class Wake(StrEnum):
    """The events that can change a gate's answer."""

    TIME_CAME = "time_came"
    CHAIN_ENDED = "chain_ended"
    ARTIFACT_CHANGED = "artifact_changed"  # published, withdrawn, or a producer came or ended
    ANOTHER_ANSWER = "another_answer"  # a look at the world showed something else than before
    MEMBER_ENDED = "member_ended"  # the chain before it in its group
    DECIDED = "decided"  # a person approved
    REPINNED = "repinned"
    LOCK_RELEASED = "lock_released"
    LOCK_GIVEN_UP = "lock_given_up"  # a reserving waiter ended, changed or objects elsewhere
    SLOT_FREED = "slot_freed"
    SLOT_LENT = "slot_lent"
    RESUMED = "resumed"
    LIMIT_CHANGED = "limit_changed"
    HOST_RECOVERED = "host_recovered"


class Gate(NamedTuple):
    """`shared` gates are about what jobs compete for: a job is filed under all that it lacks
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
    if job.launch_wait is not None:
        return Wait(
            job.launch_wait,
            f"could not be started: {job.last_failure}",
            until=job.not_before,
            remedy=_after_failed_launch(job),
        )
    return Wait(
        WaitKind.TIME,
        f"backing off before attempt {job.attempt}"
        if job.attempt > 1 and job.not_before != job.requested_start
        else "waiting for its time",
        until=job.not_before,
        remedy="wait until its time",
    )


def _after_failed_launch(job: Job) -> str:
    if (job.last_failure or "").startswith(EARLIER_LIVES):
        return "it is looked at again by itself: what that start comes to is the job's outcome"
    if job.launch_failures:
        return "it is tried again by itself; after the third failure in a row it fails"
    return "it is tried again after the cool-down; `headway scheduler reset` does so now"


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
    job_id = shown(predecessor.declared)
    if predecessor.error is not None:
        return Block(
            WaitKind.DEPENDENCIES,
            f"scheduler data error for job dependency {job_id}: {predecessor.error}",
            remedy="headway doctor",
        )
    if predecessor.status is None:
        return Block(
            WaitKind.DEPENDENCIES,
            f"missing job dependency {job_id}",
            remedy="submit it again without that dependency",
        )
    if predecessor.status is Status.SUCCEEDED:
        return None
    if predecessor.status in ACTIVE:
        return Wait(
            WaitKind.DEPENDENCIES,
            f"waiting on job {job_id}",
            topics=(chain_topic(predecessor.chain),),
            remedy=f"wait for {job_id} to succeed",
        )
    return Block(
        WaitKind.DEPENDENCIES,
        f"dependency failed for job {job_id} ({predecessor.status})",
        remedy=f"headway jobs retry {job_id}",
    )


def locks_free(job: Job, facts: Facts) -> Objection | None:
    """All of its locks can be had together, and no one before it in the order waits for them."""
    lacking = []
    for lock in job.locks:
        obstacle = _obstacle(job, lock, facts.locks.get(lock.key, LockView()))
        if obstacle is not None:
            lacking.append((lock.key, obstacle))
    if not lacking:
        return None
    return Wait(
        WaitKind.LOCKS,
        "waiting on locks",
        topics=tuple(lock_topic(key) for key, _ in lacking),
        remedy="; ".join(f"{key} {obstacle}" for key, obstacle in lacking),
    )


def _obstacle(job: Job, lock: Lock, view: LockView) -> str | None:
    for holder in view.holders:
        if holder.job_id != job.id and lock.conflicts_with(holder.mode):
            return f"is held by {shown(holder.job_id)}"
    for reserver in view.reservers:
        if reserver.order < job.order and lock.conflicts_with(reserver.mode):
            return f"is promised to {shown(reserver.job_id)}"
    return None


def slot_free(job: Job, facts: Facts) -> Objection | None:
    """The door is open and there is a slot: its host, pause, the host's health, capacity."""
    return (
        _unknown_type(job, facts)
        or _unknown_task(job, facts)
        or _elsewhere(job, facts)
        or admission.objection(job, facts.door, facts.now)
    )


def _unknown_type(job: Job, facts: Facts) -> Objection | None:
    """A newer program submitted it; its own worker will know what to do."""
    if job.type in facts.types or job.has_command:
        return None
    return Wait(
        WaitKind.TASK,
        f"jobs of type {job.type} are unknown here",
        remedy="upgrade Headway where its worker runs",
    )


def _unknown_task(job: Job, facts: Facts) -> Objection | None:
    """Its function must have been imported by someone who can call it."""
    if job.type != FUNCTION:
        return None
    task = job.params.get("task")
    tasks = facts.tasks
    if tasks is not None and task in tasks.elsewhere and task not in tasks.names:
        # It keeps its place: whoever knows it looks there.
        return Wait(WaitKind.CAPACITY, f"left to a host that knows {task}", at_door=True)
    if tasks is not None and task in tasks.once and task not in tasks.names:
        detail = f"no host that is up knows {task}; {tasks.once[str(task)]} did"
        remedy = f"headway work there, or {_how_to_run(str(task))}"
    elif facts.tasks is None:
        detail, remedy = f"no worker runs {task}", _how_to_run(str(task))
    elif facts.tasks.trouble is not None:
        detail, remedy = facts.tasks.trouble, how_to_import(facts.tasks.trouble)
    elif task not in facts.tasks.names:
        known = ", ".join(sorted(facts.tasks.names)[:10]) or "none"
        detail = f"task {task} is unknown"
        remedy = _out_of_reach(str(task)) or (
            "headway config set app.modules with its module among them, also if that has changed "
            f"since it was imported; known are {known}"
        )
    else:
        return None
    return Wait(WaitKind.TASK, detail, topics=(TASKS_TOPIC,), remedy=remedy)


def _how_to_run(task: str) -> str:
    """The module is what stands before the function's name, and before the class that has it."""
    parts = task.split(".")[:-1]
    module = ".".join(takewhile(lambda part: part.isidentifier() and part == part.lower(), parts))
    module = module or "MODULE"
    return _out_of_reach(task) or (
        f"headway config set app.modules {module}, or headway work --app {module}"
    )


def _out_of_reach(task: str) -> str | None:
    """What to do with a function that no import of its module finds."""
    if "<locals>" in task:
        return "define it at the top of its module: a function within another cannot be imported"
    if task.startswith("__main__."):
        return "put it into a module: what was typed in cannot be imported"
    return None


def how_to_import(trouble: str) -> str:
    """What to do about a module that cannot be imported, or is not yet."""
    if trouble == IMPORTING:
        return "it starts when they are"
    if trouble.startswith(NO_HOST):
        return "it is tried again by itself"
    if "No module named" in trouble:
        return (
            "modules are found beside .headway/ and on the PYTHONPATH, which [env] of config.toml "
            "may set; it is tried again by itself"
        )
    return "correct the module; it is tried again by itself"


def _elsewhere(job: Job, facts: Facts) -> Objection | None:
    """A job that belongs to a host is started there. Planners see only jobs of their own; this is
    the answer for those who ask from elsewhere."""
    if job.queue in facts.queues:
        return None
    name = facts.hosts.get(job.queue, job.queue)
    return Wait(
        WaitKind.TARGET,
        f"only {name} may start it",
        remedy=f"a worker on {name}; or submit it again with --any-host",
    )


GATES: tuple[Gate, ...] = (
    Gate(due, frozenset({Wake.TIME_CAME})),
    Gate(after_met, frozenset({Wake.CHAIN_ENDED})),
    Gate(artifacts_present, frozenset({Wake.ARTIFACT_CHANGED, Wake.ANOTHER_ANSWER})),
    Gate(turn_in_group, frozenset({Wake.MEMBER_ENDED})),
    Gate(subject_ready, frozenset({Wake.ANOTHER_ANSWER})),
    Gate(head_pinned, frozenset({Wake.ANOTHER_ANSWER, Wake.REPINNED})),
    Gate(preconditions_hold, frozenset({Wake.ANOTHER_ANSWER})),
    Gate(approved, frozenset({Wake.DECIDED})),
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
