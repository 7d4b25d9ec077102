"""Calls one after another: the end of one and the claim of the next, prepared while it runs."""

from typing import Any

import pytest
from called import CLAIMANT, add_call, end_of, plain
from recording import verbs
from stocked import START, Opener, add, only_a_file

from headway.core.states import Status
from headway.errors import StoreReplacedError
from headway.store import open_store
from headway.store.base import Store
from headway.store.seam_calls import Relay, TakenCall
from headway.store.transfer import TABLES
from headway.testing import FakeClock

MINE = CLAIMANT._replace(lease_until=None)


def prepared(store: Store, **of_next: Any) -> tuple[TakenCall, TakenCall]:
    """One call that was claimed, and what the next one is to be when it was."""
    with store.write() as tx:
        first = add_call(tx, attempt=3)
        second = add_call(tx, **of_next)
        last = TakenCall(plain(first), "token-a", 4, START)
        tx.claim_calls(MINE, [last])
        tx.others_wrote()  # from now on
    return last, TakenCall(plain(second), "token-b", 4, START)


def relay_of(store: Store) -> Relay:
    relay = store.relay(MINE)
    assert relay is not None
    return relay


def rows(store: Any) -> dict[str, list[Any]]:
    with store.read():
        found = {name: store.database.table(name) for name in TABLES}
    own = ("event_epoch",)  # each store has another one
    return {
        name: sorted((row for row in listed if row[0] not in own), key=repr)
        for name, (_, listed) in found.items()
    }


@verbs("relay")
def test_a_store_that_is_a_round_trip_away_has_no_shorter_way(store: Store) -> None:
    assert (store.relay(MINE) is None) == store.shared


@only_a_file
@pytest.mark.parametrize(
    "result",
    [None, 0, "é\u2028\0", {"a": [1, None]}, "x" * 70_000],
    ids=["nothing", "zero", "letters", "nested", "large"],
)
def test_passed_on_they_are_as_if_one_was_settled_and_the_other_claimed(
    store: Store, tmp_path: Any, result: Any
) -> None:
    last, taken = prepared(store)
    relay = relay_of(store)
    assert relay.prepare(last, taken.call, taken.token)
    assert relay.pass_on(end_of(last).finished_at, result) == START
    relay.drop()
    other = open_store(f"sqlite://{tmp_path}/other.db", FakeClock(START), create=True)
    try:
        prepared(other)
        with other.write() as tx:
            assert not tx.finish_calls([end_of(last, result)], actor="worker", awaited=False)
            tx.claim_calls(MINE, [taken])
        assert rows(store) == rows(other)
    finally:
        other.close()
    with store.read() as tx:
        (claim,) = tx.live_claims()
        assert (claim.job_id, claim.token, claim.slot) == (taken.call.job_id, taken.token, 4)
        assert tx.results([last.call.job_id]).get(last.call.job_id) == result


@only_a_file
def test_one_passes_on_to_the_next_and_so_on(store: Store) -> None:
    last, taken = prepared(store)
    with store.write() as tx:
        third = add_call(tx)
        tx.others_wrote()
    relay = relay_of(store)
    for _, token, call in ((1, "token-b", taken.call), (2, "token-c", plain(third))):
        assert relay.prepare(last, call, token)
        assert relay.pass_on(START + 5, None) == START
        last = TakenCall(call, token, 4, START)
    relay.drop()
    with store.read() as tx:
        ended = tx.jobs([1, 2, 3])
        assert [job.status for job in ended.values()] == [
            *(Status.SUCCEEDED, Status.SUCCEEDED),
            Status.RUNNING,
        ]


@only_a_file
@pytest.mark.parametrize("writes", ["before", "meanwhile", "just now"])
def test_nothing_is_passed_on_once_others_have_written(
    store: Store, opener: Opener, writes: str
) -> None:
    last, taken = prepared(store)
    other, relay = opener(), relay_of(store)
    if writes == "before":
        with other.write() as tx:
            add(tx)
    assert relay.prepare(last, taken.call, taken.token) == (writes != "before")
    if writes == "meanwhile":
        with other.write() as tx:  # which what was prepared does not keep from it
            add(tx)
    if writes == "just now":
        with other.write() as tx:
            add(tx)
            assert relay.pass_on(START + 5, None) is None
            relay.drop()
    elif writes == "meanwhile":
        assert relay.pass_on(START + 5, None) is None
    relay.drop()
    assert_as_before(store, last, taken)


def assert_as_before(store: Store, last: TakenCall, taken: TakenCall) -> None:
    """And it can be written to."""
    with store.write() as tx:
        jobs = tx.jobs([last.call.job_id, taken.call.job_id])
        assert [job.status for job in jobs.values()] == [Status.RUNNING, Status.QUEUED]
        assert [each.token for each in tx.live_claims()] == [last.token]
        assert set(tx.runs(list(jobs))) == {last.call.job_id}
        add(tx)


DAMAGE = {
    "its claim is another's": "update claims set token = 'other'",
    "its claim is gone": "delete from claims",
    "it has ended": "update jobs set status = 'failed', finished_at = 7 where id = 1",
    "its run has ended": "update runs set status = 'FAILED' where job_id = 1",
    "the next one does not wait": "update jobs set status = 'running', stage = null where id = 2",
    "the next one is gone": "delete from events where job_id = 2; delete from jobs where id = 2",
    "it has a result": "insert into results (job_id, value) values (1, '0')",
}


@only_a_file
@pytest.mark.parametrize("how", DAMAGE)
def test_nothing_is_passed_on_if_anything_is_not_as_it_was_thought_to_be(
    store: Any, how: str
) -> None:
    last, taken = prepared(store)
    with store.write() as tx:
        store.database.execute(DAMAGE[how], {})
        tx.others_wrote()
    before, relay = rows(store), relay_of(store)
    assert relay.prepare(last, taken.call, taken.token)
    assert relay.pass_on(START + 5, "a result") is None
    relay.drop()
    assert rows(store) == before


@only_a_file
def test_what_was_prepared_and_dropped_leaves_nothing(store: Store, opener: Opener) -> None:
    last, taken = prepared(store)
    relay = relay_of(store)
    assert relay.prepare(last, taken.call, taken.token)
    relay.drop()
    relay.drop()
    with opener().write() as tx:
        add(tx)
    assert_as_before(store, last, taken)


@only_a_file
def test_nothing_is_written_to_a_file_that_was_replaced(store: Store, tmp_path: Any) -> None:
    last, taken = prepared(store)
    relay = relay_of(store)
    assert relay.prepare(last, taken.call, taken.token)
    path = tmp_path / "headway.db"
    path.rename(tmp_path / "old.db")
    path.write_bytes(b"another")
    with pytest.raises(StoreReplacedError, match="deleted or replaced"):
        relay.pass_on(START + 5, None)
    relay.drop()
    path.unlink()
    (tmp_path / "old.db").rename(path)
    assert_as_before(store, last, taken)
