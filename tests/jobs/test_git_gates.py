"""Jobs that wait for a repository, a file or a condition: real git, real processes."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from both_stores import on_a_file
from harness import Bench
from headway.base.errors import StoreFullError
from headway.core.model import WaitKind
from headway.core.states import Status
from headway.jobs.views.why import why
from headway.testing.clock import FakeClock

pytestmark = pytest.mark.usefixtures("own_configuration")


@pytest.fixture
def own_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path) -> str:
    git(folder, "commit", "-q", "--allow-empty", "-m", "more")
    return git(folder, "rev-parse", "HEAD")


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "tracked").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "project")


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(clock=FakeClock(), max_active=10)


def pass_time(bench: Bench, seconds: float = 11.0) -> None:
    """Long enough for the rarest look to be made; then the step that acts on it."""
    assert isinstance(bench.clock, FakeClock)
    bench.clock.advance(seconds)
    bench.step()
    bench.step()


def wait_of(bench: Bench, job_id: int) -> tuple[str, str, str]:
    document = bench.client.document(job_id)
    return document["state"], document["wait"]["kind"], document["wait"]["detail"]


MISMATCH = ("waiting_on_deps", "pinned_head", "pinned head mismatch on main")


@pytest.mark.req("V60", "V72", "V74")
@pytest.mark.parametrize("pin", ["", "main"])
def test_a_pinned_job_waits_while_the_head_is_elsewhere_and_then_goes_on(
    bench: Bench, repo: Path, pin: str
) -> None:
    pinned = bench.submit("true", pin_head=pin, cwd=str(repo))
    before = git(repo, "rev-parse", "HEAD")
    commit(repo)
    bench.step()
    assert bench.status(pinned) is Status.WAITING_ON_DEPS
    bench.step()
    assert wait_of(bench, pinned) == MISMATCH
    for _ in range(5):
        pass_time(bench)
    assert wait_of(bench, pinned) == MISMATCH
    git(repo, "reset", "-q", "--hard", before)
    pass_time(bench)
    assert bench.status(pinned) is Status.RUNNING
    assert bench.job(pinned).wait is None
    [ended] = bench.until_ended(pinned)
    assert ended.status is Status.SUCCEEDED
    assert ended.waited_on == (WaitKind.PINNED_HEAD,)


@on_a_file
def test_a_head_that_never_moved_starts_the_job_at_once(bench: Bench, repo: Path) -> None:
    pinned = bench.submit("true", pin_head="", cwd=str(repo))
    bench.step()
    bench.step()
    assert bench.status(pinned) is Status.RUNNING, "without any time passing"


def test_what_a_look_has_seen_survives_that_its_step_was_undone(
    bench: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinned = bench.submit("true", pin_head="", cwd=str(repo))
    bench.step()  # which has it looked at

    def refuse(*_: Any, **__: Any) -> None:
        raise StoreFullError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(bench.engine.planner, "step", refuse)
        with pytest.raises(StoreFullError):
            bench.step()
    bench.step()
    assert bench.status(pinned) is Status.RUNNING, "without any time passing"


@pytest.mark.req("V61", "V64")
@on_a_file
def test_a_dirty_worktree_holds_a_job_until_it_is_clean(bench: Bench, repo: Path) -> None:
    (repo / "tracked").write_text("changed\n")
    (repo / "new").touch()
    careful = bench.submit("true", require=("clean_worktree",), cwd=str(repo))
    bench.step()
    bench.step()
    assert wait_of(bench, careful) == ("waiting_on_deps", "preconditions", "worktree is not clean")
    git(repo, "checkout", "-q", "tracked")
    pass_time(bench)
    assert wait_of(bench, careful)[2] == "worktree is not clean", "an untracked file counts"
    (repo / "new").unlink()
    pass_time(bench)
    assert bench.until_ended(careful)[0].status is Status.SUCCEEDED


@pytest.mark.req("V62")
@on_a_file
def test_a_branch_is_waited_for_until_it_exists(bench: Bench, repo: Path) -> None:
    waiting = bench.submit("true", require=("branch_exists:topic",), cwd=str(repo))
    bench.step()
    bench.step()
    assert wait_of(bench, waiting) == (
        "waiting_on_deps",
        "preconditions",
        "branch topic does not exist",
    )
    git(repo, "branch", "topic")
    pass_time(bench)
    assert bench.until_ended(waiting)[0].status is Status.SUCCEEDED


@pytest.mark.req("V63", "V64")
@on_a_file
def test_a_condition_of_the_configuration_is_waited_for_and_an_unknown_one_blocks(
    bench: Bench, tmp_path: Path
) -> None:
    bench.config.conditions = {"go": ("test", "-e", "go")}
    waiting = bench.submit("true", require=("custom:go",), cwd=str(tmp_path))
    unknown = bench.submit("true", require=("custom:full_moon",), cwd=str(tmp_path))
    bench.step()
    bench.step()
    assert bench.status(unknown) is Status.BLOCKED_BY_DEPENDENCY
    assert bench.job(unknown).reason == "unknown custom precondition full_moon"
    assert wait_of(bench, waiting) == (
        "waiting_on_deps",
        "preconditions",
        "condition go does not hold",
    )
    (tmp_path / "go").touch()
    pass_time(bench)
    assert bench.until_ended(waiting)[0].status is Status.SUCCEEDED


@pytest.mark.req("V53", "V56", "V58")
@on_a_file
def test_a_file_and_a_plan_are_there_when_a_look_shows_them(bench: Bench, repo: Path) -> None:
    gate = repo.parent / "gate"
    shell = f"while ! test -e {gate}; do sleep 0.02; done; touch {repo}/data"
    maker = bench.submit(shell=shell, produces=("file:data",), cwd=str(repo))
    user = bench.submit("true", needs=("file:data",), cwd=str(repo))
    early = bench.submit("true", needs=("plan_doc:login",), cwd=str(repo))
    for _ in range(3):
        bench.step()
    assert wait_of(bench, user)[1:] == ("dependencies", f"waiting on file:{repo}/data")
    assert bench.job(early).reason == "missing plan_doc:login"
    gate.touch()
    bench.until_ended(maker)
    pass_time(bench)
    assert bench.until_ended(user)[0].status is Status.SUCCEEDED
    git(repo, "switch", "-q", "-c", "draft/login")
    (repo / ".headway" / "plans").mkdir(parents=True)
    (repo / ".headway" / "plans" / "login.md").write_text("a plan\n")
    git(repo, "add", "-f", ".headway/plans")
    commit(repo)
    late = bench.submit("true", needs=("plan_doc:login", "plan_branch:login"), cwd=str(repo))
    assert bench.until_ended(late)[0].status is Status.SUCCEEDED


# fault I1
@pytest.mark.parametrize("trouble", ["gone", "broken"])
@on_a_file
def test_the_trouble_of_one_repository_concerns_its_jobs_alone(
    bench: Bench, repo: Path, tmp_path: Path, trouble: str
) -> None:
    sick, hidden = repository(tmp_path / "sick"), tmp_path / "hidden"
    lost = bench.submit("true", pin_head="", cwd=str(sick))
    sound = bench.submit("true", pin_head="", cwd=str(repo), require=("clean_worktree",))
    plain = bench.submit("true")
    if trouble == "gone":
        sick.rename(hidden)
    else:
        shutil.copytree(sick, hidden)
        (sick / ".git" / "HEAD").write_text("nonsense\n")
    assert [each.status for each in bench.until_ended(sound, plain)] == [Status.SUCCEEDED] * 2
    for _ in range(3):
        pass_time(bench)
    assert wait_of(bench, lost) == MISMATCH
    [objection] = why(bench.client.context, lost)["objections"]
    assert objection["detail"] == MISMATCH[2]
    assert objection["remedy"].startswith("it could not be looked at: ")
    assert str(sick) in objection["remedy"]
    after = bench.submit("true")
    assert bench.until_ended(after)[0].status is Status.SUCCEEDED, "no step is stopped by it"
    if trouble == "broken":
        shutil.rmtree(sick)
    hidden.rename(sick)
    pass_time(bench)
    assert bench.until_ended(lost)[0].status is Status.SUCCEEDED


@pytest.fixture
def git_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """A git that writes down that it was called, and then is git; how often since the last ask."""
    log, folder = tmp_path / "git.log", tmp_path / "bin"
    folder.mkdir()
    real = shutil.which("git")
    (folder / "git").write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {real} "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def calls() -> int:
        lines = log.read_text().splitlines() if log.exists() else []
        log.write_text("")
        return len(lines)

    return calls


@on_a_file
def test_many_jobs_cost_one_look_per_repository_and_none_while_it_is_not_time(
    bench: Bench, repo: Path, tmp_path: Path, git_calls: Callable[[], int]
) -> None:
    other = repository(tmp_path / "other")
    many = [
        bench.submit("true", pin_head="main", cwd=str(folder))
        for folder in (repo, other)
        for _ in range(30)
    ]
    for folder in (repo, other):
        commit(folder)
    git_calls()
    bench.step()
    assert git_calls() == 2, "one process for each repository"
    bench.step()
    assert {bench.status(each) for each in many} == {Status.WAITING_ON_DEPS}
    for _ in range(10):
        bench.step()
    assert git_calls() == 0
    pass_time(bench)
    assert git_calls() == 2


@on_a_file
def test_what_no_job_waits_for_is_no_longer_looked_at(
    bench: Bench, repo: Path, git_calls: Callable[[], int]
) -> None:
    pinned = bench.submit("true", pin_head="main", cwd=str(repo))
    commit(repo)
    bench.step()
    bench.step()
    bench.client.cancel([pinned])
    git_calls()
    for _ in range(3):
        pass_time(bench)
    assert git_calls() == 0


def test_a_worker_that_comes_after_a_crash_looks_on(bench: Bench, repo: Path) -> None:
    pinned = bench.submit("true", pin_head="", cwd=str(repo))
    before = git(repo, "rev-parse", "HEAD")
    commit(repo)
    bench.step()
    bench.step()
    bench.crash().recover()
    git(repo, "reset", "-q", "--hard", before)
    assert bench.until_ended(pinned)[0].status is Status.SUCCEEDED


def test_another_host_looks_on_when_the_one_that_looked_is_gone(
    postgres_url: str, tmp_path: Path
) -> None:
    """The job may run on any host; nobody tells the others that one of them has ended."""
    clock = FakeClock()
    go = tmp_path / "go"
    benches: list[Any] = []
    try:
        for name in ("here", "there"):
            (tmp_path / name).mkdir()
            benches.append(Bench(tmp_path / name, clock=clock, store_url=postgres_url))
            benches[-1].config.conditions = {"go": ("test", "-e", str(go))}
            benches[-1].engine.recover()
        here, there = benches
        there.step()
        waiting = here.submit("true", require=("custom:go",), any_host=True, cwd="/")
        here.step()
        here.step()
        assert wait_of(here, waiting)[2] == "condition go does not hold"
        go.touch()
        for _ in range(4):
            pass_time(there)
        assert there.until_ended(waiting)[0].status is Status.SUCCEEDED
    finally:
        for each in benches:
            each.close()


def test_a_job_that_passed_its_look_and_waits_for_a_person_raises_no_false_alarm(
    bench: Bench, repo: Path
) -> None:
    waiting = bench.submit("true", pin_head="", require_approval=True, cwd=str(repo))
    for _ in range(5):
        pass_time(bench)
    assert bench.kinds(waiting) == ["submitted", "waiting_on_deps", "waiting_on_approval"]


def test_those_behind_it_do_not_pass_a_job_whose_look_has_grown_old_waiting_for_capacity(
    make_bench: Callable[..., Bench], repo: Path
) -> None:
    bench = make_bench(clock=FakeClock(), max_active=1)
    running = bench.submit("sleep", "60")
    pinned = bench.submit("true", pin_head="main", cwd=str(repo))
    plain = [bench.submit("true") for _ in range(3)]
    for _ in range(3):
        pass_time(bench)
    assert [bench.status(each) for each in (pinned, *plain)] == [Status.QUEUED] * 4
    bench.client.cancel([running])
    bench.until(lambda: bench.job(pinned).started_at)
    assert {bench.status(each) for each in plain} == {Status.QUEUED}
    bench.until_ended(pinned, *plain)
