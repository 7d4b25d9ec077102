"""Apply what the core decided, inside the transaction that asked: the one place for each effect.

The engine settles claims and blocks jobs through here; the client cancels and retries through here.
So an end looks the same, and wakes the same, whoever brought it about.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from headway.ageing import level_of_chain
from headway.core.artifacts import ArtifactKind, artifact_topic
from headway.core.groups import (
    POLICIES,
    Group,
    GroupFailurePolicy,
    GroupStatus,
    Mode,
    failed,
    fate_of_rest,
    is_rest,
    shown_group,
    status_of,
    turn_topic,
)
from headway.core.model import Claim, Job, JobId, LockMode, Wait, lock_topic, shown
from headway.core.settle import Ended, Retry, follow_up, next_in_chain
from headway.core.states import WAITING, Move, Status, after
from headway.store.base import Event, Marker, WriteTx


def end_unstarted(
    tx: WriteTx, job: Job, status: Status, reason: str, *, wait: Wait | None = None, actor: str
) -> bool:
    """A waiting job comes to its end without a run; False if it is no longer waiting."""
    return bool(end_all_unstarted(tx, [job], status, reason, wait=wait, actor=actor))


def end_all_unstarted(
    tx: WriteTx,
    jobs: Sequence[Job],
    status: Status,
    reason: str,
    *,
    wait: Wait | None = None,
    actor: str,
) -> list[Job]:
    """The same of many; those that were still waiting. All of them have ended before anything
    follows from one: what becomes of the rest of a group concerns none of these."""
    ended = [job for job in jobs if tx.end_waiting(job, status, reason, wait)]
    tx.add_events((Event(status.value, job.id, {"reason": reason}) for job in ended), actor=actor)
    tx.wake_first(dict.fromkeys(lock_topic(lock.key) for job in ended for lock in job.locks))
    chains_failed(tx, [job.chain for job in ended])
    for members in _by_group(ended):
        tx.wake_topics(turn_topic(each.chain) for each in members)
        member_ended(tx, members[0], status, actor=actor)
    for job in ended:
        _follow_up(tx, job, Ended(status, None, None, reason, executed=False), actor=actor)
    return ended


def cancel_active(tx: WriteTx, jobs: Sequence[Job], *, actor: str) -> None:
    """What waits ends now. What runs is asked to: its worker passes that on to its supervisor."""
    waiting = [job for job in jobs if job.status in WAITING]
    for job in waiting:
        after(job.status, Move.CANCEL)
    end_all_unstarted(tx, waiting, Status.CANCELLED, f"cancelled by {actor}", actor=actor)
    for job in jobs:
        if job.status not in WAITING and tx.request_cancel(job.id, actor):
            tx.add_events([Event("cancel_requested", job.id)], actor=actor)


def _by_group(jobs: Iterable[Job]) -> list[list[Job]]:
    """Those that are members, group by group, each in the order of its turns. For what follows the
    first of them stands for all: whatever is the rest for another is the rest for it."""
    groups: dict[int, list[Job]] = {}
    for job in sorted(jobs, key=lambda each: each.sequence_number or 0):
        if job.group_id is not None:
            groups.setdefault(job.group_id, []).append(job)
    return list(groups.values())


def end_chain(tx: WriteTx, job: Job, ended: Ended, *, actor: str) -> None:
    """The last job of a chain ended: tell those that wait for it, and do what it asked for then."""
    if ended.status is Status.SUCCEEDED:
        chains_succeeded(tx, [job.chain], actor=actor)
    else:
        chains_failed(tx, [job.chain])
    if job.group_id is not None:
        member_ended(tx, job, ended.status, actor=actor)
    _follow_up(tx, job, ended, actor=actor)


def chains_failed(tx: WriteTx, chains: Sequence[JobId]) -> None:
    """Chains ended without success: who waits for them, or for what they would have made, looks."""
    if chains:
        tx.chains_failed(chains)
        tx.wake_topics({artifact_topic(each.artifact) for each in tx.produced_by(chains)})


def _follow_up(tx: WriteTx, job: Job, ended: Ended, *, actor: str) -> None:
    if not job.on_finish:
        return
    following = follow_up(job, ended, new_id=tx.take_ids(1), now=tx.now())
    if following is not None:
        tx.add_jobs([following])
        tx.add_events([_submitted(following)], actor=actor)


def member_ended(
    tx: WriteTx,
    job: Job,
    status: Status,
    *,
    actor: str,
    policies: Mapping[str, GroupFailurePolicy] = POLICIES,
) -> None:
    """The chain of a group's member has ended: after a failure the rest fares as the group's policy
    says, who is next may go, and the last one's end is the group's."""
    group = tx.groups([job.group_id or 0]).get(job.group_id or 0)
    if group is None:
        return
    fate = fate_of_rest(group, job, policies) if failed(status) else None
    if fate is not None:
        beyond = (job.sequence_number or 0) if group.mode is Mode.SEQUENTIAL else 0
        waiting = tx.waiting_members(group.id, after=beyond)
        rest = [each for each in waiting if is_rest(group, job, each)]
        if rest:
            moved = after(rest[0].status, fate.move)
            end_all_unstarted(tx, rest, moved, fate.reason, actor=actor)
    if group.mode is Mode.SEQUENTIAL:
        tx.wake_topics([turn_topic(job.chain)])
    if group.ended_at is None:
        tell_group_end(tx, group, actor=actor)


def tell_group_end(tx: WriteTx, group: Group, *, actor: str) -> GroupStatus:
    """Say so, once, if all of a closed group has ended; how the group stands."""
    if group.closed_at is None or tx.group_is_active(group.id):
        return GroupStatus.RUNNING
    tally = tx.tally(group.id)
    status = status_of(group, tally)
    if tx.set_group_ended(group.id):
        counts = {each.value: count for each, count in sorted(tally.counts.items())}
        data = {"group": shown_group(group.id), "status": status.value, "members": tally.members}
        named = {"name": group.name} if group.name else {}
        tx.add_events([Event("group_ended", None, {**data, **named, **counts})], actor=actor)
    return status


def chains_succeeded(tx: WriteTx, chains: Sequence[JobId], *, actor: str) -> None:
    """Chains came to a good end: what they said they make is there, and who waits may look."""
    if not chains:
        return
    tx.chains_succeeded(chains)
    products = tx.produced_by(chains)
    if not products:
        return
    tx.made_again(chains)
    marked = [
        Marker(each.artifact, each.job_id, tx.now())
        for each in products
        if each.artifact.startswith(f"{ArtifactKind.CUSTOM}:")
    ]
    # What a job has published itself keeps what it gave with it.
    known = {(each.artifact, each.job_id) for each in tx.markers_by([m.job_id for m in marked])}
    publish(tx, [each for each in marked if (each.artifact, each.job_id) not in known], actor=actor)
    tx.wake_topics(artifact_topic(each.artifact) for each in products)


def publish(tx: WriteTx, markers: Sequence[Marker], *, actor: str) -> None:
    """Say that artifacts are there, with what they carry, and tell those that wait for them."""
    tx.publish(markers)
    tx.add_events(
        (Event("published", each.job_id, {"artifact": each.artifact}) for each in markers),
        actor=actor,
    )
    tx.wake_topics(artifact_topic(each.artifact) for each in markers)


def continue_chain(
    tx: WriteTx, job: Job, retry: Retry, *, actor: str, data: Mapping[str, Any]
) -> Job:
    """Make the next job of the chain."""
    following = next_in_chain(job, retry, new_id=tx.take_ids(1), now=tx.now())
    following = following._replace(level=level_of_chain(tx, job))
    tx.add_retries([following])
    if following.launch_wait is not None:
        tx.cool_down(following.id, following.launch_wait, following.last_failure or "")
    tx.add_events(
        [
            Event("retried", job.id, {**data, "by": shown(following.id)}),
            _submitted(following),
        ],
        actor=actor,
    )
    return following


def give_up_locks(tx: WriteTx, job: Job) -> None:
    """A job that will not take its locks now lets the next waiter look."""
    tx.wake_first([lock_topic(lock.key) for lock in job.locks])


def pass_on_shared(tx: WriteTx, job: Job, *, lacking: Collection[str] = ()) -> None:
    """A job that took, or reserved, a free lock shared lets the next waiter look: it may join."""
    topics = [lock_topic(lock.key) for lock in job.locks if lock.mode is LockMode.SHARED]
    tx.wake_next([topic for topic in topics if topic not in lacking], job)


def release_locks(tx: WriteTx, job_id: JobId) -> None:
    """The job's process tree is gone: its locks are free."""
    tx.wake_first([lock_topic(key) for key in tx.release_locks(job_id)])


def trees_gone(tx: WriteTx, claims: Sequence[Claim], *, actor: str) -> None:
    """Of claims that were settled before, the trees are gone now."""
    for claim in claims:
        tx.prove_gone(claim.token)
        release_locks(tx, claim.job_id)
    tx.add_events((Event("tree_unproven", claim.job_id) for claim in claims), actor=actor)


def kept_log_bytes(outcome: Mapping[str, Any]) -> int:
    """How much a job's logs take, as its supervisor counted them at its end."""
    return sum(log["bytes"] - log["dropped"] for log in outcome["logs"].values())


def _submitted(job: Job) -> Event:
    data: dict[str, Any] = {"name": job.name}
    if job.retry_of is not None:
        data |= {"retry_of": shown(job.retry_of), "attempt": job.attempt}
    return Event("submitted", job.id, data)
