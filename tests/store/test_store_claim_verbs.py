"""What every store does with claims and their fences."""

from typing import Any

import pytest
from recording import verbs
from stocked import (
    SECOND,
    START,
    add,
    claim_for,
    finish_of,
    start,
    unclaim_of,
)

from headway.base.errors import (
    HeadwayError,
    InvalidTransitionError,
)
from headway.core.model import (
    Lock,
    LockMode,
    Run,
    Stage,
    WaitKind,
)
from headway.core.states import Status
from headway.store.records import Lending, Slots
from headway.store.store import Store

SHARED, EXCLUSIVE = LockMode.SHARED, LockMode.EXCLUSIVE


# -- claims and their fences --------------------------------------------------------------------


@verbs(
    "claims.begin",
    "claims.live",
    "claims.by_token",
    "claims.of_job",
    "claims.last_of",
    "claims.slots",
)
def test_a_claim_is_a_running_job_with_an_open_run(store: Store) -> None:
    with store.write() as tx:
        waiting, other = add(tx), add(tx)
        mine = claim_for(waiting.id, 1)
        theirs = claim_for(other.id, 3, borrowed_from=waiting.id, probe=True)
        tx.claims.begin([(waiting, mine), (other, theirs)])
        going = tx.jobs.by_id([waiting.id])[waiting.id]
        assert (going.status, going.started_at, going.stage) == (Status.RUNNING, START, None)
        assert tx.jobs.runs([waiting.id]) == {
            waiting.id: Run(waiting.id, START, "worker", waiting.params)
        }
        assert sorted(tx.claims.live(), key=lambda each: each.slot) == [mine, theirs]
        assert tx.claims.by_token([mine.token, "unknown"]) == {mine.token: mine}
        assert (
            tx.claims.of_job(waiting.id) == tx.claims.last_of([waiting.id]).get(waiting.id) == mine
        )
        assert tx.claims.of_job(99) is None and tx.claims.last_of([99]).get(99) is None
        assert tx.claims.slots()._replace(occupants=()) == Slots(
            used=frozenset({1, 3}), running={waiting.id: None, other.id: waiting.id}, probing=True
        )


@verbs("claims.renew_leases", "claims.cancelling", "jobs.request_cancel")
def test_a_host_renews_its_own_leases_and_sees_what_is_cancelled(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx), add(tx), add(tx)]
        mine, theirs, ended = (
            start(tx, each, slot, host_id=host)
            for slot, (each, host) in enumerate(zip(jobs, ("a", "b", "a"), strict=True), 1)
        )
        for claim in (theirs, ended):
            assert tx.jobs.request_cancel(claim.job_id, "ann")
        assert tx.claims.cancelling() == {theirs.job_id, ended.job_id}
        assert tx.claims.finish([finish_of(ended)]) == [True]
        assert tx.claims.cancelling() == {theirs.job_id}
        tx.claims.renew_leases("a", START + 7)
        leases = {claim.token: claim.lease_until for claim in tx.claims.live()}
        assert leases == {mine.token: START + 7, theirs.token: None}


@verbs("claims.begin")
def test_what_is_not_waiting_cannot_be_claimed(store: Store) -> None:
    with store.write() as tx:
        waiting = add(tx)
        start(tx, waiting)
    with pytest.raises(HeadwayError, match="is no longer waiting"), store.write() as tx:
        tx.claims.begin([(waiting, claim_for(waiting.id, 2, token="second"))])
    with store.write() as tx, pytest.raises(InvalidTransitionError):
        going = tx.jobs.by_id([waiting.id])[waiting.id]
        tx.claims.begin([(going, claim_for(waiting.id, 2, token="third"))])
    with store.read() as tx:
        assert [each.token for each in tx.claims.live()] == [f"token-{waiting.id}"]


@verbs("claims.finish", "jobs.evidence", "claims.slots", "claims.last_of")
def test_a_finish_closes_job_run_and_claim_together(store: Store) -> None:
    with store.write() as tx:
        claim = start(tx, add(tx))
        document = {"signal": None, "usage": {"cpu": 0.5}}
        finish = finish_of(
            claim,
            status=Status.FAILED,
            reason="exit code 7; no retry is left",
            exit_code=7,
            error="exit code 7",
            document=document,
        )
        tx.claims.lend("lending", Lending(claim.job_id, 99, START + 99))
        assert tx.claims.finish([finish]) == [True]
        ended = tx.jobs.by_id([claim.job_id])[claim.job_id]
        assert (ended.status, ended.reason) == (Status.FAILED, finish.reason)
        assert (ended.finished_at, ended.started_at) == (START + SECOND, START)
        run = tx.jobs.runs([claim.job_id])[claim.job_id]
        assert (run.status, run.exit_code, run.error, run.finished_at) == (
            "FAILED",
            7,
            "exit code 7",
            START + SECOND,
        )
        assert tx.jobs.evidence([claim.job_id]) == {claim.job_id: {"outcome": document}}
        assert tx.claims.live() == [] and tx.claims.slots().used == frozenset()
        assert (
            tx.claims.of_job(claim.job_id) is None
            and tx.claims.last_of([claim.job_id]).get(claim.job_id) == claim
        )
        assert tx.claims.lendings() == []


@verbs("claims.finish")
def test_a_finish_without_an_execution_leaves_no_run(store: Store) -> None:
    with store.write() as tx:
        claim = start(tx, add(tx))
        finish = finish_of(claim, status=Status.CANCELLED, executed=False, exit_code=None)
        assert tx.claims.finish([finish]) == [True]
        ended = tx.jobs.by_id([claim.job_id])[claim.job_id]
        assert (ended.status, ended.started_at) == (Status.CANCELLED, None)
        assert tx.jobs.runs([claim.job_id]) == {}


def snapshot(tx: Any, job_id: int) -> tuple[Any, ...]:
    return (
        tx.jobs.by_id([job_id]),
        tx.jobs.runs([job_id]),
        tx.claims.of_job(job_id),
        tx.claims.last_of([job_id]).get(job_id),
        tx.jobs.evidence([job_id]),
        tx.claims.lock_views(["k"]),
        tx.claims.lendings(),
    )


@verbs("claims.finish", "claims.undo")
def test_a_stale_token_changes_nothing(store: Store) -> None:
    with store.write() as tx:
        waiting = add(tx, locks=(Lock("k"),))
        old = start(tx, waiting)
        assert tx.claims.undo([unclaim_of(old)]) == [True]
        tx.claims.release_locks([waiting.id])
        new = start(tx, tx.jobs.by_id([waiting.id])[waiting.id], token="new")
        tx.claims.lend("lending", Lending(waiting.id, 99, START + 99))
        before = snapshot(tx, waiting.id)
        assert tx.claims.finish([finish_of(old, document={"late": True})]) == [False]
        assert tx.claims.undo([unclaim_of(old)]) == [False]
        assert snapshot(tx, waiting.id) == before
        assert tx.claims.finish([finish_of(old), finish_of(new)]) == [False, True]


@verbs("claims.finish", "claims.undo", "claims.keep_late_outcome", "jobs.evidence")
def test_a_second_finish_changes_nothing_and_its_outcome_is_kept_beside(store: Store) -> None:
    with store.write() as tx:
        claim = start(tx, add(tx))
        assert tx.claims.finish([finish_of(claim, document={"first": 1})]) == [True]
        before = snapshot(tx, claim.job_id)
        late = finish_of(claim, status=Status.FAILED, exit_code=9, document={"second": 2})
        assert tx.claims.finish([late]) == [False]
        assert tx.claims.undo([unclaim_of(claim)]) == [False]
        assert snapshot(tx, claim.job_id) == before
        tx.claims.keep_late_outcome(claim, {"second": 2})
        tx.claims.keep_late_outcome(claim, {"third": 3})
        assert tx.jobs.evidence([claim.job_id])[claim.job_id] == {
            "outcome": {"first": 1},
            "late_outcome": {"second": 2},
        }
        assert (
            tx.jobs.by_id([claim.job_id]) == before[0] and tx.jobs.runs([claim.job_id]) == before[1]
        )


@verbs("claims.undo")
def test_an_undone_claim_leaves_no_run_and_wakes_the_job(store: Store) -> None:
    with store.write() as tx:
        claim = start(tx, add(tx, not_before=START))
        undoing = unclaim_of(
            claim,
            cause="no such program",
            not_before=START + 5,
            launch_failures=2,
            launch_wait="launch",
        )
        assert tx.claims.undo([undoing]) == [True]
        again = tx.jobs.by_id([claim.job_id])[claim.job_id]
        assert (again.status, again.stage, again.started_at) == (Status.QUEUED, Stage.WOKEN, None)
        assert (again.not_before, again.launch_failures) == (START + 5, 2)
        assert (again.launch_wait, again.last_failure) == (WaitKind.LAUNCH, "no such program")
        assert (
            tx.jobs.runs([claim.job_id]) == {}
            and tx.claims.last_of([claim.job_id]).get(claim.job_id) is None
        )


@verbs("claims.unproven", "claims.prove_gone")
def test_an_ended_claim_is_unproven_until_its_tree_is_gone(store: Store) -> None:
    with store.write() as tx:
        claims = [start(tx, add(tx), slot) for slot in (1, 2)]
        tx.claims.prove_gone(claims[0].token)  # it still runs: that proves nothing
        tx.claims.finish([finish_of(claims[0], tree_gone=False), finish_of(claims[1])])
        assert tx.claims.unproven() == [claims[0]]
        assert tx.claims.finish([finish_of(claims[0])]) == [False]
        tx.claims.prove_gone(claims[0].token)
        assert tx.claims.unproven() == []


@verbs("jobs.request_cancel")
def test_a_cancel_is_asked_of_a_running_job_once(store: Store) -> None:
    with store.write() as tx:
        going, waiting = add(tx), add(tx)
        start(tx, going)
        assert tx.jobs.request_cancel(going.id, "ann")
        assert not tx.jobs.request_cancel(going.id, "bob")
        assert not tx.jobs.request_cancel(waiting.id, "ann")
        asked = tx.jobs.by_id([going.id])[going.id]
        assert (asked.cancel_requested_at, asked.cancel_requested_by) == (START, "ann")


@verbs("claims.lend", "claims.lendings", "claims.end_lending", "claims.end_expired_lendings")
def test_a_lending_lives_while_it_is_renewed(store: Store) -> None:
    with store.write() as tx:
        tx.claims.lend("a", Lending(1, 7, START + 10))
        tx.claims.lend("b", Lending(1, 8, START + 20))
        tx.claims.lend("c", Lending(2, 9, START + 30))
        tx.claims.lend("a", Lending(1, 7, START + 15))
        tx.claims.end_expired_lendings(START + 15)
        assert sorted(tx.claims.lendings(), key=lambda each: each.chain) == [
            Lending(1, 7, START + 15),
            Lending(1, 8, START + 20),
            Lending(2, 9, START + 30),
        ]
        tx.claims.end_expired_lendings(START + 16)
        assert len(tx.claims.lendings()) == 2
        tx.claims.end_lending("b")
        assert tx.claims.lendings() == [Lending(2, 9, START + 30)]
        tx.claims.end_lending("unknown")
        tx.claims.end_lending("c")
        assert tx.claims.lendings() == []
