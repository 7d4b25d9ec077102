"""What each gate says, word for word."""

from typing import Any

import pytest
from given import NOW, SECOND, exclusive, facts, held, job, promised, shared

from headway.core import gates
from headway.core.facts import IMPORTING, NO_HOST, Capacity, Facts, Predecessor, TaskView
from headway.core.gates import GATES, Wake
from headway.core.model import (
    FUNCTION,
    Block,
    HostTrouble,
    Job,
    LockMode,
    Pause,
    Wait,
    WaitKind,
)
from headway.core.plan import MOVE_FOR_WAIT, Hold, decide, move_for
from headway.core.states import Move, Status, after

LATER = NOW + 60 * SECOND


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({}, None),
        ({"not_before": NOW}, None),
        ({"not_before": NOW - 1}, None),
        ({"not_before": NOW + 1}, (WaitKind.TIME, "waiting for its time", NOW + 1)),
        (
            {"not_before": LATER, "attempt": 3},
            (WaitKind.TIME, "backing off before attempt 3", LATER),
        ),
        (
            {
                "not_before": LATER,
                "attempt": 3,
                "launch_wait": WaitKind.LAUNCH,
                "last_failure": "no such program",
            },
            (WaitKind.LAUNCH, "could not be started: no such program", LATER),
        ),
    ],
)
def test_due(fields: dict[str, Any], answer: tuple[WaitKind, str, int] | None) -> None:
    wait = gates.due(job(**fields), facts())
    if answer is None:
        assert wait is None
    else:
        assert isinstance(wait, Wait)
        assert (wait.kind, wait.detail, wait.until) == answer
        assert not wait.topics and not wait.for_capacity


def depends_on(*predecessors: Predecessor) -> tuple[Job, Facts]:
    dependent = job(9, after=tuple(each.declared for each in predecessors))
    return dependent, facts(predecessors={9: predecessors})


@pytest.mark.req("V48")
@pytest.mark.parametrize(
    "status",
    [
        Status.QUEUED,
        Status.WAITING_ON_DEPS,
        Status.WAITING_ON_APPROVAL,
        Status.WAITING_ON_LOCKS,
        Status.RUNNING,
    ],
)
def test_an_active_predecessor_is_waited_for(status: Status) -> None:
    wait = gates.after_met(*depends_on(Predecessor(4, chain=3, status=status)))
    assert isinstance(wait, Wait)
    assert (wait.kind, wait.detail) == (WaitKind.DEPENDENCIES, "waiting on job job-4")
    assert wait.topics == ("chain:3",)
    assert after(Status.QUEUED, move_for(wait)) is Status.WAITING_ON_DEPS


@pytest.mark.req("V46")
@pytest.mark.parametrize("status", Status)
def test_of_all_statuses_success_alone_satisfies(status: Status) -> None:
    objection = gates.after_met(*depends_on(Predecessor(4, 4, status)))
    assert (objection is None) is (status is Status.SUCCEEDED)


@pytest.mark.req("V49")
def test_a_succeeded_predecessor_satisfies() -> None:
    assert gates.after_met(*depends_on(Predecessor(4, 4, Status.SUCCEEDED))) is None


@pytest.mark.req("V50")
@pytest.mark.parametrize(
    "status",
    [
        Status.FAILED,
        Status.SKIPPED,
        Status.CANCELLED,
        Status.BLOCKED_BY_DEPENDENCY,
        Status.BLOCKED_BY_APPROVAL,
    ],
)
def test_a_predecessor_that_ended_otherwise_blocks(status: Status) -> None:
    block = gates.after_met(*depends_on(Predecessor(4, 4, status)))
    assert block == Block(
        WaitKind.DEPENDENCIES,
        f"dependency failed for job job-4 ({status.value})",
        Status.BLOCKED_BY_DEPENDENCY,
        "headway jobs retry job-4",
    )


@pytest.mark.req("V47")
def test_a_missing_predecessor_blocks() -> None:
    block = gates.after_met(*depends_on(Predecessor(4, 4, None)))
    assert isinstance(block, Block)
    assert (block.kind, block.detail, block.status) == (
        WaitKind.DEPENDENCIES,
        "missing job dependency job-4",
        Status.BLOCKED_BY_DEPENDENCY,
    )


@pytest.mark.req("V51")
def test_an_unreadable_predecessor_blocks() -> None:
    block = gates.after_met(*depends_on(Predecessor(4, 4, None, error="bad JSON")))
    assert isinstance(block, Block)
    assert (block.kind, block.detail, block.status) == (
        WaitKind.DEPENDENCIES,
        "scheduler data error for job dependency job-4: bad JSON",
        Status.BLOCKED_BY_DEPENDENCY,
    )


def test_a_failed_predecessor_blocks_whatever_else_is_waited_for() -> None:
    objection = gates.after_met(
        *depends_on(
            Predecessor(1, 1, Status.SUCCEEDED),
            Predecessor(2, 2, Status.RUNNING),
            Predecessor(3, 3, Status.FAILED),
        )
    )
    assert isinstance(objection, Block) and objection.detail.endswith("job-3 (failed)")


def test_the_first_active_predecessor_is_the_one_shown() -> None:
    objection = gates.after_met(
        *depends_on(Predecessor(1, 1, Status.QUEUED), Predecessor(2, 2, Status.RUNNING))
    )
    assert isinstance(objection, Wait) and objection.detail == "waiting on job job-1"


@pytest.mark.req("V70", "V71")
@pytest.mark.parametrize(
    ("wanted", "holding", "free"),
    [
        (shared("k"), (LockMode.SHARED, 7, 8), True),
        (shared("k"), (LockMode.EXCLUSIVE, 7), False),
        (exclusive("k"), (LockMode.SHARED, 7), False),
        (exclusive("k"), (LockMode.EXCLUSIVE, 7), False),
        (exclusive("other"), (LockMode.EXCLUSIVE, 7), True),
    ],
)
def test_a_lock_is_shared_by_many_or_held_alone(wanted: Any, holding: Any, free: bool) -> None:
    mode, *holders = holding
    objection = gates.locks_free(job(locks=(wanted,)), facts(locks=held("k", mode, *holders)))
    if free:
        assert objection is None
        return
    assert objection == Wait(
        WaitKind.LOCKS, "waiting on locks", topics=("lock:k",), remedy="k is held by job-7"
    )
    assert after(Status.QUEUED, move_for(objection)) is Status.WAITING_ON_LOCKS


@pytest.mark.req("V70")
def test_locks_are_had_all_together_or_not_at_all() -> None:
    wanting = job(1, locks=(exclusive("a"), exclusive("b"), exclusive("c")))
    views = {**held("a", LockMode.SHARED, 7), **held("c", LockMode.EXCLUSIVE, 8)}
    wait = gates.locks_free(wanting, facts(locks=views))
    assert isinstance(wait, Wait)
    assert wait.topics == ("lock:a", "lock:c")
    assert wait.remedy == "a is held by job-7; c is held by job-8"


def test_a_lock_promised_to_an_earlier_job_is_not_free_for_a_later_one() -> None:
    early, late = job(1, locks=(exclusive("k"),)), job(2, locks=(exclusive("k"),))
    views = promised("k", LockMode.EXCLUSIVE, early)
    wait = gates.locks_free(late, facts(locks=views))
    assert isinstance(wait, Wait) and wait.remedy == "k is promised to job-1"
    assert gates.locks_free(early, facts(locks=views)) is None
    views = promised("k", LockMode.EXCLUSIVE, late)
    assert gates.locks_free(early, facts(locks=views)) is None


def test_a_shared_promise_does_not_hold_up_a_shared_lock() -> None:
    views = promised("k", LockMode.SHARED, job(1))
    assert gates.locks_free(job(2, locks=(shared("k"),)), facts(locks=views)) is None
    assert gates.locks_free(job(2, locks=(exclusive("k"),)), facts(locks=views)) is not None


def test_a_lock_that_the_job_itself_holds_does_not_hold_it_up() -> None:
    views = held("k", LockMode.EXCLUSIVE, 1)
    assert gates.locks_free(job(1, locks=(exclusive("k"),)), facts(locks=views)) is None


PAUSED = Pause("ann", "moving house", NOW)
TROUBLE = HostTrouble(WaitKind.STORAGE, "no space left", failures=2, probe_at=LATER)


@pytest.mark.parametrize(
    ("capacity", "answer"),
    [
        (Capacity(max_active=1, running=0), None),
        (Capacity(max_active=1, running=1), (WaitKind.CAPACITY, "the one slot is in use", None)),
        (Capacity(max_active=3, running=2), None),
        (Capacity(max_active=3, running=3), (WaitKind.CAPACITY, "all 3 slots are in use", None)),
        (Capacity(max_active=3, running=9), (WaitKind.CAPACITY, "all 3 slots are in use", None)),
        (
            Capacity(max_active=3, paused=PAUSED),
            (WaitKind.PAUSED, "paused by ann: moving house", None),
        ),
        (
            Capacity(max_active=-1, paused=Pause("ann", None, NOW)),
            (WaitKind.PAUSED, "paused by ann", None),
        ),
        (
            Capacity(max_active=3, trouble=TROUBLE),
            (WaitKind.STORAGE, "no space left", LATER),
        ),
        (
            Capacity(trouble=HostTrouble(WaitKind.PRESSURE, "no memory", 1, NOW, probing=True)),
            (WaitKind.PRESSURE, "no memory", None),
        ),
        (Capacity(trouble=HostTrouble(WaitKind.PRESSURE, "no memory", 1, NOW)), None),
        (
            Capacity(max_active=1, running=1, paused=PAUSED, trouble=TROUBLE),
            (WaitKind.PAUSED, "paused by ann: moving house", None),
        ),
    ],
)
def test_slot_free(capacity: Capacity, answer: tuple[WaitKind, str, int | None] | None) -> None:
    wait = gates.slot_free(job(), facts(capacity))
    if answer is None:
        assert wait is None
        return
    assert isinstance(wait, Wait)
    assert (wait.kind, wait.detail, wait.until) == answer
    assert wait.for_capacity and wait.remedy
    assert after(Status.QUEUED, move_for(wait)) is Status.QUEUED


CONTRACT = (
    "due",
    "after_met",
    "routed",
    "when_holds",
    "artifacts_present",
    "turn_in_group",
    "subject_ready",
    "head_pinned",
    "preconditions_hold",
    "approved",
    "allowed",
    "locks_free",
    "slot_free",
)


def test_the_gates_stand_in_the_contracts_order() -> None:
    names = [gate.name for gate in GATES]
    assert names == [name for name in CONTRACT if name in names]


def test_each_gate_declares_what_can_change_its_answer() -> None:
    assert {gate.name: set(gate.woken_by) for gate in GATES} == {
        "due": {Wake.TIME_CAME},
        "after_met": {Wake.CHAIN_ENDED},
        "routed": {Wake.ROUTE_DECIDED},
        "when_holds": set(),
        "artifacts_present": {Wake.ARTIFACT_CHANGED, Wake.ANOTHER_ANSWER},
        "turn_in_group": {Wake.MEMBER_ENDED},
        "subject_ready": {Wake.ANOTHER_ANSWER},
        "head_pinned": {Wake.ANOTHER_ANSWER, Wake.REPINNED},
        "preconditions_hold": {Wake.ANOTHER_ANSWER},
        "approved": {Wake.DECIDED, Wake.TIME_CAME},
        "allowed": {Wake.TIME_CAME, Wake.RUNNER_RESUMED, Wake.AGENT_ENDED},
        "locks_free": {Wake.LOCK_RELEASED, Wake.LOCK_GIVEN_UP},
        "slot_free": {
            Wake.SLOT_FREED,
            Wake.SLOT_LENT,
            Wake.RESUMED,
            Wake.LIMIT_CHANGED,
            Wake.HOST_RECOVERED,
            Wake.TIME_CAME,
        },
    }
    assert set().union(*(gate.woken_by for gate in GATES)) == set(Wake)


def test_what_jobs_compete_for_stands_behind_all_else() -> None:
    shares = [gate.shared for gate in GATES]
    assert shares == sorted(shares) and any(shares)


@pytest.mark.req("V72")
def test_every_kind_of_wait_has_a_status_that_shows_it() -> None:
    moves = {kind: move_for(Wait(kind, "")) for kind in WaitKind}
    assert {kind.value for kind, move in moves.items() if move is Move.WAIT_ON_DEPS} == {
        "dependencies",
        "pinned_head",
        "preconditions",
        "group",
        "subject",
    }
    assert moves[WaitKind.APPROVAL] is Move.WAIT_ON_APPROVAL
    assert moves[WaitKind.LOCKS] is Move.WAIT_ON_LOCKS
    assert all(move is Move.WAIT for kind, move in moves.items() if kind not in MOVE_FOR_WAIT)


def held_up_everywhere() -> tuple[Job, Facts]:
    waiting = job(9, after=(4,), locks=(exclusive("k"),), not_before=LATER)
    known = Facts(
        now=NOW,
        capacity=Capacity(max_active=1, running=1),
        predecessors={9: (Predecessor(4, 4, Status.RUNNING),)},
        locks=held("k", LockMode.EXCLUSIVE, 4),
    )
    return waiting, known


@pytest.mark.req("V72")
def test_the_first_objection_is_the_one_that_is_shown() -> None:
    waiting, known = held_up_everywhere()
    decision = decide(waiting, known)
    assert isinstance(decision, Hold)
    assert [wait.kind for wait in decision.waits] == [WaitKind.TIME]

    decision = decide(job(9, after=(4,), locks=waiting.locks), known)
    assert isinstance(decision, Hold)
    assert [wait.kind for wait in decision.waits] == [WaitKind.DEPENDENCIES]


def test_a_job_is_filed_under_all_that_it_lacks_at_the_shared_gates() -> None:
    _, known = held_up_everywhere()
    waiting = job(8, locks=(exclusive("k"), shared("free")))
    decision = decide(waiting, known)
    assert isinstance(decision, Hold)
    assert [wait.kind for wait in decision.waits] == [WaitKind.LOCKS, WaitKind.CAPACITY]
    assert decision.shown.kind is WaitKind.LOCKS
    assert decision.for_capacity and not decision.reserves
    assert decision.topics(waiting) == ("lock:k",)


def test_a_sole_lock_waiter_is_filed_under_all_its_keys() -> None:
    waiting = job(9, locks=(exclusive("k"), shared("free")))
    decision = decide(waiting, facts(locks=held("k", LockMode.SHARED, 4)))
    assert isinstance(decision, Hold)
    assert decision.reserves and not decision.for_capacity
    assert decision.topics(waiting) == ("lock:k", "lock:free")


def test_a_hold_ends_at_the_earliest_of_its_times() -> None:
    early = Wait(WaitKind.TIME, "", until=NOW)
    assert Hold((Wait(WaitKind.RATE, "", until=LATER), early)).until == NOW
    assert Hold((Wait(WaitKind.LOCKS, ""),)).until is None


NAME_IT = "headway config set app.modules {0}, or headway work --app {0}"
NOT_FOUND = TaskView(
    frozenset(), "importing shop failed: ModuleNotFoundError: No module named 'shop'"
)
NAME_SHOP = "headway config set app.modules shop"
MISNAMED = TaskView(
    frozenset(), "importing shpo failed: ModuleNotFoundError: No module named 'shpo'"
)
NO_PACKAGE = TaskView(
    frozenset(), "importing shop, mial.tasks failed: ModuleNotFoundError: No module named 'mial'"
)
LACKING = TaskView(
    frozenset(), "importing shop failed: ModuleNotFoundError: No module named 'numpy'"
)
FAULTY = TaskView(frozenset(), "importing shop failed: ValueError: no")


@pytest.mark.parametrize(
    ("task", "known", "detail", "remedy"),
    [
        ("shop.add", None, "no worker runs shop.add", NAME_IT.format("shop")),
        ("pack.shop.add", None, "no worker runs pack.shop.add", NAME_IT.format("pack.shop")),
        ("shop.Till.add", None, "no worker runs shop.Till.add", NAME_IT.format("shop")),
        ("add", None, "no worker runs add", NAME_IT.format("MODULE")),
        ("shop.f.<locals>.g", None, "no worker runs", "define it at the top of its module"),
        ("shop.f.<locals>.g", TaskView(frozenset()), "is unknown", "define it at the top of its"),
        ("__main__.add", None, "no worker runs", "put it into a module: what was typed in"),
        ("shop.add", TaskView(frozenset({"shop.sub"})), "task shop.add is unknown", "known are"),
        (
            "shop.add",
            NOT_FOUND,
            "No module named 'shop'",
            "correct app.modules, or move the module",
        ),
        ("shop.add", MISNAMED, "importing shpo failed", f"{NAME_SHOP}, if that is what was meant"),
        (
            "mail.tasks.send",
            NO_PACKAGE,
            "No module named 'mial'",
            "app.modules mail.tasks, if that",
        ),
        ("shop.add", LACKING, "No module named 'numpy'", "modules are found beside"),
        ("shop.add", FAULTY, "importing shop failed: ValueError: no", "correct the module; it is"),
        ("shop.add", TaskView((), IMPORTING), "are being imported", "it starts when they are"),
        ("shop.add", TaskView({"shop.add"}, IMPORTING), "are being imported", "it starts when"),
        ("shop.add", TaskView((), f"{NO_HOST}: full"), "full", "it is tried again by itself"),
    ],
)
def test_a_function_that_nobody_can_call(
    task: str, known: TaskView | None, detail: str, remedy: str
) -> None:
    call = job(type=FUNCTION, params={"task": task, "args": {}})
    wait = gates.slot_free(call, facts(tasks=known, types=frozenset({FUNCTION})))
    assert isinstance(wait, Wait) and wait.kind is WaitKind.TASK
    assert detail in wait.detail and remedy in (wait.remedy or "")


def test_a_job_of_another_host_names_that_host() -> None:
    known = facts(queues=("", "h-1"), hosts={"h-2": "rainbow"})
    assert gates.slot_free(job(queue="h-1"), known) is None
    wait = gates.slot_free(job(queue="h-2"), known)
    assert isinstance(wait, Wait)
    assert (wait.kind, wait.detail) == (WaitKind.TARGET, "only rainbow may start it")
