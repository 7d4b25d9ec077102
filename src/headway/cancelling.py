"""Cancel jobs, alone or with all that comes after them; one transaction for all of them.

A waiting job ends in that transaction. A running one is asked to: its supervisor is told after the
commit, by whoever cancels or, if that one dies or is on another host, by the job's own worker.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from headway.client import Cancelled, Client
from headway.consequences import cancel_active
from headway.core.model import Claim, Job, JobId, shown
from headway.core.states import ACTIVE, WAITING
from headway.downstream import downstream
from headway.errors import ConflictError
from headway.store.base import ReadTx, WriteTx
from headway.supervise.evidence import Evidence
from headway.supervise.rescue import tell_to_cancel
from headway.worktreeing import clean_worktrees, degraded

Asked = tuple[JobId, Job]  # as it was named, and the last job of its chain
Story = Callable[[WriteTx], tuple[list[Cancelled], list[Claim]]]


def cancel(client: Client, job_ids: Sequence[JobId]) -> list[Cancelled]:
    """Cancel each job, or the active job of its chain; refused if any has already ended, unless a
    worktree of it is still to be cleaned away."""
    cleaned = _clean_what_is_left(client, job_ids)
    job_ids = [each for each in job_ids if each not in {done.asked_for for done in cleaned}]
    if not job_ids:
        return cleaned

    def story(tx: WriteTx) -> tuple[list[Cancelled], list[Claim]]:
        asked = _ends(client, tx, job_ids)
        for named, last in asked:
            if last.status not in ACTIVE:
                raise _already_ended(client, tx, named)
        return _cancel(client, tx, asked)

    return [*cleaned, *_told(client, story)]


def cancel_downstream(client: Client, job_ids: Sequence[JobId]) -> list[Cancelled]:
    """Cancel these and every active job that comes after them, the nearest first. Those that have
    ended are left as they are; refused if nothing at all is left to cancel."""

    def story(tx: WriteTx) -> tuple[list[Cancelled], list[Claim]]:
        asked = _ends(client, tx, job_ids)
        after_them = downstream(tx, [last for _, last in asked])
        both = [*asked, *((job.id, job) for job in after_them)]
        active = [(named, last) for named, last in both if last.status in ACTIVE]
        if not active:
            raise _already_ended(client, tx, job_ids[0])
        return _cancel(client, tx, active)

    return _told(client, story)


def cancel_members(client: Client, choose: Callable[[WriteTx], Sequence[Asked]]) -> list[Cancelled]:
    """Cancel the active jobs that are chosen inside of the transaction."""
    return _told(client, lambda tx: _cancel(client, tx, choose(tx)))


def _ends(client: Client, tx: ReadTx, job_ids: Sequence[JobId]) -> list[Asked]:
    """The last job of each chain that was named, once, with the id that it was named by first."""
    jobs = client.require(tx, job_ids)
    named: dict[JobId, JobId] = {}
    for job_id in job_ids:
        named.setdefault(jobs[job_id].chain, job_id)
    return [(job_id, tx.last_in_chain(chain) or jobs[job_id]) for chain, job_id in named.items()]


def _already_ended(client: Client, tx: ReadTx, job_id: JobId) -> ConflictError:
    job = client.require(tx, [job_id])[job_id]
    return ConflictError(f"{shown(job_id)} has already ended ({job.status})")


def _cancel(
    client: Client, tx: WriteTx, asked: Sequence[Asked]
) -> tuple[list[Cancelled], list[Claim]]:
    cancel_active(tx, [job for _, job in asked], actor=client.actor)
    done, claims = [], []
    for named, job in asked:
        done.append(Cancelled(job.id, job.status not in WAITING, named))
        claim = tx.claim_of(job.id) if job.status not in WAITING else None
        claims += [claim] if claim is not None else []
    return done, claims


def _told(client: Client, story: Story) -> list[Cancelled]:
    done, claims = client.store.story(story)
    for claim in claims:
        if claim.host_id == client.host.id:
            here = claim.folder if claim.home == client.home.path else client.home.job(claim.job_id)
            with suppress(OSError):  # its worker tells it, as soon as there is room to
                tell_to_cancel(Evidence(here, claim.token))
    client.wake()
    unstarted = [each.job_id for each in done if not each.was_running]
    clean_worktrees(client.store, client.home, unstarted, actor=client.actor)
    return done


def _clean_what_is_left(client: Client, job_ids: Sequence[JobId]) -> list[Cancelled]:
    """Try once more to take back the worktrees that earlier cleanings left behind."""
    with client.store.read() as tx:
        ends = _ends(client, tx, job_ids)
        ended = {named: last for named, last in ends if last.status not in ACTIVE}
        owners = sorted({*ended, *(last.id for last in ended.values())})
        left = degraded(tx, owners) if owners else []
    cleaned = clean_worktrees(client.store, client.home, left, actor=client.actor)
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
