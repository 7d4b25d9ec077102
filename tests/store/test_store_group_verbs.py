"""What every store does with the verbs about groups."""

from typing import Any

import pytest
from recording import verbs
from stocked import START, add, filing, finish_of, job, start

from headway.core.groups import Group, GroupId, Member, Mode, Tally
from headway.core.model import Job, Stage, Wait, WaitKind
from headway.core.retention import InTheWay, Obstacle
from headway.core.states import Status
from headway.store.base import Search, Store, WriteTx


def made(tx: WriteTx, **fields: Any) -> Group:
    """Store one more group and give it back."""
    defaults = {"mode": Mode.SEQUENTIAL, "on_failure": "stop", "created_at": START}
    group = Group(tx.take_group_id(), **{**defaults, "created_by": "ann", **fields})
    tx.add_group(group)
    return group


def members(tx: WriteTx, group: Group, count: int, **fields: Any) -> list[Job]:
    first = tx.last_in_group(group.id) + 1
    return [
        add(tx, group_id=group.id, sequence_number=number, **fields)
        for number in range(first, first + count)
    ]


def end(tx: WriteTx, member: Job, status: Status = Status.SUCCEEDED) -> None:
    tx.finish([finish_of(start(tx, member), status=status)])


def retried(tx: WriteTx, member: Job) -> Job:
    fields = {"group_id": member.group_id, "sequence_number": member.sequence_number}
    again = job(tx.take_ids(1), chain=member.chain, retry_of=member.id, **fields)
    tx.add_retries([again])
    return again


@verbs("take_group_id", "add_group", "groups", "group_named", "groups_since")
def test_a_group_is_given_back_as_it_was_stored(store: Store) -> None:
    with store.write() as tx:
        whole = made(tx, name="nightly", subject="s-1", mode=Mode.PARALLEL, on_failure="skip")
        newer = made(tx, name="nightly", subject="s-1", closed_at=START, ended_at=START + 1)
        assert (whole.id, newer.id) == (1, 2)
        assert tx.groups([1, 2, 3]) == {1: whole, 2: newer}
        assert tx.group_named("nightly") == newer
        assert tx.group_named("other") is None
        assert tx.groups_since(START + 1, 10) == [newer, whole]
        assert tx.groups_since(START + 2, 10) == [whole], "one that has not ended is always there"
        assert tx.groups_since(0, 1) == [newer]


@verbs("close_group", "set_group_ended", "reopen_groups")
def test_a_group_is_closed_and_its_end_told_once(store: Store) -> None:
    with store.write() as tx:
        group, other = made(tx), made(tx, ended_at=START)
        (member,) = members(tx, group, 1)
        members(tx, other, 1)
        assert tx.close_group(group.id) and not tx.close_group(group.id)
        assert tx.set_group_ended(group.id) and not tx.set_group_ended(group.id)
        assert tx.groups([group.id])[group.id] == group._replace(closed_at=START, ended_at=START)
        tx.reopen_groups([member.chain])
        assert tx.groups([group.id])[group.id] == group._replace(closed_at=START)
        assert tx.groups([other.id])[other.id].ended_at == START
        assert tx.set_group_ended(group.id)


@verbs("tally", "members", "group_is_active", "last_in_group", "failed_member")
def test_the_last_job_of_a_chain_counts_for_its_group(store: Store) -> None:
    with store.write() as tx:
        group = made(tx)
        assert tx.tally(group.id) == Tally({}, False) and tx.last_in_group(group.id) == 0
        assert not tx.group_is_active(group.id) and tx.members(group.id, 10) == []
        one, two, three = members(tx, group, 3)
        end(tx, one)
        end(tx, two, Status.FAILED)
        tx.end_waiting(three, Status.SKIPPED, "no need", None)
        assert tx.tally(group.id) == Tally(
            {Status.SUCCEEDED: 1, Status.FAILED: 1, Status.SKIPPED: 1}, True
        )
        culprit = tx.failed_member(group.id)
        assert culprit is not None and culprit.id == two.id
        assert not tx.group_is_active(group.id)
        again = retried(tx, two)
        assert tx.group_is_active(group.id) and tx.failed_member(group.id) is None
        assert tx.members(group.id, 10) == [
            Member(one.id, one.id, 1, Status.SUCCEEDED),
            Member(two.id, again.id, 2, Status.QUEUED),
            Member(three.id, three.id, 3, Status.SKIPPED),
        ]
        assert len(tx.members(group.id, 2)) == 2
        assert tx.tally(group.id).counts[Status.QUEUED] == 1
        assert tx.last_in_group(group.id) == 3


def test_a_group_of_which_nothing_ran_says_so(store: Store) -> None:
    with store.write() as tx:
        group = made(tx)
        for member in members(tx, group, 2):
            tx.end_waiting(member, Status.CANCELLED, "no more", None)
        assert tx.tally(group.id) == Tally({Status.CANCELLED: 2}, False)


@verbs("waiting_members")
def test_only_those_that_wait_are_waiting_members(store: Store) -> None:
    with store.write() as tx:
        group = made(tx, mode=Mode.PARALLEL)
        running, ended, *waiting = members(tx, group, 4)
        end(tx, ended)
        start(tx, running)
        found = tx.waiting_members(group.id)
        assert [each.id for each in found] == [each.id for each in waiting]
        assert [each.id for each in tx.waiting_members(group.id, after=3)] == [waiting[1].id]


@verbs("turns", "turns_upstream", "awaited_chains")
def test_the_nearest_before_a_member_is_its_turn(store: Store) -> None:
    with store.write() as tx:
        group, side_by_side = made(tx), made(tx, mode=Mode.PARALLEL)
        one, two, three = members(tx, group, 3)
        others = members(tx, side_by_side, 2)
        assert tx.turns([one, two, three, *others]) == {two.id: one.id, three.id: two.id}
        assert tx.turns_upstream([three.id, others[1].id]) == {two.id: one.id, three.id: two.id}
        assert tx.turns_upstream([two.id]) == {two.id: one.id}
        assert tx.awaited_chains(three.id) == [two.id] and tx.awaited_chains(one.id) == []
        assert tx.awaited_chains(others[1].id) == []
        end(tx, two, Status.FAILED)
        assert tx.turns([three]) == {three.id: one.id}, "who has ended is in nobody's way"
        again = retried(tx, two)
        assert tx.turns([three, again]) == {three.id: two.id, again.id: one.id}, "by its chain"
        assert tx.turns_upstream([three.id]) == {again.id: one.id, three.id: again.id}
        assert tx.awaited_chains(two.id) == [one.id]


@verbs("chains_behind", "chains_before")
def test_who_comes_after_in_a_sequential_group_is_found_ended_or_not(store: Store) -> None:
    with store.write() as tx:
        group, side_by_side = made(tx), made(tx, mode=Mode.PARALLEL)
        one, two, three = members(tx, group, 3)
        beside = members(tx, side_by_side, 2)
        end(tx, three, Status.FAILED)
        retried(tx, three)
        assert tx.chains_behind([one.chain, beside[0].chain]) == [two.id, three.id]
        assert tx.chains_behind([three.chain]) == []
        assert tx.chains_before([three.chain, beside[1].chain]) == [one.id, two.id]


@verbs("join_group")
def test_only_a_waiting_job_without_a_group_joins_one(store: Store) -> None:
    with store.write() as tx:
        group = made(tx)
        free, running = add(tx), add(tx)
        start(tx, running)
        (member,) = members(tx, made(tx), 1)

        def joined(each: Job) -> Job:
            return each._replace(group_id=group.id, sequence_number=1)

        assert tx.join_group([joined(free)])
        found = tx.jobs([free.id])[free.id]
        assert (found.group_id, found.sequence_number) == (group.id, 1)
        assert found.stage is Stage.WOKEN
        assert not tx.join_group([joined(running)]) and not tx.join_group([joined(member)])


@verbs("in_the_way", "remove_jobs", "groups")
def test_a_group_keeps_its_jobs_until_it_has_ended_and_goes_with_the_last(store: Store) -> None:
    with store.write() as tx:
        group = made(tx)
        one, two = members(tx, group, 2)
        end(tx, one)
        end(tx, two)
        assert tx.in_the_way([one.chain]) == {one.chain: Obstacle(InTheWay.GROUP, one.id)}
        tx.set_group_ended(group.id)
        assert tx.in_the_way([one.chain, two.chain]) == {}
        tx.remove_jobs([one.id])
        assert tx.groups([group.id]) and tx.last_in_group(group.id) == 2
        tx.remove_jobs([two.id])
        assert tx.groups([group.id]) == {}
        assert tx.take_group_id() == group.id + 1, "an id is never given out again"


@verbs("find_jobs")
def test_jobs_are_found_by_their_group(store: Store) -> None:
    with store.write() as tx:
        one, other = made(tx), made(tx)
        first, second = members(tx, one, 2)
        third = members(tx, other, 1)[0]
        add(tx)

        def found(*groups: GroupId) -> list[int]:
            return [each.id for each in tx.find_jobs(Search(groups=groups), before=None, limit=9)]

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
        tx.file([filing(waiting, "turn:7", wait=Wait(kind, "its turn"))])
        tx.wake_everything()
        assert bool(tx.woken(10)) is (kind is not WaitKind.GROUP)
        tx.wake_topics(["turn:7"])
        assert [each.id for each in tx.woken(10)] == [waiting.id]
