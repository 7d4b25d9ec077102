"""What every store does with the verbs about jobs that wait: stages, edges, locks."""

from typing import Any

from recording import verbs
from stocked import (
    SECOND,
    START,
    add,
    filing,
    finish_of,
    job,
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
from headway.store.base import (
    HostRecord,
    Store,
)
from headway.testing import FakeClock

SHARED, EXCLUSIVE = LockMode.SHARED, LockMode.EXCLUSIVE
TIMED = Wait(WaitKind.TIME, "waiting for its time")
AT_DOOR = Wait(WaitKind.CAPACITY, "the one slot is in use")


def stages(tx: Any, *jobs: Job) -> list[Stage | None]:
    found = tx.jobs([each.id for each in jobs])
    return [found[each.id].stage for each in jobs]


def ids(jobs: list[Job]) -> list[int]:
    return [each.id for each in jobs]


# -- what waits ---------------------------------------------------------------------------------


@verbs("woken", "ready", "file", "anything_woken", "place_in_queue")
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
        assert ids(tx.woken(10)) == in_order and ids(tx.woken(2)) == in_order[:2]
        assert tx.anything_woken() and tx.ready(10) == []
        at_door = {"status": Status.QUEUED, "stage": Stage.READY, "wait": AT_DOOR}
        tx.file([filing(each, **at_door) for each in jobs])
        assert ids(tx.ready(10)) == in_order and ids(tx.ready(2)) == in_order[:2]
        assert not tx.anything_woken() and tx.woken(10) == []
        assert [tx.place_in_queue(jobs[each]) for each in (3, 2, 4, 1, 0)] == [
            (0, 5),
            (1, 5),
            (2, 5),
            (3, 5),
            (4, 5),
        ]


@verbs("file", "claim")
def test_a_filed_job_shows_why_it_waits_and_remembers_it_once(store: Store) -> None:
    with store.write() as tx:
        waiting = add(tx, locks=(Lock("k"),))
        tx.file([filing(waiting, "lock:k")])
        filed = tx.jobs([waiting.id])[waiting.id]
        assert filed == waiting._replace(
            status=Status.WAITING_ON_LOCKS,
            stage=Stage.FILED,
            wait=Wait(WaitKind.LOCKS, "waiting on locks"),
            waited_on=("locks",),
        )
        tx.file([filing(filed, wait=TIMED, status=Status.QUEUED)])
        tx.file([filing(tx.jobs([waiting.id])[waiting.id], "lock:k")])
        filed = tx.jobs([waiting.id])[waiting.id]
        assert filed.waited_on == ("locks", "time")
        start(tx, filed)
        going = tx.jobs([waiting.id])[waiting.id]
        assert (going.wait, going.stage, going.waited_on) == (None, None, ("locks", "time"))


@verbs("wake_due", "next_wake")
def test_a_time_that_came_wakes(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx) for _ in range(3)]
        assert tx.next_wake() is None
        for each, seconds in zip(jobs, (30, 10, 20), strict=True):
            tx.file([filing(each, wait=TIMED, wake_at=START + seconds * SECOND)])
        assert tx.next_wake() == START + 10 * SECOND
        assert tx.wake_due(START + 10 * SECOND - 1, 10) == 0
        assert tx.wake_due(START + 25 * SECOND, 1) == 1
        assert stages(tx, *jobs) == [Stage.FILED, Stage.WOKEN, Stage.FILED]
        assert tx.wake_due(START + 25 * SECOND, 10) == 1
        assert stages(tx, *jobs) == [Stage.FILED, Stage.WOKEN, Stage.WOKEN]
        assert tx.next_wake() == START + 30 * SECOND


@verbs("wake_topics")
def test_all_that_are_filed_under_a_topic_are_woken(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx) for _ in range(3)]
        for each, topics in zip(jobs, (["x"], ["x", "y"], ["z"]), strict=True):
            tx.file([filing(each, *topics)])
        tx.wake_topics(["y"])
        assert stages(tx, *jobs) == [Stage.FILED, Stage.WOKEN, Stage.FILED]
        tx.wake_topics(["x", "nothing"])
        assert stages(tx, *jobs) == [Stage.WOKEN, Stage.WOKEN, Stage.FILED]


@verbs("wake_first")
def test_the_first_in_order_that_is_filed_under_a_topic_is_woken(store: Store) -> None:
    with store.write() as tx:
        late, early, other = add(tx, position=9), add(tx, position=1), add(tx)
        tx.file([filing(late, "k"), filing(early, "k"), filing(other, "m")])
        tx.wake_first(["k"])
        assert stages(tx, late, early, other) == [Stage.FILED, Stage.WOKEN, Stage.FILED]
        tx.wake_first(["k"])  # it is still the first: nobody else is disturbed
        assert stages(tx, late, early, other) == [Stage.FILED, Stage.WOKEN, Stage.FILED]
        start(tx, tx.jobs([early.id])[early.id])
        tx.wake_first(["k", "m"])
        assert stages(tx, late, other) == [Stage.WOKEN, Stage.WOKEN]


@verbs("wake_next")
def test_the_next_in_order_after_a_job_is_woken(store: Store) -> None:
    with store.write() as tx:
        third, first, second = add(tx, position=9), add(tx, position=1), add(tx, position=5)
        tx.file([filing(each, "k") for each in (third, first, second)])
        tx.wake_next(["k", "nothing"], first)
        assert stages(tx, first, second, third) == [Stage.FILED, Stage.WOKEN, Stage.FILED]
        tx.wake_next(["k"], third)
        assert stages(tx, first, second, third) == [Stage.FILED, Stage.WOKEN, Stage.FILED]
        urgent = add(tx, position=99, priority=7)
        tx.wake_next(["k"], urgent)
        assert stages(tx, first, second, third) == [Stage.WOKEN, Stage.WOKEN, Stage.FILED]


@verbs("wake_jobs", "wake_chains", "wake_everything")
def test_jobs_chains_and_everything_can_be_woken(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx) for _ in range(4)]
        going = add(tx)
        start(tx, going)
        timed = add(tx)

        def file_all() -> None:
            tx.file([filing(each, "x") for each in jobs])
            tx.file([filing(timed, wait=TIMED, wake_at=START + 1)])

        file_all()
        tx.wake_jobs([jobs[0].id, going.id])
        assert stages(tx, *jobs, going) == [Stage.WOKEN, *[Stage.FILED] * 3, None]
        file_all()
        tx.wake_chains([jobs[1].chain, going.chain])
        assert stages(tx, *jobs, going) == [
            Stage.FILED,
            Stage.WOKEN,
            Stage.FILED,
            Stage.FILED,
            None,
        ]
        tx.wake_everything()
        assert stages(tx, *jobs, going) == [*[Stage.WOKEN] * 4, None]
        assert stages(tx, timed) == [Stage.FILED]  # its time has not come


@verbs("woken", "ready", "stale_waiters", "count_at_door")
def test_each_host_has_its_own_queue_beside_the_common_one(store: Store) -> None:
    with store.write() as tx:
        theirs = add(tx, queue="other", priority=9)
        own = add(tx, queue="mine", priority=1)
        common = [add(tx, priority=2), add(tx)]
        in_order = ids([common[0], own, common[1]])
        assert (
            ids(tx.woken(10, ("", "mine"))) == in_order
            and ids(tx.woken(2, ("", "mine"))) == in_order[:2]
        )
        assert ids(tx.woken(10)) == ids(common) and tx.count_at_door() == 4
        every = [theirs, own, *common]
        at_door = {"status": Status.QUEUED, "stage": Stage.READY, "wait": AT_DOOR}
        tx.file([filing(each, **at_door) for each in every])
        assert ids(tx.ready(10, ("", "mine"))) == in_order and tx.count_at_door() == 4
        tx.file([filing(each, "x") for each in every])
        assert sorted(ids(tx.stale_waiters(START + 1, 10, ("", "mine")))) == sorted(in_order)
        assert ids(tx.stale_waiters(START + 1, 10)) == ids(common) and tx.count_at_door() == 0


@verbs("requeue")
def test_a_job_can_be_put_into_another_queue(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx, queue="gone"), add(tx)]
        tx.requeue([jobs[0].id], "mine")
        assert ids(tx.woken(10, ("mine",))) == [jobs[0].id] and ids(tx.woken(10)) == [jobs[1].id]


@verbs("know_host", "hosts")
def test_a_host_is_known_by_its_present_names(store: Store) -> None:
    with store.write() as tx:
        tx.know_host(HostRecord("a1", "laptop", "/home/ann/.headway"))
        tx.know_host(HostRecord("b2", "server", "/srv/.headway"))
        tx.know_host(HostRecord("a1", "laptop", "/home/ann/moved/.headway"))
        assert tx.hosts() == {
            "a1": HostRecord("a1", "laptop", "/home/ann/moved/.headway"),
            "b2": HostRecord("b2", "server", "/srv/.headway"),
        }


@verbs("stale_waiters", "touch_checked")
def test_the_longest_unchecked_waiters_come_first(store: Store, clock: FakeClock) -> None:
    jobs = []
    for _ in range(3):
        with store.write() as tx:
            jobs.append(add(tx))
            tx.file([filing(jobs[-1], "x")])
        clock.advance(1)
    with store.write() as tx:
        assert ids(tx.stale_waiters(START + 2 * SECOND, 10)) == [jobs[0].id, jobs[1].id]
        assert ids(tx.stale_waiters(START + 2 * SECOND, 1)) == [jobs[0].id]
        tx.touch_checked([jobs[0].id])
        assert ids(tx.stale_waiters(START + 9 * SECOND, 10)) == [
            jobs[1].id,
            jobs[2].id,
            jobs[0].id,
        ]


@verbs("end_waiting")
def test_a_waiting_job_ends_once_and_a_running_one_not_this_way(store: Store) -> None:
    with store.write() as tx:
        waiting, going = add(tx, locks=(Lock("k"),)), add(tx)
        tx.file([filing(waiting, "lock:k", reserves=True)])
        start(tx, going)
        wait = Wait(WaitKind.DEPENDENCIES, "missing job dependency job-9")
        filed = tx.jobs([waiting.id])[waiting.id]
        blocked = Status.BLOCKED_BY_DEPENDENCY
        assert tx.end_waiting(filed, blocked, "missing job dependency job-9", wait)
        assert not tx.end_waiting(filed, Status.CANCELLED, "cancelled", None)
        assert not tx.end_waiting(going, Status.CANCELLED, "cancelled", None)
        ended = tx.jobs([waiting.id])[waiting.id]
        assert (ended.status, ended.reason, ended.wait) == (blocked, wait.detail, wait)
        assert (ended.stage, ended.finished_at, ended.started_at) == (None, START, None)
        assert ended.waited_on == ("locks", "dependencies")
        assert tx.runs([waiting.id]) == {}
        assert tx.lock_views(["k"])["k"].reservers == ()
        assert tx.jobs([going.id])[going.id].status is Status.RUNNING


@verbs("unreadable", "fail_unreadable")
def test_a_row_that_cannot_be_read_stops_nobody_else_and_fails(store: Store) -> None:
    with store.write() as tx:
        broken, sound = add(tx), add(tx)
        dependent = add(tx, after=(broken.id,))
        tx.file([filing(dependent, f"chain:{broken.id}")])
    store.database.execute(  # type: ignore[attr-defined]
        f"update jobs set retry = '{{' where id = {broken.id}", {}
    )
    with store.write() as tx:
        assert tx.unreadable() == {}
        assert ids(tx.woken(10)) == [sound.id]
        assert list(tx.unreadable()) == [broken.id]
        tx.fail_unreadable([broken.id], worker_id="worker")
        assert tx.unreadable() == {} and ids(tx.woken(10)) == [sound.id, dependent.id]
        run = tx.runs([broken.id])[broken.id]
        assert (run.status, run.exit_code, run.finished_at) == ("FAILED", 1, START)
        assert run.error is not None and run.error.startswith("scheduler data error: ")
        assert tx.count_finished(0) == {Status.FAILED: 1}


# -- dependencies -------------------------------------------------------------------------------


@verbs("predecessors")
def test_an_edge_is_marked_by_the_state_of_its_chain_at_submit(store: Store) -> None:
    with store.write() as tx:
        good, bad, active = add(tx), add(tx), add(tx)
        tx.finish([finish_of(start(tx, good))])
        tx.finish([finish_of(start(tx, bad), status=Status.FAILED)])
        cases = {
            good.id: (),
            bad.id: (Predecessor(bad.id, bad.id, Status.FAILED),),
            active.id: (Predecessor(active.id, active.id, Status.QUEUED),),
        }
        for declared, expected in cases.items():
            dependent = add(tx, after=(declared,))
            assert tx.predecessors([dependent]) == {dependent.id: expected}
        assert tx.predecessors([good]) == {}


@verbs("chains_succeeded", "chains_failed", "chain_reopened", "predecessors")
def test_the_end_of_a_chain_marks_and_wakes_those_that_wait_for_it(store: Store) -> None:
    with store.write() as tx:
        first, second = add(tx), add(tx)
        waiting = add(tx, after=(first.id, second.id))
        tx.file([filing(waiting, f"chain:{first.id}")])
        claim = start(tx, first)
        assert tx.predecessors([waiting])[waiting.id] == (
            Predecessor(first.id, first.id, Status.RUNNING),
        )
        tx.finish([finish_of(claim)])
        tx.chains_succeeded([first.chain])
        assert stages(tx, waiting) == [Stage.WOKEN]
        assert tx.predecessors([waiting])[waiting.id] == (
            Predecessor(second.id, second.id, Status.QUEUED),
        )

        tx.file([filing(waiting, f"chain:{second.id}")])
        tx.finish([finish_of(start(tx, second), status=Status.FAILED)])
        tx.chains_failed([second.chain])
        assert stages(tx, waiting) == [Stage.WOKEN]
        assert tx.predecessors([waiting])[waiting.id] == (
            Predecessor(second.id, second.id, Status.FAILED),
        )

        tx.file([filing(waiting, f"chain:{second.id}")])
        again = job(tx.take_ids(1), chain=second.id, retry_of=second.id)
        tx.add_retries([again])
        tx.chain_reopened(second.chain)
        assert stages(tx, waiting) == [Stage.WOKEN]
        assert tx.predecessors([waiting])[waiting.id] == (
            Predecessor(second.id, second.id, Status.QUEUED),
        )


@verbs("awaited_chains")
def test_the_chains_that_a_chain_still_waits_for(store: Store) -> None:
    with store.write() as tx:
        first, second = add(tx), add(tx)
        waiting = add(tx, after=(first.id, second.id))
        assert sorted(tx.awaited_chains(waiting.chain)) == [first.id, second.id]
        tx.finish([finish_of(start(tx, first))])
        tx.chains_succeeded([first.chain])
        assert tx.awaited_chains(waiting.chain) == [second.id]
        assert tx.awaited_chains(second.chain) == []


# -- locks --------------------------------------------------------------------------------------


@verbs("lock_views", "release_locks")
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
        for each in waiters[:3]:
            tx.file([filing(each, "lock:k", reserves=True)])
        tx.file([filing(waiters[3], "lock:k", reserves=False)])
        views = tx.lock_views(["k", "m", "free"])
        assert set(views["k"].holders) == {Holder(each.id, SHARED) for each in holders}
        assert set(views["k"].reservers) == {
            Reserver(waiters[1].id, EXCLUSIVE, waiters[1].order),
            Reserver(waiters[2].id, SHARED, waiters[2].order),
        }
        assert views["m"].holders == (Holder(holders[0].id, EXCLUSIVE),)
        assert views["free"].holders == views["free"].reservers == ()
        assert tx.lock_views([]) == {}

        assert sorted(tx.release_locks(holders[0].id)) == ["k", "m"]
        assert tx.release_locks(holders[0].id) == []
        assert tx.lock_views(["k"])["k"].holders == (Holder(holders[1].id, SHARED),)
