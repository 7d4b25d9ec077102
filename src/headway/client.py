"""The verbs. The CLI, and later HTTP, MCP and the library, call nothing else.

Each verb is one transaction; a mutation commits first, then wakes the worker or starts one. What
only some verbs need is imported by them: `submit` is what people wait for most often.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.adding import Origin, Submitted, Waiting, add_jobs, add_plain, submit_jobs
from headway.clock import Clock, SystemClock
from headway.config import Config, choose_store, limits_set, load_config, store_setting
from headway.core.model import (
    FUNCTION,
    FUNCTIONS,
    Claim,
    Job,
    JobId,
    JobSpec,
    Pause,
    Stage,
    Wait,
    WaitKind,
)
from headway.environment import keep_environment, present_umask
from headway.errors import NotFoundError, StoreError
from headway.home import Home, find_home, make_home, refuse_no_home, refuse_unsafe
from headway.launching import Bell
from headway.store import open_nothing, open_store
from headway.store.seam_adding import Event
from headway.storetrust import refuse_untrusted_store
from headway.submission import Request, refers_inside, specify
from headway.supervise.workerlock import CALLS_CAME, WAKE, worker_is_there
from headway.verbs import QueueVerbs

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from headway.core.facts import Door, Facts
    from headway.host import Host
    from headway.linking import Drafts
    from headway.reserving import Held
    from headway.store.base import Progress, ReadTx, Store, WriteTx
    from headway.troubles import Reset

MOST_LISTED = 10_000


class Cancelled(NamedTuple):
    """What a cancel did: `job_id` is the job it reached, perhaps a later one of the chain."""

    job_id: JobId
    was_running: bool
    asked_for: JobId
    cleaned: bool = False  # it had ended before; what was left to do was to clean its worktree


class Elsewhere(NamedTuple):
    """The host that ran a job, and where its output is there."""

    host: str
    folder: str


class Client(QueueVerbs):
    """One home and its store, for one caller."""

    def __init__(
        self,
        home: Home,
        config: Config,
        store: Store,
        clock: Clock,
        *,
        environ: Mapping[str, str],
        actor: str,
        reading: bool = False,
    ) -> None:
        home.settle_in(store)
        self.home = home
        self.config = config
        self.store = store
        self.clock = clock
        self.environ = environ
        self.actor = actor
        self._reading = reading
        self._began_empty = reading and not (home.store_url or os.path.exists(home.database))
        self.unreadable: dict[JobId, str] = {}  # rows that the last listing could not read
        self.left_out = False  # whether its limit cut something off
        self._host: Host | None = None
        self._bell = Bell(home)
        self._counting = threading.Lock()
        self._changes = 0

    def changes(self) -> int:
        """A number that is another one whenever somebody else committed since it was last asked
        for: the threads that wait with one client each see every change."""
        with self._counting:
            self._changes += self.store.changed()
            return self._changes

    @property
    def host(self) -> Host:
        if self._host is None:
            from headway.host import known_host, this_host

            self._host = known_host(self.home) if self._reading else this_host(self.home)
        return self._host

    def was_empty_and_is_not(self) -> bool:
        """Whether who began to read before there was a store must connect again to see it."""
        return self._began_empty and os.path.exists(self.home.database)

    def close(self) -> None:
        self._bell.close()
        self.store.close()

    # -- submitting ----------------------------------------------------------------------------

    def submit(self, request: Request) -> Submitted:
        """Check, store and acknowledge one job; durable when this returns."""
        return self.submit_many([request])[0]

    def submit_many(self, requests: Sequence[Request]) -> list[Submitted]:
        """All of them or none, in one transaction.

        They may be a graph: a request with a `local` name is one that others can name in their
        `after`, before or behind it. Raises GraphError with all that is wrong.
        """
        return self.submit_commands(self.specify_all(requests))

    def specify_all(self, requests: Sequence[Request]) -> list[JobSpec]:
        """The checked specifications, with names among them resolved."""
        if not refers_inside(requests):
            check = self._check()
            return [check(each) for each in requests]
        drafts = self.drafts()
        for each in requests:
            drafts.add(each)
        return drafts.linked()

    def drafts(self) -> Drafts:
        """A graph to be put together, and then submitted with `submit_commands`."""
        from headway.linking import Drafts

        return Drafts(self._check(), limit=self.graph_limit())

    def graph_limit(self) -> int:
        """How many jobs one graph may have."""
        return int(store_setting(self.settings(), "scheduler.graph_limit"))

    def _check(self) -> Callable[[Request], JobSpec]:
        return partial(
            specify,
            environ=self.environ,
            working_directory=os.getcwd(),
            found={},
            place=(self.home, self.config),
        )

    def submit_commands(
        self,
        specs: Sequence[JobSpec],
        prepare: Callable[[WriteTx], Sequence[JobSpec]] | None = None,
    ) -> list[Submitted]:
        """Submit checked commands; `prepare` gives them another form, inside of the transaction."""
        env_digest = keep_environment(
            self.home, self.environ, umask=present_umask(), working_directory=os.getcwd()
        )
        plain = None if prepare else add_plain(self.store, specs, self.origin(env_digest))

        def add(tx: WriteTx) -> list[Submitted]:
            if prepare is not None:
                return add_jobs(tx, prepare(tx), self.origin(env_digest))
            return submit_jobs(tx, specs, self.origin(env_digest))

        submitted = plain or self.store.story(add)
        self.wake(word=None if all(isinstance(each, Waiting) for each in submitted) else WAKE)
        return submitted

    def submit_specs(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        """Submit calls of functions, all or none, in one transaction."""
        submitted = self.store.story(lambda tx: submit_jobs(tx, specs, self.origin()))
        self.wake(word=None if all(isinstance(each, Waiting) for each in submitted) else WAKE)
        return submitted

    def submit_on(self, connection: Any, specs: Sequence[JobSpec]) -> list[Submitted]:
        """The same within a transaction of the caller's; workers hear of it when it commits."""
        with self.store.join(connection) as tx:
            submitted = add_jobs(tx, specs, self.origin())
        self.wake()
        return submitted

    def origin(self, env_digest: str | None = None) -> Origin:
        host = self.host if self.store.shared else None
        return Origin(self.actor, self.home.worktrees, host, env_digest)

    def require(self, tx: ReadTx, ids: Sequence[JobId]) -> dict[JobId, Job]:
        jobs = tx.jobs(ids) if ids else {}
        for job_id in ids:
            if job_id not in jobs:
                from headway.collecting import unknown_job

                raise unknown_job(tx, job_id)
        return jobs

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that a worker of this home serves: the common one, its host's own, and that
        of functions, if it has any."""
        from headway.host import queues_of

        return (*queues_of(self.store.shared, self.host), FUNCTIONS)

    def wake(self, *, only_calls: bool = False, word: bytes | None = WAKE) -> bool:
        """Make sure a worker looks at what was committed; False if none is there. Without a word
        one that is there is left alone."""
        start = self.config["worker.autostart"]
        return self._bell.ring(self.environ, CALLS_CAME if only_calls else word, start=start)

    def worker_is_there(self) -> bool:
        return worker_is_there(self.home.worker_lock)

    def worker_trouble(self) -> dict[str, Any] | None:
        """Why the worker of this home cannot do its work: `what` it cannot, the `error`, how many
        `failures` in a row, and `since` when. None if it can, or if there is none."""
        from headway.workertrouble import trouble_of

        return trouble_of(self.home)

    def reserve(self, **asked: Any) -> AbstractContextManager[Held]:
        """Hold a slot within a block, the next one that is free, for work that is no job: see
        `headway.reserving.reserve`."""
        from headway.reserving import reserve

        return reserve(self, **asked)

    # -- looking -------------------------------------------------------------------------------

    def job(self, job_id: JobId) -> Job:
        with self.store.read() as tx:
            return self.require(tx, [job_id])[job_id]

    def last_of_chain(self, job_id: JobId) -> Job:
        """The job that decides for this one's chain."""
        with self.store.read() as tx:
            job = self.require(tx, [job_id])[job_id]
            return tx.last_in_chain(job.chain) or job

    def document(self, job_id: JobId) -> dict[str, Any]:
        with self.store.read() as tx:
            job = self.require(tx, [job_id])[job_id]
            document = self.describe(tx, [job])[0]
            wait = self.hindrance(tx, job)
            if wait is not None:
                document["wait"] = {"kind": wait.kind.value, "detail": wait.detail}
            return document

    def hindrance(self, tx: ReadTx, job: Job) -> Wait | None:
        """What keeps a running job from its end, or its end from the store."""
        waits_or_ended = job.stage is not None or job.finished_at is not None
        claim = None if waits_or_ended else tx.claim_of(job.id)
        if claim is None:
            return None
        from headway.running import hindrance
        from headway.storage import lack_of_room

        return hindrance(
            claim,
            self.host,
            self.home,
            now=self.clock.now(),
            lack=lack_of_room(self.home),
            shared=self.store.shared,
        )

    def chain(self, job_id: JobId) -> list[dict[str, Any]]:
        with self.store.read() as tx:
            job = self.require(tx, [job_id])[job_id]
            return self.describe(tx, tx.chain(job.chain))

    def history(self, job_id: JobId) -> list[Event]:
        with self.store.read() as tx:
            self.require(tx, [job_id])
            return tx.events_of(job_id)

    def listing(self, *, limit: int = MOST_LISTED, **asked: Any) -> list[dict[str, Any]]:
        """The newest documents that a `listing.Query` asks for, by `created_at, id`; without one,
        active jobs and the last day's."""
        from headway.listing import Query, find

        with self.store.read() as tx:
            found = find(tx, Query(**asked), limit, lambda jobs: self.describe(tx, jobs))
            self.unreadable = dict(tx.unreadable())
        self.left_out = found.more
        return found.documents

    def describe(self, tx: ReadTx, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        from headway.documents import job_document, made_by, worktrees_of

        ids = [job.id for job in jobs]
        runs = tx.runs(ids)
        evidence = tx.evidence(ids)
        facts = self.at_the_door(tx)
        elsewhere = self._ran_elsewhere(tx, runs)
        called = [job.id for job in jobs if job.id in runs and job.type == FUNCTION]
        results = tx.results(called) if called else {}
        progress = tx.progress(called) if called else {}
        worktrees, made = worktrees_of(tx, jobs), made_by(tx, list(runs))
        documents = []
        for job in jobs:
            there = elsewhere.get(job.id)
            document = job_document(
                job,
                runs.get(job.id),
                evidence.get(job.id, {}),
                wait=present_wait(job, facts),
                folder=there.folder if there else self.home.job(job.id),
                host=there.host if there else None,
                result=results.get(job.id),
                progress=progress.get(job.id),
                worktree=worktrees.get(job.id),
                artifacts=made.get(job.id, ()),
            )
            documents.append(document)
        return documents

    def _ran_elsewhere(self, tx: ReadTx, ids: Iterable[JobId]) -> dict[JobId, Elsewhere]:
        """Of these jobs, those whose output is on another host."""
        if not self.store.shared:
            return {}
        claims = tx.last_claims(list(ids)).values()
        names = tx.hosts()
        return {
            claim.job_id: Elsewhere(
                names[claim.host_id].name if claim.host_id in names else claim.host_id,
                output_folder(claim),
            )
            for claim in claims
            if claim.host_id != self.host.id
        }

    def ran_elsewhere(self, job_id: JobId) -> Elsewhere | None:
        with self.store.read() as tx:
            return self._ran_elsewhere(tx, [job_id]).get(job_id)

    def door(self, tx: ReadTx) -> Door:
        """What the door says now; the same count as the planner's."""
        from headway.gather import door, strain_of
        from headway.policies import policies_for
        from headway.probes.pressure import measure
        from headway.storage import lack_of_room

        settings = tx.settings()
        seen = door(
            tx,
            self.host.id,
            log_budget=self.config.bytes("logs.budget"),
            policies=policies_for(limits_set(settings)),
            strain=strain_of(settings, measure),
        )
        # On a full disk a worker cannot write down that this is why.
        lack = lack_of_room(self.home) if seen.trouble is None else None
        return seen if lack is None else seen._replace(trouble=lack)

    def at_the_door(self, tx: ReadTx) -> Facts:
        """The facts that tell what a job at the door waits for now."""
        from headway.core.facts import Facts
        from headway.executors import TYPES
        from headway.gather import tasks_known

        return Facts(now=tx.now(), door=self.door(tx), types=TYPES, tasks=tasks_known(tx))

    def progress(self, job_id: JobId) -> Progress | None:
        """How far a function says that it has come."""
        with self.store.read() as tx:
            return tx.progress([job_id]).get(job_id)

    def now(self) -> int:
        """By the clock that what is stored goes by."""
        return self.store.present()

    # -- steering ------------------------------------------------------------------------------

    def cancel(self, job_ids: Sequence[JobId]) -> list[Cancelled]:
        """Cancel each job, or the active job of its chain; refused if any has already ended."""
        from headway.cancelling import cancel

        return cancel(self, job_ids)

    def cancel_downstream(self, job_ids: Sequence[JobId]) -> list[Cancelled]:
        """Cancel these jobs and every active one that comes after them."""
        from headway.cancelling import cancel_downstream

        return cancel_downstream(self, job_ids)

    def retry(self, job_id: JobId) -> Job:
        """Queue a job that ended without success, and all that follows from it, once more."""
        from headway.rewinding import rewind

        return self.job(rewind(self, job_id).new_root)

    def pause(self, reason: str | None) -> Pause:
        """Hold everything; a pause in force stays as it is."""

        def pause(tx: WriteTx) -> Pause | None:
            if tx.pause(Pause(self.actor, reason, tx.now())):  # beside those of single hosts
                tx.add_events([Event("paused", None, {"reason": reason})], actor=self.actor)
            return tx.pause_in_force()

        in_force = self.store.story(pause)
        assert in_force is not None  # noqa: S101
        return in_force

    def resume(self) -> bool:
        """Let all hosts go on; False if nothing was paused."""

        def resume(tx: WriteTx) -> bool:
            resumed = tx.resume()
            if resumed:
                tx.set_mark("crashes_forgiven_at", tx.now())
                tx.add_events([Event("resumed")], actor=self.actor)
            return resumed

        resumed = self.store.story(resume)
        self.wake()
        return resumed

    def reset(self) -> Reset:
        """Forget launch failures: close breakers, try waiting jobs at once."""
        from headway.troubles import reset

        return reset(self)

    def set_setting(self, key: str, value: Any) -> None:
        from headway.effects import take_effect

        def set_it(tx: WriteTx) -> None:
            tx.set_setting(key, value, by=self.actor)
            tx.add_events([Event("set", None, {"key": key, "value": value})], actor=self.actor)
            take_effect(tx, key, value)

        self.store.story(set_it)
        self.wake()

    def settings(self) -> dict[str, Any]:
        with self.store.read() as tx:
            return tx.settings()


def present_wait(job: Job, facts: Facts) -> Wait | None:
    """The wait to show: of a job at the door it is what the door says now, asked as on the host
    that it belongs to."""
    from headway.core.gates import slot_free
    from headway.core.states import Status

    at_door = job.stage in (Stage.READY, Stage.WOKEN) or (
        job.stage is Stage.FILED and job.wait is not None and job.wait.kind in _of_door(job)
    )
    if not at_door or job.status is not Status.QUEUED:
        return job.wait
    objection = slot_free(job, facts._replace(queues=(job.queue,)))
    if isinstance(objection, Wait):
        return objection
    return job.wait if job.stage is not Stage.WOKEN else None


def _of_door(job: Job) -> Collection[WaitKind]:
    """What the door says to jobs that are filed elsewhere than in the queue for slots."""
    limited = (WaitKind.CAPACITY, WaitKind.RATE)
    return (*limited, *_SHUT) if job.is_entry else limited


_SHUT = (WaitKind.PAUSED, WaitKind.STORAGE, WaitKind.PRESSURE)


def output_folder(claim: Claim) -> str:
    """Where the job's output is. A function's claim names the folder of its host instead, which is
    `run/hosts/TOKEN` beside `jobs`."""
    if claim.function_host is None:
        return claim.folder
    root = os.path.dirname(os.path.dirname(os.path.dirname(claim.folder)))
    return os.path.join(root, "jobs", str(claim.job_id))


def connect(
    *,
    home: str | None = None,
    store_url: str | None = None,
    create: bool = False,
    reading: bool = False,
    environ: Mapping[str, str] | None = None,
    actor: str | None = None,
    clock: Clock | None = None,
) -> Client:
    """Open the home that applies here; with `create`, make one where none is. With `reading`
    nothing is made at all: a home without a store is an empty one."""
    environ = os.environ if environ is None else environ
    clock = clock or SystemClock()
    found, exists = find_home(home, environ, os.getcwd())
    if not exists and not create:
        where = f"at {found.path}" if home or environ.get("HEADWAY_HOME") else "here or above"
        raise NotFoundError(
            f"there is no .headway/ {where}; `headway init` makes one, and so does the first submit"
        )
    if exists:
        refuse_unsafe(found.path)
        if not create or os.listdir(found.path):
            refuse_no_home(found.path)
    config = load_config(found, environ)
    url = choose_store(config, store_url, environ)
    found = Home(found.path, url)
    if exists:
        refuse_untrusted_store(found, environ)
    if not reading and (create or not os.path.isdir(found.run)):
        make_home(found, environ)
    if not url:
        _refuse_lost_store(found)
    return Client(
        found,
        config,
        _opened(found, url, config, clock, create=create, reading=reading),
        clock,
        environ=environ,
        actor=actor or environ.get("HEADWAY_ACTOR") or login(environ),
        reading=reading,
    )


def without_home(path: str, actor: str | None = None) -> Client:
    """What is to be seen where no home is: an empty one, and nothing is made."""
    clock = SystemClock()
    actor = actor or login(os.environ)
    store = open_nothing(clock)
    home = Home(path)
    return Client(home, Config(), store, clock, environ=os.environ, actor=actor, reading=True)


def _opened(
    home: Home, url: str, config: Config, clock: Clock, *, create: bool, reading: bool
) -> Store:
    if reading and not url and not os.path.lexists(home.database):
        return open_nothing(clock)
    return open_store(
        url or f"sqlite://{home.database}",
        clock,
        create=create or not url,
        unsafe_fs=config["store.unsafe_fs"],
        poll_only=config["store.poll_only"],
        reading=reading,
    )


def _refuse_lost_store(home: Home) -> None:
    """A new store would give the numbers of old jobs to new ones, in the same folders."""
    if os.path.exists(home.database) or not os.path.isdir(home.jobs):
        return
    if os.listdir(home.jobs):
        raise StoreError(
            f"{home.database} is gone, but {home.jobs} has the files of its jobs. "
            "Restore a backup, or move that folder away to begin anew"
        )


def login(environ: Mapping[str, str]) -> str:
    """Who asks: the job that runs this, or the person logged in."""
    if "HEADWAY_JOB_ID" in environ:
        return environ["HEADWAY_JOB_ID"]
    if environ.get("USER"):
        return environ["USER"]
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
