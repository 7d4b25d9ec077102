"""What every store does with each verb of the job graph."""

import pytest
from recording import verbs
from stocked import SECOND, START, add, finish_of, job, parking, start, unclaim_of

from headway.core.facts import ArtifactView, Producer
from headway.core.model import Approval, ApprovalState, Job, Lock, LockMode, PinnedHead, Stage
from headway.core.states import Status
from headway.store.records import (
    HeldLock,
    LockWaiter,
    Marker,
    Product,
)
from headway.store.store import Store
from headway.store.transaction import WriteTx
from headway.testing.clock import FakeClock

REPORT = "custom:report:june"
PLAN = "plan_doc:login"
HERE, THERE = "/srv/here", "/srv/there"


def succeed(tx: WriteTx, waiting: Job) -> None:
    tx.claims.finish([finish_of(start(tx, waiting))])


def fail(tx: WriteTx, waiting: Job) -> None:
    tx.claims.finish([finish_of(start(tx, waiting), status=Status.FAILED, exit_code=1)])


def retry(tx: WriteTx, failed: Job) -> Job:
    again = failed._replace(
        id=tx.jobs.take_ids(1), retry_of=failed.id, attempt=failed.attempt + 1, position=9999
    )
    tx.jobs.add_retries([again])
    return again


# -- who makes what -------------------------------------------------------------------------------


@verbs("graph.artifact_views")
def test_an_artifact_that_nobody_speaks_of_is_neither_there_nor_made(store: Store) -> None:
    with store.write() as tx:
        assert tx.graph.artifact_views([]) == {}
        assert tx.graph.artifact_views([REPORT]) == {REPORT: ArtifactView(False, False, ())}


@verbs("graph.artifact_views", "graph.publish")
def test_an_artifact_is_there_once_anybody_has_published_it(store: Store) -> None:
    with store.write() as tx:
        one, two = add(tx, produces=(REPORT,)), add(tx, produces=(REPORT,))
        makers = (Producer(one.id, Status.QUEUED), Producer(two.id, Status.QUEUED))
        assert tx.graph.artifact_views([REPORT])[REPORT] == ArtifactView(False, False, makers)
        tx.graph.publish([Marker(REPORT, two.id, START)])
        assert tx.graph.artifact_views([REPORT])[REPORT] == ArtifactView(True, False, makers)


@verbs("graph.artifact_views", "jobs.add_retries")
def test_the_producer_of_a_chain_is_its_last_job(store: Store) -> None:
    with store.write() as tx:
        maker = add(tx, produces=(REPORT,))
        fail(tx, maker)
        assert tx.graph.artifact_views([REPORT])[REPORT].producers == (
            Producer(maker.id, Status.FAILED),
        )
        again = retry(tx, maker)
        assert tx.graph.artifact_views([REPORT])[REPORT].producers == (
            Producer(again.id, Status.QUEUED),
        )


@verbs("graph.artifact_views")
def test_the_artifacts_of_two_repositories_are_two(store: Store) -> None:
    with store.write() as tx:
        here = add(tx, produces=(PLAN,), repo=HERE)
        add(tx, produces=(PLAN,), repo=THERE)
        key = f"{PLAN} {HERE}"
        assert tx.graph.artifact_views([key, PLAN]) == {
            key: ArtifactView(producers=(Producer(here.id, Status.QUEUED),)),
            PLAN: ArtifactView(),
        }


@verbs("graph.artifact_views")
def test_the_patch_of_a_job_is_made_by_its_chain_declared_or_not(store: Store) -> None:
    with store.write() as tx:
        silent = add(tx)
        declaring = add(tx, produces=("command_patch:job-2",))
        fail(tx, silent)
        again = retry(tx, silent)
        views = tx.graph.artifact_views(
            [f"command_patch:job-{each.id}" for each in (silent, declaring, again)]
        )
        assert [view.producers for view in views.values()] == [
            (Producer(again.id, Status.QUEUED),),
            (Producer(declaring.id, Status.QUEUED),),
            (Producer(again.id, Status.QUEUED),),
        ]
        assert (
            tx.graph.artifact_views(["command_patch:job-99"])["command_patch:job-99"].producers
            == ()
        )


@verbs("graph.produced_by", "graph.consumers", "graph.declared_artifacts")
def test_who_makes_and_who_needs_what(store: Store) -> None:
    with store.write() as tx:
        maker = add(tx, produces=(REPORT, PLAN), repo=HERE)
        user = add(tx, needs=(REPORT, PLAN), repo=HERE)
        other = add(tx, needs=(PLAN,), repo=THERE)
        fail(tx, maker)
        again = retry(tx, maker)
        chain = maker.chain
        assert tx.graph.produced_by([chain, user.chain]) == [
            Product(REPORT, again.id, chain),
            Product(f"{PLAN} {HERE}", again.id, chain),
        ]
        assert tx.graph.produced_by([]) == []
        assert tx.graph.consumers([REPORT, f"{PLAN} {THERE}", "custom:no:body"]) == {
            REPORT: [user.id],
            f"{PLAN} {THERE}": [other.id],
        }
        assert tx.graph.declared_artifacts() == [REPORT, f"{PLAN} {HERE}", f"{PLAN} {THERE}"]
        succeed(tx, again)
        succeed(tx, user)
        assert tx.graph.declared_artifacts() == [f"{PLAN} {THERE}"]


@verbs("graph.produced_by", "graph.withdraw")
def test_a_patch_that_someone_needs_is_a_product_of_its_chain(store: Store) -> None:
    """So that those who need it hear of the chain's end, and of its rewind."""
    with store.write() as tx:
        maker = add(tx)
        fail(tx, maker)
        assert tx.graph.produced_by([maker.chain]) == []
        patch = f"command_patch:job-{maker.id}"
        add(tx, needs=(patch, "command_patch:job-99"))
        assert tx.graph.produced_by([maker.chain]) == [Product(patch, maker.id, maker.chain)]
        again = retry(tx, maker)
        tx.graph.withdraw([maker.chain])
        view = ArtifactView(False, True, (Producer(again.id, Status.QUEUED),))
        assert tx.graph.artifact_views([patch]) == {patch: view}


# -- markers --------------------------------------------------------------------------------------


@verbs("graph.publish", "graph.markers_by", "graph.markers", "graph.newest_markers")
def test_markers_keep_who_published_them_when_and_with_what(store: Store) -> None:
    with store.write() as tx:
        one, two = add(tx), add(tx)
        first = Marker(REPORT, one.id, START, {"rows": [1, 2.5, None, "\0\ud800"]})
        second = Marker(REPORT, two.id, START + SECOND)
        third = Marker("custom:report:may", one.id, START + 2 * SECOND, [])
        tx.graph.publish([first, second, third])
        assert tx.graph.markers_by([one.id]) == [first, third]
        assert tx.graph.markers([REPORT]) == [first, second]
        assert tx.graph.markers(["custom:no:body"]) == []
        light = third._replace(data=None)  # without what it carries
        assert tx.graph.newest_markers(10) == [light, second], "one for each artifact"
        assert tx.graph.newest_markers(1) == [light]


@verbs("graph.publish", "graph.markers")
def test_a_job_that_publishes_again_has_one_marker_the_newest(store: Store) -> None:
    with store.write() as tx:
        maker = add(tx)
        tx.graph.publish([Marker(REPORT, maker.id, START, 1)])
        tx.graph.publish([Marker(REPORT, maker.id, START + SECOND, 2)])
        assert tx.graph.markers([REPORT]) == [Marker(REPORT, maker.id, START + SECOND, 2)]


@verbs("graph.newest_markers")
def test_a_listing_has_the_newest_marker_of_each_artifact_without_its_data(store: Store) -> None:
    with store.write() as tx:
        one, two = add(tx), add(tx)
        tx.graph.publish([Marker(REPORT, one.id, START, {"large": "x"})])
        tx.graph.publish([Marker(REPORT, two.id, START, 2)])
        tx.graph.publish([Marker("custom:a:old", two.id, START - SECOND)])
        newest = [Marker(REPORT, two.id, START), Marker("custom:a:old", two.id, START - SECOND)]
        assert tx.graph.newest_markers(10) == newest
        assert tx.graph.newest_markers(1) == newest[:1]


@verbs("graph.withdraw", "graph.markers", "graph.artifact_views", "graph.publish")
def test_what_was_withdrawn_does_not_count_until_it_is_published_again(
    store: Store, clock: FakeClock
) -> None:
    with store.write() as tx:
        maker, other = add(tx, produces=(PLAN,), repo=HERE), add(tx)
        tx.graph.publish(
            [Marker(REPORT, maker.id, START, 1), Marker("custom:a:b", other.id, START)]
        )
    clock.advance(5)
    plan = f"{PLAN} {HERE}"
    with store.write() as tx:
        assert tx.graph.withdraw([maker.chain]) == [REPORT, plan]
        assert tx.graph.markers([REPORT]) == [
            Marker(REPORT, maker.id, START, 1, START + 5 * SECOND)
        ]
        views = tx.graph.artifact_views([REPORT, plan, "custom:a:b"])
        assert [(view.published, view.withdrawn) for view in views.values()] == [
            (True, False),
            (False, False),
            (False, True),
        ], views
        assert tx.graph.withdraw([maker.chain]) == [plan]
        tx.graph.publish([Marker(REPORT, maker.id, START + 6 * SECOND, 2)])
        assert tx.graph.markers([REPORT]) == [Marker(REPORT, maker.id, START + 6 * SECOND, 2)]
        assert tx.graph.artifact_views([REPORT])[REPORT].published


@verbs("graph.withdraw", "graph.made_again", "graph.made_one_again", "graph.artifact_views")
def test_what_a_chain_has_made_again_counts_again(store: Store) -> None:
    def withdrawn() -> list[str]:
        views = tx.graph.artifact_views(["custom:a:1", "custom:a:2", "custom:b:1"])
        return [key for key, view in views.items() if view.withdrawn]

    with store.write() as tx:
        one = add(tx, produces=("custom:a:1", "custom:a:2"))
        two = add(tx, produces=("custom:b:1", "custom:a:1"))
        tx.graph.withdraw([one.chain, two.chain])
        assert withdrawn() == ["custom:a:1", "custom:a:2", "custom:b:1"]
        tx.graph.made_one_again("custom:a:1", one.chain)
        assert withdrawn() == ["custom:a:1", "custom:a:2", "custom:b:1"], "the other chain's"
        tx.graph.made_one_again("custom:a:1", two.chain)
        assert withdrawn() == ["custom:a:2", "custom:b:1"]
        tx.graph.made_again([one.chain])
        assert withdrawn() == ["custom:b:1"]
        tx.graph.made_again([])
        assert withdrawn() == ["custom:b:1"]


# -- approval, pins, locks, waits -----------------------------------------------------------------

PENDING = Approval(ApprovalState.PENDING, START, "ann")


@pytest.mark.req("V66")
@verbs("graph.to_approve", "graph.set_approval")
def test_a_decision_about_a_job_is_kept_while_it_waits(store: Store) -> None:
    with store.write() as tx:
        plain, asking, later = add(tx), add(tx, approval=PENDING), add(tx, approval=PENDING)
        assert [each.id for each in tx.graph.to_approve()] == [asking.id, later.id]
        decided = PENDING._replace(
            state=ApprovalState.APPROVED, decided_at=START, decided_by="bob", reason="fine\0"
        )
        assert tx.graph.set_approval(asking.id, decided)
        assert tx.jobs.by_id([asking.id])[asking.id].approval == decided
        start(tx, asking)
        assert not tx.graph.set_approval(asking.id, PENDING)
        assert tx.jobs.by_id([asking.id])[asking.id].approval == decided
        assert not tx.graph.set_approval(99, decided)
        tx.jobs.end_waiting(later, Status.CANCELLED, "cancelled", None)
        assert not tx.graph.set_approval(later.id, decided)
        assert [each.id for each in tx.graph.to_approve()] == [asking.id]
        assert tx.jobs.by_id([plain.id])[plain.id].approval is None


@verbs("graph.set_gates")
def test_a_pin_is_moved_while_its_job_waits(store: Store) -> None:
    pin = PinnedHead("main", "a" * 40)
    moved = PinnedHead("main", "b" * 40, head=True)
    with store.write() as tx:
        waiting = add(
            tx, pinned_head=pin, preconditions=("clean_worktree",), needs=(REPORT,), repo=HERE
        )
        assert tx.jobs.by_id([waiting.id])[waiting.id] == waiting
        assert tx.graph.set_gates(waiting._replace(pinned_head=moved))
        changed = tx.jobs.by_id([waiting.id])[waiting.id]
        assert changed == waiting._replace(pinned_head=moved)
        start(tx, changed)
        assert not tx.graph.set_gates(waiting)
        assert tx.jobs.by_id([waiting.id])[waiting.id].pinned_head == moved


@verbs("claims.locks_held")
def test_all_locks_that_are_held(store: Store) -> None:
    with store.write() as tx:
        alone = add(tx, locks=(Lock("b"), Lock("a", LockMode.SHARED)))
        sharing = add(tx, locks=(Lock("a", LockMode.SHARED),))
        assert tx.claims.locks_held() == []
        start(tx, alone, 1)
        start(tx, sharing, 2)
        assert tx.claims.locks_held() == [
            HeldLock("a", alone.id, LockMode.SHARED),
            HeldLock("a", sharing.id, LockMode.SHARED),
            HeldLock("b", alone.id, LockMode.EXCLUSIVE),
        ]


@verbs("claims.lock_waiters")
def test_who_waits_for_a_lock_stands_in_the_order_in_which_they_get_it(store: Store) -> None:
    with store.write() as tx:
        late = add(tx, locks=(Lock("b"), Lock("a", LockMode.SHARED)))
        first = add(tx, locks=(Lock("b"),), priority=5)
        other = add(tx)
        for each in (late, first):
            topics = [f"lock:{lock.key}" for lock in each.locks]
            tx.waits.park([parking(each, *topics, reserves=each is first)])
        tx.waits.park([parking(other, "chain:7")])
        waiters = [
            LockWaiter("a", late.id, LockMode.SHARED, False),
            LockWaiter("b", first.id, LockMode.EXCLUSIVE, True),
            LockWaiter("b", late.id, LockMode.EXCLUSIVE, False),
        ]
        assert tx.claims.lock_waiters(10) == waiters
        assert tx.claims.lock_waiters(2) == waiters[:2]


@verbs("waits.topics_waited_for")
def test_which_topics_jobs_are_filed_under(store: Store) -> None:
    asked = ["look:head:/srv:", "artifact:custom:a:b", "chain:7"]
    with store.write() as tx:
        waiting = add(tx)
        assert tx.waits.topics_waited_for(asked) == set()
        tx.waits.park([parking(waiting, asked[0], asked[1], "lock:k")])
        assert tx.waits.topics_waited_for(asked) == set(asked[:2])
        assert tx.waits.topics_waited_for([]) == set()
        tx.waits.park([parking(tx.jobs.by_id([waiting.id])[waiting.id], stage=Stage.READY)])
        assert tx.waits.topics_waited_for(asked) == set()


# -- a rewind -------------------------------------------------------------------------------------


@pytest.mark.req("V36")
@verbs("jobs.reset")
def test_a_waiting_job_is_put_back_to_the_start_and_another_is_not(store: Store) -> None:
    with store.write() as tx:
        waiting = add(tx, approval=PENDING, not_before=START)
        runs, ended = add(tx), add(tx)
        filed = parking(waiting, "chain:7", wake_at=START + SECOND)
        tx.waits.park([filed])
        start(tx, runs)
        tx.jobs.end_waiting(ended, Status.CANCELLED, "cancelled", None)
        before = tx.jobs.by_id([runs.id, ended.id])
        asked = PENDING._replace(requested_by="bob")
        tx.jobs.reset(
            [
                each._replace(status=Status.QUEUED, approval=asked, not_before=START + 7)
                for each in (waiting, runs, ended)
            ]
        )
        reset = tx.jobs.by_id([waiting.id])[waiting.id]
        assert reset == waiting._replace(approval=asked, not_before=START + 7)
        assert (reset.stage, reset.wait, reset.waited_on) == (Stage.WOKEN, None, ())
        assert tx.waits.topics_waited_for(["chain:7"]) == set()
        assert tx.waits.next_wake() is None
        assert tx.jobs.by_id([runs.id, ended.id]) == before


def test_the_time_of_a_submitter_is_told_apart_from_a_wait_to_try_again(store: Store) -> None:
    """Also of rows that know nothing of the difference: theirs is that of a first job which no
    failed launch holds back."""
    later = START + SECOND
    with store.write() as tx:
        asked = add(tx, not_before=START)
        struck = add(tx, not_before=START)
        tx.claims.undo([unclaim_of(start(tx, struck), not_before=later, launch_wait="launch")])
        again = {"retry_of": asked.id, "chain": asked.id, "attempt": 2}
        tx.jobs.end_waiting(asked, Status.CANCELLED, "cancelled", None)
        backs_off = job(tx.jobs.take_ids(1), not_before=later, requested_start=START, **again)
        tx.jobs.add_retries([backs_off])
        other = add(tx)
        tx.jobs.end_waiting(other, Status.CANCELLED, "cancelled", None)
        untimed = job(
            tx.jobs.take_ids(1), not_before=later, retry_of=other.id, chain=other.id, attempt=2
        )
        tx.jobs.add_retries([untimed])
    with store.read() as tx:
        found = tx.jobs.by_id([asked.id, struck.id, backs_off.id, untimed.id])
    assert {each.id: (each.not_before, each.submitters_time) for each in found.values()} == {
        asked.id: (START, START),
        struck.id: (later, None),
        backs_off.id: (later, START),
        untimed.id: (later, None),
    }


@verbs("graph.reopen_edges", "waits.predecessors", "graph.awaited_chains")
def test_an_edge_within_the_rewound_is_open_again_and_others_stay_met(store: Store) -> None:
    with store.write() as tx:
        inside, outside = add(tx), add(tx)
        both, other = (add(tx, after=(inside.id, outside.id)) for _ in range(2))
        for each in (inside, outside):
            succeed(tx, each)
            tx.waits.chains_succeeded([each.chain])
        again = retry(tx, inside)
        tx.graph.reopen_edges([both.id], [inside.chain])
        assert tx.graph.awaited_chains(both.chain) == [inside.chain]
        assert tx.graph.awaited_chains(other.chain) == []
        now = {each.declared: each.status for each in tx.waits.predecessors([both])[both.id]}
        assert now[inside.id] is Status.QUEUED
        succeed(tx, again)
        tx.waits.chains_succeeded([inside.chain])
        assert tx.graph.awaited_chains(both.chain) == []
