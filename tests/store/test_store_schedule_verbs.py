"""What every store does with schedules and the records of their slots."""

from pathlib import Path
from typing import Any

import pytest
from recording import verbs
from stocked import SECOND, START, add, finish_of, start

from headway.core.fire import Active, Firing, Schedule, SlotOutcome
from headway.core.states import Status
from headway.store import open_store
from headway.store.records import Missed, NewNode, RunRecord
from headway.store.store import Store
from headway.store.transaction import WriteTx
from headway.testing.clock import FakeClock

MINUTE = 60 * SECOND
DOCUMENT = {"rule": {"every": MINUTE, "anchor": START}, "job": {"argv": ["true"]}, "jitter": 0}


def schedule(schedule_id: int, **changed: Any) -> Schedule:
    fields: dict[str, Any] = {
        "id": schedule_id,
        "name": f"s-{schedule_id}",
        "document": DOCUMENT,
        "enabled": True,
        "version": 1,
        "host_id": "host",
        "created_at": START,
        "created_by": "ann",
        "changed_at": START,
        "next_slot": START + MINUTE,
        "next_fire_at": START + MINUTE,
        "looked_at": START,
        "zones": "2026a",
        **changed,
    }
    return Schedule(**fields)


def fired(schedule_id: int, minute: int, job_id: int = 1) -> Firing:
    slot = START + minute * MINUTE
    return Firing(schedule_id, slot, slot, 1, SlotOutcome.FIRED, None, job_id, slot)


def skipped(schedule_id: int, first: int, last: int, reason: str = "missed") -> Firing:
    slots = (START + first * MINUTE, START + last * MINUTE)
    count = last - first + 1
    return Firing(schedule_id, *slots, count, SlotOutcome.SKIPPED, reason, None, slots[1])


def put(tx: WriteTx, *made: Schedule) -> None:
    for each in made:
        tx.schedules.put(each)
    tx.schedules.note_next_fire()


@verbs("schedules.take_id", "schedules.put", "schedules.by_id", "schedules.named", "schedules.all")
def test_a_schedule_is_kept_and_changed_without_losing_what_it_has_fired(store: Store) -> None:
    with store.write() as tx:
        assert [tx.schedules.take_id(), tx.schedules.take_id()] == [1, 2]
        first = schedule(1, last_slot=START, last_job=7)
        put(tx, schedule(2), first)
        assert tx.schedules.by_id([1, 9]) == {1: first}
        assert tx.schedules.named("s-2") == schedule(2) and tx.schedules.named("s-9") is None
        changed = schedule(1, document={"rule": 1}, enabled=False, version=2, next_fire_at=None)
        put(tx, changed)
    with store.read() as tx:
        kept = changed._replace(last_slot=START, last_job=7)
        assert tx.schedules.all() == [kept, schedule(2)]


def test_two_schedules_never_have_one_name(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)unique"), store.write() as tx:
        put(tx, schedule(1), schedule(2, name="s-1"))


@verbs("schedules.due", "schedules.note_next_fire", "schedules.remove")
def test_the_first_that_is_due_is_known_to_every_step(store: Store) -> None:
    times = {1: 3, 2: 1, 3: 2}
    with store.write() as tx:
        tx.schedules.note_next_fire()
        assert tx.settings.marks()["next_fire_at"] == 0
        made = [schedule(i, next_fire_at=START + at * MINUTE) for i, at in times.items()]
        put(tx, *made, schedule(4, enabled=False, next_fire_at=None))
        assert tx.settings.marks()["next_fire_at"] == START + MINUTE
        now = START + 2 * MINUTE
        assert [each.id for each in tx.schedules.due(now, 9)] == [2, 3]
        assert [each.id for each in tx.schedules.due(now, 1)] == [2]
        tx.schedules.add_firings([fired(2, 1), fired(3, 1)])
        assert tx.schedules.remove(2) and not tx.schedules.remove(2)
        assert tx.schedules.firings(2, 9) == [] and tx.schedules.firings(3, 9) == [fired(3, 1)]
        tx.schedules.note_next_fire()
    with store.read() as tx:
        assert tx.settings.marks()["next_fire_at"] == now


@verbs("schedules.move")
def test_one_that_was_changed_meanwhile_is_not_moved(store: Store) -> None:  # fault E7
    with store.write() as tx:
        put(tx, schedule(1), schedule(2))
        read = tx.schedules.by_id([1, 2])
        put(tx, schedule(1, version=2, next_slot=None, next_fire_at=None, enabled=False))
        moved = {"next_slot": START + 9, "next_fire_at": START + 9, "looked_at": START + 8}
        moved |= {"last_slot": START + 1, "last_job": 5, "zones": "2027a", "changed_at": START + 1}
        tx.schedules.move(each._replace(**moved) for each in read.values())
        one, two = tx.schedules.all()
    assert (one.next_slot, one.last_slot, one.enabled) == (None, None, False)
    assert two == schedule(2, **moved)


@verbs("schedules.to_review")
def test_those_of_other_zones_and_of_times_to_come_are_found(store: Store) -> None:
    with store.write() as tx:
        put(
            tx,
            schedule(1),
            schedule(2, zones="2025b"),
            schedule(3, looked_at=START + 1),
            schedule(4, zones="2025b", enabled=False),
        )
        ask = tx.schedules.to_review
        assert [each.id for each in ask("2026a", START, after=0, limit=9)] == [2, 3]
        assert [each.id for each in ask("2026a", START, after=0, limit=1)] == [2]
        assert [each.id for each in ask("2026a", START, after=2, limit=9)] == [3]


@verbs("schedules.active_jobs")
def test_the_jobs_of_a_schedule_that_have_not_ended(store: Store) -> None:
    with store.write() as tx:
        first = add(tx, schedule_id="schedule-1")
        second = add(tx, schedule_id="schedule-1")
        add(tx, schedule_id="schedule-2")
        add(tx)
        start(tx, first)
        names = ["schedule-1", "jobs.yaml:none"]
        assert tx.schedules.active_jobs(names) == {
            "schedule-1": [Active(first.id, True), Active(second.id, False)]
        }
        tx.jobs.end_waiting(second, Status.CANCELLED, "", None)
        assert tx.schedules.active_jobs(names)["schedule-1"] == [Active(first.id, True)]


@verbs("schedules.active_jobs")
def test_a_run_of_a_schedule_is_one_also_while_its_loop_goes_back(store: Store) -> None:
    with store.write() as tx:
        first, second, third = (add(tx, schedule_id="schedule-1") for _ in range(3))
        nodes = [NewNode(name, name, job.id) for name, job in (("a", first), ("b", second))]
        run = RunRecord(tx.workflows.take_id(), "flow", "1", "f", {}, START, "ann")
        tx.workflows.add(run, key=None, manifest={}, nodes=nodes)
        claim = start(tx, second)
        alone = Active(third.id, False)
        ask = tx.schedules.active_jobs
        assert ask(["schedule-1"]) == {"schedule-1": [Active(second.id, True, run.id), alone]}
        tx.claims.finish([finish_of(claim)])
        tx.jobs.end_waiting(first, Status.CANCELLED, "", None)
        assert ask(["schedule-1"]) == {"schedule-1": [alone]}
        tx.workflows.set_unsettled(run.id, True)
        assert ask(["schedule-1"]) == {"schedule-1": [Active(first.id, False, run.id), alone]}


@verbs(
    "schedules.add_firings",
    "schedules.grow_firings",
    "schedules.firings",
    "schedules.last_firings",
    "schedules.fired_ahead",
    "schedules.missed",
)
def test_what_became_of_slots_is_kept_in_rows_that_grow(store: Store) -> None:
    with store.write() as tx:
        put(tx, schedule(1, next_slot=START + 9 * MINUTE), schedule(2))
        rows = [fired(1, 1), skipped(1, 2, 4, "asleep"), fired(1, 5), skipped(1, 6, 8)]
        tx.schedules.add_firings([*rows, fired(2, 3)])
        assert tx.schedules.firings(1, 9) == rows[::-1] and tx.schedules.firings(1, 1) == rows[-1:]
        assert tx.schedules.last_firings([1, 2]) == {1: rows[-1]}
        assert tx.schedules.fired_ahead([1, 2]) == {2: START + 3 * MINUTE}
        assert tx.schedules.missed([1, 2]) == {1: Missed(6, START + 8 * MINUTE, "missed")}
        grown = skipped(1, 6, 20)
        tx.schedules.grow_firings([grown, fired(1, 5)._replace(slots=2)])
        assert tx.schedules.firings(1, 2) == [grown, fired(1, 5)], "what fired never grows"


def test_no_slot_is_recorded_twice(store: Store) -> None:
    with pytest.raises(Exception, match=r"(?i)unique"), store.write() as tx:
        tx.schedules.add_firings([fired(1, 1), fired(1, 1, job_id=2)])


@verbs("schedules.take_back_skipped")
def test_what_was_only_skipped_can_be_taken_back(store: Store) -> None:
    rows = [skipped(1, 1, 2), fired(1, 3), skipped(1, 4, 9), fired(1, 10), skipped(1, 11, 12)]
    with store.write() as tx:
        tx.schedules.add_firings([*rows, skipped(2, 11, 12)])
        taken = tx.schedules.take_back_skipped(1, START + 5 * MINUTE)
        assert taken == [rows[2], rows[4]]
        assert (
            tx.schedules.firings(1, 9) == [rows[3], rows[1], rows[0]]
            and len(tx.schedules.firings(2, 9)) == 1
        )
        assert tx.schedules.take_back_skipped(1, START + 5 * MINUTE) == []


@verbs("schedules.forget_firings")
def test_old_records_are_forgotten_and_it_is_known_up_to_where(store: Store) -> None:
    with store.write() as tx:
        put(tx, *(schedule(i, next_slot=START + 9 * MINUTE) for i in (1, 2, 3)))
        tx.schedules.add_firings(fired(1, minute) for minute in range(1, 12))
        tx.schedules.add_firings([skipped(2, 1, 3), fired(2, 4)])
        assert tx.schedules.forget_firings(0, 4, after=0, limit=2) == 2
        assert [each.slot for each in tx.schedules.firings(1, 99)][-1] == START + 8 * MINUTE
        assert tx.schedules.by_id([1])[1].forgotten == START + 7 * MINUTE
        assert (
            len(tx.schedules.firings(2, 99)) == 2 and tx.schedules.by_id([2])[2].forgotten is None
        )
        assert tx.schedules.forget_firings(0, 4, after=2, limit=2) is None
        assert tx.schedules.forget_firings(START + 4 * MINUTE, 99, after=0, limit=9) is None
        assert tx.schedules.firings(2, 99) == [fired(2, 4)]
        assert tx.schedules.by_id([2])[2].forgotten == START + 3 * MINUTE
        tx.schedules.forget_firings(START + 99 * MINUTE, 0, after=0, limit=9)
        ahead = [each.slot for each in tx.schedules.firings(1, 99)]
        assert ahead == [START + minute * MINUTE for minute in (11, 10, 9)], "they may come again"


def test_a_damaged_schedule_can_still_be_read(store: Store) -> None:
    with store.write() as tx:
        put(tx, schedule(1))

    database = store.database  # type: ignore[attr-defined]
    with store.write() as tx:
        database.execute("update schedules set document = '{'", {})
        (found,) = tx.schedules.all()
    assert "schedule-1" in found.document["damaged"]


def test_a_backup_has_the_schedules(store: Store, tmp_path: Path) -> None:
    with store.write() as tx:
        put(tx, schedule(1))
        tx.schedules.add_firings([fired(1, 1)])
    store.backup(str(tmp_path / "copy.db"))
    copy = open_store(f"sqlite://{tmp_path}/copy.db", FakeClock(START))
    with copy.read() as tx:
        assert tx.schedules.all() == [schedule(1)] and tx.schedules.firings(1, 9) == [fired(1, 1)]
        assert tx.settings.marks()["next_fire_at"] == START + MINUTE
    copy.close()
