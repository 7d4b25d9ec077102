"""Schedules while nobody looks, and when clocks and time zones change."""

import pytest

from headway.base.clock import SECOND
from headway.core.fire import MISSED
from headway.core.model import Lock
from headway.schedules.timekeeper import AT_ONCE
from keeping import DAY, HOUR, Keeping


@pytest.mark.req("D24")
def test_three_days_asleep_are_one_run_and_one_row_of_skipped_slots(  # fault E4
    keeping: Keeping,
) -> None:
    name = keeping.add(cron="* * * * *")
    keeping.bench.step()
    keeping.clock.suspend(3 * DAY / SECOND)
    keeping.settle()
    assert keeping.slots(name) == [("skipped", 4319, MISSED), ("fired", 1, None)]
    assert len(keeping.jobs()) == 1
    assert keeping.client.schedules.show(name)["missed"]["slots"] == 4319
    assert len(keeping.events("schedule_skipped")) == 1
    assert keeping.events("clock_jumped") == [], "nobody has set a clock"


@pytest.mark.req("D24")
def test_missed_slots_are_caught_up_by_the_next_worker(paused: Keeping) -> None:
    name = paused.add(catch_up="all", window="10m")
    paused.bench.step()
    paused.bench.crash()
    paused.clock.advance(25 * 60)
    paused.bench.engine.recover()
    paused.settle()
    assert len(paused.jobs()) == 11, "each slot within the window, and its edge"
    assert paused.slots(name)[0] == ("skipped", 14, MISSED)
    assert paused.accounted(name) == 25


def test_each_of_many_is_caught_up_in_bounded_parts(paused: Keeping) -> None:
    name = paused.add(every="1s", catch_up="all", window="1h")
    paused.clock.advance(250)
    paused.bench.step()
    assert len(paused.jobs()) == 100
    paused.settle()
    assert len(paused.jobs()) == 250 and paused.accounted(name) == 250
    assert all(job.locks == (Lock("schedule-1"),) for job in paused.jobs())


def test_a_year_is_looked_at_in_bounded_parts_that_become_one_row(paused: Keeping) -> None:
    name = paused.add(every="10s")
    paused.clock.advance(86_400)
    paused.bench.step()
    assert paused.slots(name) == [("skipped", 5000, MISSED)] and paused.jobs() == []
    paused.settle()
    assert paused.slots(name) == [("skipped", 8639, MISSED), ("fired", 1, None)]


def test_a_step_has_a_budget_and_who_is_in_time_does_not_wait_for_who_slept(
    paused: Keeping,
) -> None:
    """The lock of all writers is held meanwhile."""
    sleepers = [paused.add(every="10s") for _ in range(8)]
    fresh = [paused.add(every="24h") for _ in range(3)]
    paused.clock.advance(86_400)
    assert paused.bench.step() == 0, "there is more to do at once"
    looked_at = sum(paused.accounted(name) for name in sleepers + fresh)
    assert 15_000 < looked_at <= AT_ONCE.slots
    assert all(paused.accounted(name) for name in sleepers), "each has come on"
    assert [paused.slots(name) for name in fresh] == [[("fired", 1, None)]] * 3
    paused.settle()
    for name in sleepers:
        assert paused.slots(name) == [("skipped", 8639, MISSED), ("fired", 1, None)]


def test_a_step_makes_a_bounded_number_of_jobs(paused: Keeping) -> None:
    names = [paused.add(every="1s", catch_up="all", window="1h") for _ in range(5)]
    paused.clock.advance(90)
    paused.bench.step()
    assert len(paused.jobs()) == AT_ONCE.jobs
    assert [paused.accounted(name) for name in names] == [40] * 5
    paused.settle()
    assert [paused.accounted(name) for name in names] == [90] * 5
    assert len(paused.jobs()) == 450


def test_a_clock_that_jumps_a_year_and_back_neither_doubles_nor_loses(  # fault E5
    keeping: Keeping,
) -> None:
    name = keeping.add(every="1h")
    keeping.later(3600)
    keeping.let_end()
    keeping.clock.jump(365 * DAY)
    keeping.settle()
    keeping.let_end()
    assert [outcome for outcome, _, _ in keeping.slots(name)] == ["fired", "skipped", "fired"]
    keeping.clock.jump(-365 * DAY)
    keeping.settle()
    assert [outcome for outcome, _, _ in keeping.slots(name)] == ["fired", "fired"]
    for _ in range(3):
        keeping.later(3600)
        keeping.let_end()
    assert len(keeping.jobs()) == 5, "two, and each of the hours that come after all"
    assert len(keeping.events("clock_jumped")) == 2
    assert keeping.client.schedules.show(name)["missed"] is None


def test_a_clock_that_goes_back_an_hour_fires_nothing_twice(keeping: Keeping) -> None:  # fault E5
    name = keeping.add(every="10m")
    for _ in range(6):
        keeping.later(600)
        keeping.let_end()
    keeping.clock.jump(-HOUR)
    for _ in range(6):
        keeping.later(600)
    assert len(keeping.jobs()) == 6, "all of these were"
    keeping.later(600)
    assert len(keeping.jobs()) == 7 and keeping.accounted(name) == 7


@pytest.mark.parametrize("rule", [{"every": "10m"}, {"cron": "*/10 * * * *"}])
def test_a_clock_that_is_set_back_behind_the_beginning_silences_no_schedule(  # fault E5
    paused: Keeping, rule: dict[str, str]
) -> None:
    name = paused.add(**rule, overlap="queue")
    paused.later(5)
    paused.clock.jump(-DAY)
    paused.settle()
    for _ in range(6):
        paused.later(600)
    assert paused.slots(name) == [("fired", 1, None)] * 6


def test_a_clock_that_went_back_while_no_worker_lived_is_noticed(paused: Keeping) -> None:
    name = paused.add(every="1h")
    paused.later(3 * 3600)
    assert paused.slots(name) == [("skipped", 2, MISSED), ("fired", 1, None)]
    paused.client.cancel([1])
    paused.bench.crash()
    paused.clock.jump(-2 * HOUR)
    paused.bench.engine.recover()
    paused.settle()
    assert paused.slots(name) == [("skipped", 1, MISSED), ("fired", 1, None)]
    paused.later(3600)
    assert len(paused.jobs()) == 2, "the slot that was only skipped has come"
    paused.later(3600)
    assert len(paused.jobs()) == 2, "the slot that fired does not come again"


def test_a_clock_that_goes_back_while_a_schedule_is_disabled_doubles_nothing(
    paused: Keeping,
) -> None:
    name = paused.add(every="1h")
    paused.bench.step()
    paused.clock.jump(10 * HOUR)
    paused.settle()
    assert paused.slots(name) == [("skipped", 9, MISSED), ("fired", 1, None)]
    paused.client.schedules.disable(name)
    paused.clock.jump(-10 * HOUR)
    paused.settle()
    paused.client.schedules.enable(name)
    assert paused.slots(name) == [("fired", 1, None)], "what was only skipped is to come"
    for _ in range(3):
        paused.later(3600)
    assert paused.slots(name)[0] == ("skipped", 3, "job-1 still waits")


@pytest.mark.parametrize("back", [10 * HOUR, 5 * HOUR])
def test_one_whose_zone_is_gone_is_disabled_replaced_and_removed_whatever_clocks_did(
    paused: Keeping, back: int
) -> None:
    rule = {"cron": "*/10 * * * *", "overlap": "queue"}
    name = paused.add(name="a", **rule)
    paused.bench.step()
    paused.clock.jump(10 * HOUR)
    paused.settle()
    assert paused.slots(name) == [("skipped", 59, MISSED), ("fired", 1, None)]
    with paused.bench.store.write() as tx:
        (schedule,) = tx.schedules.all()
        lost = {"cron": "*/10 * * * *", "timezone": "Atlantis/Capital"}
        tx.schedules.put(schedule._replace(document={**schedule.document, "rule": lost}))
    paused.clock.jump(-back)
    assert paused.client.schedules.disable(name)
    paused.add(name="a", **rule, replace=True)
    for _ in range(3):
        paused.later(600)
    fired = [each for each in paused.slots(name) if each[0] == "fired"]
    assert len(fired) == 1 + 3, "what was only skipped comes at its time"
    paused.client.schedules.remove(name)


def test_slots_before_and_after_a_change_are_no_range(paused: Keeping) -> None:
    name = paused.add(name="a")
    for _ in range(3):
        paused.later(60)
    paused.client.schedules.disable(name)
    paused.later(600)
    paused.client.schedules.enable(name)
    paused.later(60)
    waits = "job-1 still waits"
    assert paused.slots(name) == [("fired", 1, None), ("skipped", 2, waits), ("skipped", 1, waits)]


def test_a_schedule_of_a_future_that_is_over_fires_from_now_on(paused: Keeping) -> None:
    paused.bench.step()
    paused.clock.jump(365 * DAY)
    paused.add(cron="0 * * * *")
    paused.settle()
    paused.clock.jump(-365 * DAY)
    paused.settle()
    paused.later(3600)
    assert len(paused.jobs()) == 1


def test_other_time_zones_are_noticed_when_a_worker_begins(paused: Keeping) -> None:  # fault E6
    name = paused.add(cron="0 12 * * *", timezone="Europe/Berlin")
    with paused.bench.store.write() as tx:
        (schedule,) = tx.schedules.all()
        right = schedule.next_slot
        assert right is not None
        stale = schedule._replace(zones="1999a", next_slot=right + HOUR, next_fire_at=right + HOUR)
        tx.schedules.put(stale)
        tx.schedules.note_next_fire()
    paused.bench.crash()
    paused.bench.engine.recover()
    paused.settle()
    with paused.bench.store.read() as tx:
        (schedule,) = tx.schedules.all()
    assert (schedule.next_slot, schedule.zones != "1999a") == (right, True)
    paused.later((right - paused.clock.now()) / SECOND)
    assert paused.slots(name) == [("fired", 1, None)]
