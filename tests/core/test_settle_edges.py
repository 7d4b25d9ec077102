"""The edges of what follows from an end: the last time, the first time, and nothing said."""

import errno

import pytest
from endings import CANCELLING, END, outcome
from given import NOW, SECOND, retries, running

from headway.core.backoff import LAUNCH_STRIKES
from headway.core.model import Job, WaitKind
from headway.core.settle import (
    MOST_ASKED_AGAIN,
    ChainRetry,
    Ended,
    Ending,
    Outcome,
    Undone,
    never_ran,
)
from headway.core.settle import settle as ask
from headway.core.states import Status

AGAIN = outcome(Ending.ASKED_AGAIN, error="later")
FAILED = outcome(Ending.EXITED, exit_code=7)
SKIPPED = outcome(Ending.SKIPPED, error="nothing to do")
UNLAUNCHED = outcome(Ending.SPAWN_ERROR, errno=errno.ENOENT, error="no such file")
USED_UP = {"retry": retries(2), "retries_used": 2, "attempt": 3}


def end(job: Job, what: Outcome, **options: int) -> Ended:
    answer = ask(job, what, **options)  # type: ignore[arg-type]
    assert isinstance(answer, Ended)
    return answer


@pytest.mark.parametrize(("attempt", "again"), [(1, True), (99, True), (100, False), (101, False)])
def test_a_chain_goes_on_by_itself_for_a_hundred_jobs(attempt: int, again: bool) -> None:
    assert MOST_ASKED_AGAIN == 100
    asked = end(running(attempt=attempt), AGAIN)
    cooled = end(running(attempt=attempt, launch_failures=2), UNLAUNCHED, cooldown=5)
    assert (asked.retry is not None, cooled.retry is not None) == (again, again)


@pytest.mark.parametrize(("after", "not_before"), [(None, END), (0, END), (3, END + 3)])
def test_who_asks_again_says_when_or_means_now(after: int | None, not_before: int) -> None:
    answer = end(running(**USED_UP), AGAIN._replace(after=after))
    assert answer.retry == ChainRetry(not_before, 2), "it burns no retry"
    assert (answer.reason, answer.error) == ("later", "later")


@pytest.mark.parametrize(
    ("job", "what", "reason"),
    [
        (running(**USED_UP), FAILED, "exit code 7; attempt 3 of 3, no retry is left"),
        (running(retry=retries(2)), FAILED, "exit code 7"),
        (running(), FAILED, "exit code 7"),
        (running(attempt=2), FAILED, "exit code 7"),  # after a retry by hand
        (
            running(retry=retries(2, on=("9",))),
            FAILED,
            "exit code 7; not retried: it is not among --retry-on 9",
        ),
        (running(retry=retries(2), **CANCELLING), FAILED, "exit code 7"),
        (running(**USED_UP), SKIPPED, "nothing to do"),
        (running(**USED_UP), outcome(Ending.EXITED, exit_code=0), None),
    ],
)
def test_the_reason_tells_of_attempts_only_if_none_is_left(
    job: Job, what: Outcome, reason: str | None
) -> None:
    assert end(job, what).reason == reason


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({}, "timed out"),
        ({"timeout_seconds": 90}, "timed out after 90 s"),
        ({"timeout_seconds": 0.25}, "timed out after 0.25 s"),
    ],
)
def test_a_timeout_names_its_limit_if_there_is_one(params: dict[str, float], error: str) -> None:
    answer = end(running(params={"argv": ["x"], **params}), outcome(Ending.TIMED_OUT))
    assert (answer.error, answer.exit_code, answer.status) == (error, 124, Status.FAILED)


def test_a_launch_that_failed_without_an_errno_is_the_programs_fault() -> None:
    what = outcome(Ending.SPAWN_ERROR, error="its record is broken")
    answer = end(running(launch_failures=LAUNCH_STRIKES - 1), what)
    assert (answer.exit_code, answer.error) == (127, "circuit-broken: its record is broken")
    assert answer.retry is None, "no cooldown was given"


def test_an_undoing_leaves_the_job_as_it_was() -> None:
    job = running(not_before=NOW - SECOND, launch_failures=1, launch_wait=WaitKind.LAUNCH)
    assert never_ran(job, "x") == Undone(
        "x", not_before=NOW - SECOND, launch_failures=1, launch_wait=WaitKind.LAUNCH
    )
    assert Undone("x") == Undone("x", None, 0, None, None)
