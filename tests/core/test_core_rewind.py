"""A job that is put back to the start: nothing that it has gone through counts."""

import pytest
from given import NOW, SECOND, facts, job

from headway.core import gates
from headway.core.model import Approval, ApprovalState, Wait, WaitKind
from headway.core.rewind import asked_again, put_back
from headway.core.states import Status

APPROVED = Approval(ApprovalState.APPROVED, NOW - SECOND, "ann", NOW, "bob", "fine")


def test_who_agreed_to_one_run_has_not_agreed_to_the_next() -> None:
    pending = Approval(ApprovalState.PENDING, NOW + SECOND, "eve")
    assert asked_again(APPROVED, now=NOW + SECOND, by="eve") == pending
    assert asked_again(None, now=NOW, by="eve") is None


def test_who_is_put_back_has_only_what_its_submitter_asked_for() -> None:
    waiting = job(
        status=Status.WAITING_ON_LOCKS,
        wait=Wait(WaitKind.LOCKS, "waiting on locks"),
        waited_on=("locks",),
        not_before=NOW + 9 * SECOND,
        requested_start=NOW + 7 * SECOND,
        launch_failures=2,
        launch_wait=WaitKind.LAUNCH,
        last_failure="no such file",
        approval=APPROVED,
    )
    fresh = job(
        not_before=NOW + 7 * SECOND,
        requested_start=NOW + 7 * SECOND,
        approval=Approval(ApprovalState.PENDING, NOW, "eve"),
    )
    assert put_back(waiting, now=NOW, by="eve") == fresh


@pytest.mark.parametrize(
    ("attempt", "asked", "detail"),
    [
        (1, None, "waiting for its time"),
        (2, None, "backing off before attempt 2"),
        (2, NOW + SECOND, "backing off before attempt 2"),
        (2, NOW + 9 * SECOND, "waiting for its time"),
    ],
)
def test_a_time_that_was_asked_for_is_no_backing_off(
    attempt: int, asked: int | None, detail: str
) -> None:
    waiting = job(attempt=attempt, not_before=NOW + 9 * SECOND, requested_start=asked)
    wait = gates.due(waiting, facts())
    assert isinstance(wait, Wait) and wait.detail == detail
