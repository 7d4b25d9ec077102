"""The arithmetic of capacity: slots, limits, rates, lending, pressure."""

from collections.abc import Mapping
from typing import Any

import pytest
from given import NOW, OPEN, SECOND, facts, job
from hypothesis import given
from hypothesis import strategies as st

from headway.core.capacity import (
    borrows,
    enter,
    free_slots,
    left_by_direct,
    objection,
    occupied,
    room,
)
from headway.core.facts import Capacity, Occupant, RateView
from headway.core.model import FUNCTION, OF_JOBS_FILE, Job, JobId, Rate, Wait, WaitKind
from headway.core.plan import Hold, Start, decide, plan
from headway.core.policies import ENTRY, SLOT, keys_of, own_rate, rate_keys
from headway.core.pressure import Measured, strained
from headway.core.reservations import Reservation

A, B, C = 1, 2, 3


def held(job_id: JobId | None, *keys: str, by: JobId | None = None) -> Occupant:
    return Occupant(job_id, keys, by)


OCCUPIED: list[tuple[str, list[Occupant], set[JobId], dict[str, int]]] = [
    ("nobody", [], set(), {}),
    ("one", [held(A, "x")], set(), {SLOT: 1, "x": 1}),
    ("two", [held(A, "x"), held(B, "x", "y")], set(), {SLOT: 2, "x": 2, "y": 1}),
    ("no job at all", [held(None, "x"), held(A, "x")], set(), {SLOT: 2, "x": 2}),
    ("a borrower", [held(A, "x"), held(B, "x", by=A)], {A}, {SLOT: 1, "x": 1}),
    ("more than is lent", [held(A, "x"), held(B, "x", "y", by=A)], {A}, {SLOT: 1, "x": 1, "y": 1}),
    ("nothing in common", [held(A, "x"), held(B, "y", by=A)], {A}, {SLOT: 1, "x": 1, "y": 1}),
    (
        "one who borrows from a borrower",
        [held(A, "x"), held(B, "y", by=A), held(C, "x", "y", "z", by=B)],
        {A, B},
        {SLOT: 1, "x": 1, "y": 1, "z": 1},
    ),
    ("the lender waits no more", [held(A, "x"), held(B, "x", by=A)], set(), {SLOT: 2, "x": 2}),
    ("the lender has ended", [held(B, "x", by=A)], set(), {SLOT: 1, "x": 1}),
    ("ended, and yet lending", [held(B, "x", by=A)], {A}, {SLOT: 1, "x": 1}),
    (
        "the first lender waits no more",
        [held(A, "x"), held(B, "x", by=A), held(C, "x", by=B)],
        {B},
        {SLOT: 2, "x": 2},
    ),
    (
        "the second lender waits no more",
        [held(A, "x"), held(B, "x", by=A), held(C, "x", by=B)],
        {A},
        {SLOT: 2, "x": 2},
    ),
    ("in a circle", [held(A, "x", by=B), held(B, "x", by=A)], {A, B}, {}),
]


@pytest.mark.req("C4", "G26")
@pytest.mark.parametrize(
    ("occupants", "lending", "used"), [case[1:] for case in OCCUPIED], ids=[c[0] for c in OCCUPIED]
)
def test_what_is_in_use(
    occupants: list[Occupant], lending: set[JobId], used: dict[str, int]
) -> None:
    assert occupied(occupants, lending) == used


@pytest.mark.req("E28", "D21")
def test_a_job_takes_of_its_type_its_resources_and_its_target() -> None:
    one = job(type="story", resources=("ollama", "gpu"), target="box")
    keys = ("type:story", "resource:ollama", "resource:gpu", "target:box")
    assert keys_of(one, OPEN.policies) == keys
    assert keys_of(job(), OPEN.policies) == ("type:command",)


def limited(limits: Mapping[str, int], used: Mapping[str, int], **fields: object) -> Capacity:
    return OPEN._replace(limits=limits, usage=used, **fields)  # type: ignore[arg-type]


@pytest.mark.req("C4", "C26", "D21")
@pytest.mark.parametrize(
    ("capacity", "detail", "topics"),
    [
        (limited({"resource:gpu": 1}, {}), None, ()),
        (limited({"resource:other": 0}, {}), None, ()),
        (
            limited({"resource:gpu": 1}, {"resource:gpu": 1}),
            "resource gpu is in use",
            ("limit:resource:gpu",),
        ),
        (
            limited({"resource:gpu": 2}, {"resource:gpu": 3}),
            "all 2 of resource gpu are in use",
            ("limit:resource:gpu",),
        ),
        (
            limited({"target:box": 0, "type:story": 1}, {"type:story": 1}),
            "type story is in use; none of target box may run",
            ("limit:type:story", "limit:target:box"),
        ),
    ],
)
def test_a_job_that_lacks_a_limit_is_filed_under_all_that_it_lacks(
    capacity: Capacity, detail: str | None, topics: tuple[str, ...]
) -> None:
    one = job(type="story", resources=("gpu",), target="box")
    wait = objection(one, capacity, NOW)
    if detail is None:
        assert wait is None
        return
    assert wait is not None and not wait.for_capacity
    assert (wait.kind, wait.detail, wait.topics) == (WaitKind.CAPACITY, detail, topics)


def test_a_limit_of_nothing_names_its_setting() -> None:
    wait = objection(job(resources=("gpu",)), limited({"resource:gpu": 0}, {}), NOW)
    assert wait is not None and wait.remedy == "scheduler.limits.resource.gpu is 0; raise it"


def test_who_lacks_the_slot_waits_for_capacity_whatever_else_it_lacks() -> None:
    capacity = limited({"resource:gpu": 0}, {}, max_active=1, running=1)
    wait = objection(job(resources=("gpu",)), capacity, NOW)
    assert wait is not None and wait.for_capacity and not wait.topics


def test_a_job_of_another_queue_is_filed_apart() -> None:
    capacity = limited({"resource:gpu": 0}, {})
    wait = objection(job(resources=("gpu",), queue="host-7"), capacity, NOW)
    assert wait is not None and wait.topics == ("limit:resource:gpu@host-7",)


RATED = limited(
    {"rate:claude": 2},
    {"rate:claude": 2},
    rates={"rate:claude": RateView(Rate("claude", 2, 60 * SECOND), "2/min", NOW + 7)},
)


def test_a_rate_that_is_used_up_says_until_when_and_wakes_nobody_by_itself() -> None:
    one = job(rates=(Rate("claude"),))
    decision = decide(one, facts(RATED))
    assert isinstance(decision, Hold)
    wait = decision.shown
    assert (wait.kind, wait.detail) == (WaitKind.RATE, "rate claude: 2/min is used up")
    assert (wait.until, decision.until) == (NOW + 7, None)
    assert wait.topics == ("limit:rate:claude",)
    assert isinstance(decide(job(rates=(Rate("other"),)), facts(RATED)), Start)


TWICE_RATED = limited(
    {"rate:claude": 1, "rate:mail": 1, "resource:gpu": 1},
    {"rate:claude": 1, "rate:mail": 1, "resource:gpu": 1},
    rates={
        "rate:claude": RateView(Rate("claude", 1, 60 * SECOND), "1/min", NOW + 7),
        "rate:mail": RateView(Rate("mail", 1, 60 * SECOND), "1/min", NOW + 9),
    },
)


def test_who_lacks_two_rates_waits_until_both_have_room() -> None:
    wait = objection(job(rates=(Rate("claude"), Rate("mail"))), TWICE_RATED, NOW)
    assert wait is not None and (wait.kind, wait.until) == (WaitKind.RATE, NOW + 9)


def test_who_lacks_more_than_rates_waits_for_capacity() -> None:
    wait = objection(job(rates=(Rate("claude"),), resources=("gpu",)), TWICE_RATED, NOW)
    assert wait is not None and wait.kind is WaitKind.CAPACITY


def test_a_rate_of_the_job_itself_counts_beside_that_of_the_settings() -> None:
    own = Rate("claude", 10, 60 * SECOND)
    keys = rate_keys(job(rates=(own, Rate("mail"))))
    assert keys == ("rate:claude", "rate:claude=10/60000000", "rate:mail")
    assert [own_rate(key) for key in keys] == [None, own, None]


def lending(
    limits: Mapping[str, int], used: Mapping[str, int], *held: str, **fields: Any
) -> Capacity:
    """Job A waits for this chain and holds these."""
    return limited(limits, used, lenders={7: (A,)}, lent={A: {SLOT, *held}}, **fields)


@pytest.mark.parametrize(
    ("capacity", "starts", "borrowed"),
    [
        (lending({}, {}), True, None),
        (lending({}, {}, max_active=1, running=1), True, A),
        (lending({}, {}, max_active=1, running=2), True, A),
        (lending({}, {}, max_active=1, running=2, twice={SLOT}), False, None),
        (lending({"resource:gpu": 1}, {"resource:gpu": 1}, "resource:gpu"), True, A),
        (lending({"resource:gpu": 1}, {"resource:gpu": 1}), False, None),
        (lending({"resource:gpu": 1}, {"resource:gpu": 2}, "resource:gpu"), True, A),
        (
            lending(
                {"resource:gpu": 1}, {"resource:gpu": 2}, "resource:gpu", twice={"resource:gpu"}
            ),
            False,
            None,
        ),
        (
            lending({"resource:gpu": 1}, {"resource:gpu": 1}, max_active=1, running=1),
            False,
            None,
        ),
        (lending({"rate:x": 1}, {"rate:x": 1}, "rate:y", max_active=1, running=1), False, None),
    ],
)
def test_a_lender_lends_what_it_holds_and_not_what_two_have_already(
    capacity: Capacity, starts: bool, borrowed: JobId | None
) -> None:
    one = job(7, resources=("gpu",), rates=(Rate("x"),))
    assert (objection(one, capacity, NOW) is None) is starts
    if starts:
        assert borrows(one, capacity) == borrowed


def test_who_borrows_takes_only_what_the_lender_has_not() -> None:
    capacity = lending(
        {"resource:gpu": 1, "type:command": 5}, {"resource:gpu": 1}, "resource:gpu", running=1
    )
    one = job(7, resources=("gpu",))
    after = enter(one, capacity, A)
    assert dict(after.usage) == {"resource:gpu": 1, "type:command": 1}
    assert after.running == 1
    assert objection(job(8, chain=7, resources=("gpu",)), after, NOW) is not None, "lent once"


def test_a_call_takes_one_of_the_processes_that_call_functions() -> None:
    after = enter(job(type=FUNCTION), OPEN._replace(places=2), None)
    assert after.places == 1
    assert enter(job(), after, None).places == 1, "a command needs none"


def test_an_entry_of_the_jobs_file_takes_a_place_and_no_slot() -> None:
    after = enter(job(schedule_id=f"{OF_JOBS_FILE}a"), OPEN, None)
    assert (after.running, dict(after.usage)) == (0, {ENTRY: 1})


FIRST = Reservation(7, "t", "ann", "", "here", 1, NOW, NOW + SECOND)
GPU, DISK = "resource:gpu", "resource:disk"
# cap, running, limits, in use, what the direct call takes; what is left: slots, and of gpu and disk
LEFT: list[tuple[str, tuple[int, int], dict[str, int], dict[str, int], tuple[str, ...], object]] = [
    ("it waits for the one slot", (1, 1), {}, {}, (), None),
    ("it waits for one of two", (2, 2), {}, {}, (), None),
    ("it could have its slot now", (2, 0), {}, {}, (), None),
    ("it could have it without a cap", (-1, 9), {}, {}, (), None),
    ("it could have slot and limit", (3, 1), {GPU: 1}, {}, (GPU,), None),
    ("what it takes is not limited", (3, 1), {}, {GPU: 5}, (GPU,), None),
    ("it lacks slot and limit", (2, 2), {GPU: 1}, {GPU: 1}, (GPU,), None),
    ("it lacks a limit, of one slot", (1, 0), {GPU: 0}, {}, (GPU,), None),
    ("it lacks a limit, one slot is free", (3, 2), {GPU: 1}, {GPU: 1}, (GPU,), None),
    ("it lacks a limit", (3, 1), {GPU: 1}, {GPU: 1}, (GPU,), (1, 0, None)),
    ("it lacks a limit, and there is no cap", (-1, 1), {GPU: 1}, {GPU: 1}, (GPU,), (None, 0, None)),
    ("one of two limits", (4, 1), {GPU: 1, DISK: 3}, {GPU: 1}, (GPU, DISK), (2, 0, 2)),
    ("the last of another", (4, 1), {GPU: 1, DISK: 1}, {GPU: 1}, (GPU, DISK), (2, 0, 0)),
    ("of what it does not take", (4, 1), {GPU: 1, DISK: 1}, {GPU: 1}, (GPU,), (2, 0, 1)),
]


@pytest.mark.req("E11", "C12")
@pytest.mark.parametrize(
    ("slots", "limits", "used", "takes", "left"), [c[1:] for c in LEFT], ids=[c[0] for c in LEFT]
)
def test_what_a_direct_call_in_line_leaves_to_the_queue(
    slots: tuple[int, int],
    limits: dict[str, int],
    used: dict[str, int],
    takes: tuple[str, ...],
    left: object,
) -> None:
    cap, active = slots
    capacity = limited(limits, used, max_active=cap, running=active)
    assert left_by_direct(capacity) == capacity, "without one, everything"
    capacity = capacity._replace(reserved=FIRST._replace(occupies=takes))
    beside = left_by_direct(capacity)
    told = beside and (free_slots(beside), room(GPU, beside), room(DISK, beside))
    assert told == left
    plain = objection(job(), capacity, NOW)
    if left is None:
        assert plain is not None and plain.detail == "direct-7 of ann goes first"
    else:
        assert plain is None
        wants_both = objection(job(resources=("gpu", "disk")), capacity, NOW)
        assert wants_both is not None and not wants_both.for_capacity, (
            "not in the way of the others"
        )
    assert objection(job(), capacity._replace(lenders={1: (80,)}), NOW) is None


def test_nobody_takes_the_slot_that_is_kept_for_a_direct_call() -> None:
    capacity = limited({GPU: 1}, {GPU: 1}, max_active=4, running=1)
    capacity = capacity._replace(reserved=FIRST._replace(occupies=(GPU,)))
    planned = plan([job(each, chain=each) for each in range(1, 5)], facts(capacity))
    assert [isinstance(each.decision, Start) for each in planned] == [True, True, False, False]


def test_who_borrows_beside_a_direct_call_takes_nothing_that_is_kept_for_it() -> None:
    capacity = limited({GPU: 1, DISK: 2}, {GPU: 1, DISK: 1}, max_active=4, running=1)
    capacity = capacity._replace(
        reserved=FIRST._replace(occupies=(GPU, DISK)),
        lenders={1: (A, B)},
        lent={A: {SLOT}, B: {SLOT, DISK}},
    )
    assert borrows(job(1, resources=("disk",)), capacity) == B, "A does not hold a disk"


STRAIN = Wait(WaitKind.PRESSURE, "too much", for_capacity=True)


def test_pressure_holds_up_all_but_those_for_whom_others_wait() -> None:
    assert objection(job(7), OPEN._replace(strain=STRAIN), NOW) == STRAIN
    assert objection(job(7), lending({}, {})._replace(strain=STRAIN), NOW) is None


@pytest.mark.parametrize(
    ("measured", "load", "memory", "detail"),
    [
        (Measured(9.0, 0), 0.0, 0, None),
        (Measured(2.0, 1 << 30), 2.0, 1 << 30, None),
        (Measured(None, None), 2.0, 1 << 30, None),
        (Measured(2.5, 1 << 30), 2.0, 0, "the load per processor is 2.50, above 2"),
        (
            Measured(0.0, 100 << 20),
            2.0,
            500 << 20,
            "100 MiB of memory are available, less than 500 MiB",
        ),
    ],
)
def test_the_host_has_enough_to_do(
    measured: Measured, load: float, memory: int, detail: str | None
) -> None:
    wait = strained(measured, most_load=load, least_memory=memory)
    assert (wait.detail if wait else None) == detail
    assert wait is None or wait.for_capacity


WORDS = ("a", "b", "c")
JOBS = st.lists(
    st.builds(
        lambda resources, target, priority, rated: {
            "resources": tuple(sorted(resources)),
            "target": target,
            "priority": priority,
            "rates": (Rate("r"),) if rated else (),
        },
        st.sets(st.sampled_from(WORDS)),
        st.sampled_from((None, "t")),
        st.integers(0, 2),
        st.booleans(),
    ),
    max_size=12,
)
LIMITS = st.dictionaries(
    st.sampled_from(
        ("resource:a", "resource:b", "resource:c", "target:t", "type:command", "rate:r")
    ),
    st.integers(0, 3),
)


@pytest.mark.req("C4", "G24")
@given(specs=JOBS, limits=LIMITS, cap=st.integers(-1, 5), most=st.none() | st.integers(0, 4))
def test_a_plan_exceeds_no_limit_and_nobody_is_passed(
    specs: list[dict[str, object]], limits: dict[str, int], cap: int, most: int | None
) -> None:
    view = RateView(Rate("r", limits.get("rate:r", 0), SECOND), "r")
    capacity = Capacity(max_active=cap, limits=limits, rates={"rate:r": view})
    jobs = [job(number, **spec) for number, spec in enumerate(specs, 1)]
    planned = plan(jobs, facts(capacity), limit=most)
    started = [each.job for each in planned if isinstance(each.decision, Start)]
    assert most is None or len(started) <= most
    assert cap <= 0 or len(started) <= cap

    def needs(one: Job) -> set[str]:
        return {*keys_of(one, capacity.policies), *rate_keys(one)}

    for key, limit in limits.items():
        assert sum(key in needs(one) for one in started) <= limit
    for each in planned:
        if isinstance(each.decision, Start):
            continue
        later = [one for one in started if one.order > each.job.order]
        assert not any(needs(each.job) <= needs(one) for one in later)
    after = capacity
    for one in started:
        after = enter(one, after, None)
    if most is None:
        for each in planned:
            waits = not isinstance(each.decision, Start)
            assert not waits or objection(each.job, after, NOW) is not None
    assert all(room(key, after) is not None for key in limits)
