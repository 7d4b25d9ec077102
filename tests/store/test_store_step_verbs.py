"""Steps of functions in the store."""

from called import add_call
from recording import verbs

from headway.store.records import RecordedStep
from headway.store.store import Store


@verbs("steps.keep", "steps.of")
def test_a_chain_has_what_it_recorded_in_each_pass(store: Store) -> None:
    with store.write() as tx:
        first, other = add_call(tx), add_call(tx)
        again = add_call(tx, attempt=2, retry_of=first.id, chain=first.id)
        tx.steps.keep([RecordedStep(first.id, 0, "a", {"b": [1, None]})])
        tx.steps.keep([RecordedStep(again.id, 0, "z", 2), RecordedStep(again.id, 1, "a", 3)])
        tx.steps.keep([RecordedStep(other.id, 0, "a", "x")])
        tx.steps.keep([RecordedStep(99, 0, "a", "of no job")])
    with store.read() as tx:
        assert tx.steps.of(first.id, 0) == {"a": '{"b":[1,null]}', "z": "2"}
        assert tx.steps.of(first.id, 1) == {"a": "3"}
        assert tx.steps.of(other.id, 0) == {"a": '"x"'}
        assert tx.steps.of(99, 0) == {}


@verbs("steps.keep")
def test_what_was_recorded_first_counts(store: Store) -> None:
    with store.write() as tx:
        call = add_call(tx)
        tx.steps.keep([RecordedStep(call.id, 0, "a", 1), RecordedStep(call.id, 0, "a", 2)])
        tx.steps.keep([RecordedStep(call.id, 0, "a", 3)])
        assert tx.steps.of(call.id, 0) == {"a": "1"}


@verbs("steps.forget")
def test_a_chain_that_begins_anew_has_none(store: Store) -> None:
    with store.write() as tx:
        calls = [add_call(tx) for _ in range(3)]
        tx.steps.keep([RecordedStep(call.id, at, "a", 1) for call in calls for at in (0, 1)])
        tx.steps.forget([calls[0].id, calls[1].id])
        assert [len(tx.steps.of(call.id, at)) for call in calls for at in (0, 1)] == [
            *(0, 0, 0, 0),
            *(1, 1),
        ]
