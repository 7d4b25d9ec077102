"""Change a job that still waits: its command and options, its name, its priority.

The changed job is checked as a whole, as a new one would be, and stored in one transaction or not
at all. Once a job runs, what it was started with is a record and cannot be changed.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.base.environment import kept_directory, kept_variables
from headway.base.errors import InvalidInputError, InvalidOperationError
from headway.core.model import AGENT, FUNCTION, NOTHING, Approval, ApprovalState, Job, JobId, shown
from headway.core.states import WAITING
from headway.jobs.context import Context
from headway.jobs.lookup import find_job, require
from headway.jobs.places import put_last, wake_moved
from headway.jobs.request import Request
from headway.jobs.revisions import refuse_changed
from headway.jobs.specification import default_name, function_spec, specify
from headway.store.new_jobs import Event
from headway.store.transaction import WriteTx

_COMMAND = "command"
_FIELDS = {  # of the parameters, as people call them
    "argv": _COMMAND,
    "shell": _COMMAND,
    "env": "env",
    "cwd": "cwd",
    "timeout_seconds": "timeout",
    "grace_seconds": "grace",
}
_OF_COMMANDS = {"argv", "shell"}
_LOOKED_FOR = {_COMMAND, "env", "cwd"}  # what decides whether program and directory are there


class Changes(NamedTuple):
    """The changes to a job; None and empty leave a field as it is. Labels and variables are set one
    by one. Durations are microseconds."""

    argv: tuple[str, ...] = ()
    shell: str | None = None
    name: str | None = None
    slug: str | None = None
    labels: Mapping[str, str] = NOTHING
    priority: int | None = None
    env: Mapping[str, str] = NOTHING
    cwd: str | None = None
    timeout: int | None = None
    grace: int | None = None
    check: bool = True


class Edited(NamedTuple):
    job: Job
    fields: tuple[str, ...]  # what is another now
    asks_again: bool  # its approval was for what it was before


def edit(
    context: Context, job_id: JobId, changes: Changes, *, revision: str | None = None
) -> Edited:
    """Change a waiting job; refused once it runs or has ended, and if it was changed since this
    revision of it was seen."""
    here = context.folder
    if changes.cwd is not None:
        changes = changes._replace(cwd=os.path.abspath(os.path.join(here, changes.cwd)))
    _look(context, find_job(context, job_id), changes)

    def transaction(tx: WriteTx) -> Edited:
        job = require(tx, [job_id])[job_id]
        _refuse_unless_waiting(job, tx.jobs.last_in_chain(job.chain) or job)
        refuse_changed(tx, job_id, revision)
        changed = _changed(job, changes)
        fields = _different(job, changed)
        if fields:
            changed = _store(tx, job, changed, fields, actor=context.actor)
        return Edited(changed, fields, _must_be_asked_again(job, fields))

    edited = context.store.transact(transaction)
    context.wake()
    return edited


def _look(context: Context, job: Job, changes: Changes) -> None:
    """Check that program and directory exist where the job would run. It happens outside of the
    transaction, since a file system may keep us waiting."""
    if job.status not in WAITING or not changes.check or job.env_digest is None:
        return
    if not _LOOKED_FOR & set(_different(job, _changed(job, changes))):
        return
    environ = kept_variables(context.home, job.env_digest)
    folder = kept_directory(context.home, job.env_digest)
    if environ is None or folder is None:
        return  # they are on another host
    request = _request(job, changes)
    specify(
        request._replace(check=True),
        environ=environ,
        working_directory=folder,
        no_check=context.no_check,
    )


def _changed(job: Job, changes: Changes) -> Job:
    """The job as it would be. Raises InvalidInputError on the first thing that is wrong."""
    request = _request(job, changes)
    if job.type == FUNCTION:
        params = job.params
        spec = function_spec(request, str(params.get("task")), params.get("args") or {})
    else:
        spec = specify(request, environ={}, working_directory="/")
    kept = {name: value for name, value in job.params.items() if name not in _FIELDS}
    own = _FIELDS if job.type != AGENT else _FIELDS.keys() - _OF_COMMANDS
    params = {**kept, **{key: spec.params[key] for key in own if key in spec.params}}
    if "grace_seconds" not in job.params and changes.grace is None:
        params.pop("grace_seconds", None)
    return job._replace(
        params=params,
        name=spec.name,
        slug=spec.slug,
        labels=spec.labels,
        priority=spec.priority,
    )


def _request(job: Job, changes: Changes) -> Request:
    """The request that would make the changed job, as far as a change can reach."""
    _refuse_what_it_has_not(job, changes)
    params = job.params
    old = Request(
        # An agent has a prompt instead, which cannot be changed; any word stands for it here.
        argv=tuple(params.get("argv") or ()) if job.type != AGENT else ("true",),
        shell=params.get("shell"),
        labels=job.labels,
        slug=job.slug,
        priority=job.priority,
        timeout=_micros(params.get("timeout_seconds")),
        grace=_micros(params.get("grace_seconds", 10.0)) or 0,
        env=params.get("env") or {},
        cwd=params.get("cwd"),
        stdin=params.get("stdin"),
        on_finish=job.on_finish,
        check=False,
    )
    given: dict[str, Any] = {
        name: value
        for name in ("slug", "priority", "cwd", "timeout", "grace")
        if (value := getattr(changes, name)) is not None
    }
    if changes.argv or changes.shell is not None:
        given |= {"argv": changes.argv, "shell": changes.shell}
    request = old._replace(
        **given,
        labels={**old.labels, **changes.labels},
        env={**old.env, **changes.env},
    )
    return request._replace(name=_name(job, old, request) if changes.name is None else changes.name)


def _name(job: Job, old: Request, request: Request) -> str | None:
    """The name stays, unless it was that of the command."""
    followed = job.type != FUNCTION and job.name == default_name(old)
    return None if followed and (request.argv or request.shell) else job.name


def _refuse_what_it_has_not(job: Job, changes: Changes) -> None:
    command = changes.argv or changes.shell is not None or changes.env or changes.cwd is not None
    if command and job.type == FUNCTION:
        raise InvalidInputError(
            f"{shown(job.id)} calls a function: it has no command, variables or directory to change"
        )
    if (changes.argv or changes.shell is not None) and job.type == AGENT:
        raise InvalidInputError(
            f"{shown(job.id)} has a prompt and no command to change; cancel it and submit it anew"
        )
    if changes.cwd is not None and job.repo is not None:
        raise InvalidInputError(
            f"--cwd: what {shown(job.id)} waits for, or runs in, is in {job.repo}; cancel it and "
            "submit it anew"
        )


def _micros(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)


def _refuse_unless_waiting(job: Job, last: Job) -> None:
    if job.status in WAITING:
        return
    hint = "submit a new one, or retry it as it was"
    if last.status in WAITING:
        hint = f"of its chain {shown(last.id)} waits"
    elif last.id == job.id and job.finished_at is None:
        hint = "cancel it and submit a new one"
    raise InvalidOperationError(f"Cannot modify params: {shown(job.id)} is {job.status}; {hint}")


def _different(job: Job, changed: Job) -> tuple[str, ...]:
    """The names of what is another, each once."""
    own = ("name", "slug", "labels", "priority")
    fields = [name for name in own if getattr(job, name) != getattr(changed, name)]
    fields += [
        name for key, name in _FIELDS.items() if job.params.get(key) != changed.params.get(key)
    ]
    return tuple(dict.fromkeys(fields))


def _store(tx: WriteTx, job: Job, changed: Job, fields: tuple[str, ...], *, actor: str) -> Job:
    """A job of another priority stands behind those that have it; it is as old as before."""
    moved = changed.priority != job.priority
    if moved:
        gained = changed.priority - job.priority
        changed = put_last(tx, changed, job.dispatch_level + gained)
        wake_moved(tx, [changed])
    tx.jobs.change(changed)
    data: dict[str, Any] = {"fields": list(fields)}
    if _must_be_asked_again(job, fields):
        tx.graph.set_approval(job.id, Approval(ApprovalState.PENDING, tx.now(), actor))
        data["approval"] = "asked for again"
    tx.events.add([Event("edited", job.id, data)], actor=actor)
    tx.waits.wake([job.id])
    return changed


def _must_be_asked_again(job: Job, fields: tuple[str, ...]) -> bool:
    """Whether it must be approved again: the approver has seen another command."""
    approved = job.approval is not None and job.approval.state is ApprovalState.APPROVED
    return approved and any(name in fields for name in _FIELDS.values())
