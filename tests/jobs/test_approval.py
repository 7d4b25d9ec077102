"""A person decides before the job starts: pending, approved or rejected, once."""

import threading
from collections.abc import Callable

import pytest

from harness import Bench
from headway.base.clock import SystemClock
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.client import Client
from headway.core.states import Status
from headway.jobs.approvals import approve, inbox, reject
from headway.jobs.context import Context
from headway.store import open_store
from headway.testing.clock import FakeClock


@pytest.mark.req("V65", "V66", "V67", "V72")
def test_a_job_waits_for_a_person_and_starts_when_one_agrees(bench: Bench) -> None:
    job = bench.submit("true", require_approval=True)
    bench.step()
    document = bench.client.document(job)
    assert document["state"] == "waiting_on_approval"
    assert document["wait"] == {"kind": "approval", "detail": "awaiting human approval"}
    asked = document["approval"]
    assert (asked["required"], asked["state"], asked["requested_by"]) == (True, "pending", "tester")
    assert asked["requested_at"] == document["created_at"]
    assert (asked["decided_at"], asked["decided_by"], asked["reason"]) == (None, None, None)

    approve(bench.client.context, job)
    bench.step()
    assert bench.status(job) is Status.RUNNING, "one step after the decision it has started"
    decided = bench.client.document(job)["approval"]
    assert (decided["state"], decided["decided_by"]) == ("approved", "tester")
    assert decided["decided_at"] is not None
    assert bench.kinds(job) == ["submitted", "waiting_on_approval", "approved", "running"]


@pytest.mark.req("V68", "V50")
def test_a_rejected_job_is_blocked_with_its_reason_and_so_is_what_depends_on_it(
    bench: Bench,
) -> None:
    job = bench.submit("true", require_approval=True)
    dependent = bench.submit("true", after=(job,))
    bench.step()
    reject(bench.client.context, job, "not on a friday")
    document = bench.client.document(job)
    assert document["state"] == "blocked_by_approval"
    assert document["reason"] == "rejected by tester: not on a friday"
    assert document["run"] is None
    decided = document["approval"]
    assert (decided["state"], decided["decided_by"]) == ("rejected", "tester")
    assert decided["reason"] == "not on a friday"
    assert bench.kinds(job)[-2:] == ["rejected", "blocked_by_approval"]
    bench.step()
    assert bench.status(dependent) is Status.BLOCKED_BY_DEPENDENCY
    assert (
        bench.job(dependent).reason == f"dependency failed for job job-{job} (blocked_by_approval)"
    )


def test_a_rejection_needs_no_reason(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=3)
    job = bench.submit("true", require_approval=True)
    reject(bench.client.context, job, None)
    assert bench.job(job).reason == "rejected by tester"
    assert bench.job(job).approval.reason is None  # type: ignore[union-attr]


@pytest.mark.req("V67")
def test_an_approval_before_its_turn_is_there_when_the_turn_comes(bench: Bench) -> None:
    first = bench.submit("true")
    job = bench.submit("true", after=(first,), require_approval=True)
    approve(bench.client.context, job)
    bench.until_ended(first, job)
    assert bench.status(job) is Status.SUCCEEDED
    assert "waiting_on_approval" not in bench.kinds(job)


def never_asked(bench: Bench) -> int:
    return bench.submit("true", delay=3_600_000_000)


def already_approved(bench: Bench) -> int:
    job = bench.submit("true", require_approval=True, delay=3_600_000_000)
    approve(bench.client.context, job)
    return job


def already_rejected(bench: Bench) -> int:
    job = bench.submit("true", require_approval=True)
    reject(bench.client.context, job, None)
    return job


def running(bench: Bench) -> int:
    job = bench.submit("sleep", "60", require_approval=True)
    approve(bench.client.context, job)
    bench.step()
    assert bench.status(job) is Status.RUNNING
    return job


def running_ungated(bench: Bench) -> int:
    job = bench.submit("sleep", "60")
    bench.step()
    return job


def cancelled(bench: Bench) -> int:
    job = bench.submit("true", require_approval=True)
    bench.client.cancel([job])
    return job


@pytest.mark.req("V69")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (never_asked, "job-1 asks for no approval; it is queued"),
        (already_approved, "job-1 was already approved by tester"),
        (already_rejected, "job-1 was already rejected by tester"),
        (running, "job-1 was already approved by tester"),
        (running_ungated, "job-1 asks for no approval; it is running"),
        (cancelled, "job-1 has already ended (cancelled)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_cannot_be_decided_is_refused_and_stays_as_it_was(
    bench: Bench, given: Callable[[Bench], int], words: str
) -> None:
    job = given(bench)
    before = (bench.job(job), bench.kinds(job))
    with pytest.raises(ConflictError) as refused:
        approve(bench.client.context, job)
    assert str(refused.value) == words
    with pytest.raises(ConflictError) as refused:
        reject(bench.client.context, job, "no")
    assert str(refused.value) == words
    assert (bench.job(job), bench.kinds(job)) == before


def test_a_job_that_does_not_exist_is_not_found(bench: Bench) -> None:
    with pytest.raises(NotFoundError):
        approve(bench.client.context, 99)
    with pytest.raises(NotFoundError):
        reject(bench.client.context, 99, None)


def test_a_reason_without_end_is_refused_and_one_line_is_kept(bench: Bench) -> None:
    job = bench.submit("true", require_approval=True)
    with pytest.raises(InvalidInputError, match="2000 are allowed"):
        reject(bench.client.context, job, "x" * 2001)
    assert bench.job(job).approval.decided_at is None  # type: ignore[union-attr]
    reject(bench.client.context, job, "two\nlines\0 \ud800")
    assert bench.job(job).reason == "rejected by tester: two lines   "


def test_an_automatic_retry_needs_no_second_approval(bench: Bench) -> None:
    job = bench.submit("false", require_approval=True, retries=1, retry_base=0)
    approve(bench.client.context, job)
    last = bench.until_ended(job)[0]
    assert (last.attempt, last.status) == (2, Status.FAILED)


def test_the_inbox_has_those_to_decide_first_and_marks_the_others(
    make_bench: Callable[..., Bench],
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    first = bench.submit("true", delay=3_600_000_000)
    later = bench.submit("true", after=(first,), require_approval=True)
    now = bench.submit(shell="make deploy | tee log", require_approval=True, cwd="/")
    decided = bench.submit("true", after=(first,), require_approval=True)
    approve(bench.client.context, decided)
    gone = bench.submit("true", require_approval=True)
    bench.client.cancel([gone])
    bench.step()
    asking = inbox(bench.client.context)
    assert [(each["id"], each["now"]) for each in asking] == [
        (f"job-{now}", True),
        (f"job-{later}", False),
    ]
    assert asking[0]["runs"] == "make deploy | tee log"
    assert asking[0]["directory"] == "/"
    assert asking[0]["requested_by"] == "tester"
    assert asking[1]["wait"]["detail"] == f"waiting on job job-{first}"
    assert asking[1]["directory"], "where it was submitted"


@pytest.fixture
def make_second(bench: Bench) -> Callable[[str], Client]:
    """Another connection to the same store, for somebody else."""

    def make(actor: str) -> Client:
        url = bench.home.store_url or f"sqlite://{bench.home.database}"
        return Client(
            Context(
                bench.home,
                bench.config,
                open_store(url, SystemClock()),
                SystemClock(),
                environ=bench.client.context.environ,
                actor=actor,
            )
        )

    return make


def at_once(*acts: Callable[[], object]) -> list[Exception | None]:
    """Do all of these at the same time; what each was refused with."""
    told: list[Exception | None] = [None] * len(acts)
    gate = threading.Barrier(len(acts))

    def do(place: int, act: Callable[[], object]) -> None:
        gate.wait()
        try:
            act()
        except ConflictError as error:
            told[place] = error

    threads = [threading.Thread(target=do, args=each) for each in enumerate(acts)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return told


@pytest.mark.req("V69")
def test_of_two_decisions_at_once_exactly_one_counts(
    bench: Bench, make_second: Callable[[str], Client]
) -> None:
    # fault G4
    ada, eve = make_second("ada"), make_second("eve")
    for _ in range(15):
        job = bench.submit("true", require_approval=True)
        refused = at_once(lambda: approve(ada.context, job), lambda: reject(eve.context, job, "no"))  # noqa: B023
        assert sum(each is None for each in refused) == 1
        decided = bench.job(job)
        assert decided.approval is not None
        if refused[0] is None:
            assert (decided.approval.state, decided.approval.decided_by) == ("approved", "ada")
            assert decided.status is Status.QUEUED
        else:
            assert (decided.approval.state, decided.approval.decided_by) == ("rejected", "eve")
            assert decided.status is Status.BLOCKED_BY_APPROVAL
        kinds = bench.kinds(job)
        assert kinds.count("approved") + kinds.count("rejected") == 1
        if decided.status is Status.QUEUED:
            bench.client.cancel([job])
    ada.close()
    eve.close()


@pytest.mark.req("V69")
def test_an_approval_and_a_cancel_at_once_end_in_a_cancelled_job_that_never_ran(
    bench: Bench, make_second: Callable[[str], Client]
) -> None:
    # fault G4
    ada, eve = make_second("ada"), make_second("eve")
    for _ in range(15):
        job = bench.submit("true", require_approval=True)
        refused = at_once(lambda: approve(ada.context, job), lambda: eve.cancel([job]))  # noqa: B023
        assert refused[1] is None, "a job that waits can be cancelled, approved or not"
        assert bench.status(job) is Status.CANCELLED
        kinds = bench.kinds(job)
        if refused[0] is None:
            assert kinds == ["submitted", "approved", "cancelled"]
        else:
            assert kinds == ["submitted", "cancelled"], "the approval came too late"
            assert str(refused[0]) == f"job-{job} has already ended (cancelled)"
    ada.close()
    eve.close()


@pytest.mark.req("V69")
@pytest.mark.parametrize("decide", ["approve", "reject"])
def test_a_retry_by_hand_asks_a_person_anew(bench: Bench, decide: str) -> None:
    job = bench.submit("false", require_approval=True)
    if decide == "approve":
        approve(bench.client.context, job)
        bench.until_ended(job)
    else:
        reject(bench.client.context, job, "no")
    again = bench.client.retry(job).id
    asked = bench.job(again).approval
    assert asked is not None and (asked.state, asked.decided_by) == ("pending", None)
    bench.step()
    assert bench.status(again) is Status.WAITING_ON_APPROVAL
    with pytest.raises(ConflictError) as refused:
        approve(bench.client.context, job)
    done = {"approve": "approved", "reject": "rejected"}[decide]
    hint = f"of its chain job-{again} awaits approval"
    assert str(refused.value) == f"job-{job} was already {done} by tester; {hint}"
    approve(bench.client.context, again)
    bench.until_ended(again)
    assert bench.status(again) is Status.FAILED
