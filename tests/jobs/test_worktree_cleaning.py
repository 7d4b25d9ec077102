"""Worktrees are taken back without loss, or kept with the reason."""

import os
import shutil
from pathlib import Path

import pytest

from both_stores import on_a_file
from checkouts_of_jobs import (
    CHANGES,
    COMMIT,
    at,
    cleaned,
    entries,
    git,
    make_repository,
    path_of,
)
from harness import Bench
from headway.base.errors import ConflictError
from headway.core.states import Status
from headway.jobs.retry import rewind


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path)


@pytest.mark.req("V38", "V39")
def test_a_clean_worktree_is_removed_and_commits_stay_on_the_branch(
    bench: Bench, repo: Path
) -> None:
    idle, busy = (bench.submit(shell=script, **at(repo)) for script in ("true", COMMIT))
    bench.until_ended(idle, busy)
    results = cleaned(bench, idle, busy)
    assert [results[each].status for each in (idle, busy)] == ["done", "done"]
    assert results[busy].kept == f"headway/job-{busy}"
    assert os.listdir(bench.home.worktrees) == [] and len(entries(repo)) == 1
    assert git(repo, "branch", "--list", "headway/*") == f"headway/job-{busy}"
    assert bench.kinds(idle)[-1] == "worktree_cleaned"
    assert bench.events(busy)[-1].data == {"kept": f"headway/job-{busy}"}
    assert cleaned(bench, idle, busy) == {}, "nothing is left to do"


@on_a_file
def test_what_was_not_committed_is_saved_first(bench: Bench, repo: Path) -> None:  # fault I3
    job = bench.submit(shell=CHANGES, **at(repo))
    bench.until_ended(job)
    result = cleaned(bench, job)[job]
    saved = Path(bench.home.job(job), "worktree.patch")
    assert (result.status, result.saved) == ("done", str(saved))
    assert "+more" in saved.read_text() and not path_of(bench, job).exists()
    assert bench.events(job)[-1].data == {"saved": str(saved)}


@on_a_file
def test_a_worktree_that_a_person_deleted_is_no_trouble(bench: Bench, repo: Path) -> None:
    job = bench.submit("true", **at(repo))
    bench.until_ended(job)
    shutil.rmtree(path_of(bench, job))
    assert cleaned(bench, job)[job].status in ("done", "skipped")
    assert len(entries(repo)) == 1
    assert bench.client.document(job)["worktree"] is None


@on_a_file
def test_the_worktree_of_a_job_that_has_not_ended_is_left_alone(bench: Bench, repo: Path) -> None:
    gate = bench.folder / "gate"
    job = bench.submit(shell=f"while ! test -e {gate}; do sleep 0.01; done", **at(repo))
    later = bench.submit("true", after=(job,), **at(repo))
    bench.until(path_of(bench, job).exists)
    assert cleaned(bench, job, later) == {}
    gate.touch()
    bench.until_ended(job, later)
    assert bench.status(later) is Status.SUCCEEDED


def break_it(bench: Bench, job: int) -> Path:
    """A dirty worktree whose changes cannot be saved: there is a folder where the patch would
    be."""
    (path_of(bench, job) / "precious").write_text("not committed\n")
    in_the_way = Path(bench.home.job(job), "worktree.patch")
    (in_the_way / "full").mkdir(parents=True)
    return in_the_way


@pytest.mark.req("V39", "V40", "V41")
def test_a_degraded_cleanup_keeps_everything_and_is_made_up_for_by_a_retry(
    bench: Bench, repo: Path
) -> None:
    job = bench.submit("false", **at(repo))
    bench.until_ended(job)
    in_the_way = break_it(bench, job)
    rewind(bench.client.context, job)
    document = bench.client.document(job)
    assert document["execution_root"] == str(path_of(bench, job))
    assert document["worktree"]["state"] == "degraded"
    assert document["worktree"]["retry_cleanup_status"] == "degraded"
    assert document["worktree"]["retry_cleanup_error"] == document["worktree"]["error"] != ""
    assert (path_of(bench, job) / "precious").exists(), "nothing was lost"
    assert bench.kinds(job)[-1] == "worktree_degraded"
    (last,) = bench.until_ended(job)
    shutil.rmtree(in_the_way)
    rewind(bench.client.context, last.id)
    document = bench.client.document(job)
    assert (document["worktree"], document["execution_root"]) == (None, ".")
    assert "+not committed" in in_the_way.read_text()
    assert not path_of(bench, job).exists() and not path_of(bench, last.id).exists()


@pytest.mark.req("V40")
@on_a_file
def test_a_degraded_cleanup_is_made_up_for_by_a_cancel(bench: Bench, repo: Path) -> None:
    job = bench.submit("false", **at(repo))
    bench.until_ended(job)
    in_the_way = break_it(bench, job)
    assert cleaned(bench, job)[job].status == "degraded"
    with pytest.raises(ConflictError, match="cannot be cleaned"):
        bench.client.cancel([job])
    shutil.rmtree(in_the_way)
    (done,) = bench.client.cancel([job])
    assert (done.job_id, done.cleaned) == (job, True)
    assert bench.client.document(job)["worktree"] is None
    with pytest.raises(ConflictError, match="already ended"):
        bench.client.cancel([job])


@on_a_file
def test_a_cancelled_job_that_never_started_owns_nothing_any_more(bench: Bench, repo: Path) -> None:
    job = bench.submit("true", delay=3_600_000_000, **at(repo))
    assert bench.client.document(job)["worktree"]["state"] == "owned"
    bench.client.cancel([job])
    assert bench.client.document(job)["worktree"] is None
    assert not path_of(bench, job).exists()


@pytest.mark.req("V38")
@on_a_file
def test_a_broken_git_file_does_not_keep_it(bench: Bench, repo: Path) -> None:
    job = bench.submit("true", **at(repo))
    bench.until_ended(job)
    (path_of(bench, job) / ".git").write_text("gitdir: /nowhere\n")
    assert cleaned(bench, job)[job].status == "done"
    assert not path_of(bench, job).exists() and len(entries(repo)) == 1


@on_a_file
def test_a_repository_that_is_gone_leaves_it_owned_until_it_is_gone_too(
    bench: Bench, repo: Path
) -> None:
    job = bench.submit("true", **at(repo))
    bench.until_ended(job)
    shutil.move(repo, repo.with_name("moved"))
    assert cleaned(bench, job)[job].status == "degraded"
    shutil.rmtree(path_of(bench, job))
    assert cleaned(bench, job)[job].status == "skipped"
    assert bench.client.document(job)["worktree"] is None
