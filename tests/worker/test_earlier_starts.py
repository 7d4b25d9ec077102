"""A start that the store has lost: after a server took over without the last commits, the job waits
there as if nobody had begun it, while its first start runs, or ran, in the job's folder."""

import os
import signal
from pathlib import Path

import pytest

from harness import Bench, wait_for
from headway.core.model import Claim
from headway.core.states import Status
from headway.jobs.views.why import why
from headway.store.records import Unclaim
from headway.supervise.evidence import Evidence
from headway.testing.clock import FakeClock

NOTE = "echo ran >> {notes}; until test -e {gate}; do sleep 0.02; done; exit {code}"


class Lost:
    """A job that was started, and whose claim the store has lost."""

    def __init__(self, bench: Bench, code: int = 0, **options: object) -> None:
        self.bench = bench
        self.gate = bench.folder / "gate"
        self.notes = bench.folder / "notes"
        shell = NOTE.format(notes=self.notes, gate=self.gate, code=code)
        self.job = bench.submit(shell=shell, **options)
        bench.step()
        (self.first,) = bench.engine.launches.claims
        wait_for(lambda: self.notes.exists(), what="its first start to run")
        self.set_back()

    def set_back(self) -> None:
        with self.bench.store.write() as tx:
            lost = Unclaim(self.first.token, self.job, "the commit is lost", None, 0, None)
            assert tx.claims.undo([lost]) == [True]
            tx.claims.release_locks([self.job])
        self.bench.crash().recover()

    def runs(self) -> int:
        return len(self.notes.read_text().split())

    def live(self) -> list[Claim]:
        with self.bench.store.read() as tx:
            return list(tx.claims.live())

    def let_end(self) -> None:
        self.gate.touch()
        evidence = Evidence(self.first.folder, self.first.token)
        wait_for(evidence.read_outcome, what="the outcome of the first start")
        # Its supervisor holds the lock until it is gone.
        wait_for(lambda: free(evidence), what="its supervisor to leave")


def free(evidence: Evidence) -> bool:

    lock = evidence.try_lock()
    if lock is not None:
        os.close(lock)
    return lock is not None


def clocked(bench: Bench) -> FakeClock:
    assert isinstance(bench.clock, FakeClock)
    return bench.clock


@pytest.fixture
def ticking(make_bench: object) -> Bench:
    bench: Bench = make_bench(clock=FakeClock(), max_active=4)  # type: ignore[operator]
    return bench


def test_a_job_whose_first_start_lives_is_not_started_again(ticking: Bench) -> None:
    lost = Lost(ticking, locks=())
    ticking.step()
    assert (ticking.status(lost.job), lost.live()) == (Status.QUEUED, [])
    (objection,) = why(ticking.client.context, lost.job)["objections"]
    assert objection["kind"] == "launch"
    assert "an earlier start of it still runs (supervisor " in objection["detail"]
    assert lost.first.token[:8] in objection["detail"]
    assert "looked at again" in objection["remedy"]
    assert ticking.job(lost.job).launch_failures == 0
    events = len(ticking.events(lost.job))
    assert ticking.kinds(lost.job)[-2:] == ["unclaimed", "queued"]
    for _ in range(20):
        ticking.step()
    assert len(ticking.events(lost.job)) == events, "nobody looks all the time"
    for _ in range(30):
        clocked(ticking).advance(10)
        ticking.step()
    assert len(ticking.events(lost.job)) - events < 30, "ever more rarely"
    assert (ticking.status(lost.job), lost.runs()) == (Status.QUEUED, 1)
    lost.let_end()


@pytest.mark.parametrize("code", [0, 3])
def test_what_the_first_start_came_to_is_the_outcome_of_the_job(ticking: Bench, code: int) -> None:
    lost = Lost(ticking, code)
    ticking.step()
    lost.let_end()
    clocked(ticking).advance(60)
    ticking.until_ended(lost.job)
    ended = ticking.job(lost.job)
    assert ended.status is (Status.SUCCEEDED if code == 0 else Status.FAILED)
    run = ticking.client.document(lost.job)["run"]
    assert run["exit_code"] == code
    assert "claim_restored" in ticking.kinds(lost.job)
    assert lost.runs() == 1
    assert ended.started_at is not None and ended.finished_at is not None


def test_a_first_start_that_died_is_judged_and_not_repeated(ticking: Bench) -> None:
    lost = Lost(ticking)
    evidence = Evidence(lost.first.folder, lost.first.token)
    started = wait_for(evidence.read_started, what="its start")
    os.kill(started.supervisor_pid, signal.SIGKILL)  # it alone, so that nobody writes an outcome
    wait_for(lambda: free(evidence), what="the supervisor to be gone")
    ticking.until_ended(lost.job)
    assert ticking.job(lost.job).reason == "Scheduler crash recovery: outcome_unknown"
    assert lost.runs() == 1


def test_a_worker_that_dies_after_the_claim_was_put_back_changes_nothing(ticking: Bench) -> None:
    lost = Lost(ticking)
    lost.let_end()
    judge = ticking.engine.tools.ends.judge
    ticking.engine.tools.ends.judge = lambda claims: None  # type: ignore[method-assign]
    ticking.step()
    assert [claim.token for claim in lost.live()] == [lost.first.token]
    ticking.engine.tools.ends.judge = judge  # type: ignore[method-assign]
    ticking.crash().recover()
    assert (ticking.status(lost.job), lost.runs()) == (Status.SUCCEEDED, 1)


def test_another_job_that_got_the_number_is_none_of_its_business(ticking: Bench) -> None:
    """Its submit was lost, too: the next one has its id, and its folder."""
    lost = Lost(ticking)
    claim = Path(lost.first.folder, f"claim.{lost.first.token}")
    claim.write_text(claim.read_text().replace('"created_at": ', '"created_at": 1'))
    ticking.step()
    assert ticking.status(lost.job) is Status.QUEUED, "both would write into one folder"
    lost.let_end()
    clocked(ticking).advance(60)
    ticking.until_ended(lost.job)
    assert "claim_restored" not in ticking.kinds(lost.job)
    assert lost.runs() == 2


def test_a_claim_that_never_began_is_forbidden_to(ticking: Bench) -> None:
    """Its launch may still be on its way."""
    job = ticking.submit("true")
    folder = ticking.home.job(job)
    stray = Evidence(folder, "f" * 32)
    stray.prepare({"job": job})
    ticking.until_ended(job)
    assert ticking.status(job) is Status.SUCCEEDED
    assert stray.is_void() and not stray.may_start()


def test_a_stray_launch_that_holds_its_lock_stops_another(ticking: Bench) -> None:

    job = ticking.submit("true")
    stray = Evidence(ticking.home.job(job), "f" * 32)
    stray.prepare({"job": job})
    lock = stray.try_lock()
    assert lock is not None
    ticking.step()
    assert ticking.status(job) is Status.QUEUED
    os.close(lock)
    clocked(ticking).advance(60)
    ticking.until_ended(job)
