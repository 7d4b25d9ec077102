"""Apply what the core decided, inside the transaction that asked: the one place for each effect.

The worker settles claims and blocks jobs through here; the client cancels and retries through here.
So an end writes the same rows and wakes the same jobs, whoever caused it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.core.artifacts import ArtifactKind, artifact_topic
from headway.core.gates.routes import is_repeatable
from headway.core.groups import (
    POLICIES,
    Group,
    GroupFailurePolicy,
    GroupMode,
    GroupStatus,
    failed,
    fate_of_rest,
    is_rest,
    shown_group,
    status_of,
    turn_topic,
)
from headway.core.model import Claim, Job, JobId, Wait, shown
from headway.core.outputs import product_data
from headway.core.settle import ChainEnd, ChainRetry, Ended, follow_up, next_in_chain
from headway.core.states import WAITING, Move, Status, after
from headway.jobs.levels import level_of_chain
from headway.jobs.locks import ended_waiting, release_locks
from headway.store.new_jobs import Event
from headway.store.records import Marker
from headway.store.transaction import WriteTx


def end_unstarted(
    tx: WriteTx,
    job: Job,
    status: Status,
    reason: str,
    *,
    wait: Wait | None = None,
    unreached: bool = False,
    actor: str,
) -> bool:
    """A waiting job comes to its end without a run; False if it is no longer waiting. A node of a
    workflow run is `unreached` if another node is why."""
    return bool(
        end_all_unstarted(tx, [job], status, reason, wait=wait, unreached=unreached, actor=actor)
    )


def end_all_unstarted(
    tx: WriteTx,
    jobs: Sequence[Job],
    status: Status,
    reason: str,
    *,
    wait: Wait | None = None,
    unreached: bool = False,
    actor: str,
) -> list[Job]:
    """The same of many; those that were still waiting. All of them have ended before anything
    follows from one: what becomes of the rest of a group concerns none of these."""
    ended = [job for job in jobs if tx.jobs.end_waiting(job, status, reason, wait)]
    tx.events.add((Event(status.value, job.id, {"reason": reason}) for job in ended), actor=actor)
    ended_waiting(tx, ended)
    chains_failed(tx, [job.chain for job in ended])
    how = Ended(status, None, None, reason, executed=False)
    nodes_ended(tx, [ChainEnd(job, how, unreached=unreached) for job in ended], actor=actor)
    for members in _by_group(ended):
        tx.waits.wake_topics(turn_topic(each.chain) for each in members)
        member_ended(tx, members[0], status, actor=actor)
    for job in ended:
        _follow_up(tx, job, how, actor=actor)
    return ended


def cancel_active(tx: WriteTx, jobs: Sequence[Job], *, actor: str) -> None:
    """A waiting job ends now. A running job is asked to end: its worker passes that on to its
    supervisor."""
    waiting = [job for job in jobs if job.status in WAITING]
    for job in waiting:
        after(job.status, Move.CANCEL)
    end_all_unstarted(tx, waiting, Status.CANCELLED, f"cancelled by {actor}", actor=actor)
    for job in jobs:
        if job.status not in WAITING and tx.jobs.request_cancel(job.id, actor):
            tx.events.add([Event("cancel_requested", job.id)], actor=actor)


def _by_group(jobs: Iterable[Job]) -> list[list[Job]]:
    """Those that are members, group by group, each in the order of its turns. For what follows the
    first of them stands for all: whatever is the rest for another is the rest for it."""
    groups: dict[int, list[Job]] = {}
    for job in sorted(jobs, key=lambda each: each.sequence_number or 0):
        if job.group_id is not None:
            groups.setdefault(job.group_id, []).append(job)
    return list(groups.values())


def end_chains(tx: WriteTx, ends: Sequence[ChainEnd], *, actor: str) -> None:
    """Jobs ended as the last of their chains: wake those that wait for them, and do what they asked
    for at their end."""
    good = [each for each in ends if each.ended.status is Status.SUCCEEDED]
    bad = [each for each in ends if each.ended.status is not Status.SUCCEEDED]
    chains_made(tx, {each.job.chain: product_data(each.report) for each in good}, actor=actor)
    chains_failed(tx, [each.job.chain for each in bad])
    nodes_ended(tx, ends, actor=actor)
    # After the other wake-ups: a server tells along with it who is woken by now.
    tx.waits.chains_succeeded([each.job.chain for each in good if not is_repeatable(each.job)])
    for each in ends:
        if each.job.group_id is not None:
            member_ended(tx, each.job, each.ended.status, actor=actor)
        _follow_up(tx, each.job, each.ended, actor=actor)


def nodes_ended(tx: WriteTx, ends: Sequence[ChainEnd], *, actor: str) -> None:
    """Of these, the chains of nodes of workflow runs have ended: that decides edges, and perhaps
    ends a run."""
    nodes = [each for each in ends if each.job.workflow_run is not None]
    if nodes:
        from headway.jobs.routes import end_nodes

        end_nodes(tx, nodes, actor=actor)


def chains_failed(tx: WriteTx, chains: Sequence[JobId]) -> None:
    """Chains ended without success: wake the jobs that wait for them, or for what they would have
    made."""
    if chains:
        tx.waits.chains_failed(chains)
        tx.waits.wake_topics(
            {artifact_topic(each.artifact) for each in tx.graph.produced_by(chains)}
        )


def _follow_up(tx: WriteTx, job: Job, ended: Ended, *, actor: str) -> None:
    if not job.on_finish:
        return
    following = follow_up(job, ended, new_id=tx.jobs.take_ids(1), now=tx.now())
    if following is not None:
        tx.jobs.add([following])
        tx.events.add([_submitted(following)], actor=actor)


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
    group = tx.groups.by_id([job.group_id or 0]).get(job.group_id or 0)
    if group is None:
        return
    fate = fate_of_rest(group, job, policies) if failed(status) else None
    if fate is not None:
        beyond = (job.sequence_number or 0) if group.mode is GroupMode.SEQUENTIAL else 0
        waiting = tx.groups.waiting_members(group.id, after=beyond)
        rest = [each for each in waiting if is_rest(group, job, each)]
        if rest:
            moved = after(rest[0].status, fate.move)
            end_all_unstarted(tx, rest, moved, fate.reason, actor=actor)
    if group.mode is GroupMode.SEQUENTIAL:
        tx.waits.wake_topics([turn_topic(job.chain)])
    if group.ended_at is None:
        write_group_end(tx, group, actor=actor)


def write_group_end(tx: WriteTx, group: Group, *, actor: str) -> GroupStatus:
    """Say so, once, if all of a closed group has ended; how the group stands."""
    if group.closed_at is None or tx.groups.is_active(group.id):
        return GroupStatus.RUNNING
    tally = tx.groups.tally(group.id)
    status = status_of(group, tally)
    if tx.groups.set_ended(group.id):
        counts = {each.value: count for each, count in sorted(tally.counts.items())}
        data = {"group": shown_group(group.id), "status": status.value, "members": tally.members}
        named = {"name": group.name} if group.name else {}
        tx.events.add([Event("group_ended", None, {**data, **named, **counts})], actor=actor)
    return status


def chains_succeeded(tx: WriteTx, chains: Sequence[JobId], *, actor: str) -> None:
    """Chains succeeded: publish what they announced, and wake the jobs that wait."""
    tx.waits.chains_succeeded(chains)
    chains_made(tx, dict.fromkeys(chains), actor=actor)


def chains_made(
    tx: WriteTx, chains: Mapping[JobId, Mapping[str, Any] | None], *, actor: str
) -> None:
    """Publish what these chains announced, each with its data, and wake the jobs that wait for
    that."""
    if not chains:
        return
    products = tx.graph.produced_by(list(chains))
    if not products:
        return
    tx.graph.made_again(list(chains))
    marked = [
        Marker(each.artifact, each.job_id, tx.now(), chains[each.chain])
        for each in products
        if each.artifact.startswith(f"{ArtifactKind.CUSTOM}:")
    ]
    # What a job has published itself keeps what it gave with it.
    known = {
        (each.artifact, each.job_id) for each in tx.graph.markers_by([m.job_id for m in marked])
    }
    publish(tx, [each for each in marked if (each.artifact, each.job_id) not in known], actor=actor)
    tx.waits.wake_topics(artifact_topic(each.artifact) for each in products)


def publish(tx: WriteTx, markers: Sequence[Marker], *, actor: str) -> None:
    """Record that artifacts are there, with their data, and wake the jobs that wait for them."""
    tx.graph.publish(markers)
    tx.events.add(
        (Event("published", each.job_id, {"artifact": each.artifact}) for each in markers),
        actor=actor,
    )
    tx.waits.wake_topics(artifact_topic(each.artifact) for each in markers)


def continue_chain(
    tx: WriteTx, job: Job, retry: ChainRetry, *, actor: str, data: Mapping[str, Any]
) -> Job:
    """Make the next job of the chain."""
    following = next_in_chain(job, retry, new_id=tx.jobs.take_ids(1), now=tx.now())
    following = following._replace(level=level_of_chain(tx, job))
    tx.jobs.add_retries([following])
    if following.launch_wait is not None:
        tx.hosts.cool_down(following.id, following.launch_wait, following.last_failure or "")
    tx.events.add(
        [
            Event("retried", job.id, {**data, "by": shown(following.id)}),
            _submitted(following),
        ],
        actor=actor,
    )
    return following


def trees_gone(tx: WriteTx, claims: Sequence[Claim], *, actor: str) -> None:
    """Of claims that were settled before, the trees are gone now."""
    for claim in claims:
        tx.claims.prove_gone(claim.token)
    release_locks(tx, [claim.job_id for claim in claims])
    tx.events.add((Event("tree_unproven", claim.job_id) for claim in claims), actor=actor)


def _submitted(job: Job) -> Event:
    data: dict[str, Any] = {"name": job.name}
    if job.retry_of is not None:
        data |= {"retry_of": shown(job.retry_of), "attempt": job.attempt}
    return Event("submitted", job.id, data)
