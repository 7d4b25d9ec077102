"""Plain calls in every store: claimed and settled together as each would be by itself."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from called import CLAIMANT, UndoneError, add_call, end_of, plain, taken
from recording import verbs
from stocked import HOST, START, add, finish_of, parking, start

from headway.core.facts import Predecessor
from headway.core.model import (
    Claim,
    chain_topic,
)
from headway.core.plaincalls import OCCUPIES, PlainEnd
from headway.core.settle import Ending, Outcome, Verdict
from headway.core.states import Status
from headway.store.copy import TABLES
from headway.store.new_jobs import Event
from headway.store.records import Lending, TakenCall
from headway.store.store import Store
from headway.store.transaction import WriteTx
from headway.worker.settler import Settler

# -- the same rows ------------------------------------------------------------------------------


def rows_after(store: Any, act: Callable[[WriteTx], object]) -> dict[str, list[Any]]:
    """All rows of all tables after this, which is then undone. Events without their numbers, which
    a server does not give out again."""
    found: dict[str, list[Any]] = {}
    with suppress(UndoneError), store.write() as tx:
        act(tx)
        for table in TABLES:
            columns, rows = store.database.table(table)
            named = [dict(zip(columns, row, strict=True)) for row in rows]
            if table == "events":
                named.sort(key=lambda row: row.pop("seq"))
            found[table] = named if table == "events" else sorted(named, key=repr)
        raise UndoneError
    return found


def claim_of(each: TakenCall) -> Claim:
    return Claim(
        job_id=each.call.job_id,
        token=each.token,
        slot=each.slot,
        claimed_at=each.claimed_at,
        occupies=OCCUPIES,
        **CLAIMANT._asdict(),
    )


def claim_one_by_one(tx: Any, calls: Sequence[TakenCall]) -> None:
    """As a planner does it."""
    jobs = tx.jobs.by_id([each.call.job_id for each in calls])
    tx.claims.begin([(jobs[each.call.job_id], claim_of(each)) for each in calls])
    tx.events.add(
        (Event("running", each.call.job_id, {"slot": each.slot}) for each in calls),
        actor="worker",
    )


def finish_one_by_one(tx: Any, ends: Sequence[PlainEnd], calls: Sequence[TakenCall]) -> None:
    """As a settler does it."""
    judged = [
        (
            claim_of(each),
            Verdict(Outcome(Ending.EXITED, end.finished_at, exit_code=0), tree_gone=True),
        )
        for end, each in zip(ends, calls, strict=True)
    ]
    ended = Settler(HOST, "worker").apply(tx, judged)
    results = {end.token: end.result for end in ends if end.result is not None}
    tx.jobs.keep_results([(c.job_id, results[c.token]) for c, _ in ended if c.token in results])


@pytest.mark.parametrize("number", [1, 3])
@verbs("calls.claim")
def test_claimed_together_they_are_as_if_each_was_claimed(store: Store, number: int) -> None:
    with store.write() as tx:
        jobs = [add_call(tx, attempt=place + 1) for place in range(number)]
        add_call(tx)
        start(tx, add(tx))
    calls = taken(jobs)
    together = rows_after(store, lambda tx: tx.calls.claim(CLAIMANT, calls))
    assert together == rows_after(store, lambda tx: claim_one_by_one(tx, calls))
    assert len(together["claims"]) == number + 1 == len(together["runs"])


@verbs("calls.ready_besides")
def test_calls_are_found_behind_those_of_other_tasks(store: Store) -> None:
    with store.write() as tx:
        theirs = {"params": {"args": {"task": "shop.f"}, "task": "their.g", "timeout_seconds": 1}}
        others = [add_call(tx, **theirs) for _ in range(3)]
        mine = [add_call(tx), add_call(tx)]
        assert [each.id for each in tx.calls.ready_besides(9, ["their.g", "x"], 9)] == [
            each.id for each in mine
        ]
        assert len(tx.calls.ready_besides(1, ["their.g"], 9)) == 1
        assert tx.calls.ready_besides(9, ["their.g"], 3) == [], "no further than that"
        assert len(tx.calls.ready_besides(9, [], 9)) == len(others) + len(mine)


@pytest.mark.bulk
@pytest.mark.parametrize("leased", [True, False])
@verbs("calls.claim", "calls.head", "claims.slots", "claims.live")
def test_what_is_claimed_is_known_to_the_same_transaction(store: Store, leased: bool) -> None:
    with store.write() as tx:
        assert tx.claims.slots().used == frozenset()
        calls = taken([add_call(tx), add_call(tx)])
        claimant = CLAIMANT if leased else CLAIMANT._replace(lease_until=None)
        tx.calls.claim(claimant, calls)
        assert tx.claims.slots().used == {each.slot for each in calls}
        assert {each.keys for each in tx.claims.slots().occupants} == {OCCUPIES}
        assert tx.calls.head(10) == ([], True)
        claims = [claim_of(each)._replace(lease_until=claimant.lease_until) for each in calls]
        assert sorted(tx.claims.live()) == claims


RESULTS: list[Any] = [None, 0, "é\u2028\0", {"a": [1, None, 1.5]}, [], "x" * 70_000]


@pytest.mark.parametrize("awaited", [False, True], ids=["unawaited", "awaited"])
@pytest.mark.parametrize("results", [[None], [None] * 3, RESULTS, ["one"]], ids=len)
@verbs("calls.finish", "calls.anyone_awaits", "calls.claim")
def test_settled_together_they_are_as_if_each_was_settled(
    store: Store, results: list[Any], awaited: bool
) -> None:
    with store.write() as tx:
        jobs = [add_call(tx, attempt=place + 1) for place in range(len(results))]
        calls = taken(jobs)
        tx.calls.claim(CLAIMANT, calls)
        left = add_call(tx)
        tx.calls.claim(CLAIMANT, [TakenCall(plain(left), "left", 99, START)])
        if awaited:
            for chain in (jobs[0].id, left.id):
                waiting = add(tx, after=(chain,))
                tx.waits.park([parking(waiting, chain_topic(chain))])
            add(tx, after=(jobs[0].id, left.id))
        tx.claims.lend("lending", Lending(jobs[0].id, 99, START + 99))
        tx.claims.lend("other", Lending(left.id, 99, START + 99))
    ends = [end_of(each, result) for each, result in zip(calls, results, strict=True)]
    told = []

    def together(tx: Any) -> None:
        told.append(tx.calls.finish(ends, actor="worker", awaited=tx.calls.anyone_awaits()))

    rows = rows_after(store, together)
    each = rows_after(store, lambda tx: finish_one_by_one(tx, ends, calls))
    assert [row["state"] for row in each["claims"]] == [*("gone" for _ in ends), "live"]
    each["claims"] = each["claims"][len(ends) :]  # of a plain call none is left
    assert rows == each
    assert told == [awaited]
    assert len(rows["results"]) == sum(result is not None for result in results)
    assert [row["job_id"] for row in rows["lendings"]] == [left.id]


@verbs("calls.finish", "claims.slots", "jobs.results")
def test_what_is_settled_is_known_to_the_same_transaction(store: Store) -> None:
    with store.write() as tx:
        calls = taken([add_call(tx), add_call(tx)])
        tx.calls.claim(CLAIMANT, calls)
        assert len(tx.claims.slots().used) == 2
        assert not tx.calls.finish([end_of(calls[0], [1])], actor="worker", awaited=False)
        assert tx.claims.slots().used == {calls[1].slot}
        assert tx.jobs.results([call.call.job_id for call in calls]) == {calls[0].call.job_id: [1]}


# -- the fence ----------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [True, False], ids=["among others", "alone"])
@verbs("calls.finish")
def test_only_ends_of_live_claims_are_written(store: Store, others: bool) -> None:
    """fault: a worker that was away settles what others have taken over."""
    with store.write() as tx:
        jobs = [add_call(tx) for _ in range(4)]
        calls = taken(jobs)
        tx.calls.claim(CLAIMANT, calls)
        for each in jobs:
            waiting = add(tx, after=(each.id,))
            tx.waits.park([parking(waiting, chain_topic(each.id))])
        tx.claims.lend("lending", Lending(jobs[0].id, 99, START + 99))
        settled = finish_of(claim_of(calls[1]), status=Status.FAILED, exit_code=1, error="no")
        assert tx.claims.finish([settled]) == [True]
        unproven = finish_of(claim_of(calls[3]), tree_gone=False, status=Status.FAILED)
        assert tx.claims.finish([unproven]) == [True]
    stale = [
        end_of(calls[0], "stale")._replace(token="of another"),
        end_of(calls[1], "late"),
        end_of(calls[3], "later"),
    ]
    good = [end_of(calls[2], "good")]

    def settle(*ends: PlainEnd) -> Callable[[WriteTx], object]:
        return lambda tx: tx.calls.finish(ends, actor="worker", awaited=tx.calls.anyone_awaits())

    if others:
        assert rows_after(store, settle(*stale, *good)) == rows_after(store, settle(*good))
    else:
        untouched = rows_after(store, lambda tx: None)
        for each in stale:
            assert rows_after(store, settle(each)) == untouched
        assert rows_after(store, settle(*good)) != untouched


@verbs("calls.finish", "calls.claim")
def test_a_call_is_settled_once_whoever_comes_twice(store: Store) -> None:
    with store.write() as tx:
        calls = taken([add_call(tx)])
        tx.calls.claim(CLAIMANT, calls)
        tx.calls.finish([end_of(calls[0], 1)], actor="worker", awaited=False)
    before = rows_after(store, lambda tx: None)
    again = end_of(calls[0], 2)
    for ends in ([again], [again, again]):

        def settle(tx: Any, ends: list[PlainEnd] = ends) -> None:
            assert not tx.calls.finish(ends, actor="worker", awaited=True)

        assert rows_after(store, settle) == before


@pytest.mark.bulk
@verbs("calls.prefetch", "calls.head")
def test_calls_that_come_with_the_state_are_those_of_now(store: Store) -> None:
    with store.write() as tx:
        first, second, third = (plain(add_call(tx)) for _ in range(3))
    with store.write() as tx:
        tx.calls.prefetch(0)
        tx.calls.prefetch(2)
        assert tx.calls.head(1) == ([first], True)
        assert tx.calls.head(2) == ([first, second], True)
        assert tx.calls.head(3) == ([first, second, third], True), "more than were asked for"
        urgent = plain(add_call(tx, priority=7))
        assert tx.calls.head(2) == ([urgent, first], True), "they are no longer the next"
    with store.write() as tx:
        tx.claims.slots()
        tx.calls.prefetch(2)  # the state is known already
        tx.calls.claim(CLAIMANT, taken([add_call(tx)]))
        assert tx.calls.head(1) == ([urgent], True)


@verbs("calls.finish", "jobs.add_retries", "graph.reopen_edges")
def test_who_waits_for_a_chain_that_is_run_again_is_not_told_of_its_first_end(store: Store) -> None:
    """The end of the second is not its own: its claim is another's by now."""
    with store.write() as tx:
        first = add_call(tx)
        waiting = add(tx, after=(first.id,))
        calls = taken([first])
        tx.calls.claim(CLAIMANT, calls)
        assert tx.calls.finish([end_of(calls[0])], actor="worker", awaited=True)
        again = first._replace(id=tx.jobs.take_ids(1), retry_of=first.id, attempt=2)
        tx.jobs.add_retries([again])
        tx.graph.reopen_edges([waiting.id], [first.chain])
        calls = taken([again])
        tx.calls.claim(CLAIMANT, calls)
    with store.write() as tx:
        stale = end_of(calls[0])._replace(token="of another")
        assert not tx.calls.finish([stale], actor="worker", awaited=True)
        assert tx.waits.predecessors([waiting])[waiting.id] == (
            Predecessor(first.id, first.id, Status.RUNNING),
        )
        assert tx.calls.finish([end_of(calls[0])], actor="worker", awaited=True)
        assert tx.waits.predecessors([waiting])[waiting.id] == ()
