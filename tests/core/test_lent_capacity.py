"""What is lent, borrowed and taken back: tables of who holds what."""

from typing import Any

import pytest
from given import NOW, job

from headway.core.capacity import (
    closed,
    counted_twice,
    free_slots,
    holdings,
    lender_for,
    limited_keys,
    objection,
    room,
)
from headway.core.facts import Capacity, Occupant
from headway.core.model import HostTrouble, Pause, Wait, WaitKind
from headway.core.policies import SLOT

A, B = "resource:a", "resource:b"
LENDER = Occupant(1, (A,))
BORROWER = Occupant(2, (A,), borrowed_from=1)
THIRD = Occupant(3, (B,), borrowed_from=2)


@pytest.mark.parametrize(
    ("occupants", "lending", "held"),
    [
        ([LENDER], [1], {1: {SLOT, A}}),
        ([LENDER], [], {}),
        ([LENDER], [9], {9: set()}),
        ([LENDER, BORROWER], [2], {2: {SLOT, A}}),
        ([LENDER, THIRD._replace(borrowed_from=1)], [1, 3], {1: {SLOT, A}, 3: {SLOT, A, B}}),
        ([LENDER, BORROWER, THIRD], [1, 2, 3], {1: {SLOT, A}, 2: {SLOT, A}, 3: {SLOT, A, B}}),
        # One in the middle goes on by itself: what comes before it is no longer passed on.
        ([LENDER, BORROWER, THIRD], [1, 3], {1: {SLOT, A}, 3: {SLOT, B}}),
        ([Occupant(None, (A,)), LENDER], [1], {1: {SLOT, A}}),
    ],
)
def test_a_lender_can_give_what_it_has_and_what_it_borrows(
    occupants: list[Occupant], lending: list[int], held: dict[int, set[str]]
) -> None:
    assert holdings(occupants, lending) == held


def test_two_that_seem_to_lend_to_each_other_give_an_answer() -> None:
    ring = [Occupant(1, (A,), borrowed_from=2), Occupant(2, (B,), borrowed_from=1)]
    assert holdings(ring, [1, 2]) == {1: {SLOT, A, B}, 2: {SLOT, A, B}}


@pytest.mark.parametrize(
    ("occupants", "lending", "twice"),
    [
        ([LENDER, BORROWER], [1], set()),
        ([LENDER, BORROWER], [], {SLOT, A}),
        ([BORROWER], [], set()),
        ([LENDER], [], set()),
        ([LENDER, BORROWER, THIRD], [1], {SLOT, B}),
        ([LENDER, BORROWER, THIRD], [2], {SLOT, A}),
    ],
)
def test_what_a_lender_takes_back_is_had_twice(
    occupants: list[Occupant], lending: list[int], twice: set[str]
) -> None:
    assert counted_twice(occupants, lending) == twice


LENT = Capacity(max_active=1, running=1, lenders={2: (9, 8)}, lent={9: {SLOT}, 8: {SLOT, A}})
NEEDS_A = job(2, resources=("a",))


@pytest.mark.parametrize(
    ("capacity", "lender"),
    [
        (LENT._replace(lenders={}), None),
        (LENT._replace(lenders={3: (9,)}), None),
        (LENT, 9),
        # Of that which is limited and used up the lender must have its part.
        (LENT._replace(limits={A: 1}, usage={A: 1}), 8),
        (LENT._replace(limits={A: 1}, usage={A: 0}), 9),
        (LENT._replace(limits={A: 1}, usage={A: 1}, lent={}), None),
        # More run than may, because a lender went on beside its borrower: nothing is lent.
        (LENT._replace(running=2, twice={SLOT}), None),
        (LENT._replace(running=1, twice={SLOT}), 9),
        (LENT._replace(running=2), 9),
        (LENT._replace(max_active=0, running=2, twice={SLOT}), 9),
        (LENT._replace(limits={A: 1}, usage={A: 2}, twice={A}), None),
        (LENT._replace(limits={A: 1}, usage={A: 1}, twice={A}), 8),
        (LENT._replace(limits={A: 1}, usage={A: 2}), 8),
        (LENT._replace(limits={A: 1, B: 1}, usage={A: 1, B: 2}, twice={B}), 8),
    ],
)
def test_who_lends_to_a_job_has_all_that_it_lacks(capacity: Capacity, lender: int | None) -> None:
    assert lender_for(NEEDS_A, capacity) == lender


@pytest.mark.parametrize(
    ("cap", "used", "free"),
    [(0, 0, None), (-1, 5, None), (1, 0, 1), (1, 1, 0), (2, 3, 0), (3, 1, 2)],
)
def test_free_slots_are_the_cap_less_what_runs_and_never_less_than_none(
    cap: int, used: int, free: int | None
) -> None:
    assert free_slots(Capacity(max_active=cap, running=used)) == free


@pytest.mark.parametrize(
    ("limits", "usage", "left"),
    [
        ({}, {A: 3}, None),
        ({A: 2}, {}, 2),
        ({A: 2}, {A: 2}, 0),
        ({A: 2}, {A: 3}, 0),
        ({A: 0}, {}, 0),
    ],
)
def test_room_is_the_limit_less_what_is_in_use(
    limits: dict[str, int], usage: dict[str, int], left: int | None
) -> None:
    assert room(A, Capacity(limits=limits, usage=usage)) == left


def test_only_what_is_limited_is_counted() -> None:
    capacity = Capacity(limits={A: 1, "type:agent": 2})
    assert limited_keys(NEEDS_A, capacity) == (A,)
    assert limited_keys(NEEDS_A, Capacity()) == ()


# -- capacity, in the order in which its reasons count -------------------------------------------

PAUSED = {"paused": Pause("ann", "night", NOW)}
TROUBLE = {"trouble": HostTrouble(WaitKind.STORAGE, "disk full", 1, NOW + 5)}
STRAIN = {"strain": Wait(WaitKind.PRESSURE, "load is 9", for_capacity=True)}
SPACED = {"next_pass": NOW + 5}
FULL = {"max_active": 1, "running": 1}
USED = {"limits": {A: 1}, "usage": {A: 1}}
IN_ORDER: list[tuple[dict[str, Any], str]] = [
    (PAUSED, "paused by ann: night"),
    (TROUBLE, "disk full"),
    (STRAIN, "load is 9"),
    (SPACED, "the next pass is not due: scheduler.spawn_delay"),
    (FULL, "the one slot is in use"),
    (USED, "a"),
]


@pytest.mark.parametrize("first", range(len(IN_ORDER)))
def test_of_several_reasons_the_first_is_given(first: int) -> None:
    fields: dict[str, Any] = {"max_active": -1}
    for more, _ in IN_ORDER[first:]:
        fields |= more
    capacity = Capacity(**fields)
    given = objection(NEEDS_A, capacity, NOW)
    assert given is not None and IN_ORDER[first][1] in given.detail
    shut = closed(capacity, NOW)
    for_all = first < 4
    assert (shut is not None) is for_all
    assert shut is None or shut.detail == given.detail


def test_free_capacity_has_no_objection() -> None:
    past = {"next_pass": NOW, "trouble": TROUBLE["trouble"]._replace(probe_at=NOW)}
    capacity = Capacity(max_active=1, limits={A: 1}, **past)
    assert objection(NEEDS_A, capacity, NOW) is None and closed(capacity, NOW) is None


@pytest.mark.parametrize(
    ("probing", "at", "until"),
    [(False, NOW + 5, NOW + 5), (True, NOW + 5, None), (True, NOW - 5, None)],
)
def test_a_host_in_trouble_is_probed_by_one_at_its_time(
    probing: bool, at: int, until: int | None
) -> None:
    trouble = TROUBLE["trouble"]._replace(probing=probing, probe_at=at)
    given = objection(NEEDS_A, Capacity(trouble=trouble), NOW)
    assert given is not None and (given.kind, given.until) == (WaitKind.STORAGE, until)


def test_a_strained_host_goes_on_with_what_others_wait_for() -> None:
    capacity = LENT._replace(**STRAIN)
    assert objection(NEEDS_A, capacity, NOW) is None
    given = objection(job(7), capacity, NOW)
    assert given is not None and given.detail == "load is 9"
