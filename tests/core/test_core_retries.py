"""When the chain goes on by itself: retries, their delays, and the cool-down."""

import errno
from typing import Any

import pytest
from endings import CANCELLING, END, PARAMS, RAISED, ended, failed, outcome
from given import NOW, SECOND, job, retries, running
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.base.errors import InvalidInputError
from headway.core.backoff import retry_delay
from headway.core.model import RetryPolicy, WaitKind
from headway.core.retry_causes import check_causes_of_call
from headway.core.settle import (
    UNKNOWABLE,
    ChainRetry,
    Ended,
    Ending,
    Outcome,
    Undone,
    next_in_chain,
    settle,
)
from headway.core.states import Status

# -- retries ----------------------------------------------------------------------------------


@pytest.mark.req("E7")
@pytest.mark.parametrize(
    ("what", "again"),
    [
        (outcome(Ending.EXITED, exit_code=0), False),
        (outcome(Ending.EXITED, exit_code=75), False),
        (outcome(Ending.CANCELLED), False),
        (outcome(Ending.DATA_ERROR, error="no command"), False),
        (failed(), True),
        (outcome(Ending.SIGNALLED, exit_code=137, signal="SIGKILL"), True),
        (outcome(Ending.TIMED_OUT), True),
        (outcome(Ending.LOG_FULL), True),
        (outcome(Ending.HOST_REBOOTED), True),
        (outcome(Ending.EVIDENCE_MISSING), True),
        (outcome(Ending.OUTCOME_UNKNOWN), True),
    ],
    ids=lambda each: f"{each.ending}-{each.exit_code}" if isinstance(each, Outcome) else "",
)
def test_only_a_failure_is_tried_again(what: Outcome, again: bool) -> None:
    answer = ended(running(params=PARAMS, retry=retries(3)), what)
    assert (answer.retry is not None) is again


@pytest.mark.req("E16", "E17", "E18", "E19", "D13")
def test_three_retries_make_four_executions_10_20_and_40_seconds_apart() -> None:
    job = running(1, retry=retries(3))
    delays = []
    for attempt in (1, 2, 3):
        answer = ended(job, failed())
        assert answer.retry is not None and answer.retry.not_before is not None
        assert answer.reason == "exit code 7"
        delays.append((answer.retry.not_before - END) / SECOND)
        following = next_in_chain(job, answer.retry, new_id=attempt + 1, now=END)
        assert (following.retry_of, following.chain) == (job.id, 1)
        assert (following.attempt, following.retries_used) == (attempt + 1, attempt)
        assert following.max_executions == 4
        job = following._replace(status=Status.RUNNING)
    assert delays == [10, 20, 40]
    last = ended(job, failed())
    assert last.retry is None
    assert last.reason == "exit code 7; attempt 4 of 4, no retry is left"
    assert last.error == "exit code 7"


@pytest.mark.req("D13")
@pytest.mark.parametrize("allowed", [0, 1, 5])
def test_the_policys_own_number_of_retries_counts(allowed: int) -> None:
    used = [
        ended(running(retry=retries(allowed), retries_used=each), failed()).retry is not None
        for each in range(7)
    ]
    assert used == [each < allowed for each in range(7)]


def test_without_a_policy_nothing_is_tried_again_and_no_attempts_are_mentioned() -> None:
    answer = ended(running(), failed())
    assert (answer.retry, answer.reason) == (None, "exit code 7")


@pytest.mark.parametrize(
    ("on", "what", "again"),
    [
        (("7",), failed(7), True),
        (("8", "signal"), failed(7), False),
        (("signal",), outcome(Ending.SIGNALLED, exit_code=137, signal="SIGKILL"), True),
        (("137",), outcome(Ending.SIGNALLED, exit_code=137, signal="SIGKILL"), False),
        (("signal",), outcome(Ending.LOG_FULL), True),
        (("timeout",), outcome(Ending.TIMED_OUT), True),
        (("signal", "7"), outcome(Ending.TIMED_OUT), False),
        (("unknown",), outcome(Ending.HOST_REBOOTED), True),
        (("unknown",), outcome(Ending.OUTCOME_UNKNOWN), True),
        (("timeout",), outcome(Ending.EVIDENCE_MISSING), False),
        (("OSError",), RAISED, True),
        (("builtins.ConnectionError",), RAISED, True),
        (("ValueError", "shop.OSError", "connectionerror"), RAISED, False),
        (("1",), RAISED, True),
        (("OSError",), failed(7), False),
    ],
)
def test_a_policy_may_name_what_is_tried_again(
    on: tuple[str, ...], what: Outcome, again: bool
) -> None:
    answer = ended(running(params=PARAMS, retry=retries(3, on=on)), what)
    assert (answer.retry is not None) is again


@pytest.mark.parametrize("ending", sorted(UNKNOWABLE))
def test_an_agent_is_never_tried_again_after_an_unknowable_outcome(ending: Ending) -> None:
    for on in ((), ("unknown",)):
        policy = retries(3, on=on)
        assert ended(running(type="agent", retry=policy), outcome(ending)).retry is None
        assert ended(running(type="command", retry=policy), outcome(ending)).retry is not None
    assert ended(running(type="agent", retry=retries(3)), failed()).retry is not None


@pytest.mark.req("E19")
def test_backoff_doubles_up_to_the_cap() -> None:
    policy = RetryPolicy(max_attempts=9, base=10 * SECOND, cap=60 * SECOND)
    assert [retry_delay(policy, nth, 0.5) // SECOND for nth in range(1, 7)] == [
        *(10, 20, 40),
        *(60, 60, 60),
    ]
    assert retry_delay(policy, 10_000, 0.0) == 60 * SECOND
    assert retry_delay(RetryPolicy(base=0), 3, 0.9) == 0


@settings(deadline=None)
@given(
    st.integers(0, 10**10),
    st.integers(0, 10**10),
    st.floats(0, 1),
    st.integers(1, 100),
    st.floats(0, 1, exclude_max=True),
)
def test_jitter_adds_at_most_its_share(
    base: int, cap: int, jitter: float, nth: int, chance: float
) -> None:
    plain = retry_delay(RetryPolicy(base=base, cap=cap), nth, chance)
    jittered = retry_delay(RetryPolicy(base=base, cap=cap, jitter=jitter), nth, chance)
    assert plain == min(cap, base * 2 ** (nth - 1))
    assert plain <= jittered <= plain * (1 + jitter) + 1


def test_the_chance_is_the_callers() -> None:
    policy = retries(3, base=10 * SECOND, jitter=0.5)
    delays = []
    for chance in (0.0, 0.5):
        retry = ended(running(retry=policy), failed(), chance).retry
        assert retry is not None and retry.not_before is not None
        delays.append(retry.not_before - END)
    assert delays == [10 * SECOND, 12.5 * SECOND]


@pytest.mark.req("D13")
def test_a_retry_by_hand_starts_a_fresh_budget() -> None:
    spent = running(4, chain=1, attempt=4, retries_used=3, retry=retries(3))
    by_hand = next_in_chain(spent, ChainRetry(None, 0), new_id=5, now=END)
    assert (by_hand.attempt, by_hand.retries_used, by_hand.not_before) == (5, 0, None)
    assert by_hand.max_executions == 8
    answer = ended(by_hand._replace(status=Status.RUNNING), failed())
    assert answer.retry == ChainRetry(END + 10 * SECOND, 1)


# -- cool-down ---------------------------------------------------------------------------------

GONE = outcome(Ending.SPAWN_ERROR, errno=errno.ENOENT, error="exec x: gone")


def test_without_a_cooldown_what_could_not_be_launched_three_times_is_given_up() -> None:
    struck = running(launch_failures=2, retry=retries(3))
    answer = settle(struck, GONE)
    assert isinstance(answer, Ended)
    assert (answer.reason, answer.retry) == ("circuit-broken: exec x: gone", None)


def test_after_the_cooldown_one_more_job_tries_and_burns_no_retry() -> None:
    struck = running(4, chain=1, attempt=2, retries_used=1, launch_failures=2, retry=retries(3))
    answer = settle(struck, GONE, cooldown=60 * SECOND)
    assert isinstance(answer, Ended) and answer.status is Status.FAILED
    assert answer.retry == ChainRetry(END + 60 * SECOND, 1, cooling="exec x: gone")
    following = next_in_chain(struck, answer.retry, new_id=5, now=END)
    assert (following.retry_of, following.attempt, following.retries_used) == (4, 3, 1)
    assert following.launch_failures == 0, "it may fail three times, as any other"
    assert (following.launch_wait, following.last_failure) == (WaitKind.LAUNCH, "exec x: gone")
    assert isinstance(settle(running(launch_failures=1), GONE, cooldown=SECOND), Undone)


def test_a_cooldown_is_neither_for_ever_nor_for_cancelled_jobs_nor_for_the_host() -> None:
    tired = settle(running(attempt=100, launch_failures=2), GONE, cooldown=SECOND)
    assert isinstance(tired, Ended) and tired.retry is None
    cancelled = settle(running(launch_failures=2, **CANCELLING), GONE, cooldown=SECOND)
    assert isinstance(cancelled, Ended) and cancelled.retry is None
    full = outcome(Ending.SPAWN_ERROR, errno=errno.ENOSPC)
    assert isinstance(settle(running(launch_failures=2), full, cooldown=SECOND), Undone)


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"not_before": NOW}, NOW),
        ({"not_before": NOW, "launch_wait": WaitKind.LAUNCH}, None),
        ({"not_before": NOW, "launch_wait": WaitKind.LAUNCH, "requested_start": 7}, 7),
        ({"not_before": NOW, "retry_of": 1}, None),
        ({"not_before": NOW, "retry_of": 1, "requested_start": 7}, 7),
    ],
)
def test_a_wait_to_try_again_is_no_time_that_was_asked_for(
    fields: dict[str, Any], asked: int | None
) -> None:
    assert job(2, **fields).submitters_time == asked


def test_what_is_tried_again_waits_from_the_instant_that_is_given() -> None:
    """A host's clock may go wrong; then its worker says from when on."""
    job, since = running(retry=retries(3, base=SECOND)), END + 60 * SECOND
    answer = settle(job, failed(), since=since)
    assert isinstance(answer, Ended) and answer.retry is not None
    assert answer.retry.not_before == since + SECOND
    unlaunched = outcome(Ending.SPAWN_ERROR, errno=errno.ENOENT)
    undone = settle(job, unlaunched, since=since)
    assert isinstance(undone, Undone) and undone.not_before == since + SECOND
    asked = running(not_before=END + 300 * SECOND)
    undone = settle(asked, unlaunched)
    assert isinstance(undone, Undone) and undone.not_before == END + 300 * SECOND, "not sooner"


@pytest.mark.parametrize("word", ["0", "256", "Value Error", "a..B", ".B", "B.", "7x", "", "a-b"])
def test_what_names_no_cause_is_refused(word: str) -> None:
    with pytest.raises(InvalidInputError, match="retry_on"):
        check_causes_of_call(["OSError", "shop.Busy", "7", "signal", word])


def test_a_failure_that_the_policy_does_not_name_says_so() -> None:
    named = running(retry=retries(3, on=("75", "signal")))
    assert ended(named, failed(3)).reason == (
        "exit code 3; not retried: it is not among --retry-on 75, signal"
    )
    many = running(retry=retries(3, on=tuple(str(each) for each in range(10, 20))))
    assert (ended(many, failed(3)).reason or "").endswith("--retry-on 10, 11, 12, 13, 14, ...")
    assert ended(named._replace(attempt=4, retries_used=3), failed(3)).reason == (
        "exit code 3; attempt 4 of 4, no retry is left"
    )
    assert ended(named, outcome(Ending.DATA_ERROR, error="no row")).reason == "no row"
