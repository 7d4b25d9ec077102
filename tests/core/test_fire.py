"""What is due of a schedule: each slot fires or is skipped with a reason, once."""

from typing import Any

import pytest

from headway.core.fire import (
    MISSED,
    MOST_ACTIVE,
    MOST_FIRED,
    MOST_LOOKED_AT,
    Active,
    CatchUp,
    Counted,
    Fired,
    Firing,
    Schedule,
    Share,
    SkippedSlots,
    SlotOutcome,
    begun,
    fire,
    jitter_of,
    kept_part,
    rewound,
    rezoned,
    shared_out,
)

MINUTE = 60_000_000
DAY = 1440 * MINUTE
RUNS, WAITS = Active(7, running=True), Active(8, running=False)
OF_RUN = Active(9, running=False, run=3)


class Minutes:
    """A slot every `period` minutes, none at or before the beginning of time, none after `last`."""

    def __init__(self, period: int = 1, last: int = 1 << 60) -> None:
        self.period, self.last, self.asked = period * MINUTE, last, 0

    def next_after(self, instant: int) -> int | None:
        self.asked += 1
        slot = (max(instant, 0) // self.period + 1) * self.period
        return slot if slot <= self.last else None

    def slots_until(self, after: int, until: int, most: int) -> Counted:
        assert 0 < most <= MOST_LOOKED_AT
        first = max(after, 0) // self.period
        count = max(0, min(min(until, self.last) // self.period - first, most))
        last = (first + count) * self.period
        return count, last - self.period if count > 1 else None, last if count else None


def schedule(next_slot: int | None, **changed: Any) -> Schedule:
    words = {"catch_up": "latest", "window": DAY, "overlap": "skip", "jitter": 0}
    document = {**words, **{key: changed.pop(key) for key in words if key in changed}}
    fields: dict[str, Any] = {"changed_at": 0, "looked_at": 0, "zones": "", **changed}
    slot = None if next_slot is None else next_slot * MINUTE
    return Schedule(
        3, "s", document, True, 1, None, 0, "ann", next_slot=slot, next_fire_at=slot, **fields
    )


def missed(first: int, last: int) -> SkippedSlots:
    return SkippedSlots(first * MINUTE, last * MINUTE, last - first + 1, MISSED)


def fires(*slots: int, skipped: tuple[SkippedSlots, ...] = (), then: int | None) -> Fired:
    following = None if then is None else then * MINUTE
    return Fired(tuple(slot * MINUTE for slot in slots), skipped, following, following)


CASES: dict[str, tuple[dict[str, Any], float, Fired]] = {
    "at its time": ({}, 10, fires(10, then=11)),
    "a little late": ({}, 10.9, fires(10, then=11)),
    "two due, the latest": ({}, 11, fires(11, skipped=(missed(10, 10),), then=12)),
    "three days asleep": ({}, 4329, fires(4329, skipped=(missed(10, 4328),), then=4330)),
    "the latest is too old": (
        {"window": MINUTE, "last": 20},
        100,
        fires(skipped=(missed(10, 20),), then=None),
    ),
    "just in the window": (
        {"window": 5 * MINUTE, "last": 20},
        25,
        fires(20, skipped=(missed(10, 19),), then=None),
    ),
    "none, in time": ({"catch_up": "none"}, 10.5, fires(10, then=11)),
    "none, and too late": (
        {"catch_up": "none", "period": 10},
        14,
        fires(skipped=(missed(10, 10),), then=20),
    ),
    "all": (
        {"catch_up": "all", "overlap": "queue"},
        13,
        fires(10, 11, 12, 13, then=14),
    ),
    "all in the window": (
        {"catch_up": "all", "overlap": "queue", "window": 2 * MINUTE},
        20,
        fires(18, 19, 20, skipped=(missed(10, 17),), then=21),
    ),
    "no slot at or before the change": (
        {"changed_at": 12 * MINUTE},
        14,
        fires(14, skipped=(missed(13, 13),), then=15),
    ),
    "nothing but what was before the change": ({"changed_at": 12 * MINUTE}, 12.5, fires(then=13)),
    "the end of the rule": ({"last": 10}, 10, fires(10, then=None)),
}


@pytest.mark.parametrize("what", CASES)
def test_what_is_due(what: str) -> None:
    said, minutes, expected = CASES[what]
    said = dict(said)
    rule = Minutes(said.pop("period", 1), said.pop("last", 1 << 30) * MINUTE)
    assert fire(schedule(10, **said), rule, int(minutes * MINUTE), ()) == expected


OVERLAPS: dict[str, tuple[str, list[Active], tuple[int, ...], str | None]] = {
    "skip, nothing active": ("skip", [], (10,), None),
    "skip, running": ("skip", [RUNS, WAITS], (), "job-7 is still running"),
    "skip, waiting": ("skip", [WAITS], (), "job-8 still waits"),
    "queue": ("queue", [RUNS, WAITS], (10,), None),
    "queue, full": ("queue", [WAITS] * MOST_ACTIVE, (), "1000 of its jobs have not ended"),
    "replace": ("replace", [RUNS], (10,), None),
    "skip, a run": ("skip", [OF_RUN], (), "wf-3 has not ended"),
    "queue, a run": ("queue", [OF_RUN], (10,), None),
    "queue, full of runs": ("queue", [OF_RUN] * MOST_ACTIVE, (), "1000 of its runs have not ended"),
}


@pytest.mark.parametrize("what", OVERLAPS)
def test_a_slot_at_which_a_job_is_active(what: str) -> None:
    overlap, active, slots, reason = OVERLAPS[what]
    found = fire(schedule(10, overlap=overlap), Minutes(), 10 * MINUTE, active)
    assert found.slots == tuple(slot * MINUTE for slot in slots)
    assert [each.reason for each in found.skipped] == ([reason] if reason else [])
    assert found.next_slot == 11 * MINUTE


def test_a_queue_that_is_nearly_full_takes_what_it_can() -> None:
    waiting = [WAITS] * (MOST_ACTIVE - 2)
    asked = schedule(10, catch_up="all", overlap="queue")
    found = fire(asked, Minutes(), 14 * MINUTE, waiting)
    assert len(found.slots) == 2
    assert found.skipped == (
        SkippedSlots(12 * MINUTE, 14 * MINUTE, 3, "1000 of its jobs have not ended"),
    )


@pytest.mark.parametrize("catch_up", CatchUp)
def test_however_long_nobody_looked_one_call_is_bounded_and_every_slot_is_told_of_once(
    catch_up: CatchUp,
) -> None:
    overlap = "queue" if catch_up is CatchUp.ALL else "skip"
    asked = schedule(1, catch_up=catch_up.value, overlap=overlap, window=250 * MINUTE)
    now, told, fired, calls = 20_000 * MINUTE, 0, [], 0
    while asked.next_slot is not None and asked.next_slot <= now:
        rule = Minutes()
        found = fire(asked, rule, now, ())
        assert rule.asked <= MOST_FIRED + 10 and len(found.slots) <= MOST_FIRED
        for each in found.skipped:
            assert each.first == told * MINUTE + MINUTE
            told += each.slots
            assert each.last == told * MINUTE and each.slots <= MOST_LOOKED_AT
        for slot in found.slots:
            told += 1
            assert slot == told * MINUTE
            fired.append(told)
        asked = asked._replace(next_slot=found.next_slot)
        calls += 1
    assert told == 20_000 and 4 <= calls <= 10
    assert fired == (list(range(19_750, 20_001)) if catch_up is CatchUp.ALL else [20_000])


@pytest.mark.parametrize("catch_up", CatchUp)
@pytest.mark.parametrize("share", [Share(1, 1), Share(7, 3), Share(3, 7)])
def test_a_call_does_no_more_than_its_share_and_the_calls_together_do_all(
    catch_up: CatchUp, share: Share
) -> None:
    overlap = "queue" if catch_up is CatchUp.ALL else "skip"
    said = {"catch_up": catch_up.value, "overlap": overlap, "window": 5 * MINUTE}
    asked, now = schedule(1, **said, jitter=MINUTE), 40 * MINUTE
    whole, told, fired = fire(asked, Minutes(), now, ()), 0, []
    while asked.next_slot is not None and asked.next_slot < whole.next_slot:
        found = fire(asked, Minutes(), now, (), share=share)
        assert 0 < found.looked_at <= share.slots and len(found.slots) <= share.jobs
        told += found.looked_at
        fired += found.slots
        asked = asked._replace(next_slot=found.next_slot)
    assert (told, tuple(fired)) == (whole.looked_at, whole.slots)


@pytest.mark.parametrize(
    ("left", "among", "share"),
    [
        (Share(20_000, 200), 1, Share(MOST_LOOKED_AT, MOST_FIRED)),
        (Share(20_000, 200), 200, Share(100, 1)),
        (Share(19_000, 150), 10, Share(1900, 15)),
    ],
)
def test_each_gets_its_share(left: Share, among: int, share: Share) -> None:
    assert shared_out(left, among) == share


# -- jitter ------------------------------------------------------------------------------------


def test_jitter_is_the_same_everywhere_and_spread() -> None:
    found = [jitter_of(3, slot * MINUTE, MINUTE) for slot in range(1000)]
    assert found == [jitter_of(3, slot * MINUTE, MINUTE) for slot in range(1000)]
    assert found != [jitter_of(4, slot * MINUTE, MINUTE) for slot in range(1000)]
    assert all(0 <= each < MINUTE for each in found)
    by_tenth = [sum(each * 10 // MINUTE == tenth for each in found) for tenth in range(10)]
    assert min(by_tenth) > 60 and jitter_of(3, 5, 0) == 0


def test_a_slot_is_due_when_its_jitter_is_over() -> None:
    asked = schedule(10, jitter=MINUTE // 2)
    due = 10 * MINUTE + jitter_of(3, 10 * MINUTE, MINUTE // 2)
    early, late = fire(asked, Minutes(), due - 1, ()), fire(asked, Minutes(), due, ())
    assert (early.slots, early.next_slot, early.next_fire_at) == ((), 10 * MINUTE, due)
    assert late.slots == (10 * MINUTE,)
    assert late.next_fire_at == 11 * MINUTE + jitter_of(3, 11 * MINUTE, MINUTE // 2)


@pytest.mark.parametrize("window", [1, MINUTE, 10 * MINUTE])
@pytest.mark.parametrize("catch_up", CatchUp)
def test_a_jitter_longer_than_the_window_takes_no_slot_away(catch_up: CatchUp, window: int) -> None:
    """The window begins when a slot was to fire."""
    jitter, rule = 30 * MINUTE, Minutes(60)
    overlap = "queue" if catch_up is CatchUp.ALL else "skip"
    asked = schedule(60, catch_up=catch_up.value, overlap=overlap, window=window, jitter=jitter)
    for hour in range(1, 25):
        slot = hour * 60 * MINUTE
        due = slot + jitter_of(3, slot, jitter)
        late = due + asked.window
        in_time, at_last, too_late = (fire(asked, rule, at, ()) for at in (due, late, late + 1))
        assert in_time.slots == at_last.slots == (slot,)
        assert in_time.skipped == at_last.skipped == too_late.slots == ()
        assert too_late.skipped == (SkippedSlots(slot, slot, 1, MISSED),)
        asked = asked._replace(next_slot=in_time.next_slot)


def test_of_all_that_have_jitter_those_before_the_window_are_one_range() -> None:
    words = {"catch_up": "all", "overlap": "queue", "window": 5 * MINUTE}
    asked = schedule(10, **words, jitter=MINUTE)
    found = fire(asked, Minutes(), 100 * MINUTE, ())
    first = found.slots[0] // MINUTE
    assert first in (94, 95) and found.skipped == (missed(10, first - 1),)
    assert list(found.slots) == [each * MINUTE for each in range(first, first + len(found.slots))]


# -- clocks ------------------------------------------------------------------------------------


def test_a_slot_that_fired_before_the_clock_went_back_is_passed_over() -> None:
    at_it = fire(schedule(10), Minutes(), 10 * MINUTE, (), taken=10 * MINUTE)
    assert at_it == fires(then=11)
    before_it = fire(schedule(10), Minutes(), 15 * MINUTE, (), taken=12 * MINUTE)
    assert before_it == fires(skipped=(missed(10, 11),), then=12)
    not_yet = fire(schedule(10), Minutes(), 10 * MINUTE, (), taken=12 * MINUTE)
    assert not_yet == fires(10, then=11)


def test_what_fired_by_another_rule_is_in_nobodys_way() -> None:
    found = fire(schedule(10), Minutes(5), 21 * MINUTE, (), taken=12 * MINUTE)
    assert found.skipped == (SkippedSlots(10 * MINUTE, 10 * MINUTE, 1, MISSED),)
    assert found.next_slot == 15 * MINUTE


@pytest.mark.parametrize(
    ("said", "now", "next_slot", "changed_at"),
    [
        ({"next_slot": 100}, 50, 51, 0),
        ({"next_slot": None}, 50, 51, 0),
        ({"next_slot": 40}, 50, 40, 0),  # not all of the past was looked at
        ({"next_slot": 100, "changed_at": 90 * MINUTE}, 50, 51, 50),
        ({"next_slot": 100, "forgotten": 80 * MINUTE}, 50, 81, 0),
    ],
)
def test_after_a_clock_went_back_what_is_ahead_comes_again(
    said: dict[str, Any], now: int, next_slot: int, changed_at: int
) -> None:
    found = rewound(schedule(said.pop("next_slot"), **said), Minutes(), now * MINUTE)
    assert found.next_slot == found.next_fire_at == next_slot * MINUTE
    assert (found.changed_at, found.looked_at) == (changed_at * MINUTE, now * MINUTE)


def test_of_a_skipped_range_the_part_that_has_passed_is_kept() -> None:
    row = Firing(3, 10 * MINUTE, 90 * MINUTE, 81, SlotOutcome.SKIPPED, MISSED, None, 95 * MINUTE)
    kept = row._replace(last_slot=50 * MINUTE, slots=41, at=50 * MINUTE + 5)
    assert kept_part(row, Minutes(), 50 * MINUTE + 5) == kept
    assert kept_part(row, Minutes(), 9 * MINUTE) is None


def test_with_other_zones_the_slots_after_the_last_look_are_found_anew() -> None:
    asked = schedule(60, looked_at=12 * MINUTE)
    assert rezoned(asked, Minutes(5), 40 * MINUTE).next_slot == 15 * MINUTE
    late = schedule(11, looked_at=12 * MINUTE)  # its jitter is not over
    assert rezoned(late, Minutes(5), 40 * MINUTE).next_slot == 11 * MINUTE


def test_one_that_begins_knows_no_earlier_slot() -> None:
    found = begun(schedule(1), Minutes(), 50 * MINUTE)
    assert (found.next_slot, found.changed_at) == (51 * MINUTE, 50 * MINUTE)
    resting = begun(schedule(1)._replace(enabled=False), Minutes(), 50 * MINUTE)
    assert (resting.next_slot, resting.next_fire_at) == (None, None)
