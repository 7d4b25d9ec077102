"""Groups as people manage them: made of new or of waiting jobs, closed, cancelled, shown."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headway.base.errors import ConflictError, InvalidInputError, TimedOutError
from headway.base.units import show_instant
from headway.core.facts import Facts
from headway.core.groups import (
    Group,
    GroupId,
    GroupMode,
    GroupStatus,
    Member,
    failed,
    shown_group,
    status_of,
    turns_among,
)
from headway.core.model import Job, JobId, JobSpec, shown
from headway.core.states import ACTIVE, API_STATUS, WAITING
from headway.jobs.cancel import Cancelled, cancel_members
from headway.jobs.context import Context
from headway.jobs.cycles import refuse_cycles_of_group
from headway.jobs.insert import Submitted
from headway.jobs.lookup import require
from headway.jobs.membership import called, close_group, find_group, new_group, stopped_by
from headway.jobs.request import Request
from headway.jobs.submit import specify_all, submit_commands
from headway.jobs.views.present import present_facts, present_wait
from headway.jobs.wait import Waiter
from headway.store.new_jobs import Event
from headway.store.transaction import ReadTx, WriteTx

DAY = 86_400_000_000
MOST_LISTED = 1000
MOST_MEMBERS = 10_000


class Plan(NamedTuple):
    """The properties of a new group."""

    mode: str = GroupMode.SEQUENTIAL
    on_failure: str = "stop"
    name: str | None = None
    subject: str | None = None


USUAL = Plan()


class Made(NamedTuple):
    group: GroupId
    jobs: tuple[JobId, ...] = ()


def create(
    context: Context, plan: Plan, job_ids: Sequence[JobId] = (), *, stays_open: bool = False
) -> Made:
    """A new group: an open one without members, or one of waiting jobs, in this order. That one is
    whole, so it is closed, unless more are to come."""

    def transaction(tx: WriteTx) -> Made:
        group = new_group(tx, **plan._asdict(), actor=context.actor)
        if job_ids:
            _take_in(context, tx, group, job_ids)
            if not stays_open:
                close_group(tx, group, actor=context.actor)
        return Made(group.id, tuple(job_ids))

    made = context.store.transact(transaction)
    context.wake()
    return made


def _take_in(context: Context, tx: WriteTx, group: Group, job_ids: Sequence[JobId]) -> None:
    """Put waiting jobs into a new group."""
    if len(set(job_ids)) < len(job_ids):
        twice = next(each for each in job_ids if job_ids.count(each) > 1)
        raise InvalidInputError(f"{shown(twice)} is named twice; a member has one place")
    known = require(tx, job_ids)
    members = []
    for number, job_id in enumerate(job_ids, 1):
        _refuse_to_take(known[job_id])
        members.append(known[job_id]._replace(group_id=group.id, sequence_number=number))
    refuse_cycles_of_group(tx, members, turns_among(members, {group.id: group}))
    tx.groups.join(members)
    edited = (Event("edited", each, {"fields": ["group"]}) for each in job_ids)
    tx.events.add(edited, actor=context.actor)
    tx.waits.wake(job_ids)


def _refuse_to_take(job: Job) -> None:
    if job.group_id is not None:
        raise ConflictError(f"{shown(job.id)} is a member of {shown_group(job.group_id)} already")
    if job.status not in WAITING:
        raise ConflictError(
            f"{shown(job.id)} is {job.status}; only jobs that wait can be put into a group"
        )


def submit_group(
    context: Context, requests: Sequence[Request], plan: Plan = USUAL
) -> tuple[Made, list[Submitted]]:
    """A whole group in one call: its jobs are new, and it is closed; all of it or nothing."""
    return submit_specs_as_group(context, specify_all(context, requests), plan)


def submit_specs_as_group(
    context: Context, specs: Sequence[JobSpec], plan: Plan
) -> tuple[Made, list[Submitted]]:
    """The same of jobs that were checked before."""
    for spec in specs:
        if spec.group is not None:
            raise InvalidInputError(f"{spec.name}: names another group; it becomes one of this")
        if spec.key is not None:
            raise InvalidInputError(
                f"{spec.name}: has a key; what was submitted before cannot become part of a group"
            )
    if not specs:
        raise InvalidInputError("a group that is made whole has at least one job")
    made: list[GroupId] = []

    def prepare(tx: WriteTx) -> list[JobSpec]:
        group = new_group(tx, **plan._asdict(), actor=context.actor)
        made[:] = [group.id]
        placed = [spec._replace(group=shown_group(group.id)) for spec in specs]
        placed[-1] = placed[-1]._replace(last=True)
        return placed

    submitted = submit_commands(context, specs, prepare)
    return Made(made[0], tuple(each.job_id for each in submitted)), submitted


def close(context: Context, text: str) -> tuple[Group, GroupStatus]:
    """Let nobody join any more; the group as it was before, and how it stands."""

    def transaction(tx: WriteTx) -> tuple[Group, GroupStatus]:
        group = find_group(tx, text)
        return group, close_group(tx, group, actor=context.actor)

    return context.store.transact(transaction)


def cancel(context: Context, text: str) -> tuple[Group, list[Cancelled]]:
    """End all members that have not ended, and close it; refused if it has come to its end."""

    found: list[Group] = []

    def choose(tx: WriteTx) -> list[tuple[JobId, Job]]:
        found[:] = [group] = [find_group(tx, text)]
        tally = tx.groups.tally(group.id)
        status = status_of(group, tally)
        if status is not GroupStatus.RUNNING:
            raise ConflictError(f"{called(group)} has already ended ({status})")
        active = [
            each.job_id for each in tx.groups.members(group.id, tally.members) if _is_active(each)
        ]
        close_group(tx, group, actor=context.actor)
        return [(job_id, job) for job_id, job in sorted(tx.jobs.by_id(active).items())]

    done = cancel_members(context, choose)
    return found[0], done


def _is_active(member: Member) -> bool:
    return member.status in ACTIVE


def wait(
    context: Context,
    text: str,
    *,
    timeout: float | None = None,
    wonder: Callable[[Job], None] | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Wait until all members have ended, also those that join meanwhile; then its document. An open
    group need not be closed."""
    clock = context.clock
    deadline = None if timeout is None else clock.monotonic() + timeout
    with context.store.read() as tx:
        group = find_group(tx, text)
    while active := _active_members(context, group.id):  # others may have joined
        for job_id in active:
            left = None if deadline is None else deadline - clock.monotonic()
            waiter = Waiter(context, job_id)
            try:
                waiter.until_ended(timeout=left, wonder=wonder, meanwhile=meanwhile)
            except TimedOutError as error:
                from headway.jobs.views.why import why_not

                cause = why_not(context, waiter.job.id)
                because = f": {cause}" if cause else ""
                raise TimedOutError(f"{called(group)} has not ended: {error}{because}") from None
    return document(context, shown_group(group.id))


def _active_members(context: Context, group_id: GroupId) -> list[JobId]:
    with context.store.read() as tx:
        tally = tx.groups.tally(group_id)
        members = tx.groups.members(group_id, tally.members)
    return [each.job_id for each in members if _is_active(each)]


def listing(context: Context, *, everything: bool = False) -> list[dict[str, Any]]:
    """The groups that have not ended and the last day's, oldest first."""
    with context.store.read() as tx:
        since = 0 if everything else tx.now() - DAY
        groups = tx.groups.since(since, MOST_LISTED)
        return [_document(tx, group) for group in reversed(groups)]


def document(context: Context, text: str) -> dict[str, Any]:
    """All about one group: how far it is, and its members with their waits."""
    with context.store.read() as tx:
        group = find_group(tx, text)
        return {**_document(tx, group), "members": _members(context, tx, group)}


def _document(tx: ReadTx, group: Group) -> dict[str, Any]:
    tally = tx.groups.tally(group.id)
    status = status_of(group, tally)
    has_failed = status is GroupStatus.RUNNING and any(map(failed, tally.counts))
    culprit = stopped_by(tx, group) if has_failed else None
    return {
        "id": shown_group(group.id),
        "name": group.name,
        "mode": group.mode.value,
        "on_failure": group.on_failure,
        "status": status.value,
        "stopped_by": shown(culprit.id) if culprit else None,
        "subject": group.subject,
        "created_at": show_instant(group.created_at),
        "created_by": group.created_by,
        "closed_at": show_instant(group.closed_at),
        "ended_at": show_instant(group.ended_at),
        "total": tally.members,
        "done": tally.done,
        "counts": {status.value: count for status, count in sorted(tally.counts.items())},
    }


def _members(context: Context, tx: ReadTx, group: Group) -> list[dict[str, Any]]:
    members = tx.groups.members(group.id, MOST_MEMBERS)
    jobs = tx.jobs.readable([each.job_id for each in members])
    facts = present_facts(context, tx)
    return [_member(each, jobs.get(each.job_id), facts) for each in members]


def _member(member: Member, job: Job | None, facts: Facts) -> dict[str, Any]:
    wait = present_wait(job, facts) if job is not None and job.finished_at is None else None
    return {
        "sequence_number": member.sequence_number,
        "job": shown(member.job_id),
        "chain": shown(member.chain),
        "name": job.name if job else None,
        "state": member.status.value,
        "status": API_STATUS[member.status],
        "attempt": job.attempt if job else None,
        "reason": job.reason if job else None,
        "wait": {"kind": wait.kind.value, "detail": wait.detail} if wait else None,
    }
