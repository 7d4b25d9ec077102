"""What every store does with the verbs of the seam: transactions, jobs; and none is left out."""

import select
from collections.abc import Callable
from typing import Any

import pytest
from recording import TESTED, declared_verbs, verbs
from stocked import (
    SECOND,
    START,
    Opener,
    add,
    finish_of,
    job,
    start,
)

from headway.core.facts import Predecessor
from headway.core.model import (
    Job,
    Lock,
    LockMode,
    RetryPolicy,
)
from headway.core.states import Status
from headway.errors import (
    StoreBusyError,
    StoreUndoneError,
)
from headway.store.base import (
    Event,
    Store,
)
from headway.testing import FakeClock

SHARED, EXCLUSIVE = LockMode.SHARED, LockMode.EXCLUSIVE


def ids(jobs: list[Job]) -> list[int]:
    return [each.id for each in jobs]


def test_every_verb_of_the_seam_is_tested() -> None:
    import test_store_alike  # noqa: F401
    import test_store_calls  # noqa: F401
    import test_store_claim_verbs  # noqa: F401
    import test_store_entry_verbs  # noqa: F401
    import test_store_governor_verbs  # noqa: F401
    import test_store_graph_verbs  # noqa: F401  each declares which verbs it is about
    import test_store_graphs  # noqa: F401
    import test_store_group_verbs  # noqa: F401
    import test_store_limits  # noqa: F401
    import test_store_order_verbs  # noqa: F401
    import test_store_plain_calls  # noqa: F401
    import test_store_quiet  # noqa: F401
    import test_store_relay  # noqa: F401
    import test_store_removing_verbs  # noqa: F401
    import test_store_reservations  # noqa: F401
    import test_store_schedule_verbs  # noqa: F401
    import test_store_scheduler_verbs  # noqa: F401
    import test_store_template_verbs  # noqa: F401
    import test_store_waiting_verbs  # noqa: F401
    import test_store_woken  # noqa: F401
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


@verbs("watch_hints", "hints", "close")
def test_a_line_of_hints_is_watched_until_it_is_closed(store: Store) -> None:
    told: list[object] = []

    def watch(line: object) -> Callable[[], None]:
        told.append(line)
        return lambda: told.append("over")

    store.watch_hints(watch)
    hints = store.hints()
    assert told == ([] if hints is None else [hints])
    store.close()
    assert told == ([] if hints is None else [hints, "over"])


@verbs("present", "write")
def test_the_present_of_a_store_is_that_of_its_transactions(store: Store) -> None:
    with store.write() as tx:
        before = tx.now()
    assert before <= store.present() < before + 60_000_000


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


@verbs("next_places", "place_jobs")
def test_a_new_job_stands_after_all_that_there_are(store: Store) -> None:
    """By its id; and further, once another was put there."""
    with store.write() as tx:
        assert tx.next_places()[:2] == (1, 100)
        first, second = add(tx), add(tx, priority=5)
        assert tx.next_places()[:2] == (3, 300)
        tx.place_jobs([(first.id, 0, 299)])
        assert tx.next_places()[:2] == (3, 300)
        tx.place_jobs([(second.id, 5, 300), (first.id, 0, 20)])
        assert tx.next_places()[:2] == (3, 400)
        third = add(tx)
        assert tx.next_places()[:2] == (4, 500)
        tx.place_jobs([(third.id, 0, 1234)])
        tx.place_jobs([(third.id, 0, 20)])
        assert tx.next_places()[:2] == (4, 1334)
        tx.finish([finish_of(start(tx, first))])
        assert tx.next_places()[:2] == (4, 1334)


@verbs("next_places")
def test_what_new_jobs_get_and_what_they_wait_for_is_asked_in_one_question(store: Store) -> None:
    with store.write() as tx:
        assert tx.next_places() == (1, 100, None, {})
        assert tx.take_ids(2) == 1
        made = add(tx, priority=5)
        ends = {made.id: (made.id, Status.QUEUED)}
        assert tx.next_places([made.id, 99, 7]) == (4, 400, None, ends)
        tx.set_setting("scheduler.ageing", "1h", by="ann")
        assert tx.next_places([made.id]) == (4, 400, "1h", ends)
        assert (tx.marks()["next_job_id"], add(tx).id, tx.marks()["next_job_id"]) == (4, 4, 5)


@verbs("next_places", "add_retries")
def test_what_a_new_job_is_after_stands_as_the_last_of_its_chain(store: Store) -> None:
    with store.write() as tx:
        first, other = add(tx), add(tx)
        tx.finish([finish_of(start(tx, first), status=Status.FAILED)])
        failed = {first.id: (first.id, Status.FAILED), other.id: (other.id, Status.QUEUED)}
        assert tx.next_places([first.id, other.id]).ends == failed
        again = first._replace(id=tx.take_ids(1), retry_of=first.id)
        tx.add_retries([again])
        waits = (first.id, Status.QUEUED)
        assert tx.next_places([first.id, again.id]).ends == {first.id: waits, again.id: waits}


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


@verbs("env_digests_in_use")
def test_environments_in_use_are_found(store: Store) -> None:
    with store.write() as tx:
        first = add(tx, env_digest="a")
        second = add(tx, after=(first.id,), env_digest="b")
        add(tx, after=(first.id, second.id))
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
