"""Jobs that are alike are added in one go, and stored as if each had been added by itself."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recording import verbs
from stocked import START, Opener, add, finish_of, job, start

from headway.core.model import POSITION_GAP, Job, RetryPolicy, Stage
from headway.store.new_jobs import (
    Alike,
    Event,
    Model,
)
from headway.store.store import Store
from headway.store.transaction import WriteTx

_TEXT = st.text(max_size=8)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_WORD = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
_PARAMS = st.fixed_dictionaries({"task": _WORD, "args": st.dictionaries(_TEXT, _JSON, max_size=3)})
_MODEL = st.fixed_dictionaries(
    {
        "name": _WORD,
        "type": st.sampled_from(["function", "command"]),
        "slug": st.none() | st.just("a-slug"),
        "labels": st.dictionaries(_WORD, _WORD, max_size=2),
        "retry": st.just(RetryPolicy()) | st.just(RetryPolicy(3, base=5, jitter=0.5, on=("x",))),
        "env_digest": st.none() | st.just("digest"),
        "on_finish": st.just(()) | st.tuples(_WORD),
        "submitted_by": _WORD,
        "stage": st.sampled_from([Stage.READY, Stage.WOKEN]),
        "queue": st.sampled_from(["", "functions"]),
    }
)
# Per call its model, by number, and its parameters.
_CALLS = st.lists(st.tuples(st.integers(0, 2), _PARAMS), min_size=1, max_size=8)


def added_alike(models: list[Model], calls: list[tuple[int, Any]]) -> list[Alike]:
    kinds: dict[int, dict[int, Any]] = {}
    for place, (number, params) in enumerate(calls):
        kinds.setdefault(number, {})[place] = params
    return [Alike(models[number], params) for number, params in kinds.items()]


def added_singly(tx: WriteTx, models: list[Model], calls: list[tuple[int, Any]]) -> int:
    first, position, *_ = tx.jobs.next_places()
    jobs = [
        models[number].job._replace(
            id=first + place,
            chain=first + place,
            position=position + POSITION_GAP * place,
            params=params,
            created_at=tx.now(),
        )
        for place, (number, params) in enumerate(calls)
    ]
    tx.jobs.add(jobs)
    told = (Event("submitted", each.id, {"name": each.name}, each.submitted_by) for each in jobs)
    tx.events.add(told, actor="nobody")
    return first


def contents(store: Any) -> dict[str, Any]:
    """All columns of all rows but those of the earlier ones."""
    return {name: sorted(store.database.table(name)[1]) for name in ("jobs", "events")}


class UndoneError(Exception):
    """So that each way begins with the same store."""


@pytest.mark.bulk
@verbs("bulk.add")
def test_both_ways_store_the_same_rows(store: Store) -> None:
    @settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
    @given(st.lists(_MODEL, min_size=3, max_size=3), st.integers(-5, 5), _CALLS)
    def compare(fields: list[dict[str, Any]], priority: int, calls: list[tuple[int, Any]]) -> None:
        models = [Model(job(1, priority=priority, **each)) for each in fields]
        seen = []
        for alike in (True, False):
            try:
                with store.write() as tx:
                    add(tx, priority=priority, position=70)
                    if alike:
                        first = tx.bulk.add(added_alike(models, calls))
                    else:
                        first = added_singly(tx, models, calls)
                    ids = range(first, first + len(calls))
                    jobs = tx.jobs.by_id(ids)
                    assert len(jobs) == len(calls)
                    assert tx.settings.marks()["next_job_id"] == ids.stop
                    seen.append((contents(store), jobs, [tx.events.of_job(each) for each in ids]))
                    raise UndoneError
            except UndoneError:
                pass
        # Numbers of events go on where a database counts them beside its transactions.
        without_numbers(seen[0]), without_numbers(seen[1])
        assert seen[0] == seen[1]

    compare()


def without_numbers(seen: tuple[dict[str, Any], dict[int, Job], list[list[Event]]]) -> None:
    tables, _, told = seen
    rows = sorted(tables["events"])
    tables["events"] = [row[1:] for row in rows]
    told[:] = [[each._replace(seq=0) for each in events] for events in told]


@pytest.mark.bulk
@verbs("add_alike")
def test_it_is_a_story_of_its_own_too(store: Store) -> None:
    model = Model(job(1, name="n", submitted_by="ann"))
    assert store.add_alike([Alike(model, {0: {"a": 1}, 1: {"a": 2}})]) == 1
    assert store.add_alike([Alike(model, {0: {"a": 3}})]) == 3
    with store.read() as tx:
        found = [tx.jobs.by_id([1, 2, 3])[job_id] for job_id in (1, 2, 3)]
        assert [each.params["a"] for each in found] == [1, 2, 3]
        assert [each.position for each in found] == [100, 200, 300]
        assert [each.created_at for each in found] == [START] * 3
        (told,) = tx.events.of_job(3)
        assert (told.kind, told.actor) == ("submitted", "ann")
        assert tx.events.last_changes([3]) == {3: told.seq}


@pytest.mark.bulk
@verbs("add_alike")
def test_one_that_is_a_story_of_its_own_is_stored_as_any_other(store: Store) -> None:
    @settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
    @given(_MODEL, st.integers(-5, 5), _PARAMS)
    def compare(fields: dict[str, Any], priority: int, params: Any) -> None:
        model = Model(job(1, priority=priority, **fields))
        alone = store.add_alike([Alike(model, {0: params})])
        assert alone is not None
        with store.write() as tx:
            assert added_singly(tx, [model], [(0, params)]) == alone + 1
            first, second = (tx.jobs.by_id([each])[each] for each in (alone, alone + 1))
            told = [tx.events.of_job(each)[0] for each in (alone, alone + 1)]
        assert (first.chain, second.position) == (alone, first.position + POSITION_GAP)
        same = {"id": 0, "chain": 0, "position": 0}
        assert first._replace(**same) == second._replace(**same)
        assert told[0]._replace(seq=0, job_id=0) == told[1]._replace(seq=0, job_id=0)
        jobs, _ = contents(store).values()
        columns, _ = store.database.table("jobs")  # type: ignore[attr-defined]
        apart = {**same, "first_event": None}  # only one that is a story of its own knows it
        rows = [dict(zip(columns, row, strict=True)) | apart for row in jobs[-2:]]
        assert rows[0] == rows[1]

    compare()


@pytest.mark.bulk
@verbs("add_alike")
def test_one_that_is_a_story_of_its_own_heeds_what_anyone_wrote_since(
    store: Store, opener: Opener
) -> None:
    other = opener()
    model = Model(job(1))

    def place(by: Store) -> tuple[int, int]:
        added = by.add_alike([Alike(model, {0: {}})])
        assert added is not None
        with store.read() as tx:
            assert [each.kind for each in tx.events.of_job(added)] == ["submitted"]
            return added, tx.jobs.by_id([added])[added].position

    assert [place(each) for each in (store, store, other, store)] == [
        *((1, 100), (2, 200), (3, 300), (4, 400))
    ]
    with other.write() as tx:
        tx.queue_order.place([(1, 0, 1000)])
        tx.events.add([Event("noticed", 1)], actor="ann")
    assert place(store) == (5, 1100)
    with store.write() as tx:
        add(tx)
    assert place(store) == (7, 1300)
    with suppress(ZeroDivisionError), store.write() as tx:
        add(tx)
        raise ZeroDivisionError
    assert place(store) == (8, 1400)
    with other.write() as tx:
        tx.settings.set("scheduler.ageing", "1h", by="ann")
    assert store.add_alike([Alike(model, {0: {}})]) is None


@verbs("bulk.add")
def test_with_an_ageing_nothing_is_added(store: Store) -> None:
    with store.write() as tx:
        tx.settings.set("scheduler.ageing", "1h", by="ann")
        assert tx.bulk.add([Alike(Model(job(1)), {0: {}})]) is None
        assert tx.jobs.active() == [] and tx.jobs.take_ids(1) == 1
    assert store.add_alike([Alike(Model(job(1)), {0: {}})]) is None
    with store.read() as tx:
        assert tx.jobs.active() == [] and tx.events.last() == 0


@pytest.mark.bulk
@verbs("bulk.add", "jobs.take_ids", "jobs.next_places", "retention.remove_jobs", "settings.marks")
def test_no_id_is_given_twice_whichever_way_it_is_taken(store: Store) -> None:
    one = [Alike(Model(job(1)), {0: {"argv": ["true"]}})]

    def next_id(tx: WriteTx) -> int:
        return tx.settings.marks()["next_job_id"]

    with store.write() as tx:
        assert (next_id(tx), tx.bulk.add(one), next_id(tx)) == (1, 1, 2)
        assert (tx.jobs.take_ids(2), next_id(tx)) == (2, 4)
        assert (tx.bulk.add(one), tx.jobs.next_places().first_id, next_id(tx)) == (4, 5, 5)
        tx.jobs.add([job(5)])
        assert (next_id(tx), tx.bulk.add(one), next_id(tx)) == (6, 6, 7)
    with store.write() as tx:
        tx.claims.finish([finish_of(start(tx, tx.jobs.by_id([6])[6]))])
        tx.retention.remove_jobs([6])
        assert next_id(tx) == 7
    with store.write() as tx:
        assert (next_id(tx), tx.bulk.add(one), tx.jobs.take_ids(1)) == (7, 7, 8)
    assert store.add_alike(one) == 9
    with store.write() as tx:
        assert (next_id(tx), tx.jobs.take_ids(1)) == (10, 10)
    assert store.add_alike(one) == 11
