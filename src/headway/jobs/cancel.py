"""Cancel jobs, alone or with all that comes after them; one transaction for all of them.

A waiting job ends in that transaction. A running one is asked to end: after the commit the
canceller sends that to its supervisor. If the canceller dies or is on another host, the job's own
worker does.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from headway.base.errors import ConflictError
from headway.core.model import Claim, Job, JobId, shown
from headway.core.states import ACTIVE, WAITING
from headway.jobs.context import Context
from headway.jobs.downstream import downstream
from headway.jobs.lifecycle import cancel_active
from headway.jobs.lookup import require
from headway.jobs.worktrees import clean_worktrees, degraded
from headway.store.transaction import ReadTx, WriteTx
from headway.supervise.evidence import Evidence
from headway.supervise.rescue import ask_to_cancel


class Cancelled(NamedTuple):
    """What a cancel did: `job_id` is the job it reached, perhaps a later one of the chain."""

    job_id: JobId
    was_running: bool
    asked_for: JobId
    cleaned: bool = False  # it had ended before; what was left to do was to clean its worktree


Asked = tuple[JobId, Job]  # as it was named, and the last job of its chain
Transaction = Callable[[WriteTx], tuple[list[Cancelled], list[Claim]]]


def cancel(context: Context, job_ids: Sequence[JobId]) -> list[Cancelled]:
    """Cancel each job, or the active job of its chain; refused if any has already ended, unless a
    worktree of it is still to be cleaned away."""
    cleaned = _clean_what_is_left(context, job_ids)
    job_ids = [each for each in job_ids if each not in {done.asked_for for done in cleaned}]
    if not job_ids:
        return cleaned

    def transaction(tx: WriteTx) -> tuple[list[Cancelled], list[Claim]]:
        asked = _ends(context, tx, job_ids)
        for named, last in asked:
            if last.status not in ACTIVE:
                raise _already_ended(context, tx, named)
        return _cancel(context, tx, asked)

    return [*cleaned, *_cancelled(context, transaction)]


def cancel_downstream(context: Context, job_ids: Sequence[JobId]) -> list[Cancelled]:
    """Cancel these and every active job that comes after them, the nearest first. Those that have
    ended are left as they are; refused if nothing at all is left to cancel."""

    def transaction(tx: WriteTx) -> tuple[list[Cancelled], list[Claim]]:
        asked = _ends(context, tx, job_ids)
        after_them = downstream(tx, [last for _, last in asked])
        both = [*asked, *((job.id, job) for job in after_them)]
        active = [(named, last) for named, last in both if last.status in ACTIVE]
        if not active:
            raise _already_ended(context, tx, job_ids[0])
        return _cancel(context, tx, active)

    return _cancelled(context, transaction)


def with_downstream(context: Context, job_id: JobId) -> list[JobId]:
    """The last of its chain, and of every chain that comes after it."""
    with context.store.read() as tx:
        own = [last for _, last in _ends(context, tx, [job_id])]
        return [job.id for job in (*own, *downstream(tx, own))]


def cancel_members(
    context: Context, choose: Callable[[WriteTx], Sequence[Asked]]
) -> list[Cancelled]:
    """Cancel the active jobs that are chosen inside of the transaction."""
    return _cancelled(context, lambda tx: _cancel(context, tx, choose(tx)))


def _ends(context: Context, tx: ReadTx, job_ids: Sequence[JobId]) -> list[Asked]:
    """The last job of each chain that was named, once, with the id that it was named by first."""
    jobs = require(tx, job_ids)
    named: dict[JobId, JobId] = {}
    for job_id in job_ids:
        named.setdefault(jobs[job_id].chain, job_id)
    return [
        (job_id, tx.jobs.last_in_chain(chain) or jobs[job_id]) for chain, job_id in named.items()
    ]


def _already_ended(context: Context, tx: ReadTx, job_id: JobId) -> ConflictError:
    job = require(tx, [job_id])[job_id]
    return ConflictError(f"{shown(job_id)} has already ended ({job.status})")


def _cancel(
    context: Context, tx: WriteTx, asked: Sequence[Asked]
) -> tuple[list[Cancelled], list[Claim]]:
    cancel_active(tx, [job for _, job in asked], actor=context.actor)
    done, claims = [], []
    for named, job in asked:
        done.append(Cancelled(job.id, job.status not in WAITING, named))
        claim = tx.claims.of_job(job.id) if job.status not in WAITING else None
        claims += [claim] if claim is not None else []
    return done, claims


def _cancelled(context: Context, transaction: Transaction) -> list[Cancelled]:
    done, claims = context.store.transact(transaction)
    for claim in claims:
        if claim.host_id == context.host.id:
            here = (
                claim.folder if claim.home == context.home.path else context.home.job(claim.job_id)
            )
            with suppress(OSError):  # its worker sends it, as soon as there is room to
                ask_to_cancel(Evidence(here, claim.token))
    context.wake()
    unstarted = [each.job_id for each in done if not each.was_running]
    clean_worktrees(context.store, context.home, unstarted, actor=context.actor)
    return done


def _clean_what_is_left(context: Context, job_ids: Sequence[JobId]) -> list[Cancelled]:
    """Try once more to take back the worktrees that earlier cleanings left behind."""
    with context.store.read() as tx:
        ends = _ends(context, tx, job_ids)
        ended = {named: last for named, last in ends if last.status not in ACTIVE}
        owners = sorted({*ended, *(last.id for last in ended.values())})
        left = degraded(tx, owners) if owners else []
    cleaned = clean_worktrees(context.store, context.home, left, actor=context.actor)
    for job_id, result in cleaned.items():
        if result.status == "degraded":
            raise ConflictError(
                f"{shown(job_id)} has already ended and its worktree cannot be cleaned: "
                f"{result.error}"
            )
    return [
        Cancelled(last.id, False, named, cleaned=True)
        for named, last in ended.items()
        if last.id in cleaned or named in cleaned
    ]
