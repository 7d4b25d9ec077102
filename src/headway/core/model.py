"""The nouns. Frozen; instants and durations are integer microseconds.

They are named tuples: a frozen dataclass takes about a millisecond to define, and every command
would pay for all of them at its start.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from headway.core.states import Status

Json = Any
NOTHING: Mapping[Any, Any] = MappingProxyType({})
JobId = int
TYPES = frozenset({"command", "function", "agent", "gate", "operation"})  # of jobs

POSITION_GAP = 100  # between two jobs of one priority, so that one can be put between them

# (-level, position, created_at, id): the smaller goes first.
OrderKey = tuple[int, int, int, int]


class WaitKind(StrEnum):
    """The kinds of waits. The first five are the job graph's; the rest show as `queued`."""

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
    """The stage of a waiting job, so that a planning step touches only what changed.

    `woken` jobs must be checked. `ready` ones passed every gate but capacity, and stand in dispatch
    order. `parked` ones stand under what they wait for, until that wakes them.
    """

    WOKEN = "woken"
    READY = "ready"
    PARKED = "filed"  # the word that stores have had from the beginning


class ProbeKind(StrEnum):
    """The kinds of questions about the world outside of the store."""

    HEAD = "head"  # the commit that is checked out
    BRANCH = "branch"  # the commit that a local branch is at
    CLEAN = "clean"  # whether a worktree has changes
    FILE_ON_BRANCH = "file_on_branch"  # `name` is branch:path
    FILE = "file"  # whether a path exists
    CONDITION = "condition"  # whether a registered condition holds
    SUBJECT = "subject"  # how a work item stands; `repo` is source:place


class Question(NamedTuple):
    """A question for a probe: of a repository, of the disk, or of a registered condition."""

    kind: ProbeKind
    repo: str = ""
    name: str = ""

    @property
    def topic(self) -> str:
        """The topic under which a job is parked while it waits for another answer."""
        return f"look:{self.kind}:{self.repo}:{self.name}"


class Wait(NamedTuple):
    """Why a job does not start now, and what it is parked under until that changes."""

    kind: WaitKind
    detail: str
    topics: tuple[str, ...] = ()  # an event on any of these wakes the job
    until: int | None = None  # so does this instant
    for_capacity: bool = False  # it stands in the one ordered queue for a slot
    remedy: str = ""  # what would clear it, for people
    asks: tuple[Question, ...] = ()  # what must be probed, now or again, to decide


class Block(NamedTuple):
    """Why a job can never start: it ends in `status`.

    `asks` are the questions whose answers led to it. A probe may be older than the end of a job
    that has just changed the world. So it is repeated before the end of this job is final.
    """

    kind: WaitKind
    detail: str
    status: Status = Status.BLOCKED_BY_DEPENDENCY
    remedy: str = ""
    asks: tuple[Question, ...] = ()
    unreached: bool = False  # of a node: another node of its run is why


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
    approved_by: tuple[str, ...] = ()  # where several must agree: those who have


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
    repo: str | None = None  # the repository that its gates ask about
    require_approval: bool = False
    group: str | None = None  # by its id or its name
    last: bool = False  # no other joins that group after it
    subject: str | None = None
    target: str | None = None
    template_id: str | None = None
    resources: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()
    place: int | None = None  # from 1, among those of its level; None: the last
    workflow_run: int | None = None
    node: str | None = None
    node_pass: int = 0
    after_runs: tuple[int, ...] = ()  # workflow runs that it waits for, as a whole
    schedule_id: str | None = None  # what made it: `schedule-3`, or `jobs.yaml:NAME`
    webhooks: tuple[str, ...] = ()  # URLs that are told of its end


class Job(NamedTuple):
    """A job as it is stored. `FIELDS` says of each field what is done with it."""

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
    approval: Approval | None = None
    level: int | None = None  # the priority that dispatch goes by; None: its own
    group_id: int | None = None
    sequence_number: int | None = None
    subject: str | None = None
    target: str | None = None
    template_id: str | None = None
    schedule_id: str | None = None
    # Each of these shares a column with others, so they stand last.
    requested_start: int | None = None  # of a later job of its chain: its submitter's time alone
    needs: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    pinned_head: PinnedHead | None = None
    preconditions: tuple[str, ...] = ()
    repo: str | None = None
    resources: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()
    workflow_run: int | None = None
    node: str | None = None  # of that run; one instance of it, if it has several
    node_pass: int = 0  # from 1: how often the run has come to it
    after_runs: tuple[int, ...] = ()  # workflow runs whose sinks are among `after`
    webhooks: tuple[str, ...] = ()  # URLs that are told of its end

    @property
    def order(self) -> OrderKey:
        return (-self.dispatch_level, self.position, self.created_at, self.id)

    @property
    def dispatch_level(self) -> int:
        return self.priority if self.level is None else self.level

    @property
    def is_entry(self) -> bool:
        """Whether an entry of the jobs file made it that is neither an agent nor a workflow. Such
        a job takes no slot."""
        made_it = self.schedule_id
        if made_it is None or not made_it.startswith(OF_JOBS_FILE):
            return False
        return self.type != AGENT and self.workflow_run is None

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


# -- the table of a job's fields ---------------------------------------------------------------


class Digest(StrEnum):
    """Whether a field is part of what two submits under one key must have in common."""

    ALWAYS = "always"
    IF_SET = "if_set"  # as all newer fields are: the digests of stored jobs stay what they are


class Hinders(StrEnum):
    """What a function call that has this field is not."""

    READY = "ready"  # not ready as soon as it is submitted: a gate must be asked first
    SIMPLE = "simple"  # not simple: it must be claimed, or settled, one by one
    BOTH = "both"


class Field(NamedTuple):
    """One row of the table: what is done with a field wherever jobs are made, stored and shown.

    A row may also stand for a field that only a specification has, or for a key that only a
    document has (`show` is then `made`). The default of a field stands in `Job`.
    """

    name: str
    asked: bool = False  # a job has just what its specification asks for
    kept: bool = False  # the next job of its chain has the same
    digest: Digest | None = None
    column: str = ""  # of the table `jobs`; `gates.pin` is the key `pin` of a column of JSON
    form: str = ""  # how it is written there (`store.rows`); nothing: as it is
    later: bool = False  # a new job has the default, and is stored without it
    shown: str = ""  # the key of the document, which is also a field of lists
    show: str = ""  # how the document shows it (`jobs.views.documents`); nothing: as it is
    word: str = ""  # graphs and tasks take it under its name: `text`, `texts`, `whole`, `flag`
    hinders: Hinders | None = None
    alike: bool = False  # jobs of one model share it, and a bulk insert writes it


NOT_READY = frozenset({Hinders.READY, Hinders.BOTH})
NOT_SIMPLE = frozenset({Hinders.SIMPLE, Hinders.BOTH})
_ALWAYS, _IF_SET = Digest.ALWAYS, Digest.IF_SET
_READY, _SIMPLE, _BOTH = Hinders.READY, Hinders.SIMPLE, Hinders.BOTH


def _asked(name: str, digest: Digest | None, **more: Any) -> Field:
    """What a submitter asks for: the jobs of a chain all have it, and show it under its name."""
    given = {"column": name, "shown": name, "kept": True, **more}
    return Field(name, asked=True, digest=digest, **given)


def _own(name: str, **more: Any) -> Field:
    """What a job gets from elsewhere, and shows under its name."""
    return Field(name, **{"column": name, "shown": name, **more})


def _made(key: str) -> Field:
    """What only the document has."""
    return Field("", shown=key, show="made")


# In the order of the document; then what it does not show.
FIELDS: tuple[Field, ...] = (
    _own("id", show="job"),
    _asked("name", _ALWAYS, word="text", alike=True),
    _asked("slug", _ALWAYS, word="text", alike=True),
    _asked("type", _ALWAYS, alike=True),
    _own("status", form="status", shown="state", show="value"),
    _made("status"),
    _own("reason", later=True),
    _asked("labels", _ALWAYS, form="object", show="object", alike=True),
    _asked("priority", _ALWAYS, word="whole", alike=True),
    _own("position", kept=True),
    _asked("params", _ALWAYS, form="object", show="params", alike=True),
    _own(
        "after",
        kept=True,
        digest=_ALWAYS,
        column="after_ids",
        form="ids",
        show="jobs",
        hinders=_READY,
    ),
    _asked("needs", _IF_SET, column="gates.needs", show="list", word="texts", hinders=_BOTH),
    _asked(
        "produces", _IF_SET, column="gates.produces", show="list", word="texts", hinders=_SIMPLE
    ),
    _asked("locks", _ALWAYS, form="locks", show="locks", hinders=_BOTH),
    _asked("pinned_head", _IF_SET, column="gates.pin", form="pin", show="pin", hinders=_BOTH),
    _asked("preconditions", _IF_SET, column="gates.preconditions", show="list", hinders=_BOTH),
    _own("approval", kept=True, form="approval", show="approval", hinders=_SIMPLE),
    _own("wait", column="wait_kind", form="wait", later=True, show="made", hinders=_SIMPLE),
    _own("waited_on", form="texts", later=True, show="list"),
    _own("group_id", kept=True, show="group", hinders=_SIMPLE),
    _own("sequence_number", kept=True),
    _asked("template_id", _IF_SET),
    _asked("schedule_id", None),
    _made("workflow"),
    _asked("subject", _IF_SET, word="text", hinders=_BOTH),
    _asked("target", _IF_SET, word="text", hinders=_BOTH),
    _made("sling"),
    _asked(
        "resources", _IF_SET, column="quota.resources", show="list", word="texts", hinders=_BOTH
    ),
    _asked("rates", _IF_SET, column="quota.rates", form="rates", show="rates", hinders=_BOTH),
    _asked(
        "webhooks",
        _IF_SET,
        column="gates.webhooks",
        show="origins",
        word="texts",
        hinders=_SIMPLE,
    ),
    _own("retry_of", show="job", hinders=_SIMPLE),  # it is given the steps of its chain
    _own("attempt"),
    _made("max_attempts"),
    _own("created_at", show="instant"),
    _own("not_before", show="instant"),
    _own("started_at", later=True, show="instant"),
    _own("finished_at", later=True, show="instant"),
    _own("cancel_requested_at", later=True, show="instant", hinders=_SIMPLE),
    _made("execution_root"),
    _made("worktree"),
    _own("submitted_by", kept=True, show="or_null"),
    _made("run"),
    _own("chain", kept=True, shown=""),
    _asked("retry", _ALWAYS, form="retry", shown="", alike=True),
    _own("retries_used", shown=""),
    _own("requested_start", column="gates.at", shown="", hinders=_SIMPLE),
    _own("env_digest", kept=True, shown=""),
    _asked("key", None, kept=False, column="idempotency_key", shown="", word="text"),
    _own("spec_digest", shown=""),
    _asked("on_finish", _ALWAYS, form="texts", shown="", hinders=_SIMPLE, alike=True),
    _own("launch_failures", later=True, shown=""),
    _own("last_failure", later=True, shown=""),
    _own("launch_wait", form="kind", later=True, shown=""),
    _own("stage", form="stage", shown=""),
    _own("queue", kept=True, shown=""),
    _own("cancel_requested_by", later=True, shown=""),
    _own("level", kept=True, form="level", shown=""),
    _asked("repo", _IF_SET, column="gates.repo", shown="", hinders=_BOTH),
    _asked("workflow_run", None, column="gates.run", shown="", hinders=_BOTH),
    _asked("node", None, column="gates.node", shown="", hinders=_BOTH),
    _asked("node_pass", None, column="gates.pass", shown="", hinders=_BOTH),
    _asked("after_runs", _IF_SET, column="gates.after_runs", shown="", hinders=_BOTH),
    # Of specifications alone; what a job has instead is decided when it is made.
    Field("delay", digest=_ALWAYS, hinders=_READY),
    Field("at", digest=_ALWAYS, hinders=_READY),
    Field("require_approval", digest=_IF_SET, word="flag", hinders=_READY),
    Field("group", digest=_IF_SET, hinders=_READY),
    Field("last", digest=_IF_SET, word="flag"),
    Field("place", digest=_IF_SET),
)


def of_job(fields: Iterable[Field]) -> tuple[str, ...]:
    """The names of those that a job has."""
    return tuple(field.name for field in fields if field.name in Job._fields)


def of_spec(fields: Iterable[Field]) -> tuple[str, ...]:
    """The names of those that a specification has."""
    return tuple(field.name for field in fields if field.name in JobSpec._fields)


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
    lease_until: int | None = None  # with several hosts: its host has renewed it until then
    occupies: tuple[str, ...] = ()  # what it takes of the limits while it runs


# Why a job waits that was started before, by a claim that the store has lost.
EARLIER_LIVES = "an earlier start of it still runs"


class Pause(NamedTuple):
    """A pause of dispatch: everywhere, or on one host."""

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


TASKS_TOPIC = "tasks"  # of jobs that are parked because no host knows their function
FUNCTION = "function"  # the type of such jobs
AGENT = "agent"  # the type of jobs that a coding agent does
GATE = "gate"  # the type of a workflow's controls: they decide, and do no work
OPERATION = "operation"  # the type of what Headway itself does for a workflow's node
OF_JOBS_FILE = "jobs.yaml:"  # with an entry's name: what the jobs of that entry say made them
FUNCTIONS = "functions"  # and their queue


def chain_topic(chain: JobId) -> str:
    """The topic under which a job is parked while it waits for this chain."""
    return f"chain:{chain}"


def run_topic(run: int) -> str:
    """The topic under which a job is parked while it waits for the end of this workflow run."""
    return f"run:{run}"


def lock_topic(key: str) -> str:
    """The topic under which a job is parked while it waits for this lock."""
    return f"lock:{key}"


def shown_run(run: int) -> str:
    """How a run of a workflow is written."""
    return f"wf-{run}"


def shown(job_id: JobId) -> str:
    return f"job-{job_id}"
