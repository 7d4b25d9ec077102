"""What every store does with the verbs that change waiting jobs and remove ended ones."""

from typing import Any

import pytest
from recording import verbs
from stocked import START, add, finish_of, job, parking, start

from headway.base.errors import InvalidOperationError
from headway.core.groups import Group, GroupMode
from headway.core.model import Job, Lock, Stage
from headway.core.retention import EndPlace, InTheWay, Obstacle
from headway.core.states import Status
from headway.store.copy import TABLES
from headway.store.new_jobs import Alike, Event, Model
from headway.store.records import (
    Lending,
    Marker,
    Progress,
    RecordedStep,
)
from headway.store.store import Store
from headway.testing.clock import FakeClock


@verbs("graph.published_by")
def test_what_jobs_published_is_found_without_its_payload(store: Store) -> None:
    with store.write() as tx:
        one, two = add(tx), add(tx)
        tx.graph.publish(
            [Marker("custom:b:1", one.id, START, {"a": 1}), Marker("custom:a:1", one.id, 1)]
        )
        assert tx.graph.published_by([one.id, two.id]) == [
            ("custom:a:1", one.id),
            ("custom:b:1", one.id),
        ]


@verbs("jobs.change")
def test_a_waiting_job_can_be_changed_and_a_running_one_not(store: Store) -> None:
    with store.write() as tx:
        waiting = add(tx, locks=(Lock("k"),))
        tx.waits.park([parking(waiting, "lock:k", reserves=True)])
        changed = waiting._replace(
            name="other",
            slug="short",
            labels={"a": "b"},
            priority=7,
            position=300,
            params={"argv": ["false"]},
        )
        assert tx.jobs.change(changed)
        stored = tx.jobs.by_id([waiting.id])[waiting.id]
        kept = {"stage": Stage.PARKED, "wait": stored.wait, "status": stored.status}
        assert stored == changed._replace(waited_on=("locks",), **kept)
        assert tx.claims.lock_views(["k"])["k"].reservers
        start(tx, stored)
        assert not tx.jobs.change(changed._replace(name="third"))
        assert tx.jobs.by_id([waiting.id])[waiting.id].name == "other"


def ended(tx: Any, at: int, **fields: Any) -> Job:
    made = add(tx, **fields)
    tx.claims.finish([finish_of(start(tx, made), finished_at=START + at)])
    return made


@verbs("retention.finished_page", "retention.nth_newest_finished", "retention.members_of")
def test_ended_jobs_are_paged_in_the_order_of_their_ends(store: Store) -> None:
    with store.write() as tx:
        late, early, same = ended(tx, 30), ended(tx, 10), ended(tx, 10)
        add(tx)
        again = job(tx.jobs.take_ids(1), chain=early.id, retry_of=early.id)
        tx.jobs.add_retries([again])
        page = tx.retention.finished_page(EndPlace(-1, 0), START + 100, 10)
        assert [(each.place, each.chain, each.last) for each in page] == [
            (EndPlace(START + 10, early.id), early.id, False),
            (EndPlace(START + 10, same.id), same.id, True),
            (EndPlace(START + 30, late.id), late.id, True),
        ]
        assert tx.retention.finished_page(EndPlace(-1, 0), START + 100, 2) == page[:2]
        assert tx.retention.finished_page(page[0].place, START + 100, 10) == page[1:]
        assert tx.retention.finished_page(page[1].place, START + 30, 10) == []
        assert tx.retention.nth_newest_finished(1) == page[2].place
        assert tx.retention.nth_newest_finished(3) == page[0].place
        assert tx.retention.nth_newest_finished(4) is None
        assert tx.retention.members_of([early.id, late.id]) == {
            late.id: late.id,
            early.id: early.id,
            again.id: early.id,
        }


@verbs("retention.in_the_way", "retention.active_in_need")
def test_what_still_refers_to_a_chain_is_in_its_way(store: Store) -> None:
    with store.write() as tx:
        named, awaited, alive, locked = [ended(tx, 1) for _ in range(4)]
        free = ended(tx, 1)
        after = add(tx, after=(named.id, free.id))
        tx.jobs.end_waiting(add(tx, after=(free.id,)), Status.CANCELLED, "no more", None)
        waiter = add(tx)
        tx.claims.lend("t", Lending(waiter.id, awaited.id, START))
        unproven = ended_without_proof(tx)
        assert alive.id not in tx.retention.in_the_way([alive.id])
        store.database.execute(  # type: ignore[attr-defined]
            f"insert into held_locks (key, job_id, mode) values ('k', {locked.id}, 'shared')", {}
        )
        found = tx.retention.in_the_way([named.id, awaited.id, alive.id, locked.id, unproven.id])
        assert found == {
            named.id: Obstacle(InTheWay.AFTER, after.id),
            awaited.id: Obstacle(InTheWay.AWAITED, waiter.id),
            locked.id: Obstacle(InTheWay.LOCKS, locked.id),
            unproven.id: Obstacle(InTheWay.PROCESSES, unproven.id),
        }
        tx.jobs.end_waiting(after, Status.CANCELLED, "no more", None)
        assert tx.retention.in_the_way([named.id, free.id]) == {}
        reader = add(tx, needs=("custom:a:1",))
        add(tx, needs=("custom:a:1",))
        tx.jobs.end_waiting(add(tx, needs=("custom:b:1",)), Status.CANCELLED, "no more", None)
        assert tx.retention.active_in_need(["custom:a:1", "custom:b:1"]) == {
            "custom:a:1": reader.id
        }


def ended_without_proof(tx: Any) -> Job:
    made = add(tx)
    tx.claims.finish([finish_of(start(tx, made, slot=9), tree_gone=False)])
    return made


@verbs(
    "retention.remove_jobs",
    "retention.note_files",
    "retention.note_files_elsewhere",
    "retention.files_to_remove",
    "retention.files_removed",
)
def test_a_removed_job_leaves_nothing_but_the_note_of_its_files(store: Store) -> None:
    with store.write() as tx:
        gone = add(tx, produces=("custom:a:1",), needs=("custom:b:1",))
        tx.events.add([Event("submitted", gone.id)], actor="ann")
        tx.claims.finish([finish_of(start(tx, gone, host_id="there"), document={"logs": {}})])
        tx.graph.publish([Marker("custom:a:1", gone.id, START)])
        tx.graph.withdraw([gone.id])
        tx.jobs.keep_results([(gone.id, 1)])
        tx.jobs.keep_progress([Progress(gone.id, 0.5, "half")])
        tx.steps.keep([RecordedStep(gone.id, 0, "fetched", 1)])
        stays = ended(tx, 1)
        tx.retention.note_files([gone.id], "here")
        tx.retention.note_files_elsewhere([gone.id])
        tx.retention.remove_jobs([gone.id])
        assert rows_about(store, gone.id) == {"removals": 2}
        assert rows_about(store, stays.id)["jobs"] == 1
        for host in ("here", "there"):
            assert tx.retention.files_to_remove(host, 0, 10) == [gone.id]
            assert tx.retention.files_to_remove(host, gone.id, 10) == []
        tx.retention.files_removed([gone.id], "here")
        assert tx.retention.files_to_remove("here", 0, 10) == []
        assert tx.retention.files_to_remove("there", 0, 10) == [gone.id]
        assert tx.jobs.take_ids(1) == stays.id + 1, "an id is never given out again"


@pytest.mark.bulk
def test_a_removed_job_takes_along_the_event_that_only_it_knows(store: Store) -> None:
    model = Model(job(1, submitted_by="ann"))
    gone, stays = (store.add_alike([Alike(model, {0: {}})]) for _ in range(2))
    assert gone is not None and stays is not None
    with store.write() as tx:
        tx.events.add([Event("noticed", gone), Event("noticed", stays)], actor="bob")
        for each in (gone, stays):
            assert [event.kind for event in tx.events.of_job(each)] == ["submitted", "noticed"]
        tx.jobs.end_waiting(tx.jobs.by_id([gone])[gone], Status.CANCELLED, "no more", None)
        tx.retention.remove_jobs([gone])
        assert rows_about(store, gone) == {}
        assert [event.kind for event in tx.events.of_job(stays)] == ["submitted", "noticed"]


def test_a_job_that_has_not_ended_cannot_be_removed(store: Store) -> None:
    with store.write() as tx:
        done, active = ended(tx, 1), add(tx)
    with pytest.raises(InvalidOperationError, match="has not ended"), store.write() as tx:
        tx.retention.remove_jobs([done.id, active.id])
    with store.read() as tx:
        assert set(tx.jobs.by_id([done.id, active.id])) == {done.id, active.id}


def rows_about(store: Any, job_id: int) -> dict[str, int]:
    """In how many rows of each table a job is named, by whatever column; a new table counts."""
    found = {}
    for table in TABLES:
        columns = [name for name in store.database.table(table)[0] if name in ("job_id", "chain")]
        columns += ["id"] if table == "jobs" else []
        if columns:
            named = " or ".join(f"{name} = {job_id}" for name in columns)
            rows = store.database.execute(f"select count(*) from {table} where {named}", {})
            found |= {table: rows[0][0]} if rows[0][0] else {}
    return found


@verbs("retention.forget_events")
def test_old_events_about_no_job_are_forgotten_a_few_at_a_time(
    store: Store, clock: FakeClock
) -> None:
    def told() -> list[str]:
        with store.read() as tx:
            return [each.kind for each in tx.events.since(0, 100)]

    with store.write() as tx:
        one = add(tx)
        tx.events.add([Event("a"), Event("b"), Event("of", one.id), Event("c")], actor="ann")
        old = tx.now() + 1
        assert tx.retention.forget_events(old, 10) == 0, "those of the last day are the newest"
    clock.advance(86_400)
    with store.write() as tx:
        assert tx.retention.forget_events(old, 10) == 0, "nothing newer was told"
        tx.events.add([Event("d")], actor="ann")
        assert tx.retention.forget_events(old - 1, 10) == 0
        assert tx.retention.forget_events(old, 2) == 2
    assert told() == ["of", "c", "d"]
    with store.write() as tx:
        assert tx.retention.forget_events(1 << 60, 10) == 1
    assert told() == ["of", "d"]


@verbs("retention.forget_groups")
def test_ended_groups_without_members_are_forgotten(store: Store, clock: FakeClock) -> None:
    with store.write() as tx:
        ids = [tx.groups.take_id() for _ in range(4)]
        for each in ids:
            tx.groups.add(
                Group(each, GroupMode.PARALLEL, "stop", tx.now(), "ann", closed_at=tx.now())
            )
        add(tx, group_id=ids[1], sequence_number=1)
        for each in ids[:3]:
            tx.groups.set_ended(each)
        at = tx.now()
        assert tx.retention.forget_groups(at, 10) == 0
        assert tx.retention.forget_groups(at + 1, 1) == 1
        assert sorted(tx.groups.by_id(ids)) == ids[1:]
        assert tx.retention.forget_groups(at + 1, 10) == 1
        assert sorted(tx.groups.by_id(ids)) == [ids[1], ids[3]], (
            "one has a member, one has not ended"
        )
