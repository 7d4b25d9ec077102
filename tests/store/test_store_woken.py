"""Who is woken and what they wait for, asked together or one by one: the answers are the same. And
what a transaction has read is so when it writes, or nothing is written."""

from typing import Any

import pytest
from called import add_call, damage, plain
from recording import verbs
from stocked import START, add, claim_for, finish_of, job, parking, start

from headway.base.errors import OthersWroteError, StoreError
from headway.core.facts import MANY, Predecessor
from headway.core.model import Job, Stage
from headway.core.states import Status
from headway.store.new_jobs import Event
from headway.store.records import ROUND_JOBS, Marker
from headway.store.store import Store
from headway.store.transaction import WriteTx

QUEUES = ("", "mine", "functions")
# For what a file need not be asked: it tells at once what a change has changed.
only_a_server = pytest.mark.parametrize("url", ["postgres"], indirect=True)


def looked(tx: WriteTx) -> tuple[list[Job], dict[int, tuple[Predecessor, ...]]]:
    woken = tx.waits.woken(ROUND_JOBS, QUEUES)
    return woken, tx.waits.predecessors(woken)


def asked(store: Store) -> tuple[list[Job], dict[int, tuple[Predecessor, ...]]]:
    """The same in a transaction that remembers nothing: job by job."""
    fresh: Any = WriteTx(store.database, store.queries, START)  # type: ignore[attr-defined]
    woken = fresh.waits.woken(ROUND_JOBS, QUEUES)
    found: dict[int, tuple[Predecessor, ...]] = {}
    for each in woken:
        found |= WriteTx(store.database, store.queries, START).waits.predecessors([each])  # type: ignore[attr-defined]
    return woken, found


def end(tx: WriteTx, made: Job, status: Status = Status.SUCCEEDED) -> None:
    tx.claims.finish([finish_of(start(tx, made, 50 + made.id), status=status)])
    if status is Status.SUCCEEDED:
        tx.waits.chains_succeeded([made.chain])
    else:
        tx.waits.chains_failed([made.chain])


@pytest.mark.bulk
@verbs("waits.prefetch", "waits.woken", "waits.predecessors", "calls.head")
def test_what_comes_with_the_state_is_what_would_be_heard(store: Store) -> None:
    with store.write() as tx:
        good, bad, first, second = (add(tx, stage=Stage.READY) for _ in range(4))
        many = [add(tx, stage=Stage.READY) for _ in range(MANY + 1)]
        waiting = {
            "met": add(tx, after=(good.id,), queue="mine"),
            "failed": add(tx, after=(first.id, bad.id), queue="functions"),
            "pending": add(tx, after=(good.id, first.id, second.id)),
            "last": add(tx, after=tuple(each.id for each in many)),
            "none": add(tx, priority=3, queue="functions"),
            "elsewhere": add(tx, after=(first.id,), queue="theirs"),
        }
        end(tx, good)
        end(tx, bad, Status.FAILED)
        call = add_call(tx)
    with store.write() as tx:
        tx.waits.prefetch(5)
        tx.waits.prefetch(5)
        woken, found = looked(tx)
        assert (woken, found) == asked(store)
        assert {each.id for each in woken} == {
            each.id for name, each in waiting.items() if name != "elsewhere"
        }
        assert woken[0] == waiting["none"], "in their order, whatever their queue"
        assert found == {
            waiting["met"].id: (),
            waiting["failed"].id: (
                Predecessor(bad.id, bad.id, Status.FAILED),
                Predecessor(first.id, first.id, Status.QUEUED),
            ),
            waiting["pending"].id: (Predecessor(first.id, first.id, Status.QUEUED),),
            waiting["last"].id: (Predecessor(many[-1].id, many[-1].id, Status.QUEUED),),
        }
        assert tx.calls.head(5) == ([plain(call)], True)


@verbs(
    "waits.prefetch",
    "waits.park",
    "claims.begin",
    "waits.wake",
    "jobs.end_waiting",
    "waits.chains_succeeded",
)
def test_what_is_remembered_of_the_woken_follows_every_change(store: Store) -> None:
    with store.write() as tx:
        first = add(tx, stage=Stage.READY)
        made = [add(tx, after=(first.id,)) for _ in range(5)]
    with store.write() as tx:
        tx.waits.prefetch(0)
        tx.claims.begin([(made[0], claim_for(made[0].id, 7))])
        assert looked(tx) == asked(store)
        assert looked(tx)[0] == made[1:]
        tx.waits.park([parking(each, f"chain:{first.id}", wake_at=START + 9) for each in made[1:4]])
        assert looked(tx) == asked(store) and looked(tx)[0] == made[4:]
        tx.waits.park([parking(made[4], f"chain:{first.id}")])
        assert looked(tx) == ([], {}) == asked(store)
        tx.waits.wake([made[1].id])
        assert looked(tx) == asked(store) and len(looked(tx)[0]) == 1
        end(tx, first)
        assert looked(tx) == asked(store)
        assert [each.id for each in looked(tx)[0]] == [each.id for each in made[1:]]
        assert set(looked(tx)[1].values()) == {()} and tx.waits.next_wake() is None
        tx.jobs.end_waiting(made[1], Status.CANCELLED, "because", None)
        assert looked(tx) == asked(store) and len(looked(tx)[0]) == 3


@verbs("waits.chains_succeeded", "waits.next_wake")
def test_a_time_that_still_comes_is_known_after_others_were_woken(store: Store) -> None:
    with store.write() as tx:
        first, later = add(tx, stage=Stage.READY), add(tx)
        waiting = add(tx, after=(first.id,))
        tx.waits.park([parking(later, wake_at=START + 9)])
        tx.waits.park([parking(waiting, f"chain:{first.id}", wake_at=START + 5)])
    with store.write() as tx:
        tx.claims.slots()
        end(tx, first)
        assert [each.id for each in tx.waits.woken(ROUND_JOBS)] == [waiting.id]
        assert tx.waits.next_wake() == START + 9


@verbs("waits.woken", "waits.predecessors")
def test_more_than_are_looked_at_together_are_looked_at_in_order(store: Store) -> None:
    with store.write() as tx:
        first = add(tx, stage=Stage.READY)
        ids = range(tx.jobs.take_ids(30), 32)
        tx.jobs.add([job(each, after=(first.id,), priority=each) for each in ids])
        assert [each.id for each in tx.waits.woken(20, QUEUES)] == [*range(31, 11, -1)]
        found = tx.waits.predecessors(tx.waits.woken(20, QUEUES))
        assert set(found.values()) == {(Predecessor(first.id, first.id, Status.QUEUED),)}
        assert len(found) == 20


@verbs("remember", "recall", "others_wrote")
def test_what_one_transaction_knew_another_knows(store: Store) -> None:
    with store.write() as tx:
        first = add(tx, stage=Stage.READY)
        tx.waits.park([parking(add(tx, after=(first.id,)), f"chain:{first.id}")])
        assert tx.remember() is None, "it has asked for nothing"
        tx.others_wrote()
    with store.write() as tx:
        claim = start(tx, first, 3)
        tx.claims.slots()
        tx.others_wrote()
        known = tx.remember()
        before = (
            tx.claims.slots(),
            tx.settings.marks(),
            tx.waits.woken(ROUND_JOBS),
            tx.waits.next_wake(),
        )
    with store.write() as tx:
        tx.recall(known)
        assert before == (
            tx.claims.slots(),
            tx.settings.marks(),
            tx.waits.woken(ROUND_JOBS),
            tx.waits.next_wake(),
        )
        assert tx.claims.finish([finish_of(claim)]) == [True]
        tx.waits.chains_succeeded([first.chain])
        assert looked(tx) == asked(store) and len(looked(tx)[0]) == 1
        tx.settings.set("scheduler.max_active", 3, by="ann")
        assert tx.remember() is None, "it must be asked for anew"


@verbs("remember", "recall", "claims.finish")
def test_what_an_undone_transaction_knew_is_known_to_nobody(store: Store) -> None:
    """Its claim had ended there; in truth it is live, and its end is still to be written."""
    for write in (store.write, store.write_soon):
        with store.write() as tx:
            claim = start(tx, add(tx, stage=Stage.READY))
        with pytest.raises(ZeroDivisionError), write() as tx:
            tx.claims.slots()
            tx.claims.finish([finish_of(claim)])
            known = tx.remember()
            raise ZeroDivisionError
        assert known is not None
        with pytest.raises(OthersWroteError), write() as tx:
            tx.recall(known)
            assert tx.claims.finish([finish_of(claim)]) == [True]
        with write() as tx:
            assert tx.claims.finish([finish_of(claim)]) == [True]


@verbs("settings.note_dispatch", "settings.marks")
def test_when_jobs_were_last_started_is_noted(store: Store) -> None:
    with store.write() as tx:
        before = tx.settings.marks()
        tx.settings.note_dispatch(START + 3, 17)
        after = {**before, "last_dispatch_at": START + 3, "last_dispatch_count": 17}
        assert tx.settings.marks() == after
    with store.read() as tx:
        assert tx.settings.marks() == after


@verbs("jobs.records", "jobs.readable", "jobs.runs", "jobs.evidence", "graph.markers_by")
def test_what_is_kept_of_jobs_is_the_same_asked_together(store: Store) -> None:
    with store.write() as tx:
        ended, running, waiting, broken = (add(tx, stage=Stage.READY) for _ in range(4))
        claims = [start(tx, each, each.id) for each in (ended, running, broken)]
        tx.claims.finish([finish_of(claims[0], document={"a": 1}), finish_of(claims[2])])
        tx.graph.publish([Marker("custom:a", ended.id, START, {"b": 2})])
    with store.write() as tx:
        damage(store, "locks = 'x'", running.id)
        ids = [each.id for each in (ended, running, waiting, broken)]
        kept = tx.jobs.records(ids)
        started = [ended.id, broken.id]
        assert kept.jobs == tx.jobs.readable(ids) and running.id not in kept.jobs
        assert kept.runs == tx.jobs.runs(started) and len(kept.runs) == 2
        assert kept.evidence == tx.jobs.evidence(started) == {ended.id: {"outcome": {"a": 1}}}
        assert kept.markers == tx.graph.markers_by(started) and len(kept.markers) == 1


# -- what was read is so, or nothing is written ----------------------------------------------------


def behind_its_back(store: Store, statement: str) -> None:
    """What nobody does who takes turns: a change that this transaction does not hear of."""
    store.database.execute(statement, {})  # type: ignore[attr-defined]


def kept(store: Store) -> list[Any]:
    with store.read() as tx:
        ids = [each.id for each in tx.jobs.active()]
        return [
            tx.events.since(0, 100),
            tx.jobs.by_id(ids),
            tx.jobs.runs(ids),
            tx.claims.live(),
            tx.settings.marks(),
        ]


@only_a_server
@pytest.mark.parametrize("awaited", [False, True])
def test_nothing_is_committed_about_a_claim_that_is_not_as_it_was_read(
    store: Store, awaited: bool
) -> None:
    with store.write() as tx:
        made = [add(tx, stage=Stage.READY) for _ in range(2)]
        claims = [start(tx, each, slot) for slot, each in enumerate(made, 1)]
        if awaited:
            tx.waits.park([parking(add(tx, after=(made[0].id,)), f"chain:{made[0].id}")])
    ends = [finish_of(each) for each in claims]
    before = kept(store)
    with pytest.raises(StoreError, match="nothing was changed"), store.write() as tx:
        tx.claims.slots()
        behind_its_back(store, "update claims set state = 'gone' where job_id = 2")
        tx.claims.finish(ends)
        tx.events.add([Event("succeeded", each.id) for each in made], actor="worker")
        tx.waits.chains_succeeded([each.id for each in made])
        tx.settings.note_dispatch(START, 1)
    assert kept(store) == before
    with store.write() as tx:
        assert tx.claims.finish(ends) == [True, True], "and it can be made anew"


@only_a_server
def test_nothing_is_committed_about_a_job_that_is_not_as_it_was_read(store: Store) -> None:
    with store.write() as tx:
        made = [add(tx, stage=Stage.READY) for _ in range(2)]
    before = kept(store)
    claims = [(each, claim_for(each.id, each.id)) for each in made]
    with pytest.raises(StoreError, match="no longer waiting"), store.write() as tx:
        tx.claims.slots()
        behind_its_back(store, "update jobs set stage = null where id = 2")
        tx.claims.begin(claims)
        tx.settings.note_dispatch(START, 2)
    assert kept(store) == before
    with store.write() as tx:
        tx.claims.begin(claims)
    with store.read() as tx:
        assert len(tx.claims.live()) == 2, "and it can be made anew"


@verbs("claims.finish")
def test_a_claim_that_has_ended_is_known_without_asking(store: Store) -> None:
    with store.write() as tx:
        claims = [start(tx, add(tx, stage=Stage.READY), slot) for slot in range(1, 4)]
        tx.claims.finish([finish_of(claims[0])])
    stolen = claims[1]._replace(token="another")
    with store.write() as tx:
        tx.claims.slots()
        ends = [finish_of(each) for each in (claims[0], stolen, claims[2])]
        assert tx.claims.finish(ends) == [False, False, True]
        assert tx.claims.finish(ends) == [False, False, False]
    with store.read() as tx:
        found = tx.jobs.by_id([each.job_id for each in claims]).values()
        assert [each.status for each in found].count(Status.RUNNING) == 1
        assert [each.job_id for each in tx.claims.live()] == [claims[1].job_id]
