"""Many jobs in order: what one takes or reserves is gone for the next."""

from collections.abc import Sequence

import pytest
from given import NOW, OPEN, SECOND, exclusive, facts, held, job, promised, shared
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core import capacity as admission
from headway.core.facts import Capacity, Facts, Holder, LockView, Predecessor
from headway.core.model import (
    Block,
    HostTrouble,
    Job,
    JobId,
    Lock,
    LockMode,
    Pause,
    Wait,
    WaitKind,
)
from headway.core.plan import Batch, Hold, Planned, Start, decide, explain, plan
from headway.core.policies import SLOT
from headway.core.states import Status

LATER = NOW + SECOND


def starts(planned: Sequence[Planned]) -> list[JobId]:
    return [each.job.id for each in planned if isinstance(each.decision, Start)]


def waits(planned: Sequence[Planned]) -> dict[JobId, list[WaitKind]]:
    return {
        each.job.id: [wait.kind for wait in each.decision.waits]
        for each in planned
        if isinstance(each.decision, Hold)
    }


# -- the fold ---------------------------------------------------------------------------------


def test_jobs_are_decided_in_dispatch_order() -> None:
    jobs = [
        job(1, priority=0, position=100, created_at=1),
        job(2, priority=5, position=300, created_at=1),
        job(3, priority=5, position=200, created_at=2),
        job(4, priority=5, position=200, created_at=1),
        job(5, priority=5, position=200, created_at=1),
    ]
    assert [each.job.id for each in plan(jobs, facts())] == [4, 5, 3, 2, 1]


def test_a_slot_that_one_takes_is_gone_for_the_next() -> None:
    planned = plan([job(1), job(2), job(3)], facts(Capacity(max_active=3, running=1)))
    assert starts(planned) == [1, 2]
    assert waits(planned) == {3: [WaitKind.CAPACITY]}


def test_a_lock_that_one_takes_is_gone_for_the_next() -> None:
    planned = plan([job(1, locks=(exclusive("k"),)), job(2, locks=(shared("k"),)), job(3)], facts())
    assert starts(planned) == [1, 3]
    assert waits(planned) == {2: [WaitKind.LOCKS]}


def test_sharers_of_a_lock_start_together() -> None:
    planned = plan([job(each, locks=(shared("k"),)) for each in (1, 2, 3)], facts())
    assert starts(planned) == [1, 2, 3]


def test_jobs_after_the_last_permitted_start_were_not_looked_at() -> None:
    jobs = [job(1, not_before=LATER), job(2), job(3), job(4)]
    planned = plan(jobs, facts(), limit=1)
    assert [each.job.id for each in planned] == [1, 2] and starts(planned) == [2]
    assert plan(jobs, facts(), limit=0) == ()
    assert starts(plan(jobs, facts(), limit=None)) == [2, 3, 4]


def test_in_a_batch_everyone_is_decided() -> None:
    """What starts in a later pass waits for capacity, and takes a slot there but no lock."""
    blocked = facts(Capacity(max_active=3), predecessors={5: (Predecessor(9, 9, Status.FAILED),)})
    wants = {"locks": (exclusive("k"),)}
    jobs = [job(1), job(2, **wants), job(3, **wants), job(4), job(5, after=(9,)), job(6)]
    planned = plan(jobs, blocked, batch=Batch(7, 1))
    assert starts(planned) == [1] and isinstance(planned[4].decision, Block)
    said = {
        each.job.id: each.decision.shown.detail
        for each in planned
        if isinstance(each.decision, Hold)
    }
    full = "one pass starts at most 7"
    assert said == {2: full, 3: full, 4: "all 3 slots are in use", 6: "all 3 slots are in use"}
    assert all(each.decision.for_capacity for each in planned if isinstance(each.decision, Hold))
    assert starts(plan(jobs, blocked, batch=Batch(7, 0))) == []


def test_a_blocked_job_takes_nothing() -> None:
    blocked = job(1, after=(9,), locks=(exclusive("k"),))
    known = facts(Capacity(max_active=1), predecessors={1: (Predecessor(9, 9, Status.FAILED),)})
    planned = plan([blocked, job(2, locks=(exclusive("k"),))], known)
    assert isinstance(planned[0].decision, Block) and starts(planned) == [2]


# -- reservations -----------------------------------------------------------------------------


def test_a_sole_lock_waiter_reserves_against_later_jobs() -> None:
    waiter = job(1, locks=(exclusive("held"), exclusive("free")))
    planned = plan(
        [waiter, job(2, locks=(exclusive("free"),)), job(3, locks=(exclusive("other"),))],
        facts(locks=held("held", LockMode.SHARED, 9)),
    )
    assert starts(planned) == [3]
    second = planned[1].decision
    assert isinstance(second, Hold) and second.shown.remedy == "free is promised to job-1"


def test_a_lock_waiter_reserves_nothing_against_earlier_jobs() -> None:
    early, late = job(1, locks=(exclusive("k"),)), job(2, locks=(exclusive("k"),))
    assert starts(plan([early], facts(locks=promised("k", LockMode.EXCLUSIVE, late)))) == [1]


@pytest.mark.parametrize(
    ("waiter", "capacity"),
    [
        (job(1, locks=(exclusive("held"), exclusive("free")), not_before=LATER), OPEN),
        (job(1, locks=(exclusive("held"), exclusive("free")), after=(9,)), OPEN),
    ],
    ids=["its time has not come", "its predecessor runs"],
)
def test_an_unrunnable_waiter_reserves_nothing(waiter: Job, capacity: Capacity) -> None:
    known = facts(
        capacity,
        locks=held("held", LockMode.SHARED, 9),
        predecessors={1: (Predecessor(9, 9, Status.RUNNING),)} if waiter.after else {},
    )
    assert starts(plan([waiter, job(2, locks=(exclusive("free"),))], known)) == [2]


def test_a_waiter_that_lacks_a_slot_too_reserves_nothing() -> None:
    waiter = job(1, locks=(exclusive("held"), exclusive("free")))
    lent = job(2, locks=(exclusive("free"),))
    capacity = Capacity(max_active=1, running=1, lenders={2: (8,)})
    planned = plan([waiter, lent], facts(capacity, locks=held("held", LockMode.SHARED, 9)))
    assert starts(planned) == [2]


def test_sharers_pass_a_waiting_sharer_but_not_a_waiting_exclusive() -> None:
    sharer = job(1, locks=(shared("k"), exclusive("held")))
    known = facts(locks=held("held", LockMode.EXCLUSIVE, 9))
    assert starts(plan([sharer, job(2, locks=(shared("k"),))], known)) == [2]
    alone = job(1, locks=(exclusive("k"), exclusive("held")))
    assert starts(plan([alone, job(2, locks=(shared("k"),))], known)) == []


# -- capacity ---------------------------------------------------------------------------------


def test_a_lent_slot_admits_only_the_awaited_chain() -> None:
    capacity = Capacity(max_active=1, running=1, lenders={5: (9,)})
    planned = plan([job(1), job(7, chain=5), job(8, chain=5)], facts(capacity))
    assert {each.job.id: each.decision for each in planned}[7] == Start(borrows=9)
    assert waits(planned) == {1: [WaitKind.CAPACITY], 8: [WaitKind.CAPACITY]}


def test_a_lent_slot_admits_nobody_while_a_lender_and_its_borrower_have_one_too_many() -> None:
    capacity = Capacity(max_active=1, running=2, lenders={5: (9,)}, twice={SLOT})
    assert starts(plan([job(7, chain=5)], facts(capacity))) == []
    lowered = capacity._replace(twice=())
    assert starts(plan([job(7, chain=5)], facts(lowered))) == [7], "only the cap was lowered"


def test_a_free_slot_is_used_before_a_lent_one() -> None:
    capacity = Capacity(max_active=2, running=1, lenders={5: (9,)})
    planned = plan([job(1, chain=5), job(2, chain=5), job(3)], facts(capacity))
    assert [each.decision for each in planned[:2]] == [Start(), Start(borrows=9)]
    assert starts(planned) == [1, 2]


def test_one_lender_lends_its_slot_once_whatever_it_waits_for() -> None:
    capacity = Capacity(max_active=1, running=1, lenders={5: (9,), 6: (9,)})
    assert starts(plan([job(1, chain=5), job(2, chain=6)], facts(capacity))) == [1]


def test_a_pause_leaves_no_capacity_for_all() -> None:
    capacity = Capacity(max_active=-1, paused=Pause("ann", None, NOW), lenders={1: (9,)})
    planned = plan([job(1), job(2, priority=9)], facts(capacity))
    assert waits(planned) == {2: [WaitKind.PAUSED], 1: [WaitKind.PAUSED]}


@pytest.mark.req("G25", "G26")
@pytest.mark.parametrize(
    ("max_active", "running", "started"),
    [(1, 0, 1), (1, 1, 0), (1, 2, 0), (4, 1, 3), (4, 4, 0), (4, 9, 0)],
)
def test_capacity_is_the_cap_less_all_that_runs(
    max_active: int, running: int, started: int
) -> None:
    capacity = Capacity(max_active=max_active, running=running)
    assert len(starts(plan([job(each) for each in range(1, 10)], facts(capacity)))) == started
    assert admission.free_slots(capacity) == started


@pytest.mark.req("D17")
def test_by_default_one_job_runs() -> None:
    assert starts(plan([job(1), job(2)], Facts(now=NOW))) == [1]


@pytest.mark.parametrize("max_active", [-1, 0])
def test_direct_mode_lifts_the_cap_and_nothing_else(max_active: int) -> None:
    capacity = Capacity(max_active=max_active, running=50)
    jobs = [
        job(1),
        job(2, not_before=LATER),
        job(3, locks=(exclusive("held"),)),
        job(4, after=(9,)),
        job(5),
    ]
    known = facts(
        capacity,
        locks=held("held", LockMode.EXCLUSIVE, 9),
        predecessors={4: (Predecessor(9, 9, Status.RUNNING),)},
    )
    planned = plan(jobs, known)
    assert starts(planned) == [1, 5]
    assert waits(planned) == {
        2: [WaitKind.TIME],
        3: [WaitKind.LOCKS],
        4: [WaitKind.DEPENDENCIES],
    }


def test_a_host_in_trouble_is_probed_with_one_job() -> None:
    jobs = [job(1), job(2), job(3)]
    due = HostTrouble(WaitKind.PRESSURE, "no memory", 3, probe_at=NOW)
    planned = plan(jobs, facts(Capacity(max_active=-1, trouble=due)))
    assert starts(planned) == [1]
    assert waits(planned) == {2: [WaitKind.PRESSURE], 3: [WaitKind.PRESSURE]}
    later = HostTrouble(WaitKind.PRESSURE, "no memory", 3, probe_at=LATER)
    assert starts(plan(jobs, facts(Capacity(max_active=-1, trouble=later)))) == []
    under_way = HostTrouble(WaitKind.PRESSURE, "no memory", 3, probe_at=NOW, probing=True)
    assert starts(plan(jobs, facts(Capacity(max_active=-1, trouble=under_way)))) == []


# -- in words ---------------------------------------------------------------------------------


def test_explain_gives_every_objection_in_gate_order() -> None:
    waiting = job(9, after=(4, 5), locks=(exclusive("k"),), not_before=LATER)
    known = facts(
        Capacity(max_active=1, running=1),
        predecessors={9: (Predecessor(4, 4, Status.RUNNING),)},
        locks=held("k", LockMode.EXCLUSIVE, 4),
    )
    objections = explain(waiting, known)
    assert [each.kind for each in objections] == [
        WaitKind.TIME,
        WaitKind.DEPENDENCIES,
        WaitKind.LOCKS,
        WaitKind.CAPACITY,
    ]
    assert all(isinstance(each, Wait) and each.remedy for each in objections)
    assert explain(job(1), facts()) == ()


def test_explain_goes_on_behind_a_block() -> None:
    known = facts(
        Capacity(paused=Pause("ann", None, NOW)),
        predecessors={9: (Predecessor(4, 4, None),)},
    )
    blocked, paused = explain(job(9, after=(4,)), known)
    assert isinstance(blocked, Block) and isinstance(paused, Wait)
    assert isinstance(decide(job(9, after=(4,)), known), Block)


# -- properties -------------------------------------------------------------------------------

KEYS = ("a", "b", "c")
MODES = st.sampled_from(LockMode)


@st.composite
def some_locks(draw: st.DrawFn) -> tuple[Lock, ...]:
    keys = draw(st.sets(st.sampled_from(KEYS)))
    return tuple(Lock(key, draw(MODES)) for key in sorted(keys))


@st.composite
def some_jobs(draw: st.DrawFn) -> list[Job]:
    count = draw(st.integers(0, 8))
    return [
        job(
            each,
            priority=draw(st.integers(0, 1)),
            position=draw(st.sampled_from((100, 200))),
            chain=draw(st.integers(1, 4)),
            locks=draw(some_locks()),
            not_before=draw(st.sampled_from((None, None, NOW, LATER))),
        )
        for each in range(1, count + 1)
    ]


@st.composite
def some_facts(draw: st.DrawFn) -> Facts:
    """What others hold agrees with itself: a key has one exclusive holder or some sharers."""
    views = {}
    for key in KEYS:
        mode = draw(MODES)
        most = 1 if mode is LockMode.EXCLUSIVE else 2
        holders = draw(st.integers(0, most))
        views[key] = LockView(tuple(Holder(90 + each, mode) for each in range(holders)))
    trouble = st.sampled_from((None, None, HostTrouble(WaitKind.STORAGE, "full", 1, NOW)))
    capacity = Capacity(
        max_active=draw(st.integers(-1, 4)),
        running=draw(st.integers(0, 5)),
        paused=draw(st.sampled_from((None, None, None, Pause("ann", None, NOW)))),
        trouble=draw(trouble),
        lenders={
            chain: (80 + draw(st.integers(0, 1)),) for chain in draw(st.sets(st.integers(1, 4)))
        },
    )
    return Facts(now=NOW, capacity=capacity, locks=views)


@settings(deadline=None, max_examples=200)
@given(some_jobs(), some_facts())
def test_no_exclusive_key_has_two_holders(jobs: list[Job], known: Facts) -> None:
    holders = {key: [each.mode for each in view.holders] for key, view in known.locks.items()}
    for each in plan(jobs, known):
        if isinstance(each.decision, Start):
            for lock in each.job.locks:
                holders[lock.key].append(lock.mode)
    for modes in holders.values():
        assert len(modes) <= 1 or LockMode.EXCLUSIVE not in modes


@settings(deadline=None, max_examples=200)
@given(some_jobs(), some_facts(), st.sampled_from((None, 0, 1, 3)))
def test_no_more_start_than_there_are_slots(
    jobs: list[Job], known: Facts, limit: int | None
) -> None:
    planned = plan(jobs, known, limit=limit)
    decisions = [each.decision for each in planned if isinstance(each.decision, Start)]
    borrowed = [each.borrows for each in decisions if each.borrows is not None]
    assert len(borrowed) == len(set(borrowed))
    free = admission.free_slots(known.capacity)
    if free is None:
        assert not borrowed
    else:
        assert len(decisions) - len(borrowed) <= free
    if limit is not None:
        assert len(decisions) <= limit
    if known.capacity.trouble is not None:
        assert len(decisions) <= 1


@settings(deadline=None, max_examples=200)
@given(some_jobs(), st.integers(-1, 4), st.integers(0, 4))
def test_without_locks_the_first_in_order_start(
    jobs: list[Job], max_active: int, active: int
) -> None:
    plain = [job(each.id, priority=each.priority, position=each.position) for each in jobs]
    capacity = Capacity(max_active=max_active, running=active)
    in_order = [each.id for each in sorted(plain, key=lambda each: each.order)]
    started = starts(plan(plain, facts(capacity)))
    assert started == in_order[: len(started)]
    free = admission.free_slots(capacity)
    assert len(started) == (len(plain) if free is None else min(free, len(plain)))


@settings(deadline=None, max_examples=200)
@given(st.randoms(), some_jobs(), some_facts())
def test_a_plan_is_a_pure_function_of_its_jobs_and_facts(
    random: object, jobs: list[Job], known: Facts
) -> None:
    before = repr(known)
    shuffled = list(jobs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert plan(jobs, known) == plan(shuffled, known)
    assert repr(known) == before


@settings(deadline=None, max_examples=200)
@given(some_jobs(), some_facts())
def test_planning_what_was_held_once_more_starts_nothing(jobs: list[Job], known: Facts) -> None:
    """Nothing is left behind by the fold: after the starts, the rest still has to wait."""
    planned = plan(jobs, known)
    capacity, views = known.capacity, dict(known.locks)
    for each in planned:
        if isinstance(each.decision, Start):
            capacity = admission.enter(each.job, capacity, each.decision.borrows)
            for lock in each.job.locks:
                holders = (*views[lock.key].holders, Holder(each.job.id, lock.mode))
                views[lock.key] = LockView(holders)
    rest = [each.job for each in planned if isinstance(each.decision, Hold)]
    again = starts(plan(rest, Facts(now=NOW, capacity=capacity, locks=views)))
    if not known.capacity.lenders:
        assert again == []
    # Who had a lock promised may have found its lender taken by the next: then that lock is free.
    promised = {lock.key for each in planned if _promised(each) for lock in each.job.locks}
    waiting = {each.id: each for each in rest}
    assert all({lock.key for lock in waiting[each].locks} & promised for each in again)


def _promised(planned: Planned) -> bool:
    return isinstance(planned.decision, Hold) and planned.decision.reserves
