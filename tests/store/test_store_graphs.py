"""Graphs in the store: who waits for whom, and what a step of a long or wide one costs."""

import pytest
from recording import verbs
from stocked import START, System, add, finish_of, job, start

from headway.core.model import Stage, Wait, WaitKind
from headway.core.settle import Ending, Outcome, Verdict
from headway.core.states import Status
from headway.store.store import Store

SUCCESS = Verdict(Outcome(Ending.EXITED, START, exit_code=0), tree_gone=True)


@verbs("graph.upstream")
def test_what_is_waited_for_is_found_whatever_its_length(store: Store) -> None:
    length = 2_000
    with store.write() as tx:
        first = add(tx)
        chain = [first.id]
        first_id = tx.jobs.take_ids(length)
        tx.jobs.add(
            [
                job(first_id + number, after=((first_id + number - 1) if number else first.id,))
                for number in range(length)
            ]
        )
        chain += range(first_id, first_id + length)
        found = tx.graph.upstream([chain[-1]])
        assert found.keys() == set(chain)
        assert found[chain[-1]] == [chain[-2]] and found[first.id] == []
        assert tx.graph.upstream([chain[1]]).keys() == {chain[0], chain[1]}
        assert tx.graph.upstream([]) == {} and tx.graph.upstream([999_999]) == {}


@verbs("graph.upstream", "graph.chain_lasts")
def test_what_has_ended_is_not_waited_for_and_a_retry_counts(store: Store) -> None:
    with store.write() as tx:
        ended, failed = add(tx), add(tx)
        tx.claims.finish([finish_of(start(tx, ended, 1))])
        tx.waits.chains_succeeded([ended.chain])
        tx.claims.finish([finish_of(start(tx, failed, 2), status=Status.FAILED, exit_code=1)])
        again = job(tx.jobs.take_ids(1), chain=failed.id, retry_of=failed.id, attempt=2)
        tx.jobs.add_retries([again])
        waiter = add(tx, after=(ended.id, failed.id))
        assert tx.graph.upstream([waiter.id]) == {waiter.id: [again.id], again.id: []}
        assert tx.graph.upstream([ended.id]) == {}
        lasts = tx.graph.chain_lasts([ended.id, failed.id, again.id])
        assert lasts == {ended.id: ended.id, failed.id: again.id, again.id: again.id}
        assert tx.graph.chain_lasts([]) == {}


@verbs("graph.needed_by")
def test_what_jobs_need_is_told_with_who_needs_it(store: Store) -> None:
    with store.write() as tx:
        both = add(tx, needs=("custom:a:1", "custom:b:1"))
        one = add(tx, needs=("custom:a:1",))
        other = add(tx, produces=("custom:a:1",))
        assert tx.graph.needed_by([both.id, one.id, other.id]) == [
            ("custom:a:1", both.id),
            ("custom:b:1", both.id),
            ("custom:a:1", one.id),
        ]
        assert tx.graph.needed_by([]) == []


def test_a_job_that_is_added_as_waiting_lies_where_its_end_wakes_it(store: Store) -> None:
    wait = Wait(WaitKind.DEPENDENCIES, "waiting on job job-1", topics=("chain:1",))
    filed = {"status": Status.WAITING_ON_DEPS, "stage": Stage.PARKED, "wait": wait}
    with store.write() as tx:
        first = job(tx.jobs.take_ids(1))
        second = job(tx.jobs.take_ids(1), after=(first.id,), waited_on=("dependencies",), **filed)
        tx.jobs.add([first, second])
        found = tx.jobs.by_id([second.id])[second.id]
        assert (found.status, found.stage, found.waited_on) == (
            Status.WAITING_ON_DEPS,
            Stage.PARKED,
            ("dependencies",),
        )
        assert found.wait == Wait(WaitKind.DEPENDENCIES, "waiting on job job-1")
        assert [each.id for each in tx.waits.woken(10)] == [first.id]
        assert [each.id for each in tx.waits.stale(found.created_at + 1, 10)] == [second.id]
        tx.claims.finish([finish_of(start(tx, first))])
        tx.waits.chains_succeeded([first.chain])
        assert [each.id for each in tx.waits.woken(10)] == [second.id]


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
    assert not running and not system.look(lambda tx: tx.jobs.anything_active())


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
        job = tx.jobs.by_id([join.id])[join.id]
        waits = [event for event in tx.events.of_job(join.id) if event.kind == "waiting_on_deps"]
    assert job.status is Status.SUCCEEDED
    assert [event.data["detail"] for event in waits] == [f"waiting on job job-{middle[-1]}"]
