"""A write transaction begins with the verbs of a submit and becomes the whole one when asked."""

import pytest
from stocked import add, job

from headway.core.model import Lock, LockMode
from headway.store.adding import AddingTx
from headway.store.base import Store
from headway.store.seam_adding import Event
from headway.store.writing import SqlWriteTx


def test_a_submit_needs_no_more_than_it_begins_with(store: Store) -> None:
    with store.write_soon() as tx:
        first = tx.next_places()
        tx.add_jobs([job(first.first_id, position=first.position)])
        tx.add_events([Event("submitted", first.first_id, {"name": "n"})], actor="ann")
        assert type(tx) is AddingTx
    with store.read() as read:
        assert [each.id for each in read.active_jobs()] == [first.first_id]
        assert [each.kind for each in read.events_of(first.first_id)] == ["submitted"]


def test_asked_for_anything_else_it_goes_on_as_the_whole(store: Store) -> None:
    with store.write_soon() as tx:
        made = add(tx, locks=(Lock("k", LockMode.EXCLUSIVE),))
        asked = tx.jobs
        assert type(tx) is SqlWriteTx
        assert asked([made.id])[made.id] == made
        assert tx.now() == made.created_at


@pytest.mark.parametrize(
    "fields", [{"after": (1,)}, {"needs": ("custom:a",)}, {"produces": ("custom:a",)}]
)
def test_what_a_job_waits_for_or_makes_is_stored_however_it_began(
    store: Store, fields: dict[str, tuple[object]]
) -> None:
    with store.write_soon() as tx:
        add(tx)
        made = add(tx, **fields)
    with store.read() as read:
        found = read.jobs([made.id])[made.id]
        assert found == made
        if made.after:
            assert read.dependents_of([1]) == [made.id]
        else:
            assert read.declared_artifacts() == ["custom:a"]


def test_a_verb_that_nobody_has_is_refused_by_name(store: Store) -> None:
    with store.write_soon() as tx:
        for _ in range(2):
            with pytest.raises(AttributeError, match="no 'frobnicate'"):
                tx.frobnicate()  # type: ignore[attr-defined]


def test_the_whole_does_nothing_of_a_submit_in_another_way() -> None:
    """Else it would depend on how a transaction began."""
    begins_with = [name for part in AddingTx.__mro__[:-1] for name in vars(part)]
    methods = [name for name in begins_with if callable(getattr(AddingTx, name))]
    own = [name for name in methods if not (name.startswith("__") and name != "__init__")]
    assert {"add_jobs", "next_places", "_many", "__init__"} <= set(own)
    assert [n for n in own if getattr(SqlWriteTx, n) is not getattr(AddingTx, n)] == []
