"""What `headway.Client` offers for jobs and what belongs to them: one class for each noun.

A method hands the client's context to the verb of the same meaning, which is imported when it is
first called. So a program loads only the verbs that it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.base.errors import InvalidInputError
from headway.core.model import NOTHING, Job, JobId
from headway.jobs.context import Context

if TYPE_CHECKING:
    from headway.core.dispatch import DispatchPlan
    from headway.core.groups import Group, GroupStatus
    from headway.core.model import JobSpec, Pause, PinnedHead
    from headway.core.order import Place
    from headway.core.retention import RetentionRule
    from headway.jobs.cancel import Cancelled
    from headway.jobs.edit import Edited
    from headway.jobs.groups import Made, Plan
    from headway.jobs.insert import Submitted
    from headway.jobs.launch_failures import Reset
    from headway.jobs.order import Moved
    from headway.jobs.request import Request
    from headway.jobs.retention import Removed
    from headway.jobs.retry import Rewound
    from headway.jobs.views.counts import Counts
    from headway.jobs.views.graph.model import GraphSchedule
    from headway.jobs.views.hosts import Elsewhere
    from headway.jobs.views.logs import LogPart
    from headway.jobs.views.queue import Lineup
    from headway.jobs.views.recent import Recent
    from headway.jobs.views.search import SearchResult
    from headway.jobs.views.times import JobTimes
    from headway.jobs.worker_stop import StoppedWorker
    from headway.store.new_jobs import Event
    from headway.store.records import Progress, Template


class ClientNoun:
    """The verbs of one noun, for one caller."""

    def __init__(self, context: Context) -> None:
        self._context = context


class Jobs(ClientNoun):
    """`client.jobs`."""

    def find(self, text: JobId | str) -> JobId:
        """The id of the job that `24`, `#24`, `job-24` or a slug names; every verb takes them. Of
        several with that slug it is the one active job; if none is active, the one that ended
        last."""
        if isinstance(text, int) and not isinstance(text, bool):
            return text
        if not isinstance(text, str):
            raise InvalidInputError(f"{text!r} is not a job; give its id, as 24 or 'job-24'")
        from headway.jobs.lookup import find_id

        return find_id(self._context, text)

    def _find_all(self, jobs: JobId | str | Sequence[JobId | str]) -> list[JobId]:
        """One is as good as a list of one."""
        return [self.find(each) for each in ([jobs] if isinstance(jobs, int | str) else jobs)]

    # -- submitting ----------------------------------------------------------------------------

    def submit(self, request: Request) -> Submitted:
        """Check, store and acknowledge one job; durable when this returns."""
        from headway.jobs.submit import submit

        return submit(self._context, request)

    def submit_many(self, requests: Sequence[Request]) -> list[Submitted]:
        """All of them or none, in one transaction. They may be a graph: a request with a `local`
        name is one that others can name in their `after`."""
        from headway.jobs.submit import submit_many

        return submit_many(self._context, requests)

    def submit_specifications(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        """Jobs that were checked before, as those of a graph file."""
        from headway.jobs.submit import submit_commands

        return submit_commands(self._context, specs)

    def submit_entry(self, entry: Mapping[str, Any]) -> Submitted:
        """One job in the words of a graph file, as `{"argv": ["make"], "timeout": "5m"}`."""
        from headway.jobs.submit import submit_entry

        return submit_entry(self._context, entry)

    def submit_entries(self, entries: Sequence[Mapping[str, Any]]) -> list[Submitted]:
        """A graph of such jobs, all of it or nothing; each has an `id` that others can name."""
        from headway.jobs.submit import submit_entries

        return submit_entries(self._context, entries)

    # -- looking -------------------------------------------------------------------------------

    def get(self, job_id: JobId | str) -> Job:
        from headway.jobs.lookup import find_job

        return find_job(self._context, self.find(job_id))

    def last_of_chain(self, job_id: JobId | str) -> Job:
        """The job that decides for this one's chain."""
        from headway.jobs.lookup import last_of_chain

        return last_of_chain(self._context, self.find(job_id))

    def show(self, job_id: JobId | str) -> dict[str, Any]:
        """The document of a job, as `headway jobs show --json` prints it."""
        from headway.jobs.views.details import document

        return document(self._context, self.find(job_id))

    def documents(self, job_ids: Sequence[JobId | str]) -> list[dict[str, Any]]:
        """The same of many, in their order; much quicker than one by one."""
        from headway.jobs.views.details import documents

        return documents(self._context, [self.find(each) for each in job_ids])

    def chain(self, job_id: JobId | str) -> list[dict[str, Any]]:
        """The documents of every job of this one's chain, the oldest first."""
        from headway.jobs.views.details import chain_documents

        return chain_documents(self._context, self.find(job_id))

    def tries(self, job_id: JobId | str) -> list[dict[str, Any]]:
        """How each job of the chain ended and why, and when the next one may start."""
        from headway.jobs.views.details import chain_of

        return chain_of(self._context, self.find(job_id))

    def history(self, job_id: JobId | str) -> list[Event]:
        from headway.jobs.lookup import history

        return history(self._context, self.find(job_id))

    def ran_elsewhere(self, job_id: JobId | str) -> Elsewhere | None:
        """The host that ran this job, if its output is not here."""
        from headway.jobs.views.hosts import where_it_ran

        return where_it_ran(self._context, self.find(job_id))

    def log(
        self, job_id: JobId | str, stream: str, offset: int = 0, limit: int = 1 << 20
    ) -> LogPart:
        """What it wrote to `stdout` or `stderr`, from a logical offset on."""
        from headway.jobs.views.logs import log_part

        return log_part(self._context, self.find(job_id), stream, offset, limit)

    def log_tail(self, job_id: JobId | str, stream: str, lines: int) -> int:
        """The offset at which the last lines of a stream begin."""
        from headway.jobs.views.logs import tail_offset

        return tail_offset(self._context, self.find(job_id), stream, lines)

    def times(self, job_ids: Sequence[JobId]) -> Sequence[JobTimes]:
        """How long each waited and ran."""
        from headway.jobs.views.times import times_of

        return times_of(self._context, job_ids)

    def patch(self, job_id: JobId | str) -> bytes:
        """What it changed in its worktree, as it was saved at its end."""
        from headway.jobs.views.details import saved_patch

        return saved_patch(self._context, self.find(job_id))

    def progress(self, job_id: JobId | str) -> Progress | None:
        """How far a function says that it has come."""
        from headway.jobs.lookup import progress

        return progress(self._context, self.find(job_id))

    def run(self, run_id: JobId | str) -> Job:
        """The job of a run; one that was never started has none."""
        from headway.jobs.references import job_of_run
        from headway.jobs.views.details import executed

        job = job_of_run(run_id) if isinstance(run_id, str) else run_id
        return executed(self._context, self.find(job))

    def list(
        self,
        *,
        limit: int | None = None,
        before: JobId | None = None,
        most_read: int | None = None,
        **asked: Any,
    ) -> SearchResult:
        """The newest jobs that fit, by id; with nothing asked, active jobs and the last day's.
        `headway.jobs.views.search.SearchQuery` has the words. `next` of the answer is `before` of
        the next page. With `most_read` a page may have fewer than `limit`, or none, although others
        follow: no more rows than about so many are looked at."""
        from headway.jobs.views.search import MOST_LISTED, SearchQuery, listing

        return listing(
            self._context,
            SearchQuery(**asked),
            limit=limit or MOST_LISTED,
            before=before,
            most_read=most_read,
        )

    def queue(
        self, *, limit: int | None = None, most_read: int | None = None, **asked: Any
    ) -> Lineup:
        """Waiting jobs in the order of their dispatch, with estimates. With `most_read` no more
        than the first so many of the queue are looked at."""
        from headway.jobs.views.queue import line_up
        from headway.jobs.views.search import MOST_LISTED, SearchQuery

        limit = limit or MOST_LISTED
        most = max(limit, MOST_LISTED) if most_read is None else most_read
        return line_up(self._context, SearchQuery(**asked), limit=limit, most=most)

    def recent(self, *, limit: int | None = None) -> Recent:
        """What ended of late, what failed and was not retried, and what is usual. `limit` is for
        each list (50)."""
        from headway.jobs.views.recent import MOST_RECENT, recent

        return recent(self._context, limit or MOST_RECENT)

    def graph(self, **asked: Any) -> GraphSchedule:
        """What is to run and what each job waits for, as `headway jobs schedule` shows it."""
        from headway.jobs.views.graph.loader import load_schedule

        return load_schedule(self._context, **asked)

    def why(self, job_id: JobId | str) -> dict[str, Any]:
        """Every objection to starting this job, and what would clear each."""
        from headway.jobs.views.why import why

        return why(self._context, self.find(job_id))

    def why_not(self, job_id: JobId | str) -> str | None:
        """In a few words, what is in the way of a job that does not run."""
        from headway.jobs.views.why import why_not

        return why_not(self._context, self.find(job_id))

    def wait(
        self,
        job_id: JobId | str,
        *,
        timeout: float | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Job:
        """Wait for the end of the job and its retries; the last job of its chain. `meanwhile` is
        called again and again; what it raises ends the wait."""
        from headway.jobs.wait import Waiter

        waiter = Waiter(self._context, self.find(job_id))
        return waiter.until_ended(timeout=timeout, meanwhile=meanwhile)

    # -- steering ------------------------------------------------------------------------------

    def cancel(self, job_ids: Sequence[JobId | str]) -> Sequence[Cancelled]:
        """Cancel each job, or the active job of its chain; refused if any has already ended."""
        from headway.jobs.cancel import cancel

        return cancel(self._context, self._find_all(job_ids))

    def cancel_downstream(self, job_ids: Sequence[JobId | str]) -> Sequence[Cancelled]:
        """Cancel these jobs and every active one that comes after them."""
        from headway.jobs.cancel import cancel_downstream

        return cancel_downstream(self._context, self._find_all(job_ids))

    def downstream(self, job_id: JobId | str) -> Sequence[JobId]:
        """The job and every one that comes after it: what `cancel_downstream` would reach."""
        from headway.jobs.cancel import with_downstream

        return with_downstream(self._context, self.find(job_id))

    def retry(
        self, job_id: JobId | str, *, check: Callable[[Sequence[Job]], None] | None = None
    ) -> Rewound:
        """Queue a job that ended without success, and all that follows from it, once more. `check`
        is given all these jobs within the transaction; if it raises, nothing is changed."""
        from headway.jobs.retry import rewind

        return rewind(self._context, self.find(job_id), check)

    def preview_retry(self, job_id: JobId | str) -> Rewound:
        """What `retry` would do now."""
        from headway.jobs.retry import preview

        return preview(self._context, self.find(job_id))

    def repeat(self, job_id: JobId | str) -> Rewound:
        """As `retry`, also of a job that succeeded."""
        from headway.jobs.retry import repeat

        return repeat(self._context, self.find(job_id))

    def preview_repeat(self, job_id: JobId | str) -> Rewound:
        """What `repeat` would do now."""
        from headway.jobs.retry import preview_repeat

        return preview_repeat(self._context, self.find(job_id))

    # With a `revision` these refuse (`ChangedMeanwhileError`) what was changed since it was seen.

    def revision(self, job_id: JobId | str) -> str:
        """What one sees of a job, in a word: another one after each change. Ask for it before
        `show`, so that it is never newer than what is shown."""
        from headway.jobs.revisions import revision

        return revision(self._context, self.find(job_id))

    def queue_revision(self) -> str:
        """The same of the order of the queue."""
        from headway.jobs.revisions import queue_revision

        return queue_revision(self._context)

    def edit(self, job_id: JobId | str, *, revision: str | None = None, **changes: Any) -> Edited:
        """Change a job that still waits. `headway.jobs.edit.Changes` has the words."""
        from headway.jobs.edit import Changes, edit

        return edit(self._context, self.find(job_id), Changes(**changes), revision=revision)

    def move(self, job_id: JobId | str, place: Place, *, revision: str | None = None) -> Moved:
        """Put a waiting job elsewhere among those of its level."""
        from headway.jobs.order import move

        return move(self._context, self.find(job_id), place, revision=revision)

    def reorder(
        self, job_ids: Sequence[JobId | str], *, revision: str | None = None
    ) -> Sequence[Moved]:
        """Let these have, among the places that they have now, the order given. The revision is
        that of the queue."""
        from headway.jobs.order import reorder

        return reorder(self._context, self._find_all(job_ids), revision=revision)

    def approve(self, job_id: JobId | str, *, revision: str | None = None) -> Job:
        """Let a job run that asks for approval."""
        from headway.jobs.approvals import approve

        return approve(self._context, self.find(job_id), revision=revision)

    def approve_all(self, job_ids: Sequence[JobId | str]) -> Sequence[Job]:
        """Let jobs run that ask for approval; all of them, or none if one cannot be approved."""
        from headway.jobs.approvals import approve_all

        return approve_all(self._context, self._find_all(job_ids))

    def reject(
        self, job_id: JobId | str, reason: str | None = None, *, revision: str | None = None
    ) -> Job:
        """End a job that asks for approval."""
        from headway.jobs.approvals import reject

        return reject(self._context, self.find(job_id), reason, revision=revision)

    def approvals(self) -> Sequence[dict[str, Any]]:
        """What waits for a person, and what it would run."""
        from headway.jobs.approvals import inbox

        return inbox(self._context)

    def repin(
        self, job_id: JobId | str, *, revision: str | None = None
    ) -> tuple[PinnedHead, PinnedHead]:
        """Move a waiting job's pin to the present commit; the old pin and the new one."""
        from headway.jobs.approvals import repin

        return repin(self._context, self.find(job_id), revision=revision)

    # -- removing ------------------------------------------------------------------------------

    def gc(
        self, rule: RetentionRule | None = None, *, preview: bool = False, **options: Any
    ) -> Removed:
        """Remove ended jobs that nobody needs, with their files; with `preview` only say which.
        Without a rule, that of the settings counts."""
        from headway.jobs.retention import gc

        return gc(self._context, rule, preview=preview, **options)

    def clean(self, job_id: JobId | str, **options: Any) -> Removed:
        """Remove one ended job, with its chain and its files."""
        from headway.jobs.retention import clean

        return clean(self._context, self.find(job_id), **options)


class Groups(ClientNoun):
    """`client.groups`."""

    def create(
        self, plan: Plan, job_ids: Sequence[JobId] = (), *, stays_open: bool = False
    ) -> Made:
        """An empty group that is open, or one of these waiting jobs."""
        from headway.jobs.groups import create

        return create(self._context, plan, job_ids, stays_open=stays_open)

    def submit(
        self, requests: Sequence[Request], plan: Plan | None = None
    ) -> tuple[Made, list[Submitted]]:
        """A whole group in one transaction."""
        from headway.jobs.groups import USUAL, submit_group

        return submit_group(self._context, requests, plan or USUAL)

    def submit_specifications(
        self, specs: Sequence[JobSpec], plan: Plan
    ) -> tuple[Made, list[Submitted]]:
        """The same of jobs that were checked before."""
        from headway.jobs.groups import submit_specs_as_group

        return submit_specs_as_group(self._context, specs, plan)

    def list(self, *, everything: bool = False) -> Sequence[dict[str, Any]]:
        """The groups that have not ended and the last day's, oldest first."""
        from headway.jobs.groups import listing

        return listing(self._context, everything=everything)

    def show(self, group: str) -> dict[str, Any]:
        """Its document, with its members."""
        from headway.jobs.groups import document

        return document(self._context, group)

    def wait(self, group: str, *, timeout: float | None = None) -> dict[str, Any]:
        """Wait until all its members and their retries have ended; its document, as `show`."""
        from headway.jobs.groups import wait

        return wait(self._context, group, timeout=timeout)

    def close(self, group: str) -> tuple[Group, GroupStatus]:
        """Let nobody join any more."""
        from headway.jobs.groups import close

        return close(self._context, group)

    def cancel(self, group: str) -> tuple[Group, Sequence[Cancelled]]:
        """End all members that have not ended, and close it."""
        from headway.jobs.groups import cancel

        return cancel(self._context, group)

    def __call__(self, *, everything: bool = False) -> Sequence[dict[str, Any]]:
        """The name of `list` before."""
        from headway.base.renamed import warn_of_name

        warn_of_name("Client.groups()", "Client.groups.list()")
        return self.list(everything=everything)


class Templates(ClientNoun):
    """`client.templates`."""

    def add(
        self,
        name: str,
        /,
        *,
        params: Mapping[str, str | None] = NOTHING,
        replace: bool = False,
        **job: Any,
    ) -> Template:
        """Keep a job under a name, in the words of a graph file, as `argv=[...], timeout="5m"`.
        `params` are its parameters with their defaults, None for those that must be given."""
        from headway.jobs.templates import add_template

        return add_template(self._context, name, params=params, replace=replace, **job)

    def list(self, *, archived: bool = False) -> Sequence[dict[str, Any]]:
        """Those that make jobs, by name; with `archived` also those that do no more."""
        from headway.jobs.stored_templates import templates

        return templates(self._context, archived=archived)

    def show(self, name: str) -> dict[str, Any]:
        from headway.jobs.stored_templates import template

        return template(self._context, name)

    def archive(self, name: str) -> bool:
        """From now on it makes no jobs; False if that was so before."""
        from headway.jobs.templates import archive_template

        return archive_template(self._context, name)

    def submit(
        self, name: str, /, *, params: Mapping[str, str] = NOTHING, **overrides: Any
    ) -> Submitted:
        """Make a job of a template. `overrides` take the place of what it says."""
        from headway.jobs.templates import submit_template

        return submit_template(self._context, name, params=params, **overrides)

    def request(
        self, name: str, /, *, params: Mapping[str, str] = NOTHING, **overrides: Any
    ) -> Request:
        """What `submit` would submit; nothing is stored."""
        from headway.jobs.templates import request_of_template

        return request_of_template(self._context, name, params=params, **overrides)


class Artifacts(ClientNoun):
    """`client.artifacts`."""

    def publish(self, type_: str, key: str, data: Any = None) -> tuple[str, JobId]:
        """Say, inside a running job, that custom:TYPE:KEY is there."""
        from headway.jobs.artifacts import publish

        return publish(self._context, type_, key, data)

    def list(self) -> tuple[Sequence[dict[str, Any]], int]:
        """What jobs have published, make or need; and how many more there are."""
        from headway.jobs.artifacts import list_artifacts

        return list_artifacts(self._context)

    def show(self, artifact: str) -> dict[str, Any]:
        """Its payload, its producers and its consumers."""
        from headway.jobs.artifacts import show_artifact

        return show_artifact(self._context, artifact, self._context.folder)

    def without_producer(self, job_id: JobId) -> Sequence[str]:
        """What this job needs, is not there, and no job makes."""
        return [text for _, text in self.without_producers([job_id])]

    def without_producers(self, job_ids: Sequence[JobId]) -> Sequence[tuple[JobId, str]]:
        """The same of several: each artifact once, with the first job that needs it."""
        from headway.jobs.artifacts import without_producers

        return without_producers(self._context, job_ids)


class Events(ClientNoun):
    """`client.events`: what happened, by its number."""

    def last(self) -> int:
        from headway.jobs.views.events import last_event

        return last_event(self._context)

    def epoch(self) -> str | None:
        """What the numbers are counted in; another one after a restore."""
        from headway.jobs.views.events import event_epoch

        return event_epoch(self._context)

    def since(self, seq: int, *, limit: int = 500) -> list[dict[str, Any]]:
        """The documents of the next events after a number, in the order of their commits."""
        from headway.jobs.views.events import events_since

        return events_since(self._context, seq, limit)

    def started_since(self, seq: int) -> list[str]:
        """The jobs that were started after the given event."""
        from headway.jobs.views.events import started_since

        return started_since(self._context, seq)


class Reservations(ClientNoun):
    """`client.reservations`: slots for work that is no job, for one who renews them itself. Within
    one process `client.reserve` does all of it."""

    def ask(
        self,
        *,
        note: str = "",
        type: str | None = None,  # noqa: A002  as in the options
        resources: Sequence[str] = (),
        target: str | None = None,
    ) -> dict[str, Any]:
        """Stand in line, or have a slot at once. It must be renewed before it expires."""
        from headway.jobs.reservations import ask_for_slot

        return ask_for_slot(self._context, note=note, type=type, resources=resources, target=target)

    def show(self, name: str) -> dict[str, Any]:
        from headway.jobs.reservations import show_slot

        return show_slot(self._context, name)

    def look(self, name: str) -> dict[str, Any]:
        """The same, and its slot if it is its turn now."""
        from headway.jobs.reservations import look_for_slot

        return look_for_slot(self._context, name)

    def renew(self, name: str) -> dict[str, Any]:
        """Keep it, or its place in line; ReservationLostError if it has expired."""
        from headway.jobs.reservations import renew_slot

        return renew_slot(self._context, name)

    def release(self, name: str) -> None:
        """Give it back, or leave the line."""
        from headway.jobs.reservations import release_slot

        release_slot(self._context, name)


class Runners(ClientNoun):
    """`client.runners`: the agent programs that jobs can use."""

    def list(self) -> Sequence[dict[str, Any]]:
        from headway.jobs.views.runners import runners

        return runners(self._context)

    def show(self, name: str) -> dict[str, Any]:
        """One runner, and what its program says of its version."""
        from headway.jobs.views.runners import runner

        return runner(self._context, name)

    def parked(self) -> dict[str, dict[str, Any]]:
        """The runners whose jobs wait, each with why and until when."""
        from headway.jobs.views.runners import parked_now

        return parked_now(self._context)

    def resume(self, name: str) -> bool:
        """Let jobs of a parked runner start again; False if it was not parked."""
        from headway.jobs.runners import resume_runner

        return resume_runner(self._context, name)


class Scheduler(ClientNoun):
    """`client.scheduler`."""

    def status(self, counts: Counts | None = None) -> dict[str, Any]:
        """Mode, caps, what is in use, and why nothing starts now. Who asks often may give the
        `counts` of a moment ago: then it does not matter how much waits."""
        from headway.jobs.views.status import scheduler_status

        return scheduler_status(self._context, counts)

    def counts(self) -> Counts:
        """How many jobs wait, in which state and for which limit. It is exact, and takes longer
        the more wait."""
        from headway.jobs.views.counts import counts

        return counts(self._context)

    def dry_run(self, batch: int) -> DispatchPlan:
        """What one pass would start, what it would leave, and why."""
        from headway.jobs.dry_run import dry_run

        return dry_run(self._context, batch)

    def locks(self) -> Sequence[dict[str, Any]]:
        """Who holds each lock that is held or waited for, and who waits."""
        from headway.jobs.views.locks import locks

        return locks(self._context)

    def hosts(self) -> Sequence[dict[str, Any]]:
        """Every host of the store, with its last worker and how many jobs run there."""
        from headway.jobs.views.hosts import all_hosts

        return all_hosts(self._context)

    def pause(self, reason: str | None = None) -> Pause:
        """Hold everything; a pause in force stays as it is."""
        from headway.jobs.scheduler import pause

        return pause(self._context, reason)

    def resume(self) -> bool:
        """Let all hosts go on; False if nothing was paused."""
        from headway.jobs.scheduler import resume

        return resume(self._context)

    def await_step(self) -> bool:
        """Wait up to 2 s for the worker's step after what was committed before; False if none came.
        Verbs never do that by themselves: they commit, wake the worker and return."""
        from headway.jobs.wait import await_step

        return await_step(self._context)

    def reset(self) -> Reset:
        """Forget launch failures: close breakers, try waiting jobs at once."""
        from headway.jobs.launch_failures import reset

        return reset(self._context)

    def all_settings(self) -> list[dict[str, Any]]:
        """Every setting: its value, its default, where it stands and what it is about."""
        from headway.jobs.views.settings import all_settings

        return all_settings(self._context)

    def settings(self) -> dict[str, Any]:
        """The settings in the store that were changed."""
        from headway.jobs.scheduler import settings

        return settings(self._context)

    def set(self, key: str, value: Any) -> None:
        """Change a setting that is kept in the store, as `scheduler.max_active`."""
        from headway.jobs.scheduler import set_setting

        set_setting(self._context, key, value)

    def unset(self, key: str) -> None:
        """Let a setting that is kept in the store have its default again."""
        from headway.jobs.scheduler import unset_setting

        unset_setting(self._context, key)

    def stop_worker(self) -> StoppedWorker | None:
        """End the background worker of this home; None if no worker is there."""
        from headway.jobs.worker_stop import stop_worker

        return stop_worker(self._context)


class Statistics(ClientNoun):
    """`client.statistics`: numbers over time, of the jobs that are still in the store."""

    def load(self, span: str = "1h") -> dict[str, Any]:
        """What ended, waited and ran in each stretch of the last `span`, up to `31d`. Where too
        much ended to be read, it says since when it is whole."""
        from headway.jobs.statistics import load

        return load(self._context, span)

    def jobs(self, name: str, limit: int = 30) -> dict[str, Any]:
        """How long the last jobs of this name took, the newest first; of a chain the last."""
        from headway.jobs.statistics import last_jobs

        return last_jobs(self._context, name, limit)

    def runs(self, workflow: str, limit: int = 30) -> dict[str, Any]:
        """How long the last runs of a workflow took, the newest first."""
        from headway.jobs.statistics import last_runs

        return last_runs(self._context, workflow, limit)

    def spend(self, days: int = 30) -> dict[str, Any]:
        """What agents used on each of the last days, in UTC."""
        from headway.jobs.statistics import spend

        return spend(self._context, days)

    def timeline_of_run(self, run: str) -> dict[str, Any]:
        """When each node of a run like `wf-7` waited, on what, and ran; of 3,000 jobs at most."""
        from headway.jobs.views.timeline import timeline_of_run

        return timeline_of_run(self._context, run)

    def timeline_of_group(self, group: str) -> dict[str, Any]:
        """The same of the members of a group."""
        from headway.jobs.views.timeline import timeline_of_group

        return timeline_of_group(self._context, group)

    def timeline_of_job(self, job_id: JobId | str) -> dict[str, Any]:
        """The same of a job, all that it depends on and all that depends on it."""
        from headway.jobs.views.timeline import timeline_of_job

        return timeline_of_job(self._context, Jobs(self._context).find(job_id))
