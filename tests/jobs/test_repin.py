"""The pin of a waiting job can be moved to where its branch is now."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Bench
from headway.base.errors import ConflictError, HeadwayError, NotFoundError
from headway.core.states import Status
from headway.jobs.approvals import repin


def git(folder: Path, *arguments: str) -> str:
    config = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    environ = {"PATH": os.environ["PATH"], "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", *config, *arguments]
    done = subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True)
    return done.stdout.decode().strip()


def commit(repo: Path) -> str:
    git(repo, "commit", "-q", "--allow-empty", "-m", "another")
    return git(repo, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main", "repo")
    commit(tmp_path / "repo")
    return tmp_path / "repo"


@pytest.mark.req("V60")
@pytest.mark.parametrize("pin", ["", "main"], ids=["head", "branch"])
def test_a_job_whose_head_has_moved_waits_until_it_is_pinned_anew(
    bench: Bench, repo: Path, pin: str
) -> None:
    old = git(repo, "rev-parse", "HEAD")
    pinned = bench.submit("true", pin_head=pin, cwd=str(repo), require_approval=True)
    moved = commit(repo)
    mismatch = {"kind": "pinned_head", "detail": "pinned head mismatch on main"}
    bench.until(lambda: bench.client.document(pinned)["wait"] == mismatch)
    assert bench.status(pinned) is Status.WAITING_ON_DEPS
    before, after = repin(bench.client.context, pinned)
    assert (before.oid, after.oid, after.branch) == (old, moved, "main")
    assert bench.client.document(pinned)["pinned_head"] == {"branch": "main", "oid": moved}
    event = bench.events(pinned)[-1]
    assert (event.kind, event.actor) == ("repinned", "tester")
    assert event.data == {"branch": "main", "from": old, "to": moved}
    bench.until(lambda: bench.status(pinned) is Status.WAITING_ON_APPROVAL, "the next gate")


@pytest.mark.req("V60")
def test_what_does_not_wait_is_not_pinned_anew(
    make_bench: Callable[..., Bench], repo: Path
) -> None:
    bench = make_bench(max_active=5)
    plain = bench.submit("true", require_approval=True)
    running = bench.submit("sleep", "60", pin_head="", cwd=str(repo))
    ended = bench.submit("true", pin_head="", cwd=str(repo))
    bench.until_ended(ended)
    bench.until(lambda: bench.status(running) is Status.RUNNING)
    for job, words in (
        (plain, "is not pinned to a commit"),
        (running, "is already running"),
        (ended, r"has already ended \(succeeded\)"),
    ):
        kinds = bench.kinds(job)
        with pytest.raises(ConflictError, match=words):
            repin(bench.client.context, job)
        assert bench.kinds(job) == kinds
    with pytest.raises(NotFoundError):
        repin(bench.client.context, 99)


def test_a_repository_that_is_gone_moves_no_pin(bench: Bench, repo: Path) -> None:
    job = bench.submit("true", pin_head="", cwd=str(repo), require_approval=True)
    before = bench.job(job)
    repo.rename(repo.with_name("elsewhere"))
    with pytest.raises(HeadwayError, match="git"):
        repin(bench.client.context, job)
    assert bench.job(job) == before
