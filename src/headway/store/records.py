"""The records that the nouns of a transaction take and give. No columns, no SQL."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.core.artifacts import ArtifactKey
from headway.core.facts import Occupant, TaskView
from headway.core.model import (
    NOTHING,
    HostTrouble,
    Job,
    JobId,
    LockMode,
    Run,
    Stage,
    Wait,
)
from headway.core.plaincalls import PlainCall
from headway.core.retention import EndPlace
from headway.core.routes import LoopCount, LoopRule, NodeOutcome
from headway.core.states import Status

ROUND_JOBS = 200  # as many woken jobs as are checked together


class Parking(NamedTuple):
    """A waiting job, the wait that is shown, and what it is parked under."""

    job: Job
    status: Status
    stage: Stage
    wait: Wait
    topics: tuple[str, ...]
    reserves: bool
    wake_at: int | None


class Finish(NamedTuple):
    """A claim's final word: the job's status and the fields of its run."""

    token: str
    job_id: JobId
    status: Status
    reason: str | None
    finished_at: int
    exit_code: int | None
    error: str | None
    executed: bool
    tree_gone: bool
    document: Mapping[str, Any] | None = None


class Unclaim(NamedTuple):
    """A claim that is taken back because nothing was started."""

    token: str
    job_id: JobId
    cause: str
    not_before: int | None
    launch_failures: int
    launch_wait: str | None


class TasksReport(NamedTuple):
    """The functions that a host has reported, and whether it is up. The one host of a file always
    counts; one of several hosts counts while it repeats its report and its worker has not left."""

    host_id: str
    view: TaskView
    at: int
    is_up: bool


class Slots(NamedTuple):
    """The live claims as capacity counts them."""

    used: frozenset[int]
    running: Mapping[JobId, JobId | None]  # job -> whose slot it borrows
    probing: bool
    occupants: tuple[Occupant, ...] = ()


class Lending(NamedTuple):
    job_id: JobId
    chain: JobId
    expires_at: int


class Progress(NamedTuple):
    """How far a running function says that it has come, from 0 to 1."""

    job_id: JobId
    fraction: float
    text: str


class RecordedStep(NamedTuple):
    """What a function recorded under a key. `node_pass` is 0 unless it is a workflow's node."""

    job_id: JobId
    node_pass: int
    key: str
    value: Any


class Marker(NamedTuple):
    """That a job published an artifact, and what it gave with it."""

    artifact: ArtifactKey
    job_id: JobId
    at: int
    data: Any = None
    withdrawn_at: int | None = None


class Product(NamedTuple):
    """An artifact that a chain makes, by the newest job of the chain."""

    artifact: ArtifactKey
    job_id: JobId
    chain: JobId


class EndedJob(NamedTuple):
    """An ended job: its place in the order of ends, and whether it is the last of its chain."""

    place: EndPlace
    chain: JobId
    last: bool


class Records(NamedTuple):
    """Jobs, and of those that were started what is kept of that: their runs, what supervisors
    reported, what they published. `outcomes` are those of nodes of workflow runs whose last jobs
    they are."""

    jobs: dict[JobId, Job]
    runs: dict[JobId, Run]
    evidence: dict[JobId, dict[str, Any]]
    markers: list[Marker]
    outcomes: dict[JobId, str | None]


class HeldLock(NamedTuple):
    key: str
    job_id: JobId
    mode: LockMode


class LockWaiter(NamedTuple):
    """A job that is parked under a lock; one that reserves goes before all after it."""

    key: str
    job_id: JobId
    mode: LockMode
    reserves: bool


class HostRecord(NamedTuple):
    """One home on one machine, by the names that people know."""

    id: str
    name: str
    home: str


class WorkerRecord(NamedTuple):
    id: str
    pid: int
    mode: str
    started_at: int
    settled_at: int | None
    ended_at: int | None
    ending: str | None


class WaitCounts(NamedTuple):
    """How many jobs wait."""

    statuses: dict[Status, int]  # without those that none has
    ready: int  # for nothing but capacity, as far as is known


class Search(NamedTuple):
    """A search for jobs. `name` is a pattern with `*`, `?` and `[...]`; all labels must match. Of
    chains, groups and subjects the first that is given is searched for."""

    statuses: frozenset[Status] = frozenset(Status)
    ended_since: int = 0  # those that have not ended are always among them
    created_since: int = 0
    name: str = "*"
    labels: Mapping[str, str] = NOTHING
    targets: tuple[str, ...] = ()  # none: for all, and for none
    chains: tuple[JobId, ...] | None = None
    groups: tuple[int, ...] = ()  # none: of all, and of none
    subjects: tuple[str, ...] = ()


class Stretch(NamedTuple):
    """A part of what a search finds on its way from the newest job down."""

    jobs: list[Job]  # the newest first
    below: JobId  # the search goes on below this one
    rows: int  # that were looked at


class Remembered(NamedTuple):
    """How things stood at the end of a transaction."""

    known: Any  # the store's own


class Claimant(NamedTuple):
    """The worker that claims calls, and the process they are for: the same for all of them."""

    worker_id: str
    host_id: str
    home: str
    boot_id: str
    folder: str
    function_host: str
    lease_until: int | None = None


class TakenCall(NamedTuple):
    """A call with its token and its slot."""

    call: PlainCall
    token: str
    slot: int
    claimed_at: int


class JobsFileRecord(NamedTuple):
    """The jobs file of a home as it was last read. A broken one has `trouble`, and `entries` is
    still the last good set, by which the worker goes on."""

    digest: str
    read_at: int
    trouble: tuple[Mapping[str, Any], ...] = ()  # line, key and text of each problem
    entries: tuple[Mapping[str, Any], ...] | None = None  # None: there never was a good one
    loaded_at: int | None = None
    poll_trouble: str | None = None  # why the last poll failed
    polled_at: int | None = None


class EntryRecord(NamedTuple):
    """The record of one entry. `next_at` is None while its job is active."""

    name: str
    last_job: JobId | None = None
    last_end_at: int | None = None
    last_status: str | None = None
    next_at: int | None = None
    held: str | None = None  # why it was held back when it was due
    held_at: int | None = None
    gone_at: int | None = None  # since when no jobs file has it


class Missed(NamedTuple):
    """How many slots did not fire, as far as that is kept, and the newest of them."""

    slots: int
    last_at: int
    reason: str


class Template(NamedTuple):
    """A stored specification. `document` is what was checked when it was added; jobs have copies
    of it, so no change of a template reaches a job."""

    name: str
    document: Mapping[str, Any]
    created_at: int
    created_by: str
    archived_at: int | None = None


class OpenBreaker(NamedTuple):
    """Why a host starts nothing but probes, and since when."""

    host_id: str
    trouble: HostTrouble
    opened_at: int


class RunRecord(NamedTuple):
    """A run of a workflow. `state` is that of its end; until then it is `running`."""

    id: int
    name: str
    version: str
    policy_hash: str
    params: Mapping[str, Any]
    created_at: int
    created_by: str
    deadline: int | None = None
    stopped_at: int | None = None
    stopped_by: str | None = None
    ended_at: int | None = None
    state: str = "running"
    unsettled: int = 0  # whether a step has to look at its loops
    usd_budget: int | None = None  # in millionths
    token_budget: int | None = None
    usd_spent: int = 0
    tokens_spent: int = 0
    subject: str | None = None  # the outside work item that it is about; it holds it until its end
    target: str | None = None  # what it was slung to


class PendingDeliveries(NamedTuple):
    """Pending deliveries of an endpoint."""

    number: int
    waiting_since: int  # the first of them
    made_at: int  # the oldest of them


class EndedDeliveries(NamedTuple):
    """Deliveries of an endpoint that ended alike."""

    endpoint: int
    state: str
    number: int
    last_at: int


class JobUrl(NamedTuple):
    """A URL that a job brought along, and the types of what it gets."""

    url: str
    types: tuple[str, ...]


class NewDelivery(NamedTuple):
    """An event for one receiver, to be sent."""

    id: str
    endpoint: int
    receiver: str
    url: str | None
    type: str
    seq: int
    job_id: JobId | None
    chain: JobId | None
    body: str


class Try(NamedTuple):
    """What came of sending a delivery once; its lease fences what is written of it."""

    id: str
    lease: str
    status_code: int | None
    error: str | None


class NewNode(NamedTuple):
    """An instance of a node that is added with its run."""

    node: str
    written: str
    chain: JobId
    within: tuple[str, ...] = ()  # heads of the loops around it
    fan: bool = False
    passes: int = 1


class LoopRecord(NamedTuple):
    """A loop of a run, by the node that goes back, and how often it has."""

    rule: LoopRule
    so_far: LoopCount = LoopCount()
    tolerates: frozenset[NodeOutcome] = frozenset()  # of the node that goes back


class BodyNode(NamedTuple):
    """An instance of a node that has loops around it, by the last job of its chain."""

    written: str
    chain: JobId
    job_id: JobId
    status: Status
    outcome: NodeOutcome | None
    within: tuple[str, ...]
    open: bool
    fan: bool


class NodeRecord(NamedTuple):
    """An instance of a node, by the last job of its chain."""

    node: str
    written: str
    chain: JobId
    job_id: JobId
    status: Status
    outcome: NodeOutcome | None
    reason: str | None
    started_at: int | None
    finished_at: int | None
    wait_kind: str | None
    wait_detail: str | None
    passes: int = 1
    fan: bool = False
