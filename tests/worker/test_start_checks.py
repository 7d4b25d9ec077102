"""What a job's gates have seen of its repository is checked once more before its command starts."""

import os
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from checkouts_of_jobs import git, make_repository
from harness import Bench
from headway.core.model import Claim, Lock, Rate, WaitKind
from headway.core.states import Status
from headway.integrations.probes import start_checks as starting
from headway.jobs.agents import agent_request
from headway.jobs.request import Request
from headway.supervise import helper
from headway.worker.launch import specification
from headway.worker.launch.command import how_to_reach_a_worker

RATES = (Rate("api", 1, 3_600_000_000),)
MISMATCH = "pinned head mismatch on main"


@pytest.fixture(autouse=True)
def own_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = make_repository(tmp_path)
    git(folder, "branch", "release")
    return folder


class Change(NamedTuple):
    """What a job asks for, how that is changed and undone, and what its gate says of it."""

    asks: dict[str, Any]
    change: Callable[[Path], object]
    undo: Callable[[Path], object]
    kind: WaitKind
    words: str


def commit(repo: Path) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "more")


def go_back(repo: Path) -> None:
    git(repo, "reset", "-q", "--hard", "HEAD~1")


DIRTY = (lambda repo: (repo / "new").touch(), lambda repo: (repo / "new").unlink())
RENAMED = (
    lambda repo: git(repo, "branch", "-m", "release", "old"),
    lambda repo: git(repo, "branch", "-m", "old", "release"),
)
UNCLEAN = (WaitKind.PRECONDITIONS, "worktree is not clean")
GONE = (WaitKind.PRECONDITIONS, "branch release does not exist")
PINNED = (WaitKind.PINNED_HEAD, MISMATCH)
CHANGES = {
    "a pinned branch": Change({"pin_head": "main"}, commit, go_back, *PINNED),
    "what is checked out": Change({"pin_head": ""}, commit, go_back, *PINNED),
    "a clean worktree": Change({"require": ("custom:clean_worktree",)}, *DIRTY, *UNCLEAN),
    "a branch": Change({"require": ("branch_exists:release",)}, *RENAMED, *GONE),
    "the branch of a lock": Change(
        {"require": ("branch_exists",), "locks": (Lock("branch:release"),)}, *RENAMED, *GONE
    ),
    "a checkout of its own": Change({"pin_head": "main", "worktree": ""}, commit, go_back, *PINNED),
    "the second of two": Change(
        {"pin_head": "main", "require": ("clean_worktree",)}, *DIRTY, *UNCLEAN
    ),
}


def at_launch(bench: Bench, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do that once, after the claim has committed and before anyone hears of it."""
    launch, acts = bench.engine.launches.launch, [act]

    def acting(claims: list[Claim]) -> None:
        if claims and acts:
            acts.pop()()
        launch(claims)

    monkeypatch.setattr(bench.engine.launches, "launch", acting)


def submit(bench: Bench, repo: Path, asks: dict[str, Any]) -> int:
    script = f"git -C {repo} rev-parse HEAD >>{bench.folder}/ran"
    return bench.submit("sh", "-c", script, cwd=str(repo), **asks)


def ran(bench: Bench) -> list[str]:
    path = bench.folder / "ran"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("case", CHANGES)
def test_what_changes_between_claim_and_start_undoes_the_claim(  # fault I5
    bench: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    asks, change, undo, kind, words = CHANGES[case]
    before = git(repo, "rev-parse", "HEAD")
    job = submit(bench, repo, asks)
    at_launch(bench, monkeypatch, lambda: change(repo))

    bench.until(lambda: "unclaimed" in bench.kinds(job))

    [undone] = [event for event in bench.events(job) if event.kind == "unclaimed"]
    assert undone.data["cause"] == words
    found = bench.until(lambda: bench.job(job).wait)
    bench.until(lambda: bench.job(job).wait.detail == words)  # type: ignore[union-attr]
    waiting = bench.job(job)
    assert (found.kind, waiting.status) == (kind, Status.WAITING_ON_DEPS)
    assert (waiting.attempt, waiting.launch_failures, waiting.not_before) == (1, 0, None)
    assert bench.client.document(job)["run"] is None and ran(bench) == []
    for _ in range(3):
        bench.turn()
    assert bench.kinds(job).count("running") == 1, "it was claimed once and waits now"
    undo(repo)
    [ended] = bench.until_ended(job)
    assert (ended.id, ended.status, ran(bench)) == (job, Status.SUCCEEDED, [before])


@pytest.mark.parametrize("point", ["parent.read", "supervisor.locked", "supervisor.started"])
def test_a_head_that_moves_while_a_supervisor_comes_up_is_seen(  # fault I5
    make_bench: Callable[..., Bench],
    repo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
) -> None:
    """Up to the go byte, and with the start record written."""
    mark = tmp_path / "mark"
    monkeypatch.setenv("HEADWAY_POINTS", f"{point}=stop")
    monkeypatch.setenv("HEADWAY_TEST_MARK", str(mark))
    bench = make_bench()
    job = submit(bench, repo, {"pin_head": "main"})
    bench.until(lambda: mark.exists() and mark.read_text())
    commit(repo)
    os.kill(int(mark.read_text().split()[1]), signal.SIGCONT)
    bench.until(lambda: (bench.job(job).wait or (0, 0))[1] == MISMATCH)
    assert ran(bench) == []
    go_back(repo)
    assert bench.until_ended(job)[0].status is Status.SUCCEEDED


def test_a_resumed_pinned_job_never_runs_on_another_commit(
    make_bench: Callable[..., Bench], repo: Path
) -> None:
    """Its answer is from before the pause ended, and fresh."""
    bench = make_bench()
    for _ in range(3):
        bench.client.pause("hold")
        job = submit(bench, repo, {"pin_head": "main"})
        bench.until(lambda job=job: (bench.job(job).wait or (0,))[0] is WaitKind.PAUSED)
        commit(repo)
        bench.client.resume()
        bench.until(lambda job=job: (bench.job(job).wait or (0, 0))[1] == MISMATCH)
        assert ran(bench) == []
        bench.client.cancel([job])


def test_rates_and_limits_are_as_if_it_had_not_been_claimed(
    bench: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submit(bench, repo, {"pin_head": "main", "rates": RATES, "locks": (Lock("k"),)})
    at_launch(bench, monkeypatch, lambda: commit(repo))
    bench.until(lambda: "unclaimed" in bench.kinds(job))
    other = bench.submit("true", rates=RATES, locks=(Lock("k"),))
    assert bench.until_ended(other)[0].status is Status.SUCCEEDED


def test_a_cancel_meets_a_job_that_is_being_checked(
    bench: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submit(bench, repo, {"pin_head": "main"})
    at_launch(bench, monkeypatch, lambda: (commit(repo), bench.client.cancel([job])))
    [ended] = bench.until_ended(job)
    assert (ended.status, ran(bench)) == (Status.CANCELLED, [])


def test_what_cannot_be_checked_fails_as_what_cannot_be_launched(
    bench: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = {"argv": ["/bin/sh", "-c", "echo no memory of it >&2; exit 1"], "timeout_seconds": 5}
    monkeypatch.setattr(starting, "check_before", lambda job: broken)
    job = submit(bench, repo, {"pin_head": "main"})
    bench.until(lambda: bench.job(job).launch_failures == 1)
    assert (bench.job(job).launch_wait, ran(bench)) == (WaitKind.LAUNCH, [])
    assert bench.job(job).last_failure == "no memory of it"


def test_a_check_that_disagrees_with_the_gate_does_not_spin(
    make_bench: Callable[..., Bench], repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pauses grow as long as each look shows what the last one did."""
    bench = make_bench()
    argv = ["/bin/sh", "-c", f"echo not so >&2; exit {helper.CHANGED}"]
    refusing = {"argv": argv, "timeout_seconds": 5.0}
    monkeypatch.setattr(starting, "check_before", lambda job: refusing)
    job = submit(bench, repo, {"pin_head": "main"})
    bench.until(lambda: bench.kinds(job).count("unclaimed") == 4)
    times = [event.at for event in bench.events(job) if event.kind == "unclaimed"]
    pauses = [(later - at) / 1e6 for at, later in pairwise(times)]
    assert pauses[1] >= 0.5 and pauses[2] >= 1.0, pauses
    bench.client.cancel([job])


def test_only_jobs_that_ask_for_it_are_checked(bench: Bench, repo: Path) -> None:
    def checks(request: Request | None = None, **asks: Any) -> bool:
        bench.client.pause("hold")
        command = Request(argv=("true",), cwd=str(repo), check=False, **asks)
        job = bench.job(bench.client.submit(request or command).job_id)
        claim = Claim(job.id, "t", 1, "w", "h", bench.home.path, "b", "/f", 0)
        reach = how_to_reach_a_worker(bench.home, bench.config)
        return "check" in specification(job, claim, bench.home, bench.config, reach)

    runners = Path(bench.home.path, "runners")
    runners.mkdir()
    (runners / "mine.toml").write_text('argv = ["true"]\nprompt = "stdin"\nparser = "text"\n')
    assert checks(agent_request("Look.", runner="mine", pin_head="", cwd=str(repo)))
    assert not checks() and not checks(require=("custom:weather",))
    assert checks(pin_head="") and checks(require=("custom:weather", "clean_worktree"))


def test_both_sides_know_the_word_for_it() -> None:
    assert helper.CHANGED == starting.CHANGED
