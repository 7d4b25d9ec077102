"""No control group outlives its claim: not of what never started, nor of what was left behind."""

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest
from test_recovery import claim_of, not_launched

from both_stores import on_a_file
from harness import Bench, wait_for
from headway.core.model import Claim, WaitKind
from headway.core.settle import Ending, HostFailed, Judgement, Outcome, Verdict
from headway.core.states import Status
from headway.store.records import Unclaim
from headway.supervise import cgroup, rescue
from headway.worker import ends
from headway.worker.recovery import JudgedClaim

pytestmark = pytest.mark.root


@pytest.fixture
def idler() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not end by itself, as a child that was never let go."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def group_of(claim: Claim) -> str:
    base = cgroup.find_base()
    assert base is not None, "this test needs a writable cgroup v2"
    return cgroup.path_for(base, claim.token)


def occupied(claim: Claim, process: subprocess.Popen[bytes]) -> str:
    """The claim's group with someone in it, whom its supervisor had not let go when it died."""
    path = group_of(claim)
    assert cgroup.make(path) and cgroup.admit(path, process.pid)
    return path


def claimed(bench: Bench) -> Claim:
    job = bench.submit("true")
    not_launched(bench)
    bench.step()
    return claim_of(bench, job)


def test_recovery_of_what_never_started_leaves_no_group(
    bench: Bench, idler: subprocess.Popen[bytes]
) -> None:
    claim = claimed(bench)
    path = occupied(claim, idler)
    bench.crash().recover()
    assert bench.status(claim.job_id) is Status.QUEUED
    assert not os.path.isdir(path)
    assert idler.wait(30) == -9
    bench.until_ended(claim.job_id)
    assert bench.status(claim.job_id) is Status.SUCCEEDED


@pytest.mark.parametrize(
    "judgement",
    [
        HostFailed(WaitKind.PRESSURE, "could not start a process"),
        Verdict(Outcome(Ending.SPAWN_ERROR, 0, errno=2, error="exec"), tree_gone=True),
    ],
    ids=["host", "job"],
)
def test_what_the_worker_undoes_leaves_no_group(bench: Bench, judgement: Judgement) -> None:
    claim = claimed(bench)
    path = group_of(claim)
    assert cgroup.make(path)
    bench.engine.tools.ends.settled([JudgedClaim(claim, judgement)], {})
    assert not os.path.isdir(path)
    bench.crash().recover()


def impatient(token: str) -> bool:
    """As if nobody in the group could be ended in time."""
    return not [path for path in rescue._cgroups(token, None) if not cgroup.remove(path)]


@pytest.mark.parametrize("way", ["died", "undone"])
@on_a_file
def test_a_group_that_could_not_be_removed_in_time_goes_later(
    bench: Bench,
    idler: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    claim = claimed(bench)
    path = occupied(claim, idler)
    monkeypatch.setattr(rescue, "forget_cgroup", impatient)
    monkeypatch.setattr(ends, "forget_cgroup", impatient)
    if way == "died":  # the worker, after the commit: nobody else knows of the group
        again = bench.crash()
        monkeypatch.setattr(again.tools.ends, "_clear_away", lambda *_: None)
        again.recover()
    else:
        with bench.store.write() as tx:
            lost = Unclaim(claim.token, claim.job_id, "test", None, 0, None)
            assert tx.claims.undo([lost]) == [True]
        failed = HostFailed(WaitKind.PRESSURE, "could not start a process")
        bench.engine.tools.ends.settled([JudgedClaim(claim, failed)], {})
    assert bench.status(claim.job_id) is Status.QUEUED and os.path.isdir(path)
    idler.kill()
    idler.wait()
    wait_for(lambda: not cgroup.is_populated(path))
    bench.crash().recover()
    assert not os.path.isdir(path)
    bench.until_ended(claim.job_id)


@on_a_file
def test_a_group_that_is_not_yet_empty_is_found_later(
    bench: Bench, idler: subprocess.Popen[bytes]
) -> None:
    claim = claimed(bench)
    path = occupied(claim, idler)
    bench.engine.tools.ends.groups.note(claim.folder, claim.token)
    bench.engine.tools.ends.groups.note(claim.folder, claim.token)  # twice gives the same
    bench.engine.tools.ends.groups.remove()
    assert os.path.isdir(path) and idler.poll() is None, "nobody is ended here"
    idler.kill()
    idler.wait()
    wait_for(lambda: not cgroup.is_populated(path))
    bench.engine.tools.ends.groups.remove()
    assert not os.path.isdir(path)
    assert os.listdir(f"{bench.home.run}/groups") == []
    bench.crash().recover()


@on_a_file
def test_the_group_of_processes_that_were_left_goes_after_them(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(settings={"processes.leftovers": "leave"})
    script = "(while ! test -e stop; do sleep 0.02; done) & exit 0"
    job = bench.submit("sh", "-c", script, cwd=str(bench.folder))
    bench.step()
    path = group_of(claim_of(bench, job))
    try:
        bench.until_ended(job)
        assert cgroup.is_populated(path), "they are left alone"
        bench.crash().recover()
        assert cgroup.is_populated(path)
    finally:
        (bench.folder / "stop").touch()
    wait_for(lambda: not cgroup.is_populated(path))
    bench.crash().recover()
    assert not os.path.isdir(path)
