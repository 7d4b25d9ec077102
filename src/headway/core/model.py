"""The nouns. Frozen; instants and durations are integer microseconds.

They are named tuples: a frozen dataclass takes about a millisecond to define, and every command
would pay for all of them at its start.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from headway.core.states import Status

Json = Any
NOTHING: Mapping[Any, Any] = MappingProxyType({})
JobId = int

POSITION_GAP = 100  # between two jobs of one priority, so that one can be put between them

# (-level, position, created_at, id): the smaller goes first.
OrderKey = tuple[int, int, int, int]


class WaitKind(StrEnum):
    """What holds a job back. The first five are the job graph's; the rest show as `queued`."""

    DEPENDENCIES = "dependencies"
    PINNED_HEAD = "pinned_head"
    PRECONDITIONS = "preconditions"
    APPROVAL = "approval"
    LOCKS = "locks"
    TIME = "time"
    GROUP = "group"
    SUBJECT = "subject"
    PAUSED = "paused"
    CAPACITY = "capacity"
    RATE = "rate"
    TARGET = "target"
    TASK = "task"
    LAUNCH = "launch"
    STORAGE = "storage"
    PRESSURE = "pressure"


class LockMode(StrEnum):
    SHARED = "shared"
    EXCLUSIVE = "exclusive"


class Lock(NamedTuple):
    key: str
    mode: LockMode = LockMode.EXCLUSIVE

    def conflicts_with(self, mode: LockMode) -> bool:
        return LockMode.EXCLUSIVE in (self.mode, mode)


class RetryPolicy(NamedTuple):
    """Up to `max_attempts` automatic retries; the n-th waits base * 2^(n-1), at most `cap`.

    `on` names what is retried: exit codes as numbers, `signal`, `timeout`, `unknown` (an outcome
    that a crash made unknowable), of functions also classes of exceptions. Empty means every
    failure.
    """

    max_attempts: int = 0
    base: int = 10_000_000
    cap: int = 3_600_000_000
    jitter: float = 0.0
    on: tuple[str, ...] = ()


class Stage(StrEnum):
    """Where a waiting job is filed, so that a planning step touches only what changed.

    `woken` jobs are to be looked at; `ready` ones passed every gate but the door (pause, cap) and
    stand there in dispatch order; `filed` ones lie under what they wait for until that wakes them.
    """

    WOKEN = "woken"
    READY = "ready"
    FILED = "filed"


class Sight(StrEnum):
    """What can be asked about the world outside of the store."""

    HEAD = "head"  # the commit that is checked out
    BRANCH = "branch"  # the commit that a local branch is at
    CLEAN = "clean"  # whether a worktree has changes
    FILE_ON_BRANCH = "file_on_branch"  # `name` is branch:path
    FILE = "file"  # whether a path exists
    CONDITION = "condition"  # whether a registered condition holds
    SUBJECT = "subject"  # how a work item stands; `repo` is source:place


class Question(NamedTuple):
    """Something to look up outside: in a repository, on disk, by asking a registered condition."""

    sight: Sight
    repo: str = ""
    name: str = ""

    @property
    def topic(self) -> str:
        """What a job is filed under while it waits for another answer."""
        return f"look:{self.sight}:{self.repo}:{self.name}"


class Wait(NamedTuple):
    """Why a job does not start now, and what it is filed under until that changes."""

    kind: WaitKind
    detail: str
    topics: tuple[str, ...] = ()  # an event on any of these wakes the job
    until: int | None = None  # so does this instant
    at_door: bool = False  # it stands in the one ordered queue for a slot
    remedy: str = ""  # what would clear it, for people
    asks: tuple[Question, ...] = ()  # what must be looked up, now or again, to decide


class Block(NamedTuple):
    """Why a job can never start: it ends in `status`.

    `asks` is what was looked up to know it. Such a look may be older than the end of a job that has
    just changed the world, so it must be made once more before the end of this one is final.
    """

    kind: WaitKind
    detail: str
    status: Status = Status.BLOCKED_BY_DEPENDENCY
    remedy: str = ""
    asks: tuple[Question, ...] = ()


Objection = Wait | Block


class PinnedHead(NamedTuple):
    """The commit that must be where it was: a branch's tip, or what is checked out (`head`)."""

    branch: str
    oid: str
    head: bool = False


class ApprovalState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"


class Approval(NamedTuple):
    """A person must agree before the job starts."""

    state: ApprovalState
    requested_at: int
    requested_by: str
    decided_at: int | None = None
    decided_by: str | None = None
    reason: str | None = None


class Rate(NamedTuple):
    """At most `most` starts under one key in any `period`; no number: as the settings say."""

    key: str
    most: int | None = None
    period: int = 0


class JobSpec(NamedTuple):
    """What a submitter asks for. `params` is what the executor reads, frozen; `type` is what limits
    go by, and for those without a command also names the executor."""

    params: Mapping[str, Json]
    name: str
    type: str = "command"
    slug: str | None = None
    labels: Mapping[str, str] = NOTHING
    priority: int = 0
    after: tuple[JobId, ...] = ()
    locks: tuple[Lock, ...] = ()
    delay: int = 0
    at: int | None = None
    retry: RetryPolicy = RetryPolicy()
    key: str | None = None
    env_digest: str | None = None
    on_finish: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    pinned_head: PinnedHead | None = None
    preconditions: tuple[str, ...] = ()
    repo: str | None = None  # the repository that its gates look at
    require_approval: bool = False
    group: str | None = None  # by its id or its name
    last: bool = False  # no other joins that group after it
    subject: str | None = None
    target: str | None = None
    template_id: str | None = None
    resources: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()
    place: int | None = None  # from 1, among those of its level; None: the last
    schedule_id: str | None = None  # what made it: `schedule-3`, or `jobs.yaml:NAME`


class Job(NamedTuple):
    id: JobId
    name: str
    type: str
    status: Status
    priority: int
    position: int
    params: Mapping[str, Json]
    created_at: int
    chain: JobId
    slug: str | None = None
    labels: Mapping[str, str] = NOTHING
    after: tuple[JobId, ...] = ()
    locks: tuple[Lock, ...] = ()
    retry: RetryPolicy = RetryPolicy()
    retry_of: JobId | None = None
    attempt: int = 1
    retries_used: int = 0
    not_before: int | None = None  # the later of its submitter's time and of a wait to try again
    requested_start: int | None = None  # of a later job of its chain: its submitter's time alone
    env_digest: str | None = None
    key: str | None = None
    spec_digest: str = ""
    on_finish: tuple[str, ...] = ()
    submitted_by: str = ""
    launch_failures: int = 0
    last_failure: str | None = None
    launch_wait: WaitKind | None = None  # set while not_before stems from a failed launch
    stage: Stage | None = Stage.WOKEN
    wait: Wait | None = None
    waited_on: tuple[str, ...] = ()
    queue: str = ""  # who may start it: a host by its id; empty: any
    reason: str | None = None
    started_at: int | None = None
    finished_at: int | None = None
    cancel_requested_at: int | None = None
    cancel_requested_by: str | None = None
    needs: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    pinned_head: PinnedHead | None = None
    preconditions: tuple[str, ...] = ()
    repo: str | None = None
    approval: Approval | None = None
    level: int | None = None  # the priority that dispatch goes by; None: its own
    group_id: int | None = None
    sequence_number: int | None = None
    subject: str | None = None
    target: str | None = None
    template_id: str | None = None
    resources: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()
    schedule_id: str | None = None

    @property
    def order(self) -> OrderKey:
        return (-self.dispatch_level, self.position, self.created_at, self.id)

    @property
    def dispatch_level(self) -> int:
        return self.priority if self.level is None else self.level

    @property
    def is_entry(self) -> bool:
        """Whether an entry of the jobs file made it that is not an agent. Such a job takes no
        slot."""
        made_it = self.schedule_id
        return made_it is not None and made_it.startswith(OF_JOBS_FILE) and self.type != AGENT

    @property
    def submitters_time(self) -> int | None:
        """What `--at` or `--delay` asked for. `not_before` of a chain's first job is just that, as
        long as no failed launch holds it back: whatever else writes `not_before` keeps it apart."""
        if self.retry_of is None and self.launch_wait is None:
            return self.not_before
        return self.requested_start

    @property
    def has_command(self) -> bool:
        """Whether a program is to be run, whatever word its type is."""
        return "argv" in self.params or "shell" in self.params

    @property
    def max_executions(self) -> int:
        """The N of "attempt 2 of N" as the present budget allows it."""
        return self.attempt - self.retries_used + self.retry.max_attempts

    @property
    def cancelling(self) -> bool:
        return self.cancel_requested_at is not None


class Run(NamedTuple):
    """The audit record of a job's one execution."""

    job_id: JobId
    started_at: int
    worker_id: str
    params_snapshot: Mapping[str, Json]
    status: str | None = None
    exit_code: int | None = None
    error: str | None = None
    artifacts: tuple[str, ...] = ()
    finished_at: int | None = None


class Claim(NamedTuple):
    """One try to start a job. Its token fences every later write about it."""

    job_id: JobId
    token: str
    slot: int
    worker_id: str
    host_id: str
    home: str
    boot_id: str
    folder: str
    claimed_at: int
    borrowed_from: JobId | None = None
    probe: bool = False  # made while the host's breaker was open
    function_host: str | None = None  # the process that makes its call, if it is a function
    lease_until: int | None = None  # in a store of several hosts: its host was heard of until then
    occupies: tuple[str, ...] = ()  # what it takes of the limits while it runs


# Why a job waits that was started before, by a claim that the store has lost.
EARLIER_LIVES = "an earlier start of it still runs"


class Pause(NamedTuple):
    """Who holds dispatch up: everywhere, or on one host."""

    actor: str
    reason: str | None
    at: int
    host_id: str | None = None


class HostTrouble(NamedTuple):
    """The host could not start a process: one job at a time is tried, ever more rarely."""

    kind: WaitKind
    cause: str
    failures: int
    probe_at: int
    probing: bool = False
    remedy: str = "free what is used up; it is tried again by itself"


TASKS_TOPIC = "tasks"  # what a job is filed under whose function nobody here knows
FUNCTION = "function"  # the type of such jobs
AGENT = "agent"  # the type of jobs that a coding agent does
OF_JOBS_FILE = "jobs.yaml:"  # with an entry's name: what the jobs of that entry say made them
FUNCTIONS = "functions"  # and their queue


def chain_topic(chain: JobId) -> str:
    """What a job is filed under while it waits for this chain."""
    return f"chain:{chain}"


def lock_topic(key: str) -> str:
    """What a job is filed under while it waits for this lock."""
    return f"lock:{key}"


def shown(job_id: JobId) -> str:
    return f"job-{job_id}"
