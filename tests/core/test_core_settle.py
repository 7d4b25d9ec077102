"""How each ending is judged, and what follows."""

import errno
import os

import pytest
from endings import CANCELLING, END, PARAMS, ended, failed, outcome
from given import NOW, SECOND, exclusive, retries, running
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.core.backoff import probe_delay
from headway.core.model import (
    Approval,
    ApprovalState,
    Job,
    PinnedHead,
    Rate,
    RetryPolicy,
    Wait,
    WaitKind,
)
from headway.core.settle import (
    HOST_ERRNOS,
    UNKNOWABLE,
    ChainRetry,
    Ended,
    Ending,
    Outcome,
    Undone,
    follow_up,
    host_trouble,
    never_ran,
    next_in_chain,
    settle,
)
from headway.core.states import TERMINAL, Status

RECOVERY = "Scheduler crash recovery: "

DIED = "its host died: exit code 3"
KILLED = "host_killed (job-7)"
ENDINGS = [
    (outcome(Ending.EXITED, exit_code=0), Status.SUCCEEDED, 0, None),
    # The main process said why, in its own words.
    (outcome(Ending.EXITED, exit_code=7, error="denied Bash"), Status.FAILED, 7, "denied Bash"),
    pytest.param(
        outcome(Ending.EXITED, exit_code=7),
        Status.FAILED,
        7,
        "exit code 7",
        marks=pytest.mark.req("V76"),
    ),
    (outcome(Ending.EXITED, exit_code=75), Status.SKIPPED, 75, "skipped: exit code 75"),
    (
        outcome(Ending.SIGNALLED, exit_code=137, signal="SIGKILL"),
        Status.FAILED,
        137,
        "killed by SIGKILL",
    ),
    (outcome(Ending.TIMED_OUT, exit_code=143), Status.FAILED, 124, "timed out after 1.5 s"),
    (
        outcome(Ending.LOG_FULL, exit_code=137, signal="SIGKILL"),
        Status.FAILED,
        137,
        "killed: its log is full",
    ),
    pytest.param(
        outcome(Ending.DATA_ERROR, error="job-1 has no command"),
        Status.FAILED,
        1,
        "job-1 has no command",
        marks=pytest.mark.req("V77"),
    ),
    pytest.param(
        outcome(Ending.CANCELLED, exit_code=0, signal="SIGTERM"),
        Status.CANCELLED,
        143,
        "cancelled",
        marks=pytest.mark.req("V78"),
    ),
    (outcome(Ending.RAISED, exit_code=1, error="ValueError: x"), Status.FAILED, 1, "ValueError: x"),
    (outcome(Ending.SKIPPED, exit_code=0, error="nothing new"), Status.SKIPPED, 0, "nothing new"),
    (outcome(Ending.HOST_DIED, exit_code=1, error="exit code 3"), Status.FAILED, 1, DIED),
    (outcome(Ending.HOST_KILLED, exit_code=1, error="job-7"), Status.FAILED, 1, KILLED),
    (outcome(Ending.HOST_REBOOTED), Status.FAILED, None, RECOVERY + "host_rebooted"),
    (outcome(Ending.EVIDENCE_MISSING), Status.FAILED, None, RECOVERY + "evidence_missing"),
    (
        outcome(Ending.OUTCOME_UNKNOWN, error="supervisor gone"),
        Status.FAILED,
        None,
        RECOVERY + "outcome_unknown (supervisor gone)",
    ),
]


@pytest.mark.parametrize(("what", "status", "code", "error"), ENDINGS)
def test_each_ending_has_its_status_exit_code_and_error(
    what: Outcome, status: Status, code: int | None, error: str | None
) -> None:
    answer = ended(running(params=PARAMS), what)
    assert (answer.status, answer.exit_code, answer.error) == (status, code, error)
    assert answer.executed and answer.retry is None
    assert answer.reason == error


@pytest.mark.parametrize(
    ("type_", "classes", "status"),
    [
        ("command", (), Status.SKIPPED),
        ("script", (), Status.SKIPPED),
        ("script", ("ValueError", "Exception"), Status.SKIPPED),
        # An agent's exit code is its wrapper's, unless its program's own says why it failed.
        ("agent", (), Status.SKIPPED),
        ("agent", ("task", "75"), Status.SKIPPED),
        ("agent", ("task",), Status.FAILED),
        ("agent", ("transient",), Status.FAILED),
        ("agent", ("stalled", "timeout"), Status.FAILED),
        ("agent", ("task", "7"), Status.FAILED),
    ],
)
def test_an_exit_code_means_skipped_only_if_it_is_the_programs_own(
    type_: str, classes: tuple[str, ...], status: Status
) -> None:
    what = outcome(Ending.EXITED, exit_code=75, error="why" if classes else None, classes=classes)
    answer = ended(running(type=type_, params=PARAMS), what)
    assert answer.status is status
    said = status is Status.FAILED or (type_ == "script" and classes)
    assert answer.reason == ("why" if said else "skipped: exit code 75")


def test_every_ending_is_in_the_table() -> None:
    table = {getattr(row, "values", row)[0].ending for row in ENDINGS}
    assert table | {Ending.SPAWN_ERROR, Ending.ASKED_AGAIN} == set(Ending)


def test_a_function_that_asks_again_gets_the_chains_next_job_without_a_budget() -> None:
    asked = outcome(Ending.ASKED_AGAIN, exit_code=1, error="busy", after=30_000_000)
    answer = ended(running(), asked)
    assert (answer.status, answer.reason) == (Status.FAILED, "busy")
    assert answer.retry == ChainRetry(asked.finished_at + 30_000_000, 0)
    assert ended(running(attempt=100), asked).retry is None, "not for ever"
    assert ended(running(**CANCELLING), asked).retry is None


@pytest.mark.parametrize("ending", [Ending.HOST_DIED, Ending.HOST_KILLED])
def test_a_cancelled_function_whose_host_died_was_cancelled(ending: Ending) -> None:
    answer = ended(running(**CANCELLING), outcome(ending, exit_code=1, error="x"))
    assert (answer.status, answer.exit_code) == (Status.CANCELLED, 143)


# -- cancel (docs/protocols.md, section 4) ------------------------------------------------------


@pytest.mark.req("V78")
def test_a_cancelled_outcome_is_cancelled_and_says_by_whom() -> None:
    answer = ended(running(retry=retries(3), **CANCELLING), outcome(Ending.CANCELLED))
    assert answer == Ended(Status.CANCELLED, 143, "cancelled", "cancelled by ann")


@pytest.mark.parametrize("ending", sorted(UNKNOWABLE))
def test_a_cancelled_job_whose_evidence_is_lost_is_cancelled_and_says_so(ending: Ending) -> None:
    answer = ended(running(retry=retries(3), **CANCELLING), outcome(ending))
    assert answer == Ended(
        Status.CANCELLED, 143, f"cancelled ({ending})", f"cancelled by ann ({ending})"
    )


@pytest.mark.parametrize(
    ("what", "status", "code"),
    [
        (outcome(Ending.EXITED, exit_code=0), Status.SUCCEEDED, 0),
        (failed(), Status.FAILED, 7),
        (outcome(Ending.TIMED_OUT), Status.FAILED, 124),
        (outcome(Ending.SIGNALLED, exit_code=139, signal="SIGSEGV"), Status.FAILED, 139),
    ],
)
def test_a_true_outcome_stands_against_a_cancel_but_is_not_tried_again(
    what: Outcome, status: Status, code: int
) -> None:
    answer = ended(running(params=PARAMS, retry=retries(3), **CANCELLING), what)
    assert (answer.status, answer.exit_code, answer.retry) == (status, code, None)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOSPC])
def test_a_cancelled_job_that_never_ran_ends_without_a_run(number: int) -> None:
    unstarted = Ended(
        Status.CANCELLED,
        None,
        None,
        "cancelled by ann before it started",
        executed=False,
    )
    job = running(retry=retries(3), **CANCELLING)
    assert settle(job, outcome(Ending.SPAWN_ERROR, errno=number)) == unstarted
    assert never_ran(job, "undone") == unstarted
    assert host_trouble(job, WaitKind.PRESSURE, "no memory") == unstarted


def test_a_claim_of_which_nothing_was_started_burns_nothing() -> None:
    job = running(launch_failures=2, launch_wait=WaitKind.LAUNCH, retry=retries(3))
    assert never_ran(job, "the worker died") == Undone(
        "the worker died", launch_failures=2, launch_wait=WaitKind.LAUNCH
    )


# -- launch failures (docs/protocols.md, section 14) --------------------------------------------


@pytest.mark.req("G33", "G34", "G35")
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOENT, 127),
        (errno.ENOTDIR, 127),
        (errno.EACCES, 126),
        (errno.ENOEXEC, 126),
        (errno.EPERM, 126),
        (errno.E2BIG, 126),
    ],
    ids=errno.errorcode.get,
)
def test_the_third_failed_launch_breaks_the_circuit(number: int, code: int) -> None:
    what = outcome(Ending.SPAWN_ERROR, errno=number, error="cannot execute nosuch")
    job = running(retry=retries(3))
    for strike, delay in ((1, 1), (2, 5)):
        answer = settle(job, what)
        assert answer == Undone(
            "cannot execute nosuch",
            not_before=END + delay * SECOND,
            launch_failures=strike,
            launch_wait=WaitKind.LAUNCH,
        )
        job = job._replace(launch_failures=strike)
    assert settle(job, what) == Ended(
        Status.FAILED,
        code,
        "circuit-broken: cannot execute nosuch",
        "circuit-broken: cannot execute nosuch",
        launch_failures=3,
        last_failure="cannot execute nosuch",
    )


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, WaitKind.STORAGE),
        (errno.EDQUOT, WaitKind.STORAGE),
        (errno.EROFS, WaitKind.STORAGE),
        (errno.EAGAIN, WaitKind.PRESSURE),
        (errno.ENOMEM, WaitKind.PRESSURE),
        (errno.EMFILE, WaitKind.PRESSURE),
        (errno.ENFILE, WaitKind.PRESSURE),
    ],
    ids=lambda each: errno.errorcode[each] if isinstance(each, int) else each.value,
)
def test_a_cause_of_the_host_counts_against_no_job(number: int, kind: WaitKind) -> None:
    answer = settle(running(launch_failures=2), outcome(Ending.SPAWN_ERROR, errno=number))
    assert answer == Undone(os.strerror(number), launch_failures=2, host_trouble=kind)
    assert HOST_ERRNOS[number] is kind


def test_the_host_is_probed_ever_more_rarely() -> None:
    assert [probe_delay(each) // SECOND for each in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert probe_delay(10_000) == 60 * SECOND


# -- what follows -------------------------------------------------------------------------------


# Of every field of a job, what its retry has there: the same, what a new job has, or its own.
SAME = "name type priority position params chain slug labels after locks retry env_digest"
SAME += " on_finish submitted_by queue needs produces pinned_head preconditions repo approval"
SAME += " level group_id sequence_number subject target template_id resources rates schedule_id"
SAME += " requested_start workflow_run node node_pass after_runs webhooks"
FRESH = "key spec_digest launch_failures last_failure launch_wait stage wait waited_on reason"
FRESH += " started_at finished_at cancel_requested_at cancel_requested_by"
OWN = {
    "id": 8,
    "status": Status.QUEUED,
    "created_at": NOW + 1,
    "retry_of": 2,
    "attempt": 3,
    "retries_used": 2,
    "not_before": END,
}
# A job of which no field is as it is where nobody says anything.
FULL = Job(
    id=2,
    name="build",
    type="agent",
    status=Status.RUNNING,
    priority=3,
    position=400,
    params={"argv": ["make"], "timeout_seconds": 5},
    created_at=NOW,
    chain=1,
    slug="nightly",
    labels={"team": "red"},
    after=(9,),
    locks=(exclusive("k"),),
    retry=retries(3),
    retry_of=1,
    attempt=2,
    retries_used=1,
    not_before=NOW - SECOND,
    requested_start=NOW - 2 * SECOND,
    env_digest="e" * 64,
    key="once",
    spec_digest="s",
    on_finish=("echo", "done"),
    submitted_by="ann",
    launch_failures=2,
    last_failure="x",
    launch_wait=WaitKind.LAUNCH,
    stage=None,
    wait=Wait(WaitKind.LOCKS, "k is held"),
    waited_on=("locks",),
    queue="host-1",
    reason="r",
    started_at=NOW,
    finished_at=END,
    cancel_requested_at=NOW,
    cancel_requested_by="bob",
    needs=("custom:in",),
    produces=("custom:out",),
    pinned_head=PinnedHead("main", "a" * 40),
    preconditions=("clean_worktree",),
    repo="/repo",
    approval=Approval(ApprovalState.APPROVED, NOW, "ann", NOW, "bob"),
    level=7,
    group_id=4,
    sequence_number=5,
    subject="beads:x-1",
    target="sonnet",
    template_id="template-1",
    resources=("gpu",),
    rates=(Rate("api", 2, 60 * SECOND),),
    schedule_id="schedule-3",
    workflow_run=7,
    node="test[n=1]",
    node_pass=2,
    after_runs=(7,),
    webhooks=("https://ci.example.org/hook",),
)


def test_the_sample_job_says_something_in_every_field() -> None:
    said = [name for name in Job._fields if getattr(FULL, name) == Job._field_defaults.get(name)]
    assert said == [], "a retry that leaves these out would look the same"


@pytest.mark.parametrize("field", Job._fields)
def test_each_field_of_a_retry_is_the_same_or_fresh_or_its_own(field: str) -> None:
    following = next_in_chain(FULL, ChainRetry(END, 2), new_id=8, now=NOW + 1)
    expected = {name: getattr(FULL, name) for name in SAME.split()}
    expected |= {name: Job._field_defaults[name] for name in FRESH.split()}
    expected |= OWN
    assert set(expected) == set(Job._fields), "a new field: say what a retry has there"
    assert getattr(following, field) == expected[field]


def test_a_retry_after_a_cooldown_says_what_it_waits_for() -> None:
    following = next_in_chain(FULL, ChainRetry(END, 1, cooling="no such file"), new_id=8, now=NOW)
    assert (following.launch_wait, following.last_failure) == (WaitKind.LAUNCH, "no such file")
    assert (following.launch_failures, following.retries_used) == (0, 1)


def test_on_finish_becomes_a_job_that_knows_what_ended() -> None:
    job = running(
        4,
        chain=2,
        priority=3,
        params={"argv": ["x"], "env": {"A": "1"}, "cwd": "/srv"},
        on_finish=("notify", "--all"),
        env_digest="e",
        submitted_by="ann",
        locks=(exclusive("k"),),
        retry=retries(3),
    )
    verdict = Ended(Status.FAILED, 7, "exit code 7", "exit code 7")
    following = follow_up(job, verdict, new_id=9, now=END)
    assert following is not None
    assert following.params == {
        "argv": ["notify", "--all"],
        "env": {
            "A": "1",
            "HEADWAY_FINISHED_JOB": "job-4",
            "HEADWAY_FINISHED_STATE": "failed",
            "HEADWAY_FINISHED_EXIT_CODE": "7",
        },
        "cwd": "/srv",
    }
    assert (following.id, following.chain, following.name) == (9, 9, "on-finish job-4")
    assert following.labels == {"on-finish": "job-4"}
    assert (following.env_digest, following.submitted_by) == ("e", "ann")
    assert following.locks == () and following.retry == RetryPolicy() and not following.on_finish


@pytest.mark.parametrize("field", Job._fields)
def test_each_field_of_a_follow_up_is_its_own_or_that_of_a_plain_job(field: str) -> None:
    params = {**FULL.params, "env": {"A": "1"}, "cwd": "/srv", "any_host": True}
    verdict = Ended(Status.SUCCEEDED, 0, None, None)
    following = follow_up(FULL._replace(params=params), verdict, new_id=9, now=END)
    told = {"JOB": "job-2", "STATE": "succeeded", "EXIT_CODE": "0"}
    env = {"A": "1"} | {f"HEADWAY_FINISHED_{name}": value for name, value in told.items()}
    own = {
        "id": 9,
        "name": "on-finish job-2",
        "type": "command",
        "status": Status.QUEUED,
        "params": {"argv": ["echo", "done"], "env": env, "cwd": "/srv", "any_host": True},
        "created_at": END,
        "chain": 9,
        "labels": {"on-finish": "job-2"},
    }
    same = ("priority", "position", "level", "env_digest", "submitted_by", "queue")
    expected = Job._field_defaults | {name: getattr(FULL, name) for name in same} | own
    assert getattr(following, field) == expected[field]


def test_on_finish_waits_for_the_end_of_the_chain() -> None:
    job = running(on_finish=("notify",))
    going_on = Ended(Status.FAILED, 7, None, None, retry=ChainRetry(None, 1))
    assert follow_up(job, going_on, new_id=9, now=END) is None
    assert follow_up(running(), going_on._replace(retry=None), new_id=9, now=END) is None


def test_on_finish_of_a_job_that_never_ran_has_no_exit_code() -> None:
    verdict = Ended(Status.CANCELLED, None, None, "cancelled", executed=False)
    following = follow_up(running(on_finish=("notify",)), verdict, new_id=9, now=END)
    assert following is not None
    assert following.params["env"]["HEADWAY_FINISHED_EXIT_CODE"] == ""


@pytest.mark.parametrize("strikes", [0, 2])
def test_what_has_changed_before_its_start_counts_against_nobody(strikes: int) -> None:
    moved = outcome(Ending.SPAWN_ERROR, error="pinned head mismatch on main", changed=True)
    answer = settle(running(launch_failures=strikes, not_before=NOW), moved, cooldown=5)
    cause = "pinned head mismatch on main"
    assert answer == Undone(cause, not_before=NOW, launch_failures=strikes)
    cancelled = ended(running(**CANCELLING), moved)
    assert (cancelled.status, cancelled.executed) == (Status.CANCELLED, False)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(Ending),
    st.integers(0, 255),
    st.sampled_from(sorted(errno.errorcode)),
    st.booleans(),
    st.integers(0, 3),
    st.integers(0, 2),
)
def test_every_outcome_is_an_end_or_an_undoing(
    ending: Ending, code: int, number: int, cancelling: bool, used: int, strikes: int
) -> None:
    job = running(
        params=PARAMS,
        retry=retries(2),
        retries_used=used,
        launch_failures=strikes,
        **(CANCELLING if cancelling else {}),
    )
    answer = settle(job, outcome(ending, exit_code=code, errno=number, signal="SIGTERM"))
    if isinstance(answer, Undone):
        assert ending is Ending.SPAWN_ERROR and not cancelling
        return
    assert answer.status in TERMINAL
    assert answer.retry is None or (answer.status is Status.FAILED and not cancelling)
    assert answer.executed or (cancelling and answer.status is Status.CANCELLED)
