"""`scheduler run` without a worker decides as a worker's step does: the same gates and words."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkouts_of_jobs import git, make_repository
from harness import Bench
from headway.core.model import Lock, Stage
from headway.core.states import TERMINAL, Status
from headway.jobs.request import Request
from headway.testing.clock import FakeClock
from headway.worker.one_pass import single_step


@pytest.fixture(autouse=True)
def own_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


def one_pass(bench: Bench, *, limit: int = 1) -> list[int]:
    """As the command does it, in the place of a worker."""
    bench.engine.close()
    host = bench.client.context.host
    started = single_step(bench.store, bench.home, bench.config, host, bench.clock, limit=limit)
    bench.new_engine()
    return started


def a_worker(bench: Bench) -> None:
    """One that comes up, and has had the time to look at what it must."""
    bench.engine.recover()
    for _ in range(12):
        bench.step()


def told(bench: Bench, count: int) -> dict[int, tuple[Any, ...]]:
    documents = (bench.client.document(each) for each in range(1, count + 1))
    return {
        number: (each["state"], each["wait"], each["reason"], bench.job(number).stage)
        for number, each in enumerate(documents, 1)
    }


def everything(bench: Bench, repo: Path) -> int:
    """One that runs for long, and behind it one for each thing that a job waits for or ends of."""
    script = f"until test -e {bench.folder}/go; do sleep 0.02; done"
    first = bench.submit("sh", "-c", script, locks=(Lock("k"),))
    missing = bench.submit("true", needs=("custom:report:june",))
    bench.submit("true", needs=(f"file:{bench.folder}/nothing",))
    bench.submit("true", after=(missing,), produces=(f"file:{bench.folder}/made",))
    bench.submit("true", needs=(f"file:{bench.folder}/made",))
    bench.submit("true", after=(first,))
    bench.submit("true", locks=(Lock("k"),))
    bench.submit("true", at=bench.clock.now() + 3_600_000_000)
    bench.submit("true", require_approval=True)
    bench.submit("true", pin_head="main", cwd=str(repo))
    git(repo, "commit", "-q", "--allow-empty", "-m", "more")
    bench.submit("true", require=("branch_exists:nowhere",), cwd=str(repo))
    bench.submit("true", require=("custom:unheard",), cwd=str(repo), check=False)
    bench.submit("true", priority=-1)
    return bench.submit("true", after=(missing,), at=bench.clock.now() + 3_600_000_000)


def test_one_pass_decides_what_a_worker_decides(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    """In the pass that starts another; also those that only a second look, or the end of another,
    shows to be without hope."""
    bench = make_bench(clock=FakeClock())
    repo = make_repository(tmp_path)
    count = everything(bench, repo)

    assert one_pass(bench) == [1]

    after_pass = told(bench, count)
    assert bench.status(1) is Status.RUNNING
    blocked = [each for each, said in after_pass.items() if said[0] == "blocked_by_dependency"]
    assert blocked == [2, 3, 4, 5, 12]
    assert all(said[1] for each, said in after_pass.items() if each not in (1, *blocked))
    a_worker(bench)
    assert told(bench, count) == after_pass, "a worker has nothing to add"
    (bench.folder / "go").touch()


@pytest.mark.parametrize("limit", [1, 2])
def test_what_a_pass_has_no_room_for_waits_for_capacity(
    make_bench: Callable[..., Bench], limit: int
) -> None:
    bench = make_bench(max_active=5)
    jobs = [bench.submit("sleep", "30") for _ in range(4)]
    blocked = bench.submit("true", needs=("custom:report:june",))

    assert one_pass(bench, limit=limit) == jobs[:limit]

    assert bench.status(blocked) is Status.BLOCKED_BY_DEPENDENCY
    waiting = [bench.job(each) for each in jobs[limit:]]
    assert {(each.status, each.stage) for each in waiting} == {(Status.QUEUED, Stage.READY)}
    waits = {each.wait.detail for each in waiting if each.wait is not None}
    assert waits == {f"one pass starts at most {limit}"}
    bench.until_begun()
    assert one_pass(bench, limit=5) == jobs[limit:], "they are there for the next one"
    bench.engine.recover()


def test_a_pass_looks_at_more_than_a_step_does(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.worker.planner.STEP_JOBS", 10)
    bench = make_bench(max_active=-1)
    first = bench.submit("sleep", "30")
    bench.client.submit_many([Request(argv=("sleep", "30")) for _ in range(30)])
    blocked = bench.submit("true", needs=("custom:report:june",))
    assert one_pass(bench) == [first]
    assert bench.status(blocked) is Status.BLOCKED_BY_DEPENDENCY
    bench.engine.recover()


def test_a_worker_with_a_spawn_delay_decides_about_all_in_its_pass(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=5)
    bench.client.set_setting("scheduler.spawn_delay", "1h")
    jobs = [bench.submit("sleep", "30") for _ in range(2)]
    blocked = bench.submit("true", needs=("custom:report:june",))
    bench.step()
    assert [bench.status(each) for each in jobs] == [Status.RUNNING, Status.QUEUED]
    assert bench.status(blocked) is Status.BLOCKED_BY_DEPENDENCY


def test_a_pass_tells_no_start_of_what_has_changed_meanwhile(
    make_bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headway.worker.launches import Launches

    bench, repo = make_bench(), make_repository(tmp_path)
    pinned = bench.submit("touch", f"{tmp_path}/ran", pin_head="main", cwd=str(repo))
    launch, commits = Launches.launch, ["once"]

    def after_a_commit(launches: Launches, claims: list[Any]) -> None:
        if claims and commits:
            commits.pop()
            git(repo, "commit", "-q", "--allow-empty", "-m", "more")
        launch(launches, claims)

    monkeypatch.setattr(Launches, "launch", after_a_commit)

    assert one_pass(bench) == []

    assert bench.status(pinned) is Status.WAITING_ON_DEPS
    wait = bench.job(pinned).wait
    assert wait is not None and wait.detail == "pinned head mismatch on main"
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    assert one_pass(bench) == [pinned]
    bench.engine.recover()
    assert bench.until_ended(pinned)[0].status in TERMINAL and (tmp_path / "ran").exists()
