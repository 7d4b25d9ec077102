"""`headway.Client`: the interface for programs. Each noun is a property, each verb a method of it.

    client = headway.connect()
    client.jobs.submit(headway.Request(argv=("make",)))
    client.schedules.list()

The command line has the same verbs. Each is one transaction; a change commits first, then wakes the
worker or starts one. What only some verbs need is imported by them: `submit` is what people wait
for most often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headway.base.clock import Clock
from headway.jobs.context import Context, context_without_home, open_context
from headway.jobs.request import Request
from headway.jobs.submit import submit, submit_many

if TYPE_CHECKING:
    from headway.admin.nouns import Admin, Tokens
    from headway.base.home import Home
    from headway.core.model import Job, JobId, Pause
    from headway.jobs.cancel import Cancelled
    from headway.jobs.insert import Submitted
    from headway.jobs.nouns import (
        Artifacts,
        Events,
        Groups,
        Jobs,
        Reservations,
        Runners,
        Scheduler,
        Statistics,
        Templates,
    )
    from headway.jobs.reservations import HeldSlot
    from headway.jobs.settings import Config
    from headway.schedules.nouns import JobsFile, Schedules
    from headway.webhooks.nouns import Webhooks
    from headway.workflows.nouns import Workflows
    from headway.workitems.nouns import Items, Targets


class Client:
    """One home and its store, for one caller."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def close(self) -> None:
        self.context.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def home(self) -> Home:
        return self.context.home

    @property
    def config(self) -> Config:
        return self.context.config

    @property
    def clock(self) -> Clock:
        return self.context.clock

    def now(self) -> int:
        """By the clock that what is stored goes by."""
        return self.context.now()

    def acting(
        self,
        actor: str,
        kind: str,
        *,
        umask: int,
        folder: str | None = None,
        environ: Mapping[str, str] | None = None,
        pid: int | None = None,
    ) -> Client:
        """A client of the same store for another caller, of whom this process knows all this;
        perhaps also by which process of this machine it asks. Who has no folder is in the one that
        holds the home; who has no environment has `[env]` of the config and a minimal PATH."""
        context = self.context.acting(
            actor, kind, umask=umask, folder=folder, environ=environ, pid=pid
        )
        return Client(context)

    # -- nouns ---------------------------------------------------------------------------------

    @cached_property
    def jobs(self) -> Jobs:
        from headway.jobs.nouns import Jobs

        return Jobs(self.context)

    @cached_property
    def groups(self) -> Groups:
        from headway.jobs.nouns import Groups

        return Groups(self.context)

    @cached_property
    def templates(self) -> Templates:
        from headway.jobs.nouns import Templates

        return Templates(self.context)

    @cached_property
    def artifacts(self) -> Artifacts:
        from headway.jobs.nouns import Artifacts

        return Artifacts(self.context)

    @cached_property
    def events(self) -> Events:
        from headway.jobs.nouns import Events

        return Events(self.context)

    @cached_property
    def reservations(self) -> Reservations:
        from headway.jobs.nouns import Reservations

        return Reservations(self.context)

    @cached_property
    def tokens(self) -> Tokens:
        from headway.admin.nouns import Tokens

        return Tokens(self.context)

    @cached_property
    def runners(self) -> Runners:
        from headway.jobs.nouns import Runners

        return Runners(self.context)

    @cached_property
    def scheduler(self) -> Scheduler:
        from headway.jobs.nouns import Scheduler

        return Scheduler(self.context)

    @cached_property
    def statistics(self) -> Statistics:
        from headway.jobs.nouns import Statistics

        return Statistics(self.context)

    @cached_property
    def schedules(self) -> Schedules:
        from headway.schedules.nouns import Schedules

        return Schedules(self.context)

    @cached_property
    def jobsfile(self) -> JobsFile:
        from headway.schedules.nouns import JobsFile

        return JobsFile(self.context)

    @cached_property
    def workflows(self) -> Workflows:
        from headway.workflows.nouns import Workflows

        return Workflows(self.context)

    @cached_property
    def webhooks(self) -> Webhooks:
        from headway.webhooks.nouns import Webhooks

        return Webhooks(self.context)

    @cached_property
    def items(self) -> Items:
        from headway.workitems.nouns import Items

        return Items(self.context)

    @cached_property
    def targets(self) -> Targets:
        from headway.workitems.nouns import Targets

        return Targets(self.context)

    @cached_property
    def admin(self) -> Admin:
        from headway.admin.nouns import Admin

        return Admin(self.context)

    # -- what is asked for most often ----------------------------------------------------------

    def submit(self, request: Request) -> Submitted:
        """Check, store and acknowledge one job; durable when this returns."""
        return submit(self.context, request)

    def submit_many(self, requests: Sequence[Request]) -> list[Submitted]:
        """All of them or none, in one transaction; they may be a graph."""
        return submit_many(self.context, requests)

    def reserve(self, **asked: Any) -> AbstractContextManager[HeldSlot]:
        """Hold a slot within a block, the next one that is free, for work that is no job: see
        `headway.jobs.reservations.reserve`."""
        from headway.jobs.reservations import reserve

        return reserve(self.context, **asked)

    def job(self, job_id: JobId | str) -> Job:
        return self.jobs.get(job_id)

    def document(self, job_id: JobId | str) -> dict[str, Any]:
        """The document of a job, as `headway jobs show --json` prints it."""
        return self.jobs.show(job_id)

    def listing(self, **asked: Any) -> list[dict[str, Any]]:
        """The documents of the newest jobs that fit; with nothing asked, active jobs and the last
        day's."""
        return self.jobs.list(**asked).documents

    def wait(self, job_id: JobId | str, *, timeout: float | None = None) -> Job:
        """Wait for the end of a job and its retries; the last job of its chain."""
        return self.jobs.wait(job_id, timeout=timeout)

    def cancel(self, job_ids: Sequence[JobId | str]) -> Sequence[Cancelled]:
        """Cancel each job, or the active job of its chain; refused if any has already ended."""
        return self.jobs.cancel(job_ids)

    def retry(self, job_id: JobId | str) -> Job:
        """Queue a job that ended without success, and all that follows from it, once more."""
        return self.jobs.get(self.jobs.retry(job_id).new_root)

    def pause(self, reason: str | None) -> Pause:
        """Hold everything; a pause in force stays as it is."""
        return self.scheduler.pause(reason)

    def resume(self) -> bool:
        """Let all hosts go on; False if nothing was paused."""
        return self.scheduler.resume()

    def set_setting(self, key: str, value: Any) -> None:
        """Change a setting that is kept in the store."""
        self.scheduler.set(key, value)

    if not TYPE_CHECKING:  # type checkers know the present names alone

        def __getattr__(self, name: str) -> Any:
            """The names of before, for one release."""
            if name not in EARLIER:
                raise AttributeError(f"a client has no {name!r}", name=name, obj=self)
            from headway.base.renamed import warn_of_name

            warn_of_name(f"Client.{name}", f"Client.{EARLIER[name]}")
            found = self
            for part in EARLIER[name].split("."):
                found = getattr(found, part)
            return found


# name of before -> name now
EARLIER = {
    "store": "context.store",
    "environ": "context.environ",
    "actor": "context.actor",
    "host": "context.host",
    "last_of_chain": "jobs.last_of_chain",
    "chain": "jobs.chain",
    "history": "jobs.history",
    "progress": "jobs.progress",
    "cancel_downstream": "jobs.cancel_downstream",
    "move": "jobs.move",
    "reorder": "jobs.reorder",
    "create_group": "groups.create",
    "submit_group": "groups.submit",
    "close_group": "groups.close",
    "cancel_group": "groups.cancel",
    "group": "groups.show",
    "add_template": "templates.add",
    "archive_template": "templates.archive",
    "submit_template": "templates.submit",
    "add_schedule": "schedules.add",
    "schedule": "schedules.show",
    "schedule_slots": "schedules.slots",
    "enable_schedule": "schedules.enable",
    "disable_schedule": "schedules.disable",
    "trigger_schedule": "schedules.trigger",
    "remove_schedule": "schedules.remove",
    "jobs_file": "jobsfile.list",
    "add_target": "targets.add",
    "remove_target": "targets.remove",
    "sling": "items.sling",
    "scheduled": "items.list",
    "clear": "items.clear",
    "status": "scheduler.status",
    "dry_run": "scheduler.dry_run",
    "reset": "scheduler.reset",
    "settings": "scheduler.settings",
}


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
    return Client(
        open_context(
            home=home,
            store_url=store_url,
            create=create,
            reading=reading,
            environ=environ,
            actor=actor,
            clock=clock,
        )
    )


def without_home(path: str, actor: str | None = None) -> Client:
    """What is to be seen where no home is: an empty one, and nothing is made."""
    return Client(context_without_home(path, actor))
