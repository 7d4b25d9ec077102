"""What every store does with each verb of the seam."""

import select
from pathlib import Path
from typing import Any

import pytest
from recording import TESTED, declared_verbs, verbs
from stocked import (
    HOST,
    SECOND,
    START,
    Opener,
    add,
    claim_for,
    filing,
    finish_of,
    job,
    start,
    unclaim_of,
)

from headway.core.facts import Holder, Predecessor, Reserver, TaskView
from headway.core.model import (
    HostTrouble,
    Job,
    Lock,
    LockMode,
    Pause,
    RetryPolicy,
    Run,
    Stage,
    Wait,
    WaitKind,
)
from headway.core.states import Status
from headway.errors import (
    InvalidInputError,
    InvalidOperationError,
    InvalidTransitionError,
    StoreBusyError,
    StoreError,
    StoreUndoneError,
)
from headway.store import open_store
from headway.store.base import (
    Event,
    HostRecord,
    Lending,
    Progress,
    Search,
    Slots,
    Store,
    WorkerRecord,
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


def test_every_verb_of_the_seam_is_tested() -> None:
    import test_store_graph_verbs  # noqa: F401  it declares which verbs it is about
    import test_store_graphs  # noqa: F401
    import test_store_removing_verbs  # noqa: F401
    import test_store_worktrees  # noqa: F401

    assert declared_verbs() == set(TESTED)


# -- transactions -------------------------------------------------------------------------------


@verbs("story")
def test_a_story_that_others_undid_is_told_again_whole(store: Store) -> None:
    tries = []

    def tell(tx: Any) -> str:
        tries.append(tx.take_ids(1))
        add(tx)
        if len(tries) < 3:
            raise StoreUndoneError("others were in the way")
        return "told"

    assert store.story(tell) == "told"
    assert tries == [1, 1, 1]
    with store.read() as tx:
        assert ids(tx.active_jobs()) == [2]


@pytest.mark.parametrize(
    ("error", "tries"), [(StoreUndoneError, 3), (StoreBusyError, 1), (RuntimeError, 1)]
)
def test_a_story_is_told_three_times_at_most_and_only_if_it_was_surely_undone(
    store: Store, error: type[Exception], tries: int
) -> None:
    told = []

    def tell(tx: Any) -> None:
        told.append(add(tx))
        raise error("no")

    with pytest.raises(error):
        store.story(tell)
    assert len(told) == tries
    with store.read() as tx:
        assert tx.active_jobs() == []


@verbs("read", "write", "now", "take_ids")
def test_a_transaction_has_one_instant_and_is_all_or_nothing(
    store: Store, clock: FakeClock
) -> None:
    with store.write() as tx:
        assert tx.now() == START
        clock.advance(5)
        assert tx.now() == START
        assert tx.take_ids(3) == 1
    with pytest.raises(RuntimeError), store.write() as tx:
        add(tx)
        raise RuntimeError
    with store.read() as tx:
        assert tx.now() == START + 5 * SECOND
        assert tx.active_jobs() == []
    with store.write() as tx:
        assert tx.take_ids(1) == 4  # the rolled-back taking took nothing


@verbs("write_soon")
def test_a_turn_that_comes_with_the_first_question_is_like_any_other(store: Store) -> None:
    with store.write_soon() as tx:
        made = add(tx)
        assert made.created_at == tx.now() == START
    with pytest.raises(RuntimeError), store.write_soon() as tx:
        add(tx)
        raise RuntimeError
    with store.write_soon():
        pass
    with pytest.raises(RuntimeError), store.write_soon():
        raise RuntimeError
    with store.read() as tx:
        assert [job.id for job in tx.active_jobs()] == [made.id]


@verbs("changed", "check")
def test_a_store_notices_what_others_commit(store: Store, opener: Opener) -> None:
    other = opener()
    store.changed()
    assert not store.changed()
    with other.write() as tx:
        add(tx)
    assert store.changed()
    assert not store.changed()
    with store.write() as tx:
        add(tx)
    assert not store.changed()  # its own writing is no news
    store.check()


@verbs("hints", "changed")
def test_hints_become_readable_when_others_commit(store: Store, opener: Opener) -> None:
    """A store may have none, as a file has; what it has falls silent when one has looked."""
    other = opener()
    store.changed()
    hints = store.hints()
    with other.write() as tx:
        add(tx)
    assert hints is None or select.select([hints], [], [], 30)[0]
    assert store.changed()
    assert hints is None or not select.select([hints], [], [], 0)[0]


@verbs("close")
def test_a_closed_store_leaves_its_rows_to_the_next(store: Store, opener: Opener) -> None:
    with store.write() as tx:
        add(tx)
    store.close()
    with opener().read() as tx:
        assert len(tx.active_jobs()) == 1


# -- jobs ---------------------------------------------------------------------------------------

FULL = job(
    1,
    type="agent",
    priority=-3,
    params={"argv": ["é", "\u2028"], "n": [1, None, 1.5]},
    slug="nightly",
    labels={"team": "röt"},
    locks=(Lock("a", SHARED), Lock("b")),
    retry=RetryPolicy(3, 1, 2, 0.5, ("7", "signal")),
    attempt=2,
    retries_used=1,
    not_before=START + 7,
    env_digest="e" * 64,
    key="once",
    spec_digest="d",
    on_finish=("echo", "done"),
    submitted_by="ann",
)


@verbs("add_jobs", "jobs", "job_by_key")
def test_a_job_is_given_back_as_it_was_stored(store: Store) -> None:
    plain = job(2)
    with store.write() as tx:
        tx.add_jobs([FULL, plain])
    with store.read() as tx:
        assert tx.jobs([1, 2, 99]) == {1: FULL, 2: plain}
        assert tx.jobs([]) == {}
        assert tx.job_by_key("once") == FULL
        assert tx.job_by_key("never") is None


@verbs("next_position")
def test_positions_grow_by_hundreds_among_the_active_of_one_priority(store: Store) -> None:
    with store.write() as tx:
        assert tx.next_position(0) == 100
        first = add(tx, position=100)
        add(tx, position=250)
        add(tx, position=900, priority=5)
        assert (tx.next_position(0), tx.next_position(5), tx.next_position(1)) == (350, 1000, 100)
        tx.finish([finish_of(start(tx, first))])
        assert tx.next_position(0) == 350


@verbs("take_places")
def test_ids_and_the_first_position_are_taken_in_one_question(store: Store) -> None:
    with store.write() as tx:
        assert tx.take_places(2, 0) == (1, 100)
        add(tx, position=250, priority=5)
        assert tx.take_places(3, 5) == (4, 350)
        assert tx.take_places(0, 1) == (7, 100)
        assert tx.take_ids(1) == 7


@verbs("add_retries", "chain", "last_in_chain")
def test_the_last_job_of_a_chain_is_its_newest(store: Store) -> None:
    with store.write() as tx:
        first, other = add(tx), add(tx)
        second = job(tx.take_ids(1), chain=first.id, retry_of=first.id, attempt=2)
        tx.add_retries([second])
        assert ids(tx.chain(first.id)) == [first.id, second.id]
        assert tx.last_in_chain(first.id) == second
        assert tx.last_in_chain(other.id) == other
        assert tx.last_in_chain(99) is None and tx.chain(99) == []


@verbs("add_retries", "predecessors")
def test_a_retry_keeps_the_marks_of_its_edges(store: Store) -> None:
    with store.write() as tx:
        met, unmet = add(tx), add(tx)
        tx.finish([finish_of(start(tx, met))])
        tx.chains_succeeded([met.id])
        first = add(tx, after=(met.id, unmet.id))
        again = job(tx.take_ids(1), chain=first.id, retry_of=first.id, after=(met.id, unmet.id))
        tx.add_retries([again])
        assert tx.predecessors([again]) == {
            again.id: (Predecessor(unmet.id, unmet.id, Status.QUEUED),)
        }


@verbs("active_jobs", "finished_jobs", "count_active", "count_finished", "anything_active", "runs")
def test_active_and_finished_jobs_are_told_apart(store: Store) -> None:
    with store.write() as tx:
        assert not tx.anything_active()
        waiting = add(tx, created_at=START + 3)
        done = [add(tx, created_at=START + each) for each in range(3)]
        for place, each in enumerate(done):
            status = Status.FAILED if place else Status.SUCCEEDED
            claim = start(tx, each, place + 1)
            tx.finish([finish_of(claim, status=status, finished_at=START + 10 + place)])
        going = add(tx, created_at=START)
        start(tx, going)
    with store.read() as tx:
        assert tx.anything_active()
        assert ids(tx.active_jobs()) == [going.id, waiting.id]
        assert tx.count_active() == {Status.QUEUED: 1, Status.RUNNING: 1}
        newest_first = [each.id for each in reversed(done)]
        assert ids(tx.finished_jobs(0, 10)) == newest_first
        assert ids(tx.finished_jobs(START + 11, 10)) == newest_first[:2]
        assert ids(tx.finished_jobs(0, 1)) == newest_first[:1]
        assert tx.count_finished(0) == {Status.SUCCEEDED: 1, Status.FAILED: 2}
        assert tx.count_finished(START + 12) == {Status.FAILED: 1}
        assert set(tx.runs([waiting.id, going.id, done[0].id])) == {going.id, done[0].id}


@verbs("dependents", "env_digests_in_use")
def test_dependents_and_environments_are_found(store: Store) -> None:
    with store.write() as tx:
        first = add(tx, env_digest="a")
        second = add(tx, after=(first.id,), env_digest="b")
        third = add(tx, after=(first.id, second.id))
        assert sorted(tx.dependents(first.id)) == [second.id, third.id]
        assert tx.dependents(third.id) == []
        tx.finish([finish_of(start(tx, first))])
        assert tx.env_digests_in_use(since=1 << 62) == {"b"}
        assert tx.env_digests_in_use(since=0) == {"a", "b"}


@verbs("add_events", "events_of", "events_since", "last_event")
def test_events_are_kept_in_order(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        assert tx.last_event() == 0
        tx.add_events(
            [Event("submitted", 1, {"name": "é"}), Event("paused", actor="bob")], actor="ann"
        )
    clock.advance(1)
    with store.write() as tx:
        tx.add_events([Event("running", 1)], actor="worker")
    with store.read() as tx:
        assert tx.events_of(1) == [
            Event("submitted", 1, {"name": "é"}, "ann", START, 1),
            Event("running", 1, {}, "worker", START + SECOND, 3),
        ]
        assert [each.kind for each in tx.events_since(1, 10)] == ["paused", "running"]
        assert tx.events_since(1, 1)[0].actor == "bob"
        assert tx.events_since(3, 10) == [] and tx.last_event() == 3


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


@verbs("chains_succeeded", "chain_failed", "chain_reopened", "predecessors")
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
        tx.chain_failed(second.chain)
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


# -- claims and their fences --------------------------------------------------------------------


@verbs("claim", "live_claims", "claims", "claim_of", "last_claims", "slots")
def test_a_claim_is_a_running_job_with_an_open_run(store: Store) -> None:
    with store.write() as tx:
        waiting, other = add(tx), add(tx)
        mine = claim_for(waiting.id, 1)
        theirs = claim_for(other.id, 3, borrowed_from=waiting.id, probe=True)
        tx.claim([(waiting, mine), (other, theirs)])
        going = tx.jobs([waiting.id])[waiting.id]
        assert (going.status, going.started_at, going.stage) == (Status.RUNNING, START, None)
        assert tx.runs([waiting.id]) == {
            waiting.id: Run(waiting.id, START, "worker", waiting.params)
        }
        assert sorted(tx.live_claims(), key=lambda each: each.slot) == [mine, theirs]
        assert tx.claims([mine.token, "unknown"]) == {mine.token: mine}
        assert tx.claim_of(waiting.id) == tx.last_claims([waiting.id]).get(waiting.id) == mine
        assert tx.claim_of(99) is None and tx.last_claims([99]).get(99) is None
        assert tx.slots() == Slots(
            used=frozenset({1, 3}), running={waiting.id: None, other.id: waiting.id}, probing=True
        )


@verbs("renew_leases", "cancelling_jobs", "request_cancel")
def test_a_host_renews_its_own_leases_and_sees_what_is_cancelled(store: Store) -> None:
    with store.write() as tx:
        jobs = [add(tx), add(tx), add(tx)]
        mine, theirs, ended = (
            start(tx, each, slot, host_id=host)
            for slot, (each, host) in enumerate(zip(jobs, ("a", "b", "a"), strict=True), 1)
        )
        for claim in (theirs, ended):
            assert tx.request_cancel(claim.job_id, "ann")
        assert tx.cancelling_jobs() == {theirs.job_id, ended.job_id}
        assert tx.finish([finish_of(ended)]) == [True]
        assert tx.cancelling_jobs() == {theirs.job_id}
        tx.renew_leases("a", START + 7)
        leases = {claim.token: claim.lease_until for claim in tx.live_claims()}
        assert leases == {mine.token: START + 7, theirs.token: None}


@verbs("claim")
def test_what_is_not_waiting_cannot_be_claimed(store: Store) -> None:
    with store.write() as tx:
        waiting = add(tx)
        start(tx, waiting)
    with pytest.raises(InvalidOperationError), store.write() as tx:
        tx.claim([(waiting, claim_for(waiting.id, 2, token="second"))])
    with store.write() as tx, pytest.raises(InvalidTransitionError):
        going = tx.jobs([waiting.id])[waiting.id]
        tx.claim([(going, claim_for(waiting.id, 2, token="third"))])
    with store.read() as tx:
        assert [each.token for each in tx.live_claims()] == [f"token-{waiting.id}"]


@verbs("finish", "evidence", "slots", "last_claims")
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
        tx.lend("lending", Lending(claim.job_id, 99, START + 99))
        assert tx.finish([finish]) == [True]
        ended = tx.jobs([claim.job_id])[claim.job_id]
        assert (ended.status, ended.reason) == (Status.FAILED, finish.reason)
        assert (ended.finished_at, ended.started_at) == (START + SECOND, START)
        run = tx.runs([claim.job_id])[claim.job_id]
        assert (run.status, run.exit_code, run.error, run.finished_at) == (
            "FAILED",
            7,
            "exit code 7",
            START + SECOND,
        )
        assert tx.evidence([claim.job_id]) == {claim.job_id: {"outcome": document}}
        assert tx.live_claims() == [] and tx.slots().used == frozenset()
        assert (
            tx.claim_of(claim.job_id) is None
            and tx.last_claims([claim.job_id]).get(claim.job_id) == claim
        )
        assert tx.lendings() == []


@verbs("finish")
def test_a_finish_without_an_execution_leaves_no_run(store: Store) -> None:
    with store.write() as tx:
        claim = start(tx, add(tx))
        finish = finish_of(claim, status=Status.CANCELLED, executed=False, exit_code=None)
        assert tx.finish([finish]) == [True]
        ended = tx.jobs([claim.job_id])[claim.job_id]
        assert (ended.status, ended.started_at) == (Status.CANCELLED, None)
        assert tx.runs([claim.job_id]) == {}


def snapshot(tx: Any, job_id: int) -> tuple[Any, ...]:
    return (
        tx.jobs([job_id]),
        tx.runs([job_id]),
        tx.claim_of(job_id),
        tx.last_claims([job_id]).get(job_id),
        tx.evidence([job_id]),
        tx.lock_views(["k"]),
        tx.lendings(),
    )


@verbs("finish", "unclaim")
def test_a_stale_token_changes_nothing(store: Store) -> None:
    with store.write() as tx:
        waiting = add(tx, locks=(Lock("k"),))
        old = start(tx, waiting)
        assert tx.unclaim([unclaim_of(old)]) == [True]
        tx.release_locks(waiting.id)
        new = start(tx, tx.jobs([waiting.id])[waiting.id], token="new")
        tx.lend("lending", Lending(waiting.id, 99, START + 99))
        before = snapshot(tx, waiting.id)
        assert tx.finish([finish_of(old, document={"late": True})]) == [False]
        assert tx.unclaim([unclaim_of(old)]) == [False]
        assert snapshot(tx, waiting.id) == before
        assert tx.finish([finish_of(old), finish_of(new)]) == [False, True]


@verbs("finish", "unclaim", "keep_late_outcome", "evidence")
def test_a_second_finish_changes_nothing_and_its_outcome_is_kept_beside(store: Store) -> None:
    with store.write() as tx:
        claim = start(tx, add(tx))
        assert tx.finish([finish_of(claim, document={"first": 1})]) == [True]
        before = snapshot(tx, claim.job_id)
        late = finish_of(claim, status=Status.FAILED, exit_code=9, document={"second": 2})
        assert tx.finish([late]) == [False]
        assert tx.unclaim([unclaim_of(claim)]) == [False]
        assert snapshot(tx, claim.job_id) == before
        tx.keep_late_outcome(claim, {"second": 2})
        tx.keep_late_outcome(claim, {"third": 3})
        assert tx.evidence([claim.job_id])[claim.job_id] == {
            "outcome": {"first": 1},
            "late_outcome": {"second": 2},
        }
        assert tx.jobs([claim.job_id]) == before[0] and tx.runs([claim.job_id]) == before[1]


@verbs("unclaim")
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
        assert tx.unclaim([undoing]) == [True]
        again = tx.jobs([claim.job_id])[claim.job_id]
        assert (again.status, again.stage, again.started_at) == (Status.QUEUED, Stage.WOKEN, None)
        assert (again.not_before, again.launch_failures) == (START + 5, 2)
        assert (again.launch_wait, again.last_failure) == (WaitKind.LAUNCH, "no such program")
        assert (
            tx.runs([claim.job_id]) == {}
            and tx.last_claims([claim.job_id]).get(claim.job_id) is None
        )


@verbs("unproven_claims", "prove_gone")
def test_an_ended_claim_is_unproven_until_its_tree_is_gone(store: Store) -> None:
    with store.write() as tx:
        claims = [start(tx, add(tx), slot) for slot in (1, 2)]
        tx.prove_gone(claims[0].token)  # it still runs: that proves nothing
        tx.finish([finish_of(claims[0], tree_gone=False), finish_of(claims[1])])
        assert tx.unproven_claims() == [claims[0]]
        assert tx.finish([finish_of(claims[0])]) == [False]
        tx.prove_gone(claims[0].token)
        assert tx.unproven_claims() == []


@verbs("request_cancel")
def test_a_cancel_is_asked_of_a_running_job_once(store: Store) -> None:
    with store.write() as tx:
        going, waiting = add(tx), add(tx)
        start(tx, going)
        assert tx.request_cancel(going.id, "ann")
        assert not tx.request_cancel(going.id, "bob")
        assert not tx.request_cancel(waiting.id, "ann")
        asked = tx.jobs([going.id])[going.id]
        assert (asked.cancel_requested_at, asked.cancel_requested_by) == (START, "ann")


@verbs("lend", "lendings", "end_lending", "end_lendings_of", "end_expired_lendings")
def test_a_lending_lives_while_it_is_renewed(store: Store) -> None:
    with store.write() as tx:
        tx.lend("a", Lending(1, 7, START + 10))
        tx.lend("b", Lending(1, 8, START + 20))
        tx.lend("c", Lending(2, 9, START + 30))
        tx.lend("a", Lending(1, 7, START + 15))
        tx.end_expired_lendings(START + 15)
        assert sorted(tx.lendings(), key=lambda each: each.chain) == [
            Lending(1, 7, START + 15),
            Lending(1, 8, START + 20),
            Lending(2, 9, START + 30),
        ]
        tx.end_expired_lendings(START + 16)
        assert len(tx.lendings()) == 2
        tx.end_lendings_of(1)
        assert tx.lendings() == [Lending(2, 9, START + 30)]
        tx.end_lending("unknown")
        tx.end_lending("c")
        assert tx.lendings() == []


# -- the scheduler's own ------------------------------------------------------------------------


@verbs("settings", "set_setting")
def test_settings_keep_their_types(store: Store) -> None:
    with store.write() as tx:
        assert tx.settings() == {}
        tx.set_setting("scheduler.max_active", 3, by="ann")
        tx.set_setting("scheduler.spawn_delay", "1s", by="ann")
        tx.set_setting("scheduler.max_active", -1, by="bob")
        assert tx.settings() == {"scheduler.max_active": -1, "scheduler.spawn_delay": "1s"}


@verbs("pause", "resume", "pause_in_force")
def test_the_first_pause_stays_in_force(store: Store) -> None:
    pause = Pause("ann", "moving house", START)
    with store.write() as tx:
        assert tx.pause_in_force() is None and not tx.resume()
        assert tx.pause(pause)
        assert not tx.pause(Pause("bob", None, START + 1))
        assert tx.pause_in_force() == pause
        assert tx.resume() and not tx.resume()
        assert tx.pause_in_force() is None
        assert tx.pause(Pause("bob", None, START))


@verbs("open_breaker", "close_breaker", "host_trouble")
def test_each_host_has_its_own_breaker(store: Store) -> None:
    first = HostTrouble(WaitKind.STORAGE, "no space", 1, START + 1)
    with store.write() as tx:
        assert tx.host_trouble(HOST.id) is None and not tx.close_breaker(HOST.id)
        tx.open_breaker(HOST.id, first)
        worse = first._replace(kind=WaitKind.PRESSURE, failures=2, probe_at=START + 3)
        tx.open_breaker(HOST.id, worse)
        tx.open_breaker("elsewhere", first)
        assert (tx.host_trouble(HOST.id), tx.host_trouble("elsewhere")) == (worse, first)
        assert tx.close_breaker(HOST.id)
        assert (tx.host_trouble(HOST.id), tx.host_trouble("elsewhere")) == (None, first)


@verbs("reset_launches")
def test_a_reset_forgets_strikes_and_breakers(store: Store) -> None:
    with store.write() as tx:
        struck, timed, plain = add(tx), add(tx, not_before=START + 9), add(tx)
        claim = start(tx, struck)
        tx.unclaim(
            [unclaim_of(claim, not_before=START + 5, launch_failures=2, launch_wait="launch")]
        )
        struck = tx.jobs([struck.id])[struck.id]
        for each in (struck, timed):
            tx.file([filing(each, wait=TIMED, wake_at=each.not_before)])
        tx.file([filing(plain, "x")])
        tx.open_breaker(HOST.id, HostTrouble(WaitKind.STORAGE, "no space", 1, START))
        assert tx.reset_launches() == 1
        struck = tx.jobs([struck.id])[struck.id]
        assert (struck.launch_failures, struck.launch_wait, struck.not_before) == (0, None, None)
        assert stages(tx, struck, timed, plain) == [Stage.WOKEN, Stage.FILED, Stage.FILED]
        assert tx.jobs([timed.id])[timed.id].not_before == START + 9
        assert tx.host_trouble(HOST.id) is None and tx.next_wake() == START + 9


@verbs("add_worker", "worker_settled", "end_worker", "recent_workers")
def test_the_lives_of_workers_are_kept_newest_first(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        for number in range(3):
            worker = WorkerRecord(f"w{number}", 100 + number, "auto", START + number, *[None] * 3)
            tx.add_worker(worker, host_id=HOST.id, home="/home", boot_id="boot")
        other = WorkerRecord("far", 1, "auto", START + 9, None, None, None)
        tx.add_worker(other, host_id="elsewhere", home="/home", boot_id="boot")
    clock.advance(60)
    with store.write() as tx:
        tx.worker_settled("w1")
        tx.end_worker("w2", "idle")
        later = START + 60 * SECOND
        assert tx.recent_workers(HOST.id, 2) == [
            WorkerRecord("w2", 102, "auto", START + 2, None, later, "idle"),
            WorkerRecord("w1", 101, "auto", START + 1, later, None, None),
        ]
        assert len(tx.recent_workers(HOST.id, 10)) == 3


@verbs("marks", "set_mark", "add_to_mark")
def test_marks_are_set_and_added_to(store: Store) -> None:
    with store.write() as tx:
        assert tx.marks()["log_bytes"] == 0
        tx.add_to_mark("log_bytes", 700)
        tx.add_to_mark("log_bytes", -200)
        tx.set_mark("last_dispatch_count", 4)
        marks = tx.marks()
        assert (marks["log_bytes"], marks["last_dispatch_count"]) == (500, 4)


@verbs("tidy")
def test_tidying_changes_nothing_that_can_be_read(store: Store) -> None:
    with store.write() as tx:
        job = add(tx)
    store.tidy()
    with store.read() as tx:
        assert tx.jobs([job.id])[job.id] == job


@verbs("backup")
@pytest.mark.req("D8")
def test_a_backup_is_a_whole_store_though_others_write(store: Store, tmp_path: Path) -> None:
    """# fault C6"""
    with store.write() as tx:
        jobs = [add(tx) for _ in range(50)]
    copy = tmp_path / "copy.db"
    store.backup(str(copy))
    with store.write() as tx:
        add(tx)
    with pytest.raises(StoreError, match="exists already"):
        store.backup(str(copy))
    restored = open_store(f"sqlite://{copy}", FakeClock(START))
    with restored.read() as tx:
        assert [job.id for job in tx.active_jobs()] == [job.id for job in jobs]
    restored.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir() if "new" in each.name) == []


@verbs("readable_jobs", "running_jobs")
def test_a_row_that_cannot_be_read_is_left_out_or_stood_in_for(store: Store) -> None:
    with store.write() as tx:
        sound, broken = add(tx), add(tx, priority=3)
        start(tx, broken)
    store.database.execute(  # type: ignore[attr-defined]
        f"update jobs set labels = '{{' where id = {broken.id}", {}
    )
    with store.read() as tx:
        ids_ = [sound.id, broken.id]
        assert list(tx.readable_jobs(ids_)) == [sound.id]
        jobs = tx.running_jobs(ids_)
        assert jobs[sound.id] == sound
        stand_in = jobs[broken.id]
        assert (stand_in.chain, stand_in.priority) == (broken.chain, 3)
        assert stand_in.retry.max_attempts == 0


# -- functions ------------------------------------------------------------------------------------


@verbs("know_tasks", "tasks_known")
def test_what_each_host_can_call_is_known(store: Store) -> None:
    with store.write() as tx:
        tx.know_tasks("here", ["a.f", "a.g"], None)
        tx.know_tasks("there", [], "importing it failed")
    with store.write() as tx:
        tx.know_tasks("here", ["a.f"], None)
        assert tx.tasks_known() == {
            "here": TaskView(frozenset({"a.f"}), None),
            "there": TaskView(frozenset(), "importing it failed"),
        }


@verbs("join")
def test_only_a_transaction_of_the_same_sort_can_be_joined(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="submit_on"), store.join(object()):
        pass


@verbs("keep_results", "results")
def test_the_first_result_of_a_job_is_kept(store: Store) -> None:
    with store.write() as tx:
        one, two, three = add(tx), add(tx), add(tx)
        value = {"a": [1, 2.5, None, "\0\ud800"]}
        tx.keep_results([(one.id, value), (two.id, False)])
        tx.keep_results([(one.id, "another")])
        assert tx.results([one.id, two.id, three.id]) == {one.id: value, two.id: False}


@verbs("keep_progress", "progress")
def test_the_last_progress_of_a_job_is_kept(store: Store) -> None:
    with store.write() as tx:
        one, two = add(tx), add(tx)
        tx.keep_progress([Progress(one.id, 0.25, "a quarter")])
        tx.keep_progress([Progress(one.id, 0.5, "half")])
        assert tx.progress([one.id, two.id]) == {one.id: Progress(one.id, 0.5, "half")}


@verbs("dependents_of", "chains_of", "jobs_of_chains")
def test_chains_and_those_that_wait_for_them_are_found_together(store: Store) -> None:
    with store.write() as tx:
        first, other = add(tx), add(tx)
        again = job(tx.take_ids(1), chain=first.id, retry_of=first.id, attempt=2)
        tx.add_retries([again])
        waiting = add(tx, after=(first.id, again.id))
        last = add(tx, after=(waiting.id, other.id))
        assert tx.dependents_of([first.id, other.id]) == [waiting.id, last.id]
        assert tx.dependents_of([last.id]) == tx.dependents_of([]) == []
        assert tx.chains_of([again.id, last.id, 999]) == {again.id: first.id, last.id: last.id}
        found = tx.jobs_of_chains([first.id, other.id, 999])
        assert {chain: ids(jobs) for chain, jobs in found.items()} == {
            first.id: [first.id, again.id],
            other.id: [other.id],
        }


# -- what views show ------------------------------------------------------------------------------


def ended(tx: Any, status: Status, at: int = START, **fields: Any) -> Job:
    """A job that ended without having run."""
    made = add(tx, **fields)
    tx.end_waiting(made, status, "because", None)
    return made


@verbs("find_jobs")
def test_jobs_are_found_newest_first_in_pages(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        made = [add(tx, created_at=START + each % 2) for each in range(6)]
    order = sorted(made, key=lambda each: (each.created_at, each.id), reverse=True)
    with store.read() as tx:
        first = tx.find_jobs(Search(), before=None, limit=4)
        rest = tx.find_jobs(Search(), before=first[-1], limit=4)
        assert ids(first + rest) == ids(order)
        assert tx.find_jobs(Search(), before=rest[-1], limit=4) == []


@verbs("find_jobs")
def test_jobs_are_found_by_state_time_and_label(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        old = ended(tx, Status.CANCELLED, created_at=START - 5)
        clock.advance(10)
    with store.write() as tx:
        new = ended(tx, Status.SKIPPED, labels={"team": 'a"b%', "x": "y"})
        active = add(tx, labels={"team": "a"})

    def found(**search: Any) -> set[int]:
        with store.read() as tx:
            return {each.id for each in tx.find_jobs(Search(**search), before=None, limit=9)}

    everything = {old.id, new.id, active.id}
    assert found() == everything
    assert found(ended_since=START + 5 * SECOND) == {new.id, active.id}
    assert found(created_since=START) == {new.id, active.id}
    assert found(statuses=frozenset({Status.CANCELLED, Status.QUEUED})) == {old.id, active.id}
    assert found(statuses=frozenset({Status.QUEUED})) == {active.id}
    assert found(statuses=frozenset()) == set()
    assert found(labels={"team": 'a"b%'}) == {new.id}
    assert found(labels={"team": "a"}) == {active.id}
    assert found(labels={"eam": "a"}) == set()


GLOBS = {
    "*": {"build", "b_ild", "100%", "back\\slash", "[x]"},
    "b*": {"build", "b_ild", "back\\slash"},
    "b_ild": {"b_ild"},
    "b?ild": {"build", "b_ild"},
    "100%": {"100%"},
    "*%": {"100%"},
    "*\\slash": {"back\\slash"},
    "b[uv]ild": {"build"},
    "b[!u]ild": {"b_ild"},
    "[[]x]": {"[x]"},
    "nothing*": set(),
}


@verbs("find_jobs")
@pytest.mark.parametrize("glob", GLOBS)
def test_a_pattern_of_a_name_lets_through_all_that_it_should(store: Store, glob: str) -> None:
    with store.write() as tx:
        for name in GLOBS["*"]:
            add(tx, name=name)
    with store.read() as tx:
        found = {each.name for each in tx.find_jobs(Search(name=glob), before=None, limit=99)}
    assert GLOBS[glob] <= found
    if "[" not in glob:
        assert found == GLOBS[glob]


@verbs("outlines_shown", "outlines_all", "count_ended", "chain_ends", "outlines")
def test_a_schedule_shows_active_and_blocked_jobs_and_what_blocks_them(store: Store) -> None:
    with store.write() as tx:
        active = add(tx, created_at=START + 9)
        failed = ended(tx, Status.FAILED)
        blocked = ended(tx, Status.BLOCKED_BY_DEPENDENCY, after=(failed.id,))
        alone = ended(tx, Status.FAILED)
        retried = ended(tx, Status.BLOCKED_BY_APPROVAL)
        again = job(tx.take_ids(1), chain=retried.id, retry_of=retried.id)
        tx.add_retries([again])
        tx.chain_failed(failed.id)
    with store.read() as tx:
        assert ids(tx.outlines_shown(99)) == [failed.id, blocked.id, again.id, active.id]
        assert ids(tx.outlines_shown(2)) == [failed.id, blocked.id]
        assert alone.id not in ids(tx.outlines_shown(99))
        assert sorted(ids(tx.outlines_all(99))) == list(range(1, 7))
        assert tx.count_ended() == (4, 1)
        ends = tx.chain_ends([retried.id, failed.id, 999])
        assert {chain: end.id for chain, end in ends.items()} == {
            retried.id: again.id,
            failed.id: failed.id,
        }
        assert set(tx.outlines([active.id, 999])) == {active.id}


@verbs("outlines")
def test_an_outline_has_what_a_schedule_shows(store: Store) -> None:
    with store.write() as tx:
        first = add(tx)
        made = add(
            tx,
            slug="slug",
            after=(first.id,),
            needs=("custom:a:b",),
            produces=("custom:c:d",),
            repo="/repo",
        )
        tx.file([filing(made, "chain:1")])
        call = add(tx, type="function", params={"task": "t"}, stage=Stage.READY)
        whole = tx.jobs([made.id])[made.id]
        outline = tx.outlines([made.id])[made.id]
        kept = (
            "id name type status created_at chain slug after stage wait queue needs produces repo"
        )
        for name in kept.split():
            assert getattr(outline, name) == getattr(whole, name), name
        assert outline.params == {}
        assert tx.outlines([call.id])[call.id].params == {"task": "t"}


@verbs("outlines_shown", "unreadable")
def test_a_row_that_cannot_be_read_is_left_out_of_a_schedule(store: Store) -> None:
    with store.write() as tx:
        broken, sound = add(tx), add(tx)
        store.database.execute(  # type: ignore[attr-defined]
            f"update jobs set after_ids = 'x' where id = {broken.id}", {}
        )
        assert ids(tx.outlines_shown(9)) == [sound.id]
        assert list(tx.unreadable()) == [broken.id]
