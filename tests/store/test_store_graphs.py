"""Graphs in the store: who waits for whom, and what a step of a long or wide one costs."""

import pytest
from recording import verbs
from stocked import START, System, add, finish_of, job, start

from headway.core.model import Stage, Wait, WaitKind
from headway.core.settle import Ending, Outcome
from headway.core.states import Status
from headway.engine.settling import Verdict
from headway.store.base import Store

SUCCESS = Verdict(Outcome(Ending.EXITED, START, exit_code=0), tree_gone=True)


@verbs("upstream")
def test_what_is_waited_for_is_found_whatever_its_length(store: Store) -> None:
    length = 2_000
    with store.write() as tx:
        first = add(tx)
        chain = [first.id]
        first_id = tx.take_ids(length)
        tx.add_jobs(
            [
                job(first_id + number, after=((first_id + number - 1) if number else first.id,))
                for number in range(length)
            ]
        )
        chain += range(first_id, first_id + length)
        found = tx.upstream([chain[-1]])
        assert found.keys() == set(chain)
        assert found[chain[-1]] == [chain[-2]] and found[first.id] == []
        assert tx.upstream([chain[1]]).keys() == {chain[0], chain[1]}
        assert tx.upstream([]) == {} and tx.upstream([999_999]) == {}


@verbs("upstream", "chain_lasts")
def test_what_has_ended_is_not_waited_for_and_a_retry_counts(store: Store) -> None:
    with store.write() as tx:
        ended, failed = add(tx), add(tx)
        tx.finish([finish_of(start(tx, ended, 1))])
        tx.chains_succeeded([ended.chain])
        tx.finish([finish_of(start(tx, failed, 2), status=Status.FAILED, exit_code=1)])
        again = job(tx.take_ids(1), chain=failed.id, retry_of=failed.id, attempt=2)
        tx.add_retries([again])
        waiter = add(tx, after=(ended.id, failed.id))
        assert tx.upstream([waiter.id]) == {waiter.id: [again.id], again.id: []}
        assert tx.upstream([ended.id]) == {}
        lasts = tx.chain_lasts([ended.id, failed.id, again.id])
        assert lasts == {ended.id: ended.id, failed.id: again.id, again.id: again.id}
        assert tx.chain_lasts([]) == {}


@verbs("needed_by")
def test_what_jobs_need_is_told_with_who_needs_it(store: Store) -> None:
    with store.write() as tx:
        both = add(tx, needs=("custom:a:1", "custom:b:1"))
        one = add(tx, needs=("custom:a:1",))
        other = add(tx, produces=("custom:a:1",))
        assert tx.needed_by([both.id, one.id, other.id]) == [
            ("custom:a:1", both.id),
            ("custom:b:1", both.id),
            ("custom:a:1", one.id),
        ]
        assert tx.needed_by([]) == []


def test_a_job_that_is_added_as_waiting_lies_where_its_end_wakes_it(store: Store) -> None:
    wait = Wait(WaitKind.DEPENDENCIES, "waiting on job job-1", topics=("chain:1",))
    filed = {"status": Status.WAITING_ON_DEPS, "stage": Stage.FILED, "wait": wait}
    with store.write() as tx:
        first = job(tx.take_ids(1))
        second = job(tx.take_ids(1), after=(first.id,), waited_on=("dependencies",), **filed)
        tx.add_jobs([first, second])
        found = tx.jobs([second.id])[second.id]
        assert (found.status, found.stage, found.waited_on) == (
            Status.WAITING_ON_DEPS,
            Stage.FILED,
            ("dependencies",),
        )
        assert found.wait == Wait(WaitKind.DEPENDENCIES, "waiting on job job-1")
        assert [each.id for each in tx.woken(10)] == [first.id]
        assert [each.id for each in tx.stale_waiters(found.created_at + 1, 10)] == [second.id]
        tx.finish([finish_of(start(tx, first))])
        tx.chains_succeeded([first.chain])
        assert [each.id for each in tx.woken(10)] == [second.id]


@pytest.mark.parametrize("length", [300])
def test_a_chain_runs_to_its_end_at_a_step_for_each_job(system: System, length: int) -> None:
    # fault H2
    previous: tuple[int, ...] = ()
    for _ in range(length):
        previous = (system.submit(after=previous).id,)
    running = system.until_quiet()
    for _ in range(length):
        assert len(running) == 1
        system.judge(running.pop(), SUCCESS)
        running += system.step().started
    assert not running and not system.look(lambda tx: tx.anything_active())


@pytest.mark.req("V48")
def test_a_job_after_very_many_is_looked_at_once_and_not_at_each_end(system: System) -> None:
    # fault H2
    width = 200
    system.set_max_active(10)
    first = system.submit()
    middle = [system.submit(after=(first.id,)).id for _ in range(width)]
    join = system.submit(after=tuple(middle))
    running = system.until_quiet()
    ended = 0
    while running:
        system.judge(running.pop(0), SUCCESS)
        running += system.until_quiet()
        ended += 1
    assert ended == width + 2
    with system.store.read() as tx:
        job = tx.jobs([join.id])[join.id]
        waits = [event for event in tx.events_of(join.id) if event.kind == "waiting_on_deps"]
    assert job.status is Status.SUCCEEDED
    assert [event.data["detail"] for event in waits] == [f"waiting on job job-{middle[-1]}"]
