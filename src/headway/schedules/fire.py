"""The job of a schedule, made inside of a transaction: for a slot, or when somebody triggers it.

A job has a copy of everything, so that no change of a schedule or of its template reaches one. It
has no submitter's environment: `[env]` of the config and a minimal PATH, in the project's folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.base.host import Host
from headway.core.fire import Active, Overlap, Schedule, SlotRule, kept_part
from headway.core.model import AGENT, JobId, JobSpec, Lock
from headway.core.states import ACTIVE
from headway.jobs.graph import GraphError
from headway.jobs.graph_file import request_of
from headway.jobs.insert import Origin, add_jobs
from headway.jobs.lifecycle import cancel_active
from headway.jobs.request import Request
from headway.jobs.specification import specify
from headway.jobs.stored_templates import require_usable
from headway.store.records import HostRecord
from headway.store.transaction import ReadTx, WriteTx

if TYPE_CHECKING:
    from headway.jobs.settings import Config
    from headway.store.records import Template
    from headway.workflows.prepared import PreparedRun


def request_for(
    tx: ReadTx,
    document: Mapping[str, Any],
    name: str,
    known: dict[str, Template] | None = None,
) -> Request:
    """The request that a schedule stands for now; raises if there is none, as when its template is
    gone.
    `known` remembers templates, for callers with many schedules."""
    job, template = document["job"] or {}, document["template"]
    if template is not None:
        from headway.jobs.templates import request_from_template

        known = {} if known is None else known
        if template not in known:
            known[template] = require_usable(tx, template)
        request = request_from_template(known[template], document["params"], job, tx.now())
    else:
        wrong: list[str] = []
        made = request_of(job, tx.now(), wrong)
        if made is None:
            raise GraphError(wrong, len(wrong))
        request = made
    _refuse_repositories(request)
    return request if request.name is not None else request._replace(name=name)


def _refuse_repositories(request: Request) -> None:
    """Slots fire inside of a transaction, perhaps on another host, where no repository can be
    read."""
    from headway.jobs.repository_gates import about_a_repository

    what = about_a_repository(request)
    if what is not None:
        raise InvalidInputError(
            f"{what} looks at a repository when a job is submitted, which a schedule cannot; "
            "let it run `headway submit` with that option"
        )


def _of_agent(request: Request, settled: Mapping[str, Any], folder: str) -> JobSpec:
    """A job of an agent whose parameters were settled when its schedule was added: its runner is
    asked nothing, which may be described on another host only."""
    stand_in = request._replace(
        agent=None, argv=("agent",), cwd=request.cwd or folder, retry_on=(), type=None, check=False
    )
    spec = specify(stand_in, environ={}, working_directory=folder)
    params = {"agent": settled, **spec.params}
    del params["argv"]
    retry = spec.retry._replace(on=request.retry_on)
    return spec._replace(type=AGENT, params=params, retry=retry)


def take_back_ahead(tx: WriteTx, schedule: Schedule, rule: SlotRule | None) -> None:
    """A clock may have gone back: of what was only skipped, only what has passed stays on record;
    the rest may come at its time. Without its rule, as when its time zone is gone, nobody can count
    what has passed of a range, and it keeps its number."""
    now = tx.now()
    begun = [each for each in tx.schedules.take_back_skipped(schedule.id, now) if each.slot <= now]
    if rule is None:
        tx.schedules.add_firings(
            each._replace(last_slot=now, at=min(each.at, now)) for each in begun
        )
        return
    kept = [kept_part(each, rule, now) for each in begun]
    tx.schedules.add_firings(each for each in kept if each is not None)


class Maker:
    """Makes jobs of schedules within one transaction."""

    def __init__(self, tx: WriteTx, home: Home, *, shared: bool) -> None:
        self._tx = tx
        self._home = home
        self._shared = shared
        self._hosts: dict[str, HostRecord] | None = None
        self._templates: dict[str, Template] = {}
        self._configs: dict[str, Config] = {}

    def specify(self, schedule: Schedule) -> JobSpec | PreparedRun:
        """The specification of one of its jobs, or of a run of its workflow. Programs and folders
        are checked when it starts."""
        if schedule.document.get("workflow") is not None:
            return self._run(schedule)
        request = request_for(self._tx, schedule.document, schedule.name, self._templates)
        home = self._home_of(schedule)
        folder = os.path.dirname(home.path)
        settled = schedule.document.get("agent")
        if settled is not None:
            spec = _of_agent(request, settled, folder)
        else:
            place = None if request.agent is None else self._place(home)
            plain = request._replace(check=False)
            spec = specify(plain, environ={}, working_directory=folder, place=place)
        if schedule.overlap is not Overlap.SKIP:
            others = [each for each in spec.locks if each.key != schedule.shown]
            spec = spec._replace(locks=tuple(sorted((*others, Lock(schedule.shown)))))
        return spec._replace(schedule_id=schedule.shown)

    def _run(self, schedule: Schedule) -> PreparedRun:
        from headway.workflows.prepared import prepare_run
        from headway.workflows.start import RunRequest

        said, home = schedule.document, self._home_of(schedule)
        request = RunRequest(params=said["params"], schedule_id=schedule.shown)
        _, config = self._place(home)
        return prepare_run(self._tx, home, config, said["workflow"], request)

    def add(
        self, schedule: Schedule, spec: JobSpec | PreparedRun, *, actor: str, key: str | None = None
    ) -> JobId:
        """A job, or the first of a run, that somebody asked for, perhaps with a key."""
        if isinstance(spec, JobSpec):
            spec = spec._replace(key=key)
        else:
            spec = spec._replace(request=spec.request._replace(key=key))
        return self._added(schedule, [spec], self._origin(schedule, actor))[0]

    def add_of_slots(self, wanted: Sequence[tuple[Schedule, JobSpec | PreparedRun]]) -> list[JobId]:
        """The jobs of slots of schedules of one host; if one of them is refused, none is made. A
        run comes alone."""
        schedule = wanted[0][0]
        origin = self._origin(schedule, schedule.shown)._replace(of_slots=True)
        return self._added(schedule, [spec for _, spec in wanted], origin)

    def _added(
        self, schedule: Schedule, wanted: Sequence[JobSpec | PreparedRun], origin: Origin
    ) -> list[JobId]:
        if isinstance(wanted[0], JobSpec):
            specs = [each for each in wanted if isinstance(each, JobSpec)]
            return [each.job_id for each in add_jobs(self._tx, specs, origin)]
        from headway.workflows.prepared import add_prepared

        request = wanted[0].request._replace(behind=self._runs_before(schedule))
        return [add_prepared(self._tx, wanted[0]._replace(request=request), origin).jobs[0]]

    def _runs_before(self, schedule: Schedule) -> tuple[int, ...]:
        """The runs that a new one has to stand in line behind, so that two never run at once. A
        lock cannot say that: it is of a job, and a run is many."""
        if schedule.overlap is Overlap.SKIP:
            return ()
        active = self._tx.schedules.active_jobs([schedule.shown]).get(schedule.shown, [])
        return tuple(sorted({each.run for each in active if each.run is not None}))

    def _origin(self, schedule: Schedule, actor: str) -> Origin:
        return Origin(actor, self._home_of(schedule).worktrees, self._host_of(schedule))

    def replace(self, active: list[Active], *, actor: str) -> None:
        """Cancel what has not ended of it, as an operator would."""
        runs = sorted({each.run for each in active if each.run is not None})
        if runs:
            from headway.workflows.runs import stop_within

            for record in self._tx.workflows.by_id(runs).values():
                stop_within(self._tx, record, by=actor, actor=actor)
        jobs = self._tx.jobs.readable([each.job_id for each in active if each.run is None]).values()
        alone = [job for job in jobs if job.status in ACTIVE]
        cancel_active(self._tx, alone, actor=actor)

    def _place(self, home: Home) -> tuple[Home, Config]:
        """Where an agent's runner is described. Few templates have one: only they read a file."""
        if home.path not in self._configs:
            from headway.jobs.settings import load_config

            self._configs[home.path] = load_config(home)
        return home, self._configs[home.path]

    def _home_of(self, schedule: Schedule) -> Home:
        host = self._host_of(schedule)
        return (
            self._home
            if host is None
            else Home(host.home, self._home.store_url, self._home.store_name)
        )

    def _host_of(self, schedule: Schedule) -> Host | None:
        """Where its commands start, which may be another host than this one."""
        if not self._shared or schedule.host_id is None:
            return None
        if self._hosts is None:
            self._hosts = self._tx.hosts.all()
        found = self._hosts.get(schedule.host_id)
        if found is None:
            raise NotFoundError(f"host {schedule.host_id}, where its jobs start, is not known")
        return Host(found.id, "", found.home, found.name)
