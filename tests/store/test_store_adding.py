"""A transaction loads a noun when it is first asked for; a submit loads few of them."""

import pytest
from recording import nouns
from stocked import add, job

from headway.core.model import Lock, LockMode
from headway.store.new_jobs import Event
from headway.store.store import Store
from headway.store.transaction import ReadTx, WriteTx


def test_a_submit_asks_for_two_nouns(store: Store) -> None:
    with store.write_soon() as tx:
        first = tx.jobs.next_places()
        tx.jobs.add([job(first.first_id, position=first.position)])
        tx.events.add([Event("submitted", first.first_id, {"name": "n"})], actor="ann")
        assert set(vars(tx)) == {"_db", "jobs", "events"}
    with store.read() as read:
        assert [each.id for each in read.jobs.active()] == [first.first_id]
        assert [each.kind for each in read.events.of_job(first.first_id)] == ["submitted"]


def test_all_nouns_of_a_transaction_see_the_same(store: Store) -> None:
    with store.write_soon() as tx:
        made = add(tx, locks=(Lock("k", LockMode.EXCLUSIVE),))
        assert tx.jobs.by_id([made.id])[made.id] == made
        assert tx.now() == made.created_at
        assert [each.id for each in tx.waits.woken(10)] == [made.id]
        assert vars(tx)["jobs"]._db is vars(tx)["waits"]._db


def test_nothing_refers_back_to_a_transaction(store: Store) -> None:
    """A worker hardly ever looks for what is in circles."""
    import gc
    import weakref

    gc.disable()
    try:
        with store.write() as tx:
            add(tx)
            tx.claims.slots()
            tx.waits.woken(10)
        gone = weakref.ref(tx)
        del tx
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "fields", [{"after": (1,)}, {"needs": ("custom:a",)}, {"produces": ("custom:a",)}]
)
def test_what_a_job_waits_for_or_makes_is_stored(
    store: Store, fields: dict[str, tuple[object]]
) -> None:
    with store.write_soon() as tx:
        add(tx)
        made = add(tx, **fields)
    with store.read() as read:
        found = read.jobs.by_id([made.id])[made.id]
        assert found == made
        if made.after:
            assert read.graph.dependents_of([1]) == [made.id]
        else:
            assert read.graph.declared_artifacts() == ["custom:a"]


def test_a_noun_that_nobody_has_is_refused_by_name(store: Store) -> None:
    with store.write_soon() as tx, pytest.raises(AttributeError, match="no attribute 'frob'"):
        tx.frob.nicate()  # type: ignore[attr-defined]


@pytest.mark.parametrize("noun", nouns())
def test_no_noun_is_a_store_of_its_own(noun: str, store: Store) -> None:
    with store.write() as tx:
        kind = type(getattr(tx, noun))
    public = [name for part in kind.__mro__[:-1] for name in vars(part) if name[0] != "_"]
    assert len(set(public)) <= 40
    assert len([part for part in kind.__mro__ if part.__module__.startswith("headway")]) <= 4


def test_what_is_read_in_both_kinds_of_transactions_is_read_alike() -> None:
    assert issubclass(WriteTx, ReadTx)
    assert set(nouns()) >= {"jobs", "claims", "waits", "schedules"}
