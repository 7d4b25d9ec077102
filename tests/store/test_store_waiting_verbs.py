"""What every store does with the verbs about jobs that wait: stages, edges, locks."""

from typing import Any

from recording import verbs
from stocked import (
    SECOND,
    START,
    add,
    finish_of,
    job,
    parking,
    start,
)

from headway.core.facts import Holder, Predecessor, Reserver
from headway.core.model import (
    Job,
    Lock,
    LockMode,
    Stage,
    Wait,
    WaitKind,
)
from headway.core.states import Status
from headway.store.records import HostRecord, WaitCounts
from headway.store.store import Store
from headway.testing.clock import FakeClock

SHARED, EXCLUSIVE = LockMode.SHARED, LockMode.EXCLUSIVE
TIMED = Wait(WaitKind.TIME, "waiting for its time")
LACKS_CAPACITY = Wait(WaitKind.CAPACITY, "the one slot is in use")


def stages(tx: Any, *jobs: Job) -> list[Stage | None]:
    found = tx.jobs.by_id([each.id for each in jobs])
    return [found[each.id].stage for each in jobs]


def ids(jobs: list[Job]) -> list[int]:
    return [each.id for each in jobs]


# -- what waits ---------------------------------------------------------------------------------


@verbs("waits.woken", "waits.ready", "waits.park", "waits.anything_woken", "waits.place_in_queue")
def test_waiting_jobs_stand_in_dispatch_order(store: Store) -> None:
    with store.write() as tx:
        jobs = [
            add(tx, priority=0, position=200),
            add(tx, priority=0, position=100, created_at=START + 1),
            add(tx, priority=0, position=100),
            add(tx, priority=7, position=900),
            add(tx, priority=0, position=100),
        ]
        in_order = [jobs[each].id for each in (3, 2, 4, 1, 0)]
        assert ids(tx.waits.woken(10)) == in_order and ids(tx.waits.woken(2)) == in_order[:2]
        assert tx.waits.anything_woken() and tx.waits.ready(10) == []
        for_capacity = {"status": Status.QUEUED, "stage": Stage.READY, "wait": LACKS_CAPACITY}
        tx.waits.park([parking(each, **for_capacity) for each in jobs])
        assert ids(tx.waits.ready(10)) == in_order and ids(tx.waits.ready(2)) == in_order[:2]
        assert not tx.waits.anything_woken() and tx.waits.woken(10) == []
        assert [tx.waits.place_in_queue(jobs[each]) for each in (3, 2, 4, 1, 0)] == [
            (0, 5),
            (1, 5),
            (2, 5),
            (3, 5),
            (4, 5),
        ]


@verbs("waits.park", "claims.begin")
def test_a_filed_job_shows_why_it_waits_and_remembers_it_once(store: Store) -> None:
    with store.write() as tx:
        waiting = add(tx, locks=(Lock("k"),))
        tx.waits.park([parking(waiting, "lock:k")])
        filed = tx.jobs.by_id([waiting.id])[waiting.id]
        assert filed == waiting._replace(
            status=Status.WAITING_ON_LOCKS,
            stage=Stage.PARKED,
            wait=Wait(WaitKind.LOCKS, "waiting on locks"),
            waited_on=("locks",),
        )
        tx.waits.park([parking(filed, wait=TIMED, status=Status.QUEUED)])
        tx.waits.park([parking(tx.jobs.by_id([waiting.id])[waiting.id], "lock:k")])
        filed = tx.jobs.by_id([waiting.id])[waiting.id]
        assert filed.waited_on == ("locks", "time")
        start(tx, filed)
        going = tx.jobs.by_id([waiting.id])[waiting.id]
        assert (going.wait, going.stage, going.waited_on) == (None, None, ("locks", "time"))


@verbs("waits.wake_due", "waits.next_wake")
def test_a_time_that_came_wakes(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx) for _ in range(3)]
        assert tx.waits.next_wake() is None
        for each, seconds in zip(jobs, (30, 10, 20), strict=True):
            tx.waits.park([parking(each, wait=TIMED, wake_at=START + seconds * SECOND)])
        assert tx.waits.next_wake() == START + 10 * SECOND
        assert tx.waits.wake_due(START + 10 * SECOND - 1, 10) == 0
        assert tx.waits.wake_due(START + 25 * SECOND, 1) == 1
        assert stages(tx, *jobs) == [Stage.PARKED, Stage.WOKEN, Stage.PARKED]
        assert tx.waits.wake_due(START + 25 * SECOND, 10) == 1
        assert stages(tx, *jobs) == [Stage.PARKED, Stage.WOKEN, Stage.WOKEN]
        assert tx.waits.next_wake() == START + 30 * SECOND


@verbs("waits.wake_topics")
def test_all_that_are_filed_under_a_topic_are_woken(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx) for _ in range(3)]
        for each, topics in zip(jobs, (["x"], ["x", "y"], ["z"]), strict=True):
            tx.waits.park([parking(each, *topics)])
        tx.waits.wake_topics(["y"])
        assert stages(tx, *jobs) == [Stage.PARKED, Stage.WOKEN, Stage.PARKED]
        tx.waits.wake_topics(["x", "nothing"])
        assert stages(tx, *jobs) == [Stage.WOKEN, Stage.WOKEN, Stage.PARKED]


@verbs("waits.wake_first")
def test_the_first_in_order_that_is_filed_under_a_topic_is_woken(store: Store) -> None:
    with store.write() as tx:
        late, early, other = add(tx, position=9), add(tx, position=1), add(tx)
        tx.waits.park([parking(late, "k"), parking(early, "k"), parking(other, "m")])
        tx.waits.wake_first(["k"])
        assert stages(tx, late, early, other) == [Stage.PARKED, Stage.WOKEN, Stage.PARKED]
        tx.waits.wake_first(["k"])  # it is still the first: nobody else is disturbed
        assert stages(tx, late, early, other) == [Stage.PARKED, Stage.WOKEN, Stage.PARKED]
        start(tx, tx.jobs.by_id([early.id])[early.id])
        tx.waits.wake_first(["k", "m"])
        assert stages(tx, late, other) == [Stage.WOKEN, Stage.WOKEN]


@verbs("waits.wake_next")
def test_the_next_in_order_after_a_job_is_woken(store: Store) -> None:
    with store.write() as tx:
        third, first, second = add(tx, position=9), add(tx, position=1), add(tx, position=5)
        tx.waits.park([parking(each, "k") for each in (third, first, second)])
        tx.waits.wake_next(["k", "nothing"], first)
        assert stages(tx, first, second, third) == [Stage.PARKED, Stage.WOKEN, Stage.PARKED]
        tx.waits.wake_next(["k"], third)
        assert stages(tx, first, second, third) == [Stage.PARKED, Stage.WOKEN, Stage.PARKED]
        urgent = add(tx, position=99, priority=7)
        tx.waits.wake_next(["k"], urgent)
        assert stages(tx, first, second, third) == [Stage.WOKEN, Stage.WOKEN, Stage.PARKED]


@verbs("waits.wake", "waits.wake_chains", "waits.wake_everything")
def test_jobs_chains_and_everything_can_be_woken(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx) for _ in range(4)]
        going = add(tx)
        start(tx, going)
        timed = add(tx)

        def file_all() -> None:
            tx.waits.park([parking(each, "x") for each in jobs])
            tx.waits.park([parking(timed, wait=TIMED, wake_at=START + 1)])

        file_all()
        tx.waits.wake([jobs[0].id, going.id])
        assert stages(tx, *jobs, going) == [Stage.WOKEN, *[Stage.PARKED] * 3, None]
        file_all()
        tx.waits.wake_chains([jobs[1].chain, going.chain])
        assert stages(tx, *jobs, going) == [
            Stage.PARKED,
            Stage.WOKEN,
            Stage.PARKED,
            Stage.PARKED,
            None,
        ]
        tx.waits.wake_everything()
        assert stages(tx, *jobs, going) == [*[Stage.WOKEN] * 4, None]
        assert stages(tx, timed) == [Stage.PARKED]  # its time has not come


@verbs("waits.woken", "waits.ready", "waits.stale", "jobs.count_waiting")
def test_each_host_has_its_own_queue_beside_the_common_one(store: Store) -> None:
    with store.write() as tx:
        theirs = add(tx, queue="other", priority=9)
        own = add(tx, queue="mine", priority=1)
        common = [add(tx, priority=2), add(tx)]
        in_order = ids([common[0], own, common[1]])
        assert (
            ids(tx.waits.woken(10, ("", "mine"))) == in_order
            and ids(tx.waits.woken(2, ("", "mine"))) == in_order[:2]
        )
        assert ids(tx.waits.woken(10)) == ids(common) and tx.jobs.count_waiting().ready == 4
        every = [theirs, own, *common]
        for_capacity = {"status": Status.QUEUED, "stage": Stage.READY, "wait": LACKS_CAPACITY}
        tx.waits.park([parking(each, **for_capacity) for each in every])
        assert ids(tx.waits.ready(10, ("", "mine"))) == in_order
        assert tx.jobs.count_waiting() == WaitCounts({Status.QUEUED: 4}, 4)
        tx.waits.park([parking(each, "x") for each in every])
        assert sorted(ids(tx.waits.stale(START + 1, 10, ("", "mine")))) == sorted(in_order)
        assert ids(tx.waits.stale(START + 1, 10)) == ids(common)
        assert tx.jobs.count_waiting().ready == 0


@verbs("waits.requeue")
def test_a_job_can_be_put_into_another_queue(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx, queue="gone"), add(tx)]
        tx.waits.requeue([jobs[0].id], "mine")
        assert ids(tx.waits.woken(10, ("mine",))) == [jobs[0].id] and ids(tx.waits.woken(10)) == [
            jobs[1].id
        ]


@verbs("hosts.know", "hosts.all")
def test_a_host_is_known_by_its_present_names(store: Store) -> None:
    with store.write() as tx:
        tx.hosts.know(HostRecord("a1", "laptop", "/home/ann/.headway"))
        tx.hosts.know(HostRecord("b2", "server", "/srv/.headway"))
        tx.hosts.know(HostRecord("a1", "laptop", "/home/ann/moved/.headway"))
        assert tx.hosts.all() == {
            "a1": HostRecord("a1", "laptop", "/home/ann/moved/.headway"),
            "b2": HostRecord("b2", "server", "/srv/.headway"),
        }


@verbs("waits.stale", "waits.touch_checked")
def test_the_longest_unchecked_waiters_come_first(store: Store, clock: FakeClock) -> None:
    jobs = []
    for _ in range(3):
        with store.write() as tx:
            jobs.append(add(tx))
            tx.waits.park([parking(jobs[-1], "x")])
        clock.advance(1)
    with store.write() as tx:
        assert ids(tx.waits.stale(START + 2 * SECOND, 10)) == [jobs[0].id, jobs[1].id]
        assert ids(tx.waits.stale(START + 2 * SECOND, 1)) == [jobs[0].id]
        tx.waits.touch_checked([jobs[0].id])
        assert ids(tx.waits.stale(START + 9 * SECOND, 10)) == [
            jobs[1].id,
            jobs[2].id,
            jobs[0].id,
        ]


@verbs("jobs.end_waiting")
def test_a_waiting_job_ends_once_and_a_running_one_not_this_way(store: Store) -> None:
    with store.write() as tx:
        waiting, going = add(tx, locks=(Lock("k"),)), add(tx)
        tx.waits.park([parking(waiting, "lock:k", reserves=True)])
        start(tx, going)
        wait = Wait(WaitKind.DEPENDENCIES, "missing job dependency job-9")
        filed = tx.jobs.by_id([waiting.id])[waiting.id]
        blocked = Status.BLOCKED_BY_DEPENDENCY
        assert tx.jobs.end_waiting(filed, blocked, "missing job dependency job-9", wait)
        assert not tx.jobs.end_waiting(filed, Status.CANCELLED, "cancelled", None)
        assert not tx.jobs.end_waiting(going, Status.CANCELLED, "cancelled", None)
        ended = tx.jobs.by_id([waiting.id])[waiting.id]
        assert (ended.status, ended.reason, ended.wait) == (blocked, wait.detail, wait)
        assert (ended.stage, ended.finished_at, ended.started_at) == (None, START, None)
        assert ended.waited_on == ("locks", "dependencies")
        assert tx.jobs.runs([waiting.id]) == {}
        assert tx.claims.lock_views(["k"])["k"].reservers == ()
        assert tx.jobs.by_id([going.id])[going.id].status is Status.RUNNING


@verbs("unreadable", "jobs.fail_unreadable")
def test_a_row_that_cannot_be_read_stops_nobody_else_and_fails(store: Store) -> None:
    with store.write() as tx:
        broken, sound = add(tx), add(tx)
        dependent = add(tx, after=(broken.id,))
        tx.waits.park([parking(dependent, f"chain:{broken.id}")])
    store.database.execute(  # type: ignore[attr-defined]
        f"update jobs set retry = '{{' where id = {broken.id}", {}
    )
    with store.write() as tx:
        assert tx.unreadable() == {}
        assert ids(tx.waits.woken(10)) == [sound.id]
        assert list(tx.unreadable()) == [broken.id]
        tx.jobs.fail_unreadable([broken.id], worker_id="worker")
        assert tx.unreadable() == {} and ids(tx.waits.woken(10)) == [sound.id, dependent.id]
        run = tx.jobs.runs([broken.id])[broken.id]
        assert (run.status, run.exit_code, run.finished_at) == ("FAILED", 1, START)
        assert run.error is not None and run.error.startswith("scheduler data error: ")
        assert tx.jobs.count_finished(0) == {Status.FAILED: 1}


# -- dependencies -------------------------------------------------------------------------------


@verbs("waits.predecessors")
def test_an_edge_is_marked_by_the_state_of_its_chain_at_submit(store: Store) -> None:
    with store.write() as tx:
        good, bad, active = add(tx), add(tx), add(tx)
        tx.claims.finish([finish_of(start(tx, good))])
        tx.claims.finish([finish_of(start(tx, bad), status=Status.FAILED)])
        cases = {
            good.id: (),
            bad.id: (Predecessor(bad.id, bad.id, Status.FAILED),),
            active.id: (Predecessor(active.id, active.id, Status.QUEUED),),
        }
        for declared, expected in cases.items():
            dependent = add(tx, after=(declared,))
            assert tx.waits.predecessors([dependent]) == {dependent.id: expected}
        assert tx.waits.predecessors([good]) == {}


@verbs(
    "waits.chains_succeeded", "waits.chains_failed", "waits.chain_reopened", "waits.predecessors"
)
def test_the_end_of_a_chain_marks_and_wakes_those_that_wait_for_it(store: Store) -> None:
    with store.write() as tx:
        first, second = add(tx), add(tx)
        waiting = add(tx, after=(first.id, second.id))
        tx.waits.park([parking(waiting, f"chain:{first.id}")])
        claim = start(tx, first)
        assert tx.waits.predecessors([waiting])[waiting.id] == (
            Predecessor(first.id, first.id, Status.RUNNING),
        )
        tx.claims.finish([finish_of(claim)])
        tx.waits.chains_succeeded([first.chain])
        assert stages(tx, waiting) == [Stage.WOKEN]
        assert tx.waits.predecessors([waiting])[waiting.id] == (
            Predecessor(second.id, second.id, Status.QUEUED),
        )

        tx.waits.park([parking(waiting, f"chain:{second.id}")])
        tx.claims.finish([finish_of(start(tx, second), status=Status.FAILED)])
        tx.waits.chains_failed([second.chain])
        assert stages(tx, waiting) == [Stage.WOKEN]
        assert tx.waits.predecessors([waiting])[waiting.id] == (
            Predecessor(second.id, second.id, Status.FAILED),
        )

        tx.waits.park([parking(waiting, f"chain:{second.id}")])
        again = job(tx.jobs.take_ids(1), chain=second.id, retry_of=second.id)
        tx.jobs.add_retries([again])
        tx.waits.chain_reopened(second.chain)
        assert stages(tx, waiting) == [Stage.WOKEN]
        assert tx.waits.predecessors([waiting])[waiting.id] == (
            Predecessor(second.id, second.id, Status.QUEUED),
        )


@verbs("graph.awaited_chains")
def test_the_chains_that_a_chain_still_waits_for(store: Store) -> None:
    with store.write() as tx:
        first, second = add(tx), add(tx)
        waiting = add(tx, after=(first.id, second.id))
        assert sorted(tx.graph.awaited_chains(waiting.chain)) == [first.id, second.id]
        tx.claims.finish([finish_of(start(tx, first))])
        tx.waits.chains_succeeded([first.chain])
        assert tx.graph.awaited_chains(waiting.chain) == [second.id]
        assert tx.graph.awaited_chains(second.chain) == []


# -- locks --------------------------------------------------------------------------------------


@verbs("claims.lock_views", "claims.release_locks", "waits.are_locks_contended")
def test_a_lock_view_has_all_holders_and_the_first_reserver_of_each_mode(store: Store) -> None:
    with store.write() as tx:
        holders = [
            add(tx, locks=(Lock("k", SHARED), Lock("m"))),
            add(tx, locks=(Lock("k", SHARED),)),
        ]
        for slot, each in enumerate(holders, 1):
            start(tx, each, slot)
        waiters = [
            add(tx, position=position, locks=(Lock("k", mode),))
            for position, mode in ((900, EXCLUSIVE), (500, EXCLUSIVE), (700, SHARED), (100, SHARED))
        ]
    with store.write() as tx:
        assert not tx.waits.are_locks_contended()
        for each in waiters[:3]:
            tx.waits.park([parking(each, "lock:k", reserves=True)])
        tx.waits.park([parking(waiters[3], "lock:k", reserves=False)])
        assert tx.waits.are_locks_contended()
        views = tx.claims.lock_views(["k", "m", "free"])
        assert set(views["k"].holders) == {Holder(each.id, SHARED) for each in holders}
        assert set(views["k"].reservers) == {
            Reserver(waiters[1].id, EXCLUSIVE, waiters[1].order),
            Reserver(waiters[2].id, SHARED, waiters[2].order),
        }
        assert views["m"].holders == (Holder(holders[0].id, EXCLUSIVE),)
        assert views["free"].holders == views["free"].reservers == ()
        assert tx.claims.lock_views([]) == {}

        assert sorted(tx.claims.release_locks([holders[0].id])) == ["k", "m"]
        assert tx.claims.release_locks([holders[0].id]) == []
        assert tx.claims.lock_views(["k"])["k"].holders == (Holder(holders[1].id, SHARED),)
