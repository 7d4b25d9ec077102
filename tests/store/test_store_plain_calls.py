"""Which calls at the head of their queue are plain, and which function each of them is."""

import json
from contextlib import suppress
from typing import Any

import pytest
from called import CLAIMANT, TASK, add_call, damage, plain, taken
from hypothesis import given
from hypothesis import strategies as st
from recording import verbs
from stocked import HOST, START, parking, start

from headway.core.model import (
    FUNCTION,
    FUNCTIONS,
    Approval,
    ApprovalState,
    Job,
    Lock,
    PinnedHead,
    Rate,
    Stage,
    Wait,
    WaitKind,
)
from headway.core.plaincalls import is_plain
from headway.core.states import Status
from headway.store.rows import dump, task_of
from headway.store.store import Store

# -- who is at the head of the queue ------------------------------------------------------------

SPECIAL: dict[str, dict[str, Any]] = {
    "type": {"type": "command"},
    "locks": {"locks": (Lock("k"),)},
    "on_finish": {"on_finish": ("true",)},
    "needs": {"needs": ("file:x",)},
    "produces": {"produces": ("file:x",)},
    "pinned_head": {"pinned_head": PinnedHead("main", "0" * 40), "repo": "/repo"},
    "preconditions": {"preconditions": ("clean",)},
    "repo": {"repo": "/repo"},
    "workflow_run": {"workflow_run": 7},
    "node": {"node": "build"},
    "node_pass": {"node_pass": 1},
    "retry_of": {"retry_of": 1, "attempt": 2},
    "after_runs": {"after_runs": (7,)},
    "requested_start": {"requested_start": START},
    "approval": {"approval": Approval(ApprovalState.APPROVED, START, "ann")},
    "group_id": {"group_id": 1, "sequence_number": 1},
    "subject": {"subject": "file:x"},
    "target": {"target": "box"},
    "resources": {"resources": ("gpu",)},
    "rates": {"rates": (Rate("claude"),)},
    "webhooks": {"webhooks": ("https://example.org/hook",)},
}


def assert_stops_at(tx: Any, first: Job, special: Job) -> None:
    assert tx.calls.head(10) == ([plain(first)], False)
    assert tx.calls.head(1) == ([plain(first)], True), "as far as anyone looked"
    assert is_plain(tx.jobs.by_id([first.id])[first.id])
    assert not is_plain(tx.jobs.by_id([special.id])[special.id])


@pytest.mark.bulk
@pytest.mark.parametrize("special", SPECIAL.values(), ids=SPECIAL)
@verbs("calls.head")
def test_calls_are_plain_up_to_the_first_that_needs_more(
    store: Store, special: dict[str, Any]
) -> None:
    with store.write() as tx:
        first, other, _ = add_call(tx), add_call(tx, **special), add_call(tx)
        assert_stops_at(tx, first, other)


@pytest.mark.bulk
@verbs("calls.head")
def test_a_call_that_has_waited_is_not_plain(store: Store) -> None:
    with store.write() as tx:
        first, waited, _ = add_call(tx), add_call(tx), add_call(tx)
        wait = Wait(WaitKind.CAPACITY, "all slots are in use", for_capacity=True)
        tx.waits.park([parking(waited, status=Status.QUEUED, stage=Stage.READY, wait=wait)])
        assert_stops_at(tx, first, waited)


@pytest.mark.bulk
@verbs("calls.head")
def test_a_call_that_is_to_be_cancelled_is_not_plain(store: Store) -> None:
    with store.write() as tx:
        first, cancelled, _ = add_call(tx), add_call(tx), add_call(tx)
        damage(store, "cancel_requested_at = 1", cancelled.id)
        assert_stops_at(tx, first, cancelled)


def test_every_field_by_which_a_job_is_not_plain_is_proven_here() -> None:
    """Beside these three; a job of another queue is not looked at at all."""
    call = Job(
        *(1, "f", FUNCTION, Status.QUEUED, 0, 100, {}, START, 1), queue=FUNCTIONS, stage=Stage.READY
    )
    assert is_plain(call)
    deciding = set()
    for field, value in ((name, (1,)) for name in Job._fields):
        with suppress(Exception):
            if not is_plain(call._replace(**{field: value})):
                deciding.add(field)
    assert deciding == {*SPECIAL, "queue", "wait", "cancel_requested_at"}


UNREADABLE = [
    "",
    "null",
    "[]",
    '{"args":{',
    '{"args":{}}',
    '{"args":{"task":"shop.f"}}',
    '{"task":',
]


@pytest.mark.bulk
@pytest.mark.parametrize("params", UNREADABLE)
@verbs("calls.head")
def test_a_call_whose_function_cannot_be_told_is_not_plain(store: Store, params: str) -> None:
    with store.write() as tx:
        first, other, _ = add_call(tx), add_call(tx), add_call(tx)
        damage(store, f"params = '{params}'", other.id)
        assert tx.calls.head(10) == ([plain(first)], False)


@pytest.mark.bulk
@verbs("calls.head")
def test_what_is_not_one_line_is_not_sent_as_a_line(store: Store) -> None:
    with store.write() as tx:
        first, pretty, _ = add_call(tx), add_call(tx), add_call(tx)
        damage(store, f"""params = '{{"args":{{}},\n"task":"{TASK}"}}'""", pretty.id)
        assert tx.calls.head(10) == ([plain(first)], False)
        assert tx.jobs.by_id([pretty.id])[pretty.id].params["task"] == TASK


@pytest.mark.bulk
@verbs("calls.head")
def test_plain_calls_come_in_the_order_of_dispatch(store: Store) -> None:
    with store.write() as tx:
        assert tx.calls.head(10) == ([], True)
        places = [(0, 300), (0, 100), (5, 900), (-1, 100), (0, 100), (0, 200)]
        jobs = [add_call(tx, priority=level, position=place) for level, place in places]
        older = add_call(tx, position=100, created_at=START - 1)
        aged = add_call(tx, position=950, level=7)
        add_call(tx, stage=Stage.WOKEN)
        start(tx, add_call(tx))
        in_order = sorted([*jobs, older, aged], key=lambda each: each.order)
        assert tx.calls.head(10) == ([plain(each) for each in in_order], True)
        assert tx.calls.head(3) == ([plain(each) for each in in_order[:3]], True)


@pytest.mark.bulk
@verbs("calls.head", "calls.are_alone")
def test_where_nobody_stands_nobody_is_looked_for(store: Store) -> None:
    with store.write() as tx:
        assert tx.calls.are_alone(["", HOST.id])
        assert tx.calls.head(10) == ([], True)
        first = add_call(tx)
        assert tx.calls.are_alone([""]) and tx.calls.head(10) == ([plain(first)], True)


@pytest.mark.bulk
@verbs("calls.head", "calls.prefetch", "claims.slots")
def test_calls_that_were_looked_at_in_advance_are_those_that_are_there(store: Store) -> None:
    with store.write() as tx:
        first, second = add_call(tx), add_call(tx)
    with store.write() as tx:
        tx.calls.prefetch(5)
        assert tx.claims.slots().used == frozenset()
        assert tx.calls.head(1) == ([plain(first)], True)
        assert tx.calls.head(5) == ([plain(first), plain(second)], True)
        urgent = add_call(tx, priority=5)
        assert tx.calls.head(2) == ([plain(urgent), plain(first)], True)
    with store.write() as tx:
        tx.calls.prefetch(1)
        assert tx.calls.head(2) == ([plain(urgent), plain(first)], True), "more than was asked for"
        tx.calls.claim(CLAIMANT, taken([urgent]))
        assert tx.calls.head(1) == ([plain(first)], True)


@pytest.mark.bulk
@verbs("calls.head")
def test_the_deadline_of_a_call_comes_along(store: Store) -> None:
    params = {"task": TASK, "args": {"a": 1}, "timeout_seconds": 0.4, "grace_seconds": 3}
    with store.write() as tx:
        late = add_call(tx, params=params)
        calls, _ = tx.calls.head(10)
        assert calls == [plain(late)]
        assert json.loads(calls[0].params) == params


# -- the task of a call -------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["task", '"task":']),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text() | st.sampled_from(["task", '"task":', "args"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
ARGUMENTS: list[Any] = [
    {},
    {"task": "evil"},
    {"a": {"task": "evil"}},
    {"a": '"task":"evil"}'},
    {"a": '\\"task":"evil"}'},
    {"a": '\\\\"task\\":"evil"}'},
    {'"task":': '"evil"}'},
    {'\\"task":"evil"}': 1},
    {"a": ["task", {"task": ["task"]}]},
    {"z": "}", "task": {"task": None}},
    {"a": '\u2028"task":"evil"}\n', "é": "\U0001f600\0"},
]
OTHERS: list[dict[str, Any]] = [
    {},
    {"timeout_seconds": 0.4},
    {"grace_seconds": 1, "timeout_seconds": 2},
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("task", [TASK, "", 'a"b', '"task":', "é.\u2028\n"])
def test_the_task_is_told_whatever_the_arguments_are(
    arguments: Any, others: dict[str, Any], task: str
) -> None:
    assert task_of(dump({"args": arguments, "task": task, **others})) == task


@given(JSON)
def test_what_has_another_form_has_its_own_task_or_none(value: Any) -> None:
    told = task_of(dump(value))
    assert told is None or (isinstance(value, dict) and value["task"] == told)


STRANGE: list[tuple[str, str | None]] = [
    ('{"task":1}', None),
    ('{"task":null}', None),
    ('{"task":["shop.f"]}', None),
    ('{"task":"shop.f"', None),
    ('{"task":"shop.f"}}', None),
    ('{"task":"shop.f","zone":{"task":"evil"}}', None),
    ('{"task":"shop.f","zone":["task",{"task":"evil"}]}', None),
    ('[{"task":"shop.f"}]', None),
    ('{"task":"shop.f"} x', None),
    ('{"task" :"shop.f"}', None),
    ('{"task": "shop.f"}', "shop.f"),
    ('{"task":"shop.f","zone":1}', "shop.f"),
]


@pytest.mark.parametrize(("params", "task"), STRANGE)
def test_what_others_wrote_is_told_or_left_to_those_who_read_all(
    params: str, task: str | None
) -> None:
    assert task_of(params) == task
