"""The table of transitions and its projection to the words of the API."""

import pytest

from headway.base.errors import InvalidTransitionError
from headway.core.states import (
    ACTIVE,
    API_STATUS,
    RUN_STATUS,
    TERMINAL,
    TRANSITIONS,
    WAITING,
    Move,
    Status,
    after,
)

PAIRS = [(status, move) for status in Status for move in Move]

FROM_WAITING = {
    Move.WAIT: Status.QUEUED,
    Move.WAIT_ON_DEPS: Status.WAITING_ON_DEPS,
    Move.WAIT_ON_APPROVAL: Status.WAITING_ON_APPROVAL,
    Move.WAIT_ON_LOCKS: Status.WAITING_ON_LOCKS,
    Move.CLAIM: Status.RUNNING,
    Move.RESET: Status.QUEUED,
    Move.SKIP: Status.SKIPPED,
    Move.CANCEL: Status.CANCELLED,
    Move.BLOCK_BY_DEPENDENCY: Status.BLOCKED_BY_DEPENDENCY,
    Move.BLOCK_BY_APPROVAL: Status.BLOCKED_BY_APPROVAL,
}
FROM_RUNNING = {
    Move.UNCLAIM: Status.QUEUED,
    Move.SUCCEED: Status.SUCCEEDED,
    Move.FAIL: Status.FAILED,
    Move.SKIP: Status.SKIPPED,
    Move.CANCEL: Status.CANCELLED,
}


def expected(status: Status, move: Move) -> Status | None:
    if status is Status.RUNNING:
        return FROM_RUNNING.get(move)
    return FROM_WAITING.get(move) if status in WAITING else None


@pytest.mark.req("E26", "E27")
@pytest.mark.parametrize(("status", "move"), PAIRS, ids=lambda word: word.value)
def test_every_pair_of_status_and_move_is_decided(status: Status, move: Move) -> None:
    target = expected(status, move)
    if target is not None:
        assert after(status, move) is target
        return
    with pytest.raises(InvalidTransitionError) as refused:
        after(status, move)
    assert str(refused.value) == f"a {status.value} job cannot {move.value.replace('_', ' ')}"
    assert refused.value.exit_code == 4


def test_the_table_has_exactly_all_pairs() -> None:
    assert {(status, move) for status, row in TRANSITIONS.items() for move in row} == set(PAIRS)


@pytest.mark.req("V28")
def test_the_active_statuses() -> None:
    assert {status.value for status in ACTIVE} == {
        "queued",
        "waiting_on_deps",
        "waiting_on_approval",
        "waiting_on_locks",
        "running",
    }
    assert ACTIVE - {Status.RUNNING} == WAITING


@pytest.mark.req("V29")
def test_the_terminal_statuses() -> None:
    assert {status.value for status in TERMINAL} == {
        "succeeded",
        "failed",
        "skipped",
        "cancelled",
        "blocked_by_dependency",
        "blocked_by_approval",
    }
    assert set(Status) == ACTIVE | TERMINAL and not ACTIVE & TERMINAL


@pytest.mark.req("V30")
@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_no_move_leads_out_of_a_terminal_status(status: Status) -> None:
    for move in Move:
        with pytest.raises(InvalidTransitionError):
            after(status, move)


def test_only_an_undone_claim_leads_from_running_back_to_an_active_status() -> None:
    back = {move for move, target in TRANSITIONS[Status.RUNNING].items() if target in ACTIVE}
    assert back == {Move.UNCLAIM}


def test_a_job_that_never_ran_cannot_have_succeeded_or_failed() -> None:
    reached = {TRANSITIONS[status][move] for status in WAITING for move in Move}
    assert not reached & {Status.SUCCEEDED, Status.FAILED}


def test_the_projection_is_total_and_uses_only_the_words_of_the_api() -> None:
    words = {"QUEUED", "RUNNING", "COMPLETED", "FAILED", "SKIPPED", "CANCELLED"}
    assert set(API_STATUS) == set(Status)
    assert set(API_STATUS.values()) == words
    shown = {word.lower() for word in (*API_STATUS.values(), *RUN_STATUS.values())}
    assert not shown & {"succeeded", "error", "dispatched"}


@pytest.mark.parametrize(
    ("status", "job_word", "run_word"),
    [
        (Status.QUEUED, "QUEUED", None),
        (Status.WAITING_ON_DEPS, "QUEUED", None),
        (Status.WAITING_ON_APPROVAL, "QUEUED", None),
        (Status.WAITING_ON_LOCKS, "QUEUED", None),
        (Status.RUNNING, "RUNNING", None),
        (Status.SUCCEEDED, "COMPLETED", "COMPLETED"),
        (Status.FAILED, "FAILED", "FAILED"),
        (Status.SKIPPED, "SKIPPED", "SKIPPED"),
        (Status.CANCELLED, "CANCELLED", "FAILED"),
        (Status.BLOCKED_BY_DEPENDENCY, "CANCELLED", None),
        (Status.BLOCKED_BY_APPROVAL, "CANCELLED", None),
    ],
)
def test_each_status_is_shown_as(status: Status, job_word: str, run_word: str | None) -> None:
    assert (API_STATUS[status], RUN_STATUS.get(status)) == (job_word, run_word)


def test_every_end_of_an_execution_has_a_word_for_its_run() -> None:
    ends = {target for target in TRANSITIONS[Status.RUNNING].values() if target in TERMINAL}
    assert set(RUN_STATUS) == ends
