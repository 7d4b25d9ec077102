"""The seam: what the engine and the client may ask of a store. No SQL, no columns, plural verbs.

A story is one transaction: `with store.write() as tx:`. Only one write transaction exists at a
time, so within it facts do not move. Every change of a claimed job is fenced by the claim's token.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from headway.core.artifacts import ArtifactKey
from headway.core.facts import ArtifactView, LockView, Occupant, TaskView
from headway.core.model import (
    NOTHING,
    Approval,
    Claim,
    HostTrouble,
    Job,
    JobId,
    LockMode,
    Pause,
    Run,
    Stage,
    Wait,
)
from headway.core.retention import Obstacle, Place
from headway.core.states import Status
from headway.core.worktrees import OwnedWorktree, WorktreeState
from headway.store.patience import Patience
from headway.store.seam_adding import Alike as Alike
from headway.store.seam_adding import Event as Event
from headway.store.seam_adding import Places as Places
from headway.store.seam_calls import Claimant, ReadsCalls, Relay, WritesCalls
from headway.store.seam_entries import ReadsEntries, WritesEntries
from headway.store.seam_governor import GovernorReading, GovernorWriting
from headway.store.seam_groups import ReadsGroups, WritesGroups
from headway.store.seam_limits import LimitReads, LimitWrites
from headway.store.seam_order import OrderReadTx, OrderWriteTx
from headway.store.seam_reservations import ReadsReservations, WritesReservations
from headway.store.seam_schedules import ReadsSchedules, WritesSchedules
from headway.store.seam_templates import ReadsTemplates, WritesTemplates
from headway.store.seam_waking import ReadsWaking, WritesWaking

Told = TypeVar("Told")


class Filing(NamedTuple):
    """A waiting job, the wait that is shown, and what it is filed under."""

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


class TasksTold(NamedTuple):
    """What a host has told of its functions, and whether it is up: a file's one host always counts,
    one of several hosts as long as it says so again and its worker has not left."""

    host_id: str
    view: TaskView
    at: int
    is_up: bool


class Slots(NamedTuple):
    """The live claims as the door counts them."""

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


class Marker(NamedTuple):
    """That a job published an artifact, and what it gave with it."""

    artifact: ArtifactKey
    job_id: JobId
    at: int
    data: Any = None
    withdrawn_at: int | None = None


class Product(NamedTuple):
    """What a chain makes, by the newest job of the chain."""

    artifact: ArtifactKey
    job_id: JobId
    chain: JobId


class Ended(NamedTuple):
    """An ended job: its place in the order of ends, and whether it is the last of its chain."""

    place: Place
    chain: JobId
    last: bool


class Records(NamedTuple):
    """Jobs, and of those that were started what is kept of that: their runs, what supervisors
    reported, what they published."""

    jobs: dict[JobId, Job]
    runs: dict[JobId, Run]
    evidence: dict[JobId, dict[str, Any]]
    markers: list[Marker]


class HeldLock(NamedTuple):
    key: str
    job_id: JobId
    mode: LockMode


class LockWaiter(NamedTuple):
    """A job that is filed under a lock; one that reserves goes before all after it."""

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


class Search(NamedTuple):
    """What jobs are looked for. `name` is a pattern with `*`, `?` and `[...]`; all labels count."""

    statuses: frozenset[Status] = frozenset(Status)
    ended_since: int = 0  # those that have not ended are always among them
    created_since: int = 0
    name: str = "*"
    labels: Mapping[str, str] = NOTHING
    groups: tuple[int, ...] = ()  # none: of all, and of none


class ReadTx(
    LimitReads,
    ReadsGroups,
    OrderReadTx,
    ReadsTemplates,
    ReadsReservations,
    GovernorReading,
    ReadsSchedules,
    ReadsEntries,
    ReadsCalls,
    ReadsWaking,
    Protocol,
):
    def now(self) -> int: ...
    def unreadable(self) -> dict[JobId, str]: ...
    def jobs(self, ids: Sequence[JobId]) -> dict[JobId, Job]: ...
    def readable_jobs(self, ids: Sequence[JobId]) -> dict[JobId, Job]: ...
    def running_jobs(self, ids: Sequence[JobId]) -> dict[JobId, Job]: ...
    def job_by_key(self, key: str) -> Job | None: ...
    def last_in_chain(self, chain: JobId) -> Job | None: ...
    def chain(self, chain: JobId) -> list[Job]: ...
    def active_jobs(self) -> list[Job]: ...
    def finished_jobs(self, since: int, limit: int) -> list[Job]: ...
    def find_jobs(self, search: Search, *, before: Job | None, limit: int) -> list[Job]:
        """The newest that may match, by `created_at, id`, before the given one; a pattern is taken
        loosely here."""

    def count_active(self) -> dict[Status, int]: ...
    def count_finished(self, since: int) -> dict[Status, int]: ...
    def count_ended(self) -> tuple[int, int]:
        """All jobs that ended, and of these the blocked ones that nobody retried."""

    def outlines_shown(self, limit: int) -> list[Job]:
        """Active jobs, blocked ones that nobody retried, and what failed and holds those back, by
        `created_at, id`. An outline is a job with what a schedule shows of it, nothing else."""

    def outlines_all(self, limit: int) -> list[Job]: ...
    def outlines(self, ids: Sequence[JobId]) -> dict[JobId, Job]: ...
    def chain_ends(self, chains: Sequence[JobId]) -> dict[JobId, Job]:
        """The last job of each chain, in outline."""

    def anything_active(self) -> bool: ...
    def anything_woken(self) -> bool: ...
    def runs(self, ids: Sequence[JobId]) -> dict[JobId, Run]: ...
    def records(self, ids: Sequence[JobId]) -> Records:
        """Asked together; without jobs whose rows cannot be read."""

    def evidence(self, ids: Sequence[JobId]) -> dict[JobId, dict[str, Any]]: ...
    def dependents_of(self, chains: Sequence[JobId]) -> list[JobId]: ...
    def chains_of(self, ids: Sequence[JobId]) -> dict[JobId, JobId]: ...
    def jobs_of_chains(self, chains: Sequence[JobId]) -> dict[JobId, list[Job]]: ...
    def env_digests_in_use(self, since: int) -> set[str]: ...

    def ready(self, limit: int, queues: Sequence[str] = ("",)) -> list[Job]: ...
    def count_at_door(self) -> int: ...
    def place_in_queue(self, job: Job) -> tuple[int, int]: ...
    def next_wake(self) -> int | None: ...
    def stale_waiters(
        self, before: int, limit: int, queues: Sequence[str] = ("",)
    ) -> list[Job]: ...
    def topics_waited_for(self, topics: Sequence[str]) -> set[str]: ...
    def lock_views(self, keys: Iterable[str]) -> dict[str, LockView]: ...

    def artifact_views(self, keys: Iterable[ArtifactKey]) -> dict[ArtifactKey, ArtifactView]: ...
    def produced_by(self, chains: Sequence[JobId]) -> list[Product]: ...
    def consumers(self, keys: Iterable[ArtifactKey]) -> dict[ArtifactKey, list[JobId]]: ...
    def needed_by(self, ids: Sequence[JobId]) -> list[tuple[ArtifactKey, JobId]]: ...
    def chain_lasts(self, ids: Sequence[JobId]) -> dict[JobId, JobId]: ...
    def upstream(self, ids: Sequence[JobId]) -> dict[JobId, list[JobId]]: ...
    def published_by(self, ids: Sequence[JobId]) -> list[tuple[ArtifactKey, JobId]]: ...
    def markers_by(self, ids: Sequence[JobId]) -> list[Marker]: ...
    def markers(self, keys: Sequence[ArtifactKey]) -> list[Marker]: ...
    def newest_markers(self, limit: int) -> list[Marker]: ...
    def declared_artifacts(self) -> list[ArtifactKey]: ...
    def worktrees(self, ids: Sequence[JobId]) -> dict[JobId, OwnedWorktree]: ...
    def kept_worktrees(self) -> dict[JobId, OwnedWorktree]: ...
    def to_approve(self) -> list[Job]: ...
    def locks_held(self) -> list[HeldLock]: ...
    def lock_waiters(self, limit: int) -> list[LockWaiter]: ...

    def finished_page(self, after: Place, until: int, limit: int) -> list[Ended]: ...
    def nth_newest_finished(self, number: int) -> Place | None: ...
    def members_of(self, chains: Sequence[JobId]) -> dict[JobId, JobId]: ...
    def in_the_way(self, chains: Sequence[JobId]) -> dict[JobId, Obstacle]: ...
    def active_in_need(self, keys: Iterable[ArtifactKey]) -> dict[ArtifactKey, JobId]: ...
    def files_to_remove(self, host_id: str, after: JobId, limit: int) -> list[JobId]: ...

    def live_claims(self) -> list[Claim]: ...
    def unproven_claims(self) -> list[Claim]: ...
    def claims(self, tokens: Sequence[str]) -> dict[str, Claim]: ...
    def cancelling_jobs(self) -> set[JobId]: ...
    def claim_of(self, job_id: JobId) -> Claim | None: ...
    def last_claims(self, ids: Sequence[JobId]) -> dict[JobId, Claim]: ...
    def slots(self) -> Slots: ...
    def lendings(self) -> list[Lending]: ...
    def awaited_chains(self, chain: JobId) -> list[JobId]: ...

    def settings(self) -> dict[str, Any]: ...
    def pause_in_force(self, host_id: str | None = None) -> Pause | None:
        """What holds up everything, or else this host; without one, or else any."""

    def host_pauses(self) -> list[Pause]:
        """What holds up single hosts."""

    def host_trouble(self, host_id: str) -> HostTrouble | None: ...
    def recent_workers(self, host_id: str, limit: int) -> list[WorkerRecord]: ...
    def tasks_known(self) -> dict[str, TaskView]: ...
    def tasks_told(self) -> list[TasksTold]:
        """The same, with how certain it is that the host is still up."""

    def ready_calls_besides(self, limit: int, tasks: Collection[str], window: int) -> list[Job]:
        """The head of the queue of functions without those of these tasks, as far as it is looked
        at."""

    def results(self, ids: Sequence[JobId]) -> dict[JobId, Any]: ...
    def progress(self, ids: Sequence[JobId]) -> dict[JobId, Progress]: ...
    def hosts(self) -> dict[str, HostRecord]: ...
    def marks(self) -> dict[str, int]: ...
    def events_of(self, job_id: JobId) -> list[Event]: ...
    def events_since(self, seq: int, limit: int) -> list[Event]: ...
    def last_event(self) -> int: ...


class WriteTx(
    ReadTx,
    LimitWrites,
    WritesGroups,
    OrderWriteTx,
    WritesTemplates,
    WritesReservations,
    GovernorWriting,
    WritesSchedules,
    WritesEntries,
    WritesCalls,
    WritesWaking,
    Protocol,
):
    def take_ids(self, count: int) -> int: ...
    def next_places(self, after: Sequence[JobId] = ()) -> Places:
        """What those get that are added next, and how what they are after stands, in one
        question."""

    def add_jobs(self, jobs: Sequence[Job]) -> None: ...
    def add_alike(self, kinds: Sequence[Alike]) -> JobId | None:
        """Add jobs that wait for nothing, concern no other and have one priority, each with its
        event. The first id, that of place 0; None if nothing was done, for an ageing is set."""

    def wakes_nobody(self) -> None:
        """All that this transaction does is to add jobs that wait for the end of others: no worker
        has to look at them before, nor to look again at what it knows."""

    def add_retries(self, jobs: Sequence[Job]) -> None: ...
    def add_events(self, events: Iterable[Event], *, actor: str) -> None: ...

    def wake_due(self, now: int, limit: int) -> int: ...
    def wake_topics(self, topics: Iterable[str]) -> None: ...
    def wake_first(self, topics: Iterable[str]) -> None: ...
    def wake_next(self, topics: Iterable[str], after: Job) -> None: ...
    def wake_jobs(self, ids: Sequence[JobId]) -> None: ...
    def wake_chains(self, chains: Sequence[JobId]) -> None: ...
    def wake_everything(self) -> None: ...
    def requeue(self, ids: Sequence[JobId], queue: str) -> None: ...
    def touch_checked(self, ids: Sequence[JobId]) -> None: ...
    def file(self, filings: Iterable[Filing]) -> None: ...
    def end_waiting(self, job: Job, status: Status, reason: str, wait: Wait | None) -> bool: ...

    def fail_unreadable(self, job_ids: Sequence[JobId], *, worker_id: str) -> None: ...
    def claim(self, claims: Sequence[tuple[Job, Claim]]) -> None: ...
    def renew_leases(self, host_id: str, until: int) -> None: ...
    def finish(self, finishes: Sequence[Finish]) -> list[bool]: ...
    def unclaim(self, unclaims: Sequence[Unclaim]) -> list[bool]: ...
    def keep_late_outcome(self, claim: Claim, document: Mapping[str, Any]) -> None: ...
    def release_locks(self, job_id: JobId) -> list[str]: ...
    def prove_gone(self, token: str) -> None: ...
    def chains_failed(self, chains: Sequence[JobId]) -> None: ...
    def chain_reopened(self, chain: JobId) -> None: ...
    def request_cancel(self, job_id: JobId, by: str) -> bool: ...

    def own_worktrees(self, worktrees: Sequence[OwnedWorktree]) -> None: ...
    def set_worktree_state(
        self, job_id: JobId, state: WorktreeState, error: str | None = None
    ) -> None: ...
    def publish(self, markers: Iterable[Marker]) -> None: ...
    def made_again(self, chains: Sequence[JobId]) -> None: ...
    def made_one_again(self, artifact: ArtifactKey, chain: JobId) -> None: ...
    def withdraw(self, chains: Sequence[JobId]) -> list[ArtifactKey]: ...
    def reset_jobs(self, jobs: Sequence[Job]) -> None: ...
    def reopen_edges(self, ids: Sequence[JobId], chains: Sequence[JobId]) -> None: ...
    def set_approval(self, job_id: JobId, approval: Approval) -> bool: ...
    def set_gates(self, job: Job) -> bool: ...

    def change_job(self, job: Job) -> bool: ...
    def note_files(self, ids: Sequence[JobId], host_id: str) -> None: ...
    def note_files_elsewhere(self, ids: Sequence[JobId]) -> None: ...
    def files_removed(self, ids: Sequence[JobId], host_id: str) -> None: ...
    def remove_jobs(self, ids: Sequence[JobId]) -> None: ...
    def forget_events(self, before: int, most: int) -> int: ...
    def forget_groups(self, before: int, most: int) -> int: ...

    def lend(self, token: str, lending: Lending) -> None: ...
    def end_lending(self, token: str) -> None: ...
    def end_expired_lendings(self, now: int) -> None: ...

    def set_setting(self, key: str, value: Any, *, by: str) -> None: ...
    def pause(self, pause: Pause) -> bool: ...
    def resume(self) -> bool:
        """End every pause; False if there was none."""

    def open_breaker(self, host_id: str, trouble: HostTrouble) -> None: ...
    def close_breaker(self, host_id: str) -> bool: ...
    def reset_launches(self) -> int: ...
    def add_worker(
        self, worker: WorkerRecord, *, host_id: str, home: str, boot_id: str
    ) -> None: ...
    def know_tasks(self, host_id: str, names: Sequence[str], trouble: str | None) -> None: ...
    def keep_results(self, results: Sequence[tuple[JobId, Any]]) -> None: ...
    def keep_progress(self, progress: Sequence[Progress]) -> None: ...
    def know_host(self, host: HostRecord) -> None: ...
    def worker_settled(self, worker_id: str) -> None: ...
    def end_worker(self, worker_id: str, ending: str) -> None: ...
    def set_mark(self, name: str, value: int) -> None: ...
    def add_to_mark(self, name: str, amount: int) -> None: ...


class HasFileno(Protocol):
    def fileno(self) -> int: ...


class Store(Protocol):
    shared: bool  # by several hosts
    name: str | None  # its own, whatever it is reached by; a file has none
    writes: int  # transactions of this process
    patience: Patience  # how long it waits for a server, or for others

    def present(self) -> int:
        """What time it is by the clock of the store, as it is known without asking."""

    def hints(self) -> HasFileno | None:
        """Becomes readable when someone else has committed; another object after a lost line."""

    def watch_hints(self, watch: Callable[[HasFileno], Callable[[], None]]) -> None:
        """Whenever there is such a line, have it waited for by this; what it gives back ends that,
        and is called before the line is closed, whoever closes it."""

    def read(self) -> AbstractContextManager[ReadTx]: ...
    def write(self) -> AbstractContextManager[WriteTx]: ...
    def write_soon(
        self,
        *,
        blindly: bool = False,
        but_waits: bool = False,
        meanwhile: Callable[[], None] | None = None,
    ) -> AbstractContextManager[WriteTx]:
        """Like `write`, but the turn may be waited for only with the first question. `blindly`: by
        one who asks nothing, because he knows what others may have changed, and that is nothing;
        if he errs, his commit raises `OthersWroteError`. `but_waits`: others may have added jobs
        that wait for the end of others, and no worker has to look at. `meanwhile` may be done, more
        than once, while the commit is waited for."""

    def story(self, tell: Callable[[WriteTx], Told]) -> Told:
        """What `tell` does in one write transaction; made anew, whole, when others undid it."""

    def add_alike(self, kinds: Sequence[Alike]) -> JobId | None:
        """The verb of that name as a story of its own."""

    def relay(self, claimant: Claimant) -> Relay | None:
        """For calls that this one makes one after another, if there is a shorter way for them."""

    def join(self, connection: Any) -> AbstractContextManager[WriteTx]:
        """Write within a transaction of the caller's, who commits it; PostgreSQL only."""

    def check(self) -> None:
        """Raise if the store is no longer the one that was opened, or cannot be used."""

    def backup(self, path: str) -> None:
        """Write a consistent copy of the whole store to a new file, also while others write."""

    def tidy(self) -> None:
        """Cut what the database keeps aside, if nobody is in the way."""

    def changed(self) -> bool:
        """Whether someone else committed since this was last asked: the poll behind the hints."""

    def only_calls_came(self) -> bool:
        """Whether that is known to have been nothing but plain calls."""

    def only_waits_came(self) -> bool:
        """Whether it is known to have been nothing that a worker has to look at: jobs that wait for
        others."""

    def close(self) -> None: ...
