"""The rules of a rewind: its effect on each member of the set that it re-runs. Pure.

The set is a job and everything downstream of it, each chain by its last job. A member that has
ended gets a new job in its chain, so that no evidence is lost; one that waits is put back to the
start in place. Upstream is not touched.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headway.base.errors import ConflictError
from headway.core.approvals import agreed_for_run
from headway.core.model import Approval, ApprovalState, Job, JobId, shown
from headway.core.states import ACTIVE, TERMINAL, Move, Status, after

MOST_NAMED = 5


class Rewind(NamedTuple):
    """The plan: who gets a new job, and who is reset in place."""

    root: Job
    again: tuple[Job, ...]
    reset: tuple[Job, ...]

    @property
    def members(self) -> tuple[Job, ...]:
        return tuple(sorted((*self.again, *self.reset), key=lambda job: job.id))

    @property
    def chains(self) -> tuple[JobId, ...]:
        return tuple(job.chain for job in self.members)


def plan_rewind(root: Job, downstream: Sequence[Job]) -> Rewind:
    """What re-running `root` and all that follows from it means; refused while any of it runs, or
    if all of it succeeded."""
    if all(job.status is Status.SUCCEEDED for job in (root, *downstream)):
        what = "and all that follows from it " if downstream else ""
        raise ConflictError(
            f"{shown(root.id)} {what}succeeded; there is nothing to retry (--again runs it anew)"
        )
    return plan_repeat(root, downstream)


def plan_repeat(root: Job, downstream: Sequence[Job]) -> Rewind:
    """The same, also if all of it succeeded."""
    members = (root, *downstream)
    running = [shown(job.id) for job in members if job.status is Status.RUNNING]
    if running:
        some = ", ".join(running[:MOST_NAMED])
        verb = "is" if len(running) == 1 else "are"
        raise ConflictError(f"{some} {verb} running; cancel it or wait for its end, then retry")
    for job in members:
        if job.status in ACTIVE:
            after(job.status, Move.RESET)
    return Rewind(
        root=root,
        again=tuple(job for job in members if job.status in TERMINAL),
        reset=tuple(job for job in members if job.status in ACTIVE),
    )


def asked_again(approval: Approval | None, *, now: int, by: str) -> Approval | None:
    """A person who agreed to one run has not agreed to the next."""
    if approval is None:
        return None
    return Approval(ApprovalState.PENDING, requested_at=now, requested_by=by)


def next_approval(job: Job, *, now: int, by: str) -> Approval | None:
    """What was agreed to for a whole workflow run counts in every pass of it."""
    return job.approval if agreed_for_run(job) else asked_again(job.approval, now=now, by=by)


def put_back(job: Job, *, now: int, by: str) -> Job:
    """A waiting member at the start again: nothing that it has gone through counts. What its
    submitter asked for does: a time that was given stays, a wait to try again goes."""
    return job._replace(
        status=after(job.status, Move.RESET),
        wait=None,
        waited_on=(),
        not_before=job.submitters_time,
        retries_used=0,
        launch_failures=0,
        launch_wait=None,
        last_failure=None,
        approval=next_approval(job, now=now, by=by),
    )


def kept_times(members: Iterable[Job], now: int) -> dict[JobId, int]:
    """Of these the ones that start later than now, whatever else happens: when that is."""
    asked = ((job.id, job.submitters_time) for job in members)
    return {job_id: at for job_id, at in asked if at is not None and at > now}


def last_successful_point(direct: Mapping[JobId, Status]) -> tuple[JobId, ...]:
    """Of the root's direct predecessors, by the last jobs of their chains, those that succeeded."""
    return tuple(sorted(job for job, status in direct.items() if status is Status.SUCCEEDED))
