"""What every store does with the verbs of the seam: transactions, jobs; and none is left out."""

import select
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
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

from headway.base.errors import (
    StoreBusyError,
    StoreUndoneError,
)
from headway.core.facts import Predecessor
from headway.core.model import (
    Job,
    Lock,
    LockMode,
    RetryPolicy,
    Stage,
)
from headway.core.states import WAITING, Status
from headway.store.new_jobs import Event
from headway.store.records import WaitCounts
from headway.store.store import Store
from headway.testing.clock import FakeClock

SHARED, EXCLUSIVE = LockMode.SHARED, LockMode.EXCLUSIVE


def ids(jobs: list[Job]) -> list[int]:
    return [each.id for each in jobs]


def test_every_verb_of_the_seam_is_tested() -> None:
    for file in Path(__file__).parent.glob("test_store_*.py"):
        if "from recording import" in file.read_text(encoding="utf-8"):
            import_module(file.stem)  # each declares which verbs it is about
    assert declared_verbs() == set(TESTED)


# -- transactions -------------------------------------------------------------------------------


@verbs("transact")
def test_a_story_that_others_undid_is_told_again_whole(store: Store) -> None:
    tries = []

    def tell(tx: Any) -> str:
        tries.append(tx.jobs.take_ids(1))
        add(tx)
        if len(tries) < 3:
            raise StoreUndoneError("others were in the way")
        return "told"

    assert store.transact(tell) == "told"
    assert tries == [1, 1, 1]
    with store.read() as tx:
        assert ids(tx.jobs.active()) == [2]


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
        store.transact(tell)
    assert len(told) == tries
    with store.read() as tx:
        assert tx.jobs.active() == []


@verbs("read", "write", "now", "jobs.take_ids")
def test_a_transaction_has_one_instant_and_is_all_or_nothing(
    store: Store, clock: FakeClock
) -> None:
    with store.write() as tx:
        assert tx.now() == START
        clock.advance(5)
        assert tx.now() == START
        assert tx.jobs.take_ids(3) == 1
    with pytest.raises(RuntimeError), store.write() as tx:
        add(tx)
        raise RuntimeError
    with store.read() as tx:
        assert tx.now() == START + 5 * SECOND
        assert tx.jobs.active() == []
    with store.write() as tx:
        assert tx.jobs.take_ids(1) == 4  # the rolled-back taking took nothing


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
        assert [job.id for job in tx.jobs.active()] == [made.id]


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


@verbs("clock_error", "write")
def test_only_a_server_may_be_later_than_its_present_and_not_by_much(store: Store) -> None:
    with store.write() as tx:
        tx.now()
    assert (store.clock_error() > 0) == store.shared
    assert store.clock_error() < 60_000_000


@verbs("close")
def test_a_closed_store_leaves_its_rows_to_the_next(store: Store, opener: Opener) -> None:
    with store.write() as tx:
        add(tx)
    store.close()
    with opener().read() as tx:
        assert len(tx.jobs.active()) == 1


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


@verbs("jobs.active_with_slug", "jobs.last_with_slug")
def test_jobs_are_found_by_their_slug(store: Store, clock: FakeClock) -> None:
    named = [job(each)._replace(slug="build") for each in (1, 2, 3, 4)]
    with store.write() as tx:
        tx.jobs.add([*named, job(5)])
        tx.jobs.end_waiting(named[3], Status.CANCELLED, "cancelled", None)
    clock.advance(1)
    with store.write() as tx:
        tx.jobs.end_waiting(named[2], Status.CANCELLED, "cancelled", None)
    with store.read() as tx:
        assert ids(tx.jobs.active_with_slug("build", limit=9)) == [1, 2]
        assert ids(tx.jobs.active_with_slug("build", limit=1)) == [1]
        last = tx.jobs.last_with_slug("build")
        assert last is not None and last.id == 3, "the one that ended last"
        assert tx.jobs.active_with_slug("other", limit=9) == []
        assert tx.jobs.last_with_slug("other") is None


@verbs("settings.unset")
def test_a_setting_that_is_unset_is_gone(store: Store) -> None:
    with store.write() as tx:
        tx.settings.set("scheduler.max_active", 3, by="ann")
        tx.settings.unset("scheduler.max_active")
        assert "scheduler.max_active" not in tx.settings.all()


@verbs("jobs.add", "jobs.by_id", "jobs.by_key")
def test_a_job_is_given_back_as_it_was_stored(store: Store) -> None:
    plain = job(2)
    with store.write() as tx:
        tx.jobs.add([FULL, plain])
    with store.read() as tx:
        assert tx.jobs.by_id([1, 2, 99]) == {1: FULL, 2: plain}
        assert tx.jobs.by_id([]) == {}
        assert tx.jobs.by_key("once") == FULL
        assert tx.jobs.by_key("never") is None


@verbs("jobs.next_places", "queue_order.place")
def test_a_new_job_stands_after_all_that_there_are(store: Store) -> None:
    """By its id; and further, once another was put there."""
    with store.write() as tx:
        assert tx.jobs.next_places()[:2] == (1, 100)
        first, second = add(tx), add(tx, priority=5)
        assert tx.jobs.next_places()[:2] == (3, 300)
        tx.queue_order.place([(first.id, 0, 299)])
        assert tx.jobs.next_places()[:2] == (3, 300)
        tx.queue_order.place([(second.id, 5, 300), (first.id, 0, 20)])
        assert tx.jobs.next_places()[:2] == (3, 400)
        third = add(tx)
        assert tx.jobs.next_places()[:2] == (4, 500)
        tx.queue_order.place([(third.id, 0, 1234)])
        tx.queue_order.place([(third.id, 0, 20)])
        assert tx.jobs.next_places()[:2] == (4, 1334)
        tx.claims.finish([finish_of(start(tx, first))])
        assert tx.jobs.next_places()[:2] == (4, 1334)


@verbs("jobs.next_places")
def test_what_new_jobs_get_and_what_they_wait_for_is_asked_in_one_question(store: Store) -> None:
    with store.write() as tx:
        assert tx.jobs.next_places() == (1, 100, None, {})
        assert tx.jobs.take_ids(2) == 1
        made = add(tx, priority=5)
        ends = {made.id: (made.id, Status.QUEUED)}
        assert tx.jobs.next_places([made.id, 99, 7]) == (4, 400, None, ends)
        tx.settings.set("scheduler.ageing", "1h", by="ann")
        assert tx.jobs.next_places([made.id]) == (4, 400, "1h", ends)
        assert (
            tx.settings.marks()["next_job_id"],
            add(tx).id,
            tx.settings.marks()["next_job_id"],
        ) == (4, 4, 5)


@verbs("jobs.next_places", "jobs.add_retries")
def test_what_a_new_job_is_after_stands_as_the_last_of_its_chain(store: Store) -> None:
    with store.write() as tx:
        first, other = add(tx), add(tx)
        tx.claims.finish([finish_of(start(tx, first), status=Status.FAILED)])
        failed = {first.id: (first.id, Status.FAILED), other.id: (other.id, Status.QUEUED)}
        assert tx.jobs.next_places([first.id, other.id]).ends == failed
        again = first._replace(id=tx.jobs.take_ids(1), retry_of=first.id)
        tx.jobs.add_retries([again])
        waits = (first.id, Status.QUEUED)
        assert tx.jobs.next_places([first.id, again.id]).ends == {first.id: waits, again.id: waits}


@verbs("jobs.add_retries", "jobs.chain", "jobs.last_in_chain")
def test_the_last_job_of_a_chain_is_its_newest(store: Store) -> None:
    with store.write() as tx:
        first, other = add(tx), add(tx)
        second = job(tx.jobs.take_ids(1), chain=first.id, retry_of=first.id, attempt=2)
        tx.jobs.add_retries([second])
        assert ids(tx.jobs.chain(first.id)) == [first.id, second.id]
        assert tx.jobs.last_in_chain(first.id) == second
        assert tx.jobs.last_in_chain(other.id) == other
        assert tx.jobs.last_in_chain(99) is None and tx.jobs.chain(99) == []


@verbs("jobs.add_retries", "waits.predecessors")
def test_a_retry_keeps_the_marks_of_its_edges(store: Store) -> None:
    with store.write() as tx:
        met, unmet = add(tx), add(tx)
        tx.claims.finish([finish_of(start(tx, met))])
        tx.waits.chains_succeeded([met.id])
        first = add(tx, after=(met.id, unmet.id))
        again = job(
            tx.jobs.take_ids(1), chain=first.id, retry_of=first.id, after=(met.id, unmet.id)
        )
        tx.jobs.add_retries([again])
        assert tx.waits.predecessors([again]) == {
            again.id: (Predecessor(unmet.id, unmet.id, Status.QUEUED),)
        }


@verbs(
    "jobs.active",
    "jobs.finished",
    "jobs.count_active",
    "jobs.count_finished",
    "jobs.anything_active",
    "jobs.runs",
)
def test_active_and_finished_jobs_are_told_apart(store: Store) -> None:
    with store.write() as tx:
        assert not tx.jobs.anything_active()
        waiting = add(tx, created_at=START + 3)
        done = [add(tx, created_at=START + each) for each in range(3)]
        for place, each in enumerate(done):
            status = Status.FAILED if place else Status.SUCCEEDED
            claim = start(tx, each, place + 1)
            tx.claims.finish([finish_of(claim, status=status, finished_at=START + 10 + place)])
        going = add(tx, created_at=START)
        start(tx, going)
    with store.read() as tx:
        assert tx.jobs.anything_active()
        assert ids(tx.jobs.active()) == [going.id, waiting.id]
        assert tx.jobs.count_active() == {Status.QUEUED: 1, Status.RUNNING: 1}
        newest_first = [each.id for each in reversed(done)]
        assert ids(tx.jobs.finished(0, 10)) == newest_first
        assert ids(tx.jobs.finished(START + 11, 10)) == newest_first[:2]
        assert ids(tx.jobs.finished(0, 1)) == newest_first[:1]
        assert tx.jobs.count_finished(0) == {Status.SUCCEEDED: 1, Status.FAILED: 2}
        assert tx.jobs.count_finished(START + 12) == {Status.FAILED: 1}
        assert set(tx.jobs.runs([waiting.id, going.id, done[0].id])) == {going.id, done[0].id}


@verbs("jobs.env_digests_in_use")
def test_environments_in_use_are_found(store: Store) -> None:
    with store.write() as tx:
        first = add(tx, env_digest="a")
        second = add(tx, after=(first.id,), env_digest="b")
        add(tx, after=(first.id, second.id))
        tx.claims.finish([finish_of(start(tx, first))])
        assert tx.jobs.env_digests_in_use(since=1 << 62) == {"b"}
        assert tx.jobs.env_digests_in_use(since=0) == {"a", "b"}


@verbs("jobs.count_waiting", "jobs.count_active")
def test_what_waits_is_counted_by_stage_and_by_what_it_shows(store: Store) -> None:
    with store.write() as tx:
        assert tx.jobs.count_waiting() == WaitCounts({}, 0) and tx.jobs.count_active() == {}
        for number, status in enumerate(sorted(WAITING)):
            for stage in Stage:
                for _ in range(number + 1):
                    add(tx, status=status, stage=stage)
        start(tx, add(tx))
        expected = {status: 3 * (place + 1) for place, status in enumerate(sorted(WAITING))}
        assert tx.jobs.count_waiting() == WaitCounts(expected, 20)
        assert tx.jobs.count_active() == {**expected, Status.RUNNING: 1}


@verbs("events.last_changes")
def test_the_last_change_of_a_job_is_its_newest_event_that_is_no_wait(store: Store) -> None:
    with store.write() as tx:
        one, two, silent = add(tx), add(tx), add(tx)
        kinds = [("submitted", one), ("submitted", two), ("edited", one)]
        waits = [(each.value, one) for each in sorted(WAITING)]
        told = [Event(kind, each.id) for kind, each in (*kinds, *waits)]
        tx.events.add(told, actor="ann")
        first = tx.events.since(0, 1)[0].seq
        assert tx.events.last_changes([one.id, two.id, silent.id, 99]) == {
            one.id: first + 2,
            two.id: first + 1,
            silent.id: 0,
        }


@verbs("events.add", "events.of_job", "events.since", "events.of_kinds", "events.last")
def test_events_are_kept_in_order(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        assert tx.events.last() == 0
        tx.events.add(
            [Event("submitted", 1, {"name": "é"}), Event("paused", actor="bob")], actor="ann"
        )
    clock.advance(1)
    with store.write() as tx:
        tx.events.add([Event("running", 1)], actor="worker")
    with store.read() as tx:
        assert tx.events.of_job(1) == [
            Event("submitted", 1, {"name": "é"}, "ann", START, 1),
            Event("running", 1, {}, "worker", START + SECOND, 3),
        ]
        assert [each.kind for each in tx.events.since(1, 10)] == ["paused", "running"]
        some = tx.events.of_kinds(["submitted", "running"], after=0, limit=2)
        assert [each.seq for each in some] == [1, 3]
        assert tx.events.of_kinds(["submitted", "running"], after=1, limit=1) == some[1:]
        assert tx.events.since(1, 1)[0].actor == "bob"
        assert tx.events.since(3, 10) == [] and tx.events.last() == 3
