"""Jobs in git worktrees of their own: one for each, made whole or not at all."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from both_stores import on_a_file
from checkouts_of_jobs import (
    COMMIT,
    at,
    cleaned,
    entries,
    git,
    make_repository,
    output,
    path_of,
)
from harness import Bench
from headway.base.clock import SystemClock
from headway.core.model import Claim
from headway.core.states import Status
from headway.supervise.evidence import Evidence
from headway.testing.clock import FakeClock


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path)


# -- running in it -----------------------------------------------------------------------------


def test_a_job_runs_in_its_worktree_on_its_branch(bench: Bench, repo: Path) -> None:
    head = git(repo, "rev-parse", "HEAD")
    (repo / "readme.txt").write_text("changed by hand\n")
    show = "pwd; git rev-parse --abbrev-ref HEAD; cat readme.txt"
    job = bench.submit(shell=f"{show}; {COMMIT}", **at(repo))
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED
    path = path_of(bench, job)
    assert output(bench, job).splitlines() == [str(path), f"headway/job-{job}", "first"]
    assert git(repo, "rev-parse", "main", "HEAD").split() == [head, head], "commits stay there"
    assert git(repo, "log", "-1", "--format=%s", f"headway/job-{job}") == "work"
    assert (repo / "readme.txt").read_text() == "changed by hand\n"
    assert "locked headway job" in next(e for e in entries(repo) if str(path) in e)
    config = (repo / ".git" / "config").read_text()
    assert f'branch "headway/job-{job}"' not in config, "it tracks nothing"
    assert os.stat(bench.home.worktrees).st_mode & 0o777 == 0o700


@on_a_file
def test_it_starts_where_it_was_submitted_and_from_the_base_that_was_named(
    bench: Bench, repo: Path
) -> None:
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "rm", "-q", "readme.txt")
    git(repo, "commit", "-q", "-m", "second")
    job = bench.submit(shell="pwd; ls; cat ../readme.txt", **at(repo / "part", base="HEAD~1"))
    git(repo, "commit", "-q", "--allow-empty", "-m", "third")  # the base was fixed at submit
    bench.until_ended(job)
    assert output(bench, job).splitlines() == [f"{path_of(bench, job)}/part", "data", "first"]
    document = bench.client.document(job)
    assert document["worktree"]["base"] == first
    assert document["worktree"]["branch"] == f"headway/job-{job}"


@on_a_file
def test_two_at_once_have_two(make_bench: Callable[..., Bench], repo: Path) -> None:
    bench = make_bench(max_active=4)
    met = bench.folder / "met"
    met.mkdir()
    script = f"pwd; touch {met}/$HEADWAY_JOB_ID; while [ $(ls {met} | wc -l) -lt 4 ]; "
    script += f"do sleep 0.01; done; {COMMIT}"
    jobs = [bench.submit(shell=script, **at(repo)) for _ in range(4)]
    bench.until_ended(*jobs)
    assert [bench.status(job) for job in jobs] == [Status.SUCCEEDED] * 4
    assert len({output(bench, job) for job in jobs}) == 4


@on_a_file
def test_a_retry_has_its_own(bench: Bench, repo: Path) -> None:
    script = f"test $HEADWAY_ATTEMPT = 2 || {{ touch left; {COMMIT}; exit 1; }}; ls; cat readme.txt"
    first = bench.submit(shell=script, retries=1, retry_base=0, **at(repo))
    (last,) = bench.until_ended(first)
    assert last.id == first + 1 and last.status is Status.SUCCEEDED
    assert output(bench, last.id).split() == ["part", "readme.txt", "first"]
    with bench.store.read() as tx:
        rows = tx.graph.worktrees([first, last.id])
    assert [row.branch for row in rows.values()] == [f"headway/job-{n}" for n in (first, last.id)]
    assert (path_of(bench, first) / "left").exists(), "what failed stays to be looked at"


@on_a_file
def test_a_submit_out_of_a_hook_does_not_lead_back_to_the_repository(
    bench: Bench, repo: Path
) -> None:
    bench.client.context.environ = {
        **bench.client.context.environ,
        "GIT_DIR": str(repo / ".git"),
        "GIT_INDEX_FILE": str(repo / ".git" / "index"),
    }
    job = bench.submit(shell="git rev-parse --show-toplevel", **at(repo))
    bench.until_ended(job)
    assert output(bench, job) == f"{path_of(bench, job)}\n"


@on_a_file
def test_one_made_from_within_another_outlives_it(bench: Bench, repo: Path) -> None:
    outer = bench.submit(shell=COMMIT, **at(repo))
    bench.until_ended(outer)
    inner = bench.submit(shell="cat ../readme.txt", **at(path_of(bench, outer) / "part"))
    assert bench.client.document(inner)["worktree"]["base"] == git(
        repo, "rev-parse", f"headway/job-{outer}"
    )
    assert cleaned(bench, outer)[outer].status == "done"
    bench.until_ended(inner)
    assert output(bench, inner) == "first\nmore\n"
    assert cleaned(bench, inner)[inner].status == "done"
    assert len(entries(repo)) == 1


@pytest.mark.req("V41", "V82")
@on_a_file
def test_the_document_says_where_it_works(bench: Bench, repo: Path) -> None:
    own = bench.submit("true", **at(repo))
    plain = bench.submit("true", cwd=str(repo), save_patch=True)
    without = bench.submit("true")
    roots = [bench.client.document(each)["execution_root"] for each in (own, plain, without)]
    assert roots == [str(path_of(bench, own)), ".", None]
    bench.until_ended(own, plain, without)
    document = bench.client.document(own)
    assert document["worktree"] == {
        "path": str(path_of(bench, own)),
        "branch": f"headway/job-{own}",
        "base": git(repo, "rev-parse", "HEAD"),
        "state": "owned",
        "error": None,
        "retry_cleanup_status": None,
        "retry_cleanup_error": None,
    }
    assert bench.client.document(plain)["worktree"] is None
    cleaned(bench, own)
    document = bench.client.document(own)
    assert (document["execution_root"], document["worktree"]) == (".", None)


def test_a_worktree_inside_the_repository_is_told_from_its_top(tmp_path: Path, repo: Path) -> None:
    bench = Bench(repo)
    try:
        job = bench.submit("pwd", **at(repo))
        bench.until_ended(job)
        assert output(bench, job) == f"{repo}/.headway/worktrees/job-{job}\n"
        root = bench.client.document(job)["execution_root"]
        assert root == f".headway/worktrees/job-{job}"
        told = git(repo, "status", "--porcelain", "--untracked-files=all")
        assert told == "?? .headway/.gitignore", "nothing of it shows in the repository"
    finally:
        bench.close()


# -- when it cannot be made --------------------------------------------------------------------


@on_a_file
def test_a_worktree_that_cannot_be_made_gets_three_strikes(
    make_bench: Callable[..., Bench], repo: Path
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    git(repo, "branch", "headway/job-1")  # somebody took the name
    job = bench.submit(shell=f"touch {bench.folder}/ran", retries=3, **at(repo))
    for strike, pause in ((1, 1.0), (2, 5.0)):
        bench.until(lambda strike=strike: bench.job(job).launch_failures == strike)
        document = bench.client.document(job)
        assert (document["state"], document["run"]) == ("queued", None)
        assert "branch headway/job-1 already exists" in document["wait"]["detail"]
        clock.advance(pause + 1)
    bench.until_ended(job)
    document = bench.client.document(job)
    assert document["state"] == "failed" and document["run"]["exit_code"] == 127
    assert document["reason"].startswith("circuit-broken: branch headway/job-1 already exists")
    assert len(bench.client.jobs.chain(job)) == 1 and not (bench.folder / "ran").exists()
    assert git(repo, "branch", "--list", "headway/*") == "headway/job-1", "not ours to remove"


@on_a_file
def test_a_cause_that_goes_away_lets_it_run(make_bench: Callable[..., Bench], repo: Path) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    git(repo, "branch", "headway/job-1")
    job = bench.submit("true", **at(repo))
    bench.until(lambda: bench.job(job).launch_failures == 1)
    git(repo, "branch", "-D", "headway/job-1")
    clock.advance(10)
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED and bench.kinds(job).count("unclaimed") == 1


@on_a_file
def test_a_folder_that_the_base_does_not_have_is_named(
    make_bench: Callable[..., Bench], repo: Path
) -> None:
    bench = make_bench(clock=FakeClock(SystemClock().now()))
    (repo / "untracked").mkdir()
    job = bench.submit("true", **at(repo / "untracked"))
    bench.until(lambda: bench.job(job).launch_failures == 1)
    detail = bench.client.document(job)["wait"]["detail"]
    assert f"directory {path_of(bench, job)}/untracked: No such file" in detail


@pytest.mark.root
def test_a_full_disk_is_the_hosts_trouble_and_no_jobs(  # fault I6
    make_bench: Callable[..., Bench], repo: Path
) -> None:
    clock = FakeClock(SystemClock().now())
    bench = make_bench(clock=clock)
    (repo / "big").write_bytes(os.urandom(3 << 20))
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "big")
    small = Path(bench.home.worktrees)
    small.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", small], check=True)
    try:
        job = bench.submit("true", **at(repo))
        bench.until(lambda: "unclaimed" in bench.kinds(job))
        document = bench.client.document(job)
        assert document["state"] == "queued" and document["wait"]["kind"] == "storage"
        assert bench.job(job).launch_failures == 0
        for failures in (2, 3):
            clock.advance(61)
            bench.until(lambda failures=failures: bench.kinds(job).count("unclaimed") == failures)
            with bench.store.read() as tx:
                trouble = tx.hosts.trouble(bench.client.context.host.id)
            assert trouble is not None and trouble.failures == failures, "rarer and rarer"
        subprocess.run(["mount", "-o", "remount,size=20m", small], check=True)
        clock.advance(61)
        bench.until_ended(job)
        assert bench.status(job) is Status.SUCCEEDED
        with bench.store.read() as tx:
            assert tx.hosts.trouble(bench.client.context.host.id) is None
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def slow(repo: Path, folder: Path) -> Path:
    """From now on a checkout of this repository does not end until the gate is there."""
    gate, begun = folder / "gate", folder / "begun"
    (repo / ".gitattributes").write_text("readme.txt filter=slow\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "slow")
    filtering = f"touch {begun}; while ! test -e {gate}; do sleep 0.02; done; cat"
    git(repo, "config", "filter.slow.smudge", filtering)
    git(repo, "config", "filter.slow.clean", "cat")
    return begun


@on_a_file
def test_a_cancel_while_it_is_made_ends_it(bench: Bench, repo: Path) -> None:
    begun = slow(repo, bench.folder)
    job = bench.submit(shell=f"touch {bench.folder}/ran", **at(repo))
    bench.until(begun.exists)
    bench.client.cancel([job])
    bench.until_ended(job)
    assert bench.status(job) is Status.CANCELLED
    assert not (bench.folder / "ran").exists()
    (bench.folder / "gate").touch()
    result = cleaned(bench, job)[job]
    assert result.status in ("done", "skipped") and not path_of(bench, job).exists()
    assert git(repo, "branch", "--list", "headway/*") == ""


@on_a_file
def test_the_deadline_counts_while_it_is_made(bench: Bench, repo: Path) -> None:
    begun = slow(repo, bench.folder)
    job = bench.submit(shell=f"touch {bench.folder}/ran", timeout=1_500_000, **at(repo))
    bench.until_ended(job)
    document = bench.client.document(job)
    assert (document["state"], document["run"]["exit_code"]) == ("failed", 124)
    assert begun.exists() and not (bench.folder / "ran").exists()


def test_a_supervisor_killed_while_it_is_made_leaves_no_process_and_no_claim(
    bench: Bench, repo: Path
) -> None:
    begun = slow(repo, bench.folder)
    job = bench.submit(shell=f"touch {bench.folder}/ran", retries=1, retry_base=0, **at(repo))
    bench.until(begun.exists)
    with bench.store.read() as tx:
        claim = tx.claims.of_job(job)
    assert claim is not None
    started = Evidence(claim.folder, claim.token).read_started()
    assert started is not None
    os.kill(started.supervisor_pid, 9)
    bench.until(lambda: bench.status(job) is Status.FAILED)
    assert "outcome_unknown" in (bench.job(job).reason or "")
    (bench.folder / "gate").touch()
    (last,) = bench.until_ended(job)
    assert last.status is Status.SUCCEEDED and last.id != job
    bench.until(lambda: not unproven(bench))
    assert cleaned(bench, job)[job].status in ("done", "skipped")
    assert not path_of(bench, job).exists()


def unproven(bench: Bench) -> list[Claim]:
    with bench.store.read() as tx:
        return tx.claims.unproven()
