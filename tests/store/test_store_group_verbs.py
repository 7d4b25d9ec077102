"""What every store does with the verbs about groups."""

from typing import Any

import pytest
from recording import verbs
from stocked import START, add, finish_of, job, parking, start

from headway.core.groups import Group, GroupId, GroupMode, GroupTally, Member
from headway.core.model import Job, Stage, Wait, WaitKind
from headway.core.retention import InTheWay, Obstacle
from headway.core.states import Status
from headway.store.records import NewNode, RunRecord, Search
from headway.store.store import Store
from headway.store.transaction import WriteTx


def made(tx: WriteTx, **fields: Any) -> Group:
    """Store one more group and give it back."""
    defaults = {"mode": GroupMode.SEQUENTIAL, "on_failure": "stop", "created_at": START}
    group = Group(tx.groups.take_id(), **{**defaults, "created_by": "ann", **fields})
    tx.groups.add(group)
    return group


def members(tx: WriteTx, group: Group, count: int, **fields: Any) -> list[Job]:
    first = tx.groups.last_number(group.id) + 1
    return [
        add(tx, group_id=group.id, sequence_number=number, **fields)
        for number in range(first, first + count)
    ]


def end(tx: WriteTx, member: Job, status: Status = Status.SUCCEEDED) -> None:
    tx.claims.finish([finish_of(start(tx, member), status=status)])


def retried(tx: WriteTx, member: Job) -> Job:
    fields = {"group_id": member.group_id, "sequence_number": member.sequence_number}
    again = job(tx.jobs.take_ids(1), chain=member.chain, retry_of=member.id, **fields)
    tx.jobs.add_retries([again])
    return again


@verbs("groups.take_id", "groups.add", "groups.by_id", "groups.named", "groups.since")
def test_a_group_is_given_back_as_it_was_stored(store: Store) -> None:
    with store.write() as tx:
        whole = made(tx, name="nightly", subject="s-1", mode=GroupMode.PARALLEL, on_failure="skip")
        newer = made(tx, name="nightly", subject="s-1", closed_at=START, ended_at=START + 1)
        assert (whole.id, newer.id) == (1, 2)
        assert tx.groups.by_id([1, 2, 3]) == {1: whole, 2: newer}
        assert tx.groups.named("nightly") == newer
        assert tx.groups.named("other") is None
        assert tx.groups.since(START + 1, 10) == [newer, whole]
        assert tx.groups.since(START + 2, 10) == [whole], "one that has not ended is always there"
        assert tx.groups.since(0, 1) == [newer]


@verbs("groups.close", "groups.set_ended", "groups.reopen")
def test_a_group_is_closed_and_its_end_told_once(store: Store) -> None:
    with store.write() as tx:
        group, other = made(tx), made(tx, ended_at=START)
        (member,) = members(tx, group, 1)
        members(tx, other, 1)
        assert tx.groups.close(group.id) and not tx.groups.close(group.id)
        assert tx.groups.set_ended(group.id) and not tx.groups.set_ended(group.id)
        assert tx.groups.by_id([group.id])[group.id] == group._replace(
            closed_at=START, ended_at=START
        )
        tx.groups.reopen([member.chain])
        assert tx.groups.by_id([group.id])[group.id] == group._replace(closed_at=START)
        assert tx.groups.by_id([other.id])[other.id].ended_at == START
        assert tx.groups.set_ended(group.id)


@verbs(
    "groups.tally",
    "groups.members",
    "groups.is_active",
    "groups.last_number",
    "groups.failed_member",
)
def test_the_last_job_of_a_chain_counts_for_its_group(store: Store) -> None:
    with store.write() as tx:
        group = made(tx)
        assert (
            tx.groups.tally(group.id) == GroupTally({}, False)
            and tx.groups.last_number(group.id) == 0
        )
        assert not tx.groups.is_active(group.id) and tx.groups.members(group.id, 10) == []
        one, two, three = members(tx, group, 3)
        end(tx, one)
        end(tx, two, Status.FAILED)
        tx.jobs.end_waiting(three, Status.SKIPPED, "no need", None)
        assert tx.groups.tally(group.id) == GroupTally(
            {Status.SUCCEEDED: 1, Status.FAILED: 1, Status.SKIPPED: 1}, True
        )
        culprit = tx.groups.failed_member(group.id)
        assert culprit is not None and culprit.id == two.id
        assert not tx.groups.is_active(group.id)
        again = retried(tx, two)
        assert tx.groups.is_active(group.id) and tx.groups.failed_member(group.id) is None
        assert tx.groups.members(group.id, 10) == [
            Member(one.id, one.id, 1, Status.SUCCEEDED),
            Member(two.id, again.id, 2, Status.QUEUED),
            Member(three.id, three.id, 3, Status.SKIPPED),
        ]
        assert len(tx.groups.members(group.id, 2)) == 2
        assert tx.groups.tally(group.id).counts[Status.QUEUED] == 1
        assert tx.groups.last_number(group.id) == 3


def test_the_culprit_goes_before_those_that_were_cancelled_for_it(store: Store) -> None:
    with store.write() as tx:
        group = made(tx)
        one, two = members(tx, group, 2)
        end(tx, two, Status.FAILED)
        tx.jobs.end_waiting(one, Status.CANCELLED, f"job-{two.id} failed", None)
        culprit = tx.groups.failed_member(group.id)
        assert culprit is not None and culprit.id == two.id


def test_a_group_of_which_nothing_ran_says_so(store: Store) -> None:
    with store.write() as tx:
        group = made(tx)
        for member in members(tx, group, 2):
            tx.jobs.end_waiting(member, Status.CANCELLED, "no more", None)
        assert tx.groups.tally(group.id) == GroupTally({Status.CANCELLED: 2}, False)


@verbs("groups.waiting_members")
def test_only_those_that_wait_are_waiting_members(store: Store) -> None:
    with store.write() as tx:
        group = made(tx, mode=GroupMode.PARALLEL)
        running, ended, *waiting = members(tx, group, 4)
        end(tx, ended)
        start(tx, running)
        found = tx.groups.waiting_members(group.id)
        assert [each.id for each in found] == [each.id for each in waiting]
        assert [each.id for each in tx.groups.waiting_members(group.id, after=3)] == [waiting[1].id]


@verbs("groups.turns", "groups.turns_upstream", "graph.awaited_chains")
def test_the_nearest_before_a_member_is_its_turn(store: Store) -> None:
    with store.write() as tx:
        group, side_by_side = made(tx), made(tx, mode=GroupMode.PARALLEL)
        one, two, three = members(tx, group, 3)
        others = members(tx, side_by_side, 2)
        assert tx.groups.turns([one, two, three, *others]) == {two.id: one.id, three.id: two.id}
        assert tx.groups.turns_upstream([three.id, others[1].id]) == {
            two.id: one.id,
            three.id: two.id,
        }
        assert tx.groups.turns_upstream([two.id]) == {two.id: one.id}
        assert (
            tx.graph.awaited_chains(three.id) == [two.id] and tx.graph.awaited_chains(one.id) == []
        )
        assert tx.graph.awaited_chains(others[1].id) == []
        end(tx, two, Status.FAILED)
        assert tx.groups.turns([three]) == {three.id: one.id}, "who has ended is in nobody's way"
        again = retried(tx, two)
        assert tx.groups.turns([three, again]) == {three.id: two.id, again.id: one.id}, (
            "by its chain"
        )
        assert tx.groups.turns_upstream([three.id]) == {again.id: one.id, three.id: again.id}
        assert tx.graph.awaited_chains(two.id) == [one.id]


@verbs("groups.chains_behind", "groups.chains_before")
def test_who_comes_after_in_a_sequential_group_is_found_ended_or_not(store: Store) -> None:
    with store.write() as tx:
        group, side_by_side = made(tx), made(tx, mode=GroupMode.PARALLEL)
        one, two, three = members(tx, group, 3)
        beside = members(tx, side_by_side, 2)
        end(tx, three, Status.FAILED)
        retried(tx, three)
        assert tx.groups.chains_behind([one.chain, beside[0].chain]) == [two.id, three.id]
        assert tx.groups.chains_behind([three.chain]) == []
        assert tx.groups.chains_before([three.chain, beside[1].chain]) == [one.id, two.id]


@verbs("groups.join")
def test_only_a_waiting_job_without_a_group_joins_one(store: Store) -> None:
    with store.write() as tx:
        group = made(tx)
        free, running = add(tx), add(tx)
        start(tx, running)
        (member,) = members(tx, made(tx), 1)

        def joined(each: Job) -> Job:
            return each._replace(group_id=group.id, sequence_number=1)

        assert tx.groups.join([joined(free)])
        found = tx.jobs.by_id([free.id])[free.id]
        assert (found.group_id, found.sequence_number) == (group.id, 1)
        assert found.stage is Stage.WOKEN
        assert not tx.groups.join([joined(running)]) and not tx.groups.join([joined(member)])


@verbs("retention.in_the_way", "retention.remove_jobs", "groups.by_id")
def test_a_group_keeps_its_jobs_until_it_has_ended_and_goes_with_the_last(store: Store) -> None:
    with store.write() as tx:
        group = made(tx)
        one, two = members(tx, group, 2)
        end(tx, one)
        end(tx, two)
        assert tx.retention.in_the_way([one.chain]) == {one.chain: Obstacle(InTheWay.GROUP, one.id)}
        tx.groups.set_ended(group.id)
        assert tx.retention.in_the_way([one.chain, two.chain]) == {}
        tx.retention.remove_jobs([one.id])
        assert tx.groups.by_id([group.id]) and tx.groups.last_number(group.id) == 2
        tx.retention.remove_jobs([two.id])
        assert tx.groups.by_id([group.id]) == {}
        assert tx.groups.take_id() == group.id + 1, "an id is never given out again"


@verbs("search.jobs")
def test_jobs_are_found_by_their_group(store: Store) -> None:
    with store.write() as tx:
        one, other = made(tx), made(tx)
        first, second = members(tx, one, 2)
        third = members(tx, other, 1)[0]
        add(tx)

        def found(*groups: GroupId) -> list[int]:
            stretches = tx.search.jobs(Search(groups=groups), size=9)
            return [job.id for each in stretches for job in each.jobs]

        assert found(one.id) == [second.id, first.id]
        assert found(one.id, other.id) == [third.id, second.id, first.id]
        assert found(99) == [] and len(found()) == 4


@pytest.mark.parametrize("kind", [WaitKind.GROUP, WaitKind.PRECONDITIONS])
def test_a_worker_that_starts_does_not_wake_who_waits_for_its_turn(
    store: Store, kind: WaitKind
) -> None:
    """The end of the one before it does that, and it is told with that end."""
    with store.write() as tx:
        waiting = add(tx)
        tx.waits.park([parking(waiting, "turn:7", wait=Wait(kind, "its turn"))])
        tx.waits.wake_everything()
        assert bool(tx.waits.woken(10)) is (kind is not WaitKind.GROUP)
        tx.waits.wake_topics(["turn:7"])
        assert [each.id for each in tx.waits.woken(10)] == [waiting.id]


@verbs("groups.is_active", "groups.of_run", "groups.tally", "groups.members")
def test_a_group_waits_for_a_run_that_may_repeat_its_members(store: Store) -> None:
    with store.write() as tx:
        group, ended, other = made(tx), made(tx, ended_at=START), made(tx)
        first, again = members(tx, group, 2)
        (old,) = members(tx, ended, 1)
        members(tx, other, 1)
        for member in (first, again):
            end(tx, member, Status.FAILED)
        run = RunRecord(tx.workflows.take_id(), "flow", "1", "f", {}, START, "ann")
        nodes = [NewNode(f"a[{at}]", "a", job.id) for at, job in enumerate((first, again, old))]
        tx.workflows.add(run, key=None, manifest={}, nodes=nodes)
        assert not tx.groups.is_active(group.id) and tx.groups.is_active(other.id)
        tx.workflows.set_unsettled(run.id, True)
        assert tx.groups.is_active(group.id)
        assert tx.groups.of_run(run.id) == [group], "the other has ended"
        tx.workflows.set_unsettled(run.id, False)
        assert not tx.groups.is_active(group.id)
        tx.workflows.dismiss([first.chain])
        assert tx.groups.tally(group.id).counts == {Status.FAILED: 1}
        assert [each.job_id for each in tx.groups.members(group.id, 10)] == [again.id]
