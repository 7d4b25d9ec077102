"""Direct calls and capacity: what holds one up, who lends to it, and what it leaves to jobs."""

from typing import Any

import pytest
from given import NOW, job

from headway.core.capacity import direct_lender, direct_objection, left_by_direct, objection
from headway.core.facts import Capacity
from headway.core.model import HostTrouble, Pause, Wait, WaitKind
from headway.core.policies import SLOT
from headway.core.reservations import Reservation

A, B = "resource:a", "resource:b"


def call(number: int = 2, **fields: Any) -> Reservation:
    given = {"token": "t", "holder": "ann", "note": "a look", "host_id": "here", "pid": 7}
    return Reservation(number, requested_at=NOW, expires_at=NOW + 5, **{**given, **fields})


PAUSED = {"paused": Pause("ann", None, NOW)}
STRAIN = {"strain": Wait(WaitKind.PRESSURE, "load is 9", for_capacity=True)}
AHEAD = {"reserved": call(1, note="the first")}
FULL = {"running": 1}
USED = {"limits": {A: 1}, "usage": {A: 1}}
ASKING = call(occupies=(A,))
LENT = {"unlent": {5: {SLOT, A}}}
INSIDE = ASKING._replace(inside=5)


@pytest.mark.parametrize(
    ("asking", "fields", "kind"),
    [
        (ASKING, {}, None),
        (ASKING, {"max_active": 0, "running": 9}, None),
        (ASKING, PAUSED, "paused"),
        (ASKING, STRAIN, "pressure"),
        (ASKING, AHEAD, "capacity"),
        (ASKING, {"reserved": ASKING}, None),
        (ASKING, {"reserved": call(3)}, None),
        (ASKING, FULL, "capacity"),
        (ASKING, USED, "capacity"),
        (ASKING, {**USED, "usage": {A: 0}}, None),
        (ASKING, {"limits": {B: 1}, "usage": {B: 1}}, None),
        # Inside of a job that waits for it, it takes what that has, whatever else there is.
        (INSIDE, {**LENT, **FULL, **USED, **STRAIN, **AHEAD}, None),
        (INSIDE, {**LENT, **PAUSED}, "paused"),
        (INSIDE, FULL, "capacity"),
        (INSIDE, {"unlent": {6: {SLOT, A}}, **FULL}, "capacity"),
        (INSIDE, {"unlent": {5: {SLOT}}, **FULL, **USED}, "capacity"),
        (INSIDE, {**LENT, "running": 2, "twice": {SLOT}}, "capacity"),
        (INSIDE, {**LENT, **FULL, "twice": {SLOT}}, None),
        (INSIDE, {**LENT, **FULL, **USED, "usage": {A: 2}, "twice": {A}}, "capacity"),
    ],
)
def test_what_holds_up_a_direct_call(
    asking: Reservation, fields: dict[str, Any], kind: str | None
) -> None:
    wait = direct_objection(asking, Capacity(**{"max_active": 1, **fields}), NOW)
    assert (None if wait is None else wait.kind.value) == kind


@pytest.mark.parametrize(
    ("asking", "fields", "lender"),
    [
        (ASKING, LENT, None),
        (INSIDE, {}, None),
        (INSIDE, LENT, 5),
        (INSIDE, {**LENT, **USED}, 5),
        (INSIDE, {"unlent": {5: {SLOT}}, **USED}, None),
        (INSIDE, {"unlent": {5: {SLOT}}}, 5),
    ],
)
def test_who_makes_a_direct_call_lends_it_all_that_it_lacks_or_nothing(
    asking: Reservation, fields: dict[str, Any], lender: int | None
) -> None:
    assert direct_lender(asking, Capacity(max_active=1, **fields)) == lender


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"max_active": 3}, None),  # it could have its slot now: nobody goes before it
        ({"max_active": 3, **USED}, (1, {A: 1, B: 1})),
        ({"max_active": 2, "running": 1, **USED}, None),
        ({"max_active": 3, "running": 1, **USED}, (2, {A: 1, B: 1})),
        ({"max_active": 0, "running": 7, **USED}, (8, {A: 1, B: 1})),
    ],
)
def test_who_is_first_in_line_leaves_what_it_cannot_have_yet_to_others(
    fields: dict[str, Any], left: tuple[int, dict[str, int]] | None
) -> None:
    capacity = Capacity(reserved=call(occupies=(A, B)), **fields)
    rest = left_by_direct(capacity)
    assert (None if rest is None else (rest.running, dict(rest.usage))) == left
    assert left_by_direct(capacity._replace(reserved=None)) == capacity._replace(reserved=None)


def test_one_of_what_it_waits_for_is_kept_for_it() -> None:
    capacity = Capacity(
        max_active=9, reserved=call(occupies=(A, B)), limits={A: 1, B: 1}, usage={A: 1, B: 0}
    )
    wait = objection(job(3, resources=("b",)), capacity, NOW)
    assert wait is not None and wait.detail == "resource b is in use"
    assert objection(job(3), capacity, NOW) is None


@pytest.mark.parametrize(
    ("fields", "until", "remedy"),
    [
        (PAUSED, None, "headway scheduler resume"),
        (
            {"trouble": HostTrouble(WaitKind.STORAGE, "full", 1, NOW + 5)},
            NOW + 5,
            "free what is used up; it is tried again by itself",
        ),
        (
            {"next_pass": NOW + 7},
            NOW + 7,
            "wait until its time, or lower scheduler.spawn_delay",
        ),
    ],
)
def test_no_capacity_says_until_when_and_what_would_open_it(
    fields: dict[str, Any], until: int | None, remedy: str
) -> None:
    wait = objection(job(3), Capacity(**fields), NOW)
    assert wait is not None
    assert (wait.until, wait.remedy, wait.for_capacity) == (until, remedy, True)
    if wait.kind is WaitKind.PAUSED:
        assert wait.detail == "paused by ann", "without a reason none is told"
