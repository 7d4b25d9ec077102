"""How did it end, and what follows?

`settle` turns the outcome of one claim into the job's final status, or into the undoing of the
claim where the program could not be executed; it says whether the chain goes on with a retry. It
changes nothing itself: the caller applies the answer in the transaction that read the job.
"""

import errno as errnos
import os
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from headway.core.agents import OF_NODE, calls_agent
from headway.core.backoff import (
    EARLIER_DELAY,
    LAUNCH_DELAYS,
    LAUNCH_STRIKES,
    retry_delay,
)
from headway.core.model import (
    AGENT,
    EARLIER_LIVES,
    FIELDS,
    NOTHING,
    Job,
    WaitKind,
    of_job,
    shown,
)
from headway.core.outputs import CHECKS, Left
from headway.core.retry_causes import OF_OPERATIONS
from headway.core.states import Move, Status, after


class Ending(StrEnum):
    """How a claim ended: written by a supervisor, reported by a function, or a verdict of recovery
    or of the planner."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    LOG_FULL = "log_full"
    SPAWN_ERROR = "spawn_error"
    RAISED = "raised"
    SKIPPED = "skipped"
    ASKED_AGAIN = "asked_again"
    HOST_DIED = "host_died"
    HOST_KILLED = "host_killed"
    HOST_REBOOTED = "host_rebooted"
    EVIDENCE_MISSING = "evidence_missing"
    OUTCOME_UNKNOWN = "outcome_unknown"
    DATA_ERROR = "data_error"


UNKNOWABLE = frozenset({Ending.HOST_REBOOTED, Ending.EVIDENCE_MISSING, Ending.OUTCOME_UNKNOWN})
_RECOVERED = "Scheduler crash recovery: "
# A cancelled job that ends so ended because of the cancel, as far as anyone can know.
_AS_CANCELLED = UNKNOWABLE | {Ending.HOST_DIED, Ending.HOST_KILLED}
MOST_ASKED_AGAIN = 100
MOST_CAUSES_NAMED = 5

HOST_ERRNOS = {
    errnos.ENOSPC: WaitKind.STORAGE,
    errnos.EDQUOT: WaitKind.STORAGE,
    errnos.EROFS: WaitKind.STORAGE,
    errnos.EAGAIN: WaitKind.PRESSURE,
    errnos.ENOMEM: WaitKind.PRESSURE,
    errnos.EMFILE: WaitKind.PRESSURE,
    errnos.ENFILE: WaitKind.PRESSURE,
}

NOT_EXECUTABLE = frozenset({errnos.EACCES, errnos.ENOEXEC, errnos.EPERM, errnos.E2BIG})


class RunnerLimit(NamedTuple):
    """What an agent met that holds for all of its runner: for so long after its end, for a time
    that nobody said, or until a person has corrected it. `session_id` is what its program needs to
    go on."""

    after: int | None = None
    until_resumed: bool = False
    session_id: str | None = None


class Outcome(NamedTuple):
    ending: Ending
    finished_at: int
    exit_code: int | None = None
    signal: str | None = None
    errno: int | None = None
    error: str | None = None
    after: int | None = None  # of a function that asked to be called again
    # Of what a function raised, also as module.Class; or why an agent failed.
    classes: tuple[str, ...] = ()
    # Not started, because what its gates had seen held no longer: nothing failed.
    changed: bool = False
    # Of an agent whose runner is to be parked: it asks for another job once that may start.
    met: RunnerLimit | None = None


class ChainRetry(NamedTuple):
    """The chain goes on: a new job, not before this instant, of this many used retries."""

    not_before: int | None
    retries_used: int
    cooling: str | None = None  # the cause why it could not be launched, if it waits for that


class Ended(NamedTuple):
    """The claim's job reached a final status."""

    status: Status
    exit_code: int | None
    error: str | None
    reason: str | None
    retry: ChainRetry | None = None
    executed: bool = True
    launch_failures: int = 0  # with the last of them its circuit broke
    last_failure: str | None = None


class ChainEnd(NamedTuple):
    """The end of a chain, with its last job. A node of a workflow run is `unreached` if another
    node is why; `report` is what it left, besides its status."""

    job: Job
    ended: Ended
    report: Mapping[str, Any] = NOTHING
    unreached: bool = False


class Undone(NamedTuple):
    """Nothing was started: back to the queue, no attempt burned.

    A cause of the job counts towards its three strikes. A cause of the host counts against no job,
    and holds all back until a trial start succeeds.
    """

    cause: str
    not_before: int | None = None
    launch_failures: int = 0
    launch_wait: WaitKind | None = None
    host_trouble: WaitKind | None = None


def settle(
    job: Job,
    outcome: Outcome,
    *,
    chance: float = 0.0,
    cooldown: int = 0,
    since: int | None = None,
) -> Ended | Undone:
    """The consequence of `outcome` for a running job. `chance` in [0, 1) feeds the jitter; after
    `cooldown` what could not be launched is tried again, without one it never is. What waits for
    its next try waits from its end, or from `since`."""
    since = outcome.finished_at if since is None else since
    if outcome.ending is Ending.SPAWN_ERROR:
        return _not_launched(job, outcome, cooldown, since)
    if outcome.ending is Ending.CANCELLED or (job.cancelling and outcome.ending in _AS_CANCELLED):
        return _cancelled(job, outcome)
    move, error = _verdict(job, outcome)
    status = after(job.status, move)
    retry = _retry(job, outcome, chance, since) if status is Status.FAILED else None
    return Ended(
        status=status,
        exit_code=_exit_code(outcome),
        error=error,
        reason=_reason(job, outcome, error, retry) if status is Status.FAILED else error,
        retry=retry,
    )


def _exit_code(outcome: Outcome) -> int | None:
    match outcome.ending:
        case Ending.TIMED_OUT:
            return 124
        case Ending.DATA_ERROR:
            return 1
        case _:
            return outcome.exit_code


def _verdict(job: Job, outcome: Outcome) -> tuple[Move, str | None]:
    code = outcome.exit_code
    match outcome.ending:
        case Ending.EXITED if code == 0:
            return Move.SUCCEED, None
        case Ending.EXITED if _means_skipped(job, outcome):
            said = outcome.error if job.type != AGENT else None
            return Move.SKIP, said or f"skipped: exit code {code}"
        case Ending.EXITED:
            return Move.FAIL, outcome.error or _said_of_exit(job, code)
        case Ending.SIGNALLED:
            return Move.FAIL, f"killed by {outcome.signal}"
        case Ending.TIMED_OUT if outcome.error:
            return Move.FAIL, outcome.error
        case Ending.TIMED_OUT:
            limit = job.params.get("timeout_seconds")
            return Move.FAIL, "timed out" if limit is None else f"timed out after {limit:g} s"
        case Ending.LOG_FULL:
            return Move.FAIL, "killed: its log is full"
        case Ending.DATA_ERROR | Ending.RAISED | Ending.ASKED_AGAIN:
            return Move.FAIL, outcome.error
        case Ending.SKIPPED:
            return Move.SKIP, outcome.error
        case Ending.HOST_DIED:
            return Move.FAIL, f"its host died: {outcome.error}"
        case Ending.HOST_KILLED:
            return Move.FAIL, f"host_killed ({outcome.error})"
        case _:
            detail = f" ({outcome.error})" if outcome.error else ""
            return Move.FAIL, f"{_RECOVERED}{outcome.ending}{detail}"


def _said_of_exit(job: Job, code: int | None) -> str:
    """The checks of a change have words of their own."""
    if job.params.get(OF_NODE, NOTHING).get("policy") == CHECKS:
        return f"{CHECKS} failed (exit {code})"
    return f"exit code {code}"


def is_unknown(reason: str | None) -> bool:
    """Whether a job failed with this reason because nobody knows how it ended."""
    return (reason or "").startswith(tuple(f"{_RECOVERED}{each}" for each in UNKNOWABLE))


def _means_skipped(job: Job, outcome: Outcome) -> bool:
    """Only the exit code of the job's own program can. That of an agent whose stream reported an
    error, or that was stopped, is its wrapper's, which names the program's own in classes."""
    if outcome.exit_code not in job.params.get("skip_exit_codes", ()):
        return False
    by_wrapper = job.type == AGENT and bool(outcome.classes)
    return not by_wrapper or str(outcome.exit_code) in outcome.classes


def _reason(job: Job, outcome: Outcome, error: str | None, retry: ChainRetry | None) -> str | None:
    """What went wrong, and why it is not tried again although retries were asked for."""
    if retry is not None or not job.retry.max_attempts or job.cancelling:
        return error
    if job.retries_used >= job.retry.max_attempts:
        return f"{error}; attempt {job.attempt} of {job.max_executions}, no retry is left"
    if job.retry.on == OF_OPERATIONS:  # nobody asked for retries
        return error
    if outcome.ending is not Ending.DATA_ERROR and not _is_among_causes(job, outcome):
        named = ", ".join(job.retry.on[:MOST_CAUSES_NAMED])
        more = ", ..." if len(job.retry.on) > MOST_CAUSES_NAMED else ""
        return f"{error}; not retried: it is not among --retry-on {named}{more}"
    return error


def _cancelled(job: Job, outcome: Outcome) -> Ended:
    evidence = "" if outcome.ending is Ending.CANCELLED else f" ({outcome.ending})"
    by = f" by {job.cancel_requested_by}" if job.cancel_requested_by else ""
    return Ended(
        status=after(job.status, Move.CANCEL),
        exit_code=143,
        error=f"cancelled{evidence}",
        reason=f"cancelled{by}{evidence}",
    )


def _retry(job: Job, outcome: Outcome, chance: float, since: int) -> ChainRetry | None:
    if job.cancelling:
        return None
    if outcome.ending is Ending.ASKED_AGAIN and job.attempt < MOST_ASKED_AGAIN:
        # Of a runner that is parked the gate says until when.
        again = since + (outcome.after or 0) if outcome.met is None else None
        return ChainRetry(again, job.retries_used)
    if job.retries_used >= job.retry.max_attempts:
        return None
    if outcome.ending is Ending.DATA_ERROR or not _retryable(job, outcome):
        return None
    nth = job.retries_used + 1
    return ChainRetry(since + retry_delay(job.retry, nth, chance), nth)


def _retryable(job: Job, outcome: Outcome) -> bool:
    if outcome.ending in UNKNOWABLE and calls_agent(job):
        return False
    return _is_among_causes(job, outcome)


def _is_among_causes(job: Job, outcome: Outcome) -> bool:
    """Whether the policy names this end; one that names none means all."""
    if not job.retry.on:
        return True
    match outcome.ending:
        case Ending.EXITED | Ending.RAISED if any(each in outcome.classes for each in job.retry.on):
            return True
        case Ending.EXITED | Ending.RAISED | Ending.ASKED_AGAIN:
            word = str(outcome.exit_code)
        case Ending.SIGNALLED | Ending.LOG_FULL:
            word = "signal"
        case Ending.TIMED_OUT:
            word = "timeout"
        case _:
            word = "unknown"
    return word in job.retry.on


def never_ran(job: Job, cause: str) -> Ended | Undone:
    """It is proven that nothing was started: the claim is taken back, no attempt is burned.

    A cancelled job is never started again, so for it the undoing is the end, without a run.
    """
    if not job.cancelling:
        return Undone(
            cause,
            not_before=job.not_before,
            launch_failures=job.launch_failures,
            launch_wait=job.launch_wait,
        )
    return Ended(
        status=after(job.status, Move.CANCEL),
        exit_code=None,
        error=None,
        reason=f"cancelled by {job.cancel_requested_by} before it started",
        executed=False,
    )


def beside(job: Job, cause: str, now: int) -> Ended | Undone:
    """An earlier start of the job still runs, which the store does not know of. The job waits, and
    is checked again, ever more rarely. That counts against nobody."""
    verdict = never_ran(job, cause)
    if isinstance(verdict, Ended):
        return verdict
    again = job.last_failure is not None and job.last_failure.startswith(EARLIER_LIVES)
    not_before = now + (EARLIER_DELAY << 3 if again else EARLIER_DELAY)
    return verdict._replace(not_before=not_before, launch_wait=WaitKind.LAUNCH)


def host_trouble(job: Job, kind: WaitKind, cause: str) -> Ended | Undone:
    """The host could not start it: that counts against no job."""
    verdict = never_ran(job, cause)
    return verdict._replace(host_trouble=kind) if isinstance(verdict, Undone) else verdict


def _not_launched(job: Job, outcome: Outcome, cooldown: int, since: int) -> Ended | Undone:
    number = outcome.errno or 0
    cause = outcome.error or os.strerror(number)
    if job.cancelling or outcome.changed:
        return never_ran(job, cause)
    if number in HOST_ERRNOS:
        return host_trouble(job, HOST_ERRNOS[number], cause)
    failures = job.launch_failures + 1
    if failures >= LAUNCH_STRIKES:
        return Ended(
            status=after(job.status, Move.FAIL),
            exit_code=126 if number in NOT_EXECUTABLE else 127,
            error=f"circuit-broken: {cause}",
            reason=f"circuit-broken: {cause}",
            retry=_after_cooldown(job, cause, cooldown, since),
            launch_failures=failures,
            last_failure=cause,
        )
    return Undone(
        cause,
        not_before=later_of(since + LAUNCH_DELAYS[failures - 1], job.submitters_time),
        launch_failures=failures,
        launch_wait=WaitKind.LAUNCH,
    )


def _after_cooldown(job: Job, cause: str, cooldown: int, since: int) -> ChainRetry | None:
    """Half-open: one more job, which burns no retry; what can never be launched is not for ever
    tried again."""
    if not cooldown or job.attempt >= MOST_ASKED_AGAIN:
        return None
    return ChainRetry(since + cooldown, job.retries_used, cooling=cause)


def later_of(wait: int | None, submitters_time: int | None) -> int | None:
    """The instant before which a job may not start: no wait to try again shortens what its
    submitter asked for."""
    return max((each for each in (wait, submitters_time) if each is not None), default=None)


def next_in_chain(job: Job, retry: ChainRetry, *, new_id: int, now: int) -> Job:
    """The new job that carries on the chain of `job`: the same work, a fresh life."""
    return job._replace(
        **_FRESH,
        id=new_id,
        status=Status.QUEUED,
        created_at=now,
        retry_of=job.id,
        attempt=job.attempt + 1,
        retries_used=retry.retries_used,
        not_before=later_of(retry.not_before, job.submitters_time),
        requested_start=job.submitters_time,
        launch_wait=None if retry.cooling is None else WaitKind.LAUNCH,
        last_failure=retry.cooling,
    )


# What the next job of a chain has anew, but for what it gets from its place in the chain.
_OF_ITS_PLACE = frozenset(
    {"id", "status", "created_at", "retry_of", "attempt", "retries_used"}
    | {"not_before", "requested_start", "launch_wait", "last_failure"}
)
_FRESH: Mapping[str, Any] = {
    name: Job._field_defaults[name]
    for name in of_job(field for field in FIELDS if not field.kept)
    if name not in _OF_ITS_PLACE
}


def follow_up(job: Job, ended: Ended, *, new_id: int, now: int) -> Job | None:
    """The job that `--on-finish` asked for, made when the chain has come to its end."""
    if not job.on_finish or ended.retry is not None:
        return None
    env = {
        **job.params.get("env", {}),
        "HEADWAY_FINISHED_JOB": shown(job.id),
        "HEADWAY_FINISHED_STATE": str(ended.status),
        "HEADWAY_FINISHED_EXIT_CODE": "" if ended.exit_code is None else str(ended.exit_code),
    }
    params = {"argv": list(job.on_finish), "env": env, "cwd": job.params.get("cwd")}
    if job.params.get("any_host"):
        params["any_host"] = True
    return Job(
        id=new_id,
        name=f"on-finish {shown(job.id)}",
        type="command",
        status=Status.QUEUED,
        priority=job.priority,
        level=job.level,
        position=job.position,
        params=params,
        created_at=now,
        chain=new_id,
        labels={"on-finish": shown(job.id)},
        env_digest=job.env_digest,
        submitted_by=job.submitted_by,
        queue=job.queue,
    )


class Verdict(NamedTuple):
    """How a claim ended, and whether its process tree is proven gone."""

    outcome: Outcome
    tree_gone: bool
    document: Mapping[str, Any] | None = None
    outputs: Left = b""  # what a node of a workflow run has set

    @property
    def left(self) -> bool:
        """Whether processes of it were left alone, as its policy wants."""
        return self.document is not None and self.document.get("tree") == "left"


class NeverRan(NamedTuple):
    """Nothing was started, and that is proven."""

    cause: str


class HostFailed(NamedTuple):
    """Nothing was started, because the host could not."""

    kind: WaitKind
    cause: str


class StillRuns(NamedTuple):
    """Nothing was started, because an earlier start of the job still runs."""

    cause: str


Judgement = Verdict | NeverRan | HostFailed | StillRuns


def has_changed(judgement: Judgement) -> bool:
    """Whether its claim was undone because the world is not as its gates had seen it."""
    return isinstance(judgement, Verdict) and judgement.outcome.changed
