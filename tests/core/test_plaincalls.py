"""Plain calls are those of which the plan says nothing but how many: each that is decided without
it would have been decided so by it."""

from typing import Any

import pytest
from given import NOW, SECOND, facts, job
from hypothesis import given
from hypothesis import strategies as st

from headway.core.facts import Capacity, RateView, TaskView
from headway.core.model import (
    FUNCTION,
    FUNCTIONS,
    NOTHING,
    Approval,
    ApprovalState,
    HostTrouble,
    Job,
    Lock,
    Pause,
    PinnedHead,
    Rate,
    RetryPolicy,
    Stage,
    Wait,
    WaitKind,
)
from headway.core.plaincalls import OCCUPIES, everything_may_start, is_plain, room_for_calls
from headway.core.plan import Hold, Start, plan
from headway.core.policies import BUILT_IN, SLOT, PerType, keys_of
from headway.core.reservations import Reservation
from headway.core.states import Status

TASK = "shop.f"
KNOWN = TaskView(frozenset({TASK}))
WAIT = Wait(WaitKind.DEPENDENCIES, "waiting on job-1")

# What each field must be for a job to be no plain call.
NOT_PLAIN: dict[str, Any] = {
    "type": "command",
    "queue": "host-7",
    "wait": WAIT,
    "locks": (Lock("k"),),
    "on_finish": ("true",),
    "needs": ("file:x",),
    "produces": ("file:x",),
    "pinned_head": PinnedHead("main", "0" * 40),
    "preconditions": ("clean",),
    "repo": "/repo",
    "workflow_run": 7,
    "node": "build",
    "node_pass": 1,
    "after_runs": (7,),
    "webhooks": ("https://ci.example.org/hook",),
    "requested_start": NOW,
    "approval": Approval(ApprovalState.APPROVED, NOW, "ann"),
    "group_id": 1,
    "subject": "file:x",
    "target": "box",
    "resources": ("gpu",),
    "rates": (Rate("claude"),),
    "cancel_requested_at": NOW,
    "retry_of": 1,
}
# What all others may be: of a job that is waiting for capacity nobody looks at them any more.
ANYTHING: dict[str, st.SearchStrategy[Any]] = {
    "id": st.integers(1, 10**9),
    "name": st.text(),
    "status": st.sampled_from([Status.QUEUED, Status.WAITING_ON_DEPS]),
    "priority": st.integers(-99, 99),
    "position": st.integers(0, 10**6),
    "params": st.just({"task": TASK, "args": {}}),
    "created_at": st.integers(0, NOW),
    "chain": st.integers(1, 10**9),
    "slug": st.none() | st.just("slug"),
    "labels": st.sampled_from([NOTHING, {"a": "b"}]),
    "after": st.sampled_from([(), (1, 2)]),
    "retry": st.sampled_from([RetryPolicy(), RetryPolicy(3)]),
    "attempt": st.integers(1, 100),
    "retries_used": st.integers(0, 3),
    "not_before": st.none() | st.integers(0, NOW),
    "env_digest": st.none() | st.just("e" * 64),
    "key": st.none() | st.just("once"),
    "spec_digest": st.just("d"),
    "submitted_by": st.just("ann"),
    "launch_failures": st.integers(0, 2),
    "last_failure": st.none() | st.just("no such program"),
    "launch_wait": st.none() | st.just(WaitKind.LAUNCH),
    "stage": st.just(Stage.READY),
    "waited_on": st.sampled_from([(), ("job-1",)]),
    "reason": st.none(),
    "started_at": st.none(),
    "finished_at": st.none(),
    "cancel_requested_by": st.none(),
    "level": st.none() | st.integers(-99, 99),
    "sequence_number": st.none() | st.just(1),
    "template_id": st.none() | st.just("template-1"),
    "schedule_id": st.none() | st.just("schedule-1"),
}
ASKING = Reservation(1, "token", "ann", "a look", "host", 77, NOW, NOW + SECOND)

# What each field must be for some jobs not to be allowed to start.
NARROW: dict[str, Any] = {
    "paused": Pause("ann", None, NOW),
    "trouble": HostTrouble(WaitKind.STORAGE, "no space", 1, NOW + SECOND),
    "lenders": {7: (1,)},
    "limits": {"type:function": 5},
    "lent": {1: {SLOT}},
    "policies": (*BUILT_IN, PerType()),
    "next_pass": NOW + SECOND,
    "strain": Wait(WaitKind.PRESSURE, "busy", for_capacity=True),
    "reserved": ASKING,
}
# What all others may be: how many go through, or what matters only beside one of those.
ANY_CAPACITY: dict[str, st.SearchStrategy[Any]] = {
    "max_active": st.integers(-1, 12),
    "running": st.integers(0, 12),
    "parallel": st.integers(1, 3),
    "places": st.integers(0, 12),
    "usage": st.sampled_from([NOTHING, {SLOT: 3, "type:function": 3}]),
    "rates": st.sampled_from([NOTHING, {"rate:x": RateView(Rate("x"), "2/min")}]),
    "twice": st.sampled_from([(), (SLOT,)]),
    "granted": st.sampled_from([(), (ASKING._replace(granted_at=NOW),)]),
    "unlent": st.sampled_from([NOTHING, {1: {SLOT}}]),
}


def call(job_id: int = 1, **fields: Any) -> Job:
    ready = {"stage": Stage.READY, "params": {"task": TASK, "args": {}}}
    return job(job_id, **({"type": FUNCTION, "queue": FUNCTIONS} | ready | fields))


def test_somebody_has_decided_about_every_field() -> None:
    """A new one belongs to those that make a job or a capacity special, or to those that do not."""
    assert {*NOT_PLAIN, *ANYTHING} == {*Job._fields}
    assert {*NARROW, *ANY_CAPACITY} == {*Capacity._fields}


@pytest.mark.parametrize("field", NOT_PLAIN)
def test_whoever_needs_more_than_a_slot_is_no_plain_call(field: str) -> None:
    assert is_plain(call())
    assert not is_plain(call(**{field: NOT_PLAIN[field]}))


@pytest.mark.parametrize("field", NARROW)
def test_whatever_else_may_be_lacking_not_everything_may_start(field: str) -> None:
    assert everything_may_start(Capacity(places=1))
    assert not everything_may_start(Capacity(places=1)._replace(**{field: NARROW[field]}))


def test_nobody_goes_through_before_the_places_are_counted() -> None:
    assert everything_may_start(Capacity()) and room_for_calls(Capacity()) == 0


@given(
    capacity=st.fixed_dictionaries(ANY_CAPACITY),
    calls=st.lists(st.fixed_dictionaries(ANYTHING), max_size=10, unique_by=lambda each: each["id"]),
)
def test_of_plain_calls_the_plan_starts_the_first_for_which_there_is_room(
    capacity: dict[str, Any], calls: list[dict[str, Any]]
) -> None:
    free = Capacity(**capacity)
    jobs = [call(**fields) for fields in calls]
    assert everything_may_start(free) and all(map(is_plain, jobs))
    queues = ("", FUNCTIONS)
    types = ("command", FUNCTION)
    planned = plan(jobs, facts(free, tasks=KNOWN, queues=queues, types=types))
    in_order = sorted(jobs, key=lambda each: each.order)
    started = [each.job for each in planned if isinstance(each.decision, Start)]
    assert started == in_order[: room_for_calls(free)]
    for each in planned:
        match each.decision:
            case Start(borrows):
                assert borrows is None and keys_of(each.job, free.policies) == OCCUPIES
            case decision:
                assert isinstance(decision, Hold) and decision.for_capacity, "it stays where it is"
