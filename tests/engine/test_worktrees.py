"""Jobs in git worktrees of their own: made for each, kept as evidence, taken back without loss."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Bench
from headway.clock import SystemClock
from headway.core.model import Claim
from headway.core.states import Status
from headway.errors import ConflictError
from headway.rewinding import rewind
from headway.supervise.evidence import Evidence
from headway.testing import FakeClock
from headway.worktreeing import clean_worktrees

IDENTITY = "-c user.name=Ann -c user.email=ann@example.org"
COMMIT = f"echo more >>readme.txt && git {IDENTITY} commit -qam work"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY.split(), *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository beside the home, with a folder inside."""
    folder = tmp_path / "repo"
    (folder / "part").mkdir(parents=True)
    (folder / "readme.txt").write_text("first\n")
    (folder / "part" / "data").write_bytes(bytes(range(256)))
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "begin")
    return folder


def at(repo: Path, *, base: str = "", **more: Any) -> dict[str, Any]:
    """The options of a job with a worktree of its own."""
    return {"cwd": str(repo), "worktree": base, **more}


def path_of(bench: Bench, job: int) -> Path:
    return Path(bench.home.worktrees, f"job-{job}")


def output(bench: Bench, job: int) -> str:
    return Path(bench.home.job(job), "stdout.log").read_text()


def patch(bench: Bench, job: int) -> Path:
    return Path(bench.home.job(job), "command.patch")


def cleaned(bench: Bench, *jobs: int) -> dict[int, Any]:
    return clean_worktrees(bench.store, bench.home, list(jobs), actor="tester")


def entries(repo: Path) -> list[str]:
    return git(repo, "worktree", "list", "--porcelain").split("\n\n")


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


def test_a_retry_has_its_own(bench: Bench, repo: Path) -> None:
    script = f"test $HEADWAY_ATTEMPT = 2 || {{ touch left; {COMMIT}; exit 1; }}; ls; cat readme.txt"
    first = bench.submit(shell=script, retries=1, retry_base=0, **at(repo))
    (last,) = bench.until_ended(first)
    assert last.id == first + 1 and last.status is Status.SUCCEEDED
    assert output(bench, last.id).split() == ["part", "readme.txt", "first"]
    with bench.store.read() as tx:
        rows = tx.worktrees([first, last.id])
    assert [row.branch for row in rows.values()] == [f"headway/job-{n}" for n in (first, last.id)]
    assert (path_of(bench, first) / "left").exists(), "what failed stays to be looked at"


def test_a_submit_out_of_a_hook_does_not_lead_back_to_the_repository(
    bench: Bench, repo: Path
) -> None:
    bench.client.environ = {
        **bench.client.environ,
        "GIT_DIR": str(repo / ".git"),
        "GIT_INDEX_FILE": str(repo / ".git" / "index"),
    }
    job = bench.submit(shell="git rev-parse --show-toplevel", **at(repo))
    bench.until_ended(job)
    assert output(bench, job) == f"{path_of(bench, job)}\n"


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
    assert len(bench.client.chain(job)) == 1 and not (bench.folder / "ran").exists()
    assert git(repo, "branch", "--list", "headway/*") == "headway/job-1", "not ours to remove"


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
                trouble = tx.host_trouble(bench.client.host.id)
            assert trouble is not None and trouble.failures == failures, "rarer and rarer"
        subprocess.run(["mount", "-o", "remount,size=20m", small], check=True)
        clock.advance(61)
        bench.until_ended(job)
        assert bench.status(job) is Status.SUCCEEDED
        with bench.store.read() as tx:
            assert tx.host_trouble(bench.client.host.id) is None
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
        claim = tx.claim_of(job)
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
        return tx.unproven_claims()


# -- the patch ---------------------------------------------------------------------------------


CHANGES = "echo more >>readme.txt; printf 'a\\000b' >new.bin; rm part/data"


def applied(repo: Path, base: str, file: Path, to: Path) -> Path:
    """The tree that the patch makes of its base."""
    git(repo, "worktree", "add", "-q", "--detach", str(to), base)
    git(to, "apply", "--index", str(file))
    return to


@pytest.mark.req("V9")
@pytest.mark.parametrize(
    ("end", "state"), [("exit 0", "succeeded"), ("exit 3", "failed"), ("kill -9 $$", "failed")]
)
def test_what_it_changed_is_saved_however_it_ends(
    bench: Bench, repo: Path, tmp_path: Path, end: str, state: str
) -> None:
    script = f"{COMMIT}; {CHANGES}; {end}"  # committed, staged or not, binary, new, deleted
    job = bench.submit(shell=script, save_patch=True, **at(repo))
    bench.until_ended(job)
    document = bench.client.document(job)
    assert document["state"] == state
    assert document["run"]["patch"] == {"saved": True, "bytes": patch(bench, job).stat().st_size}
    assert patch(bench, job).stat().st_mode & 0o777 == 0o600
    tree = applied(repo, "main", patch(bench, job), tmp_path / "applied")
    assert (tree / "readme.txt").read_text() == "first\nmore\nmore\n"
    assert (tree / "new.bin").read_bytes() == b"a\0b"
    assert not (tree / "part" / "data").exists()


@pytest.mark.req("V9")
def test_what_it_changed_is_saved_after_a_timeout(bench: Bench, repo: Path) -> None:
    script = f"{CHANGES}; while :; do sleep 0.05; done"
    job = bench.submit(shell=script, save_patch=True, timeout=1_500_000, grace=0, **at(repo))
    bench.until_ended(job)
    assert bench.client.document(job)["run"]["exit_code"] == 124
    assert "+more" in patch(bench, job).read_text()


def test_without_a_worktree_the_base_is_what_is_checked_out_when_it_starts(
    bench: Bench, repo: Path, tmp_path: Path
) -> None:
    job = bench.submit(shell=f"{COMMIT}; echo y >new", cwd=str(repo), save_patch=True)
    (repo / "before").write_text("x\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "before it starts")
    base = git(repo, "rev-parse", "HEAD")
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED
    text = patch(bench, job).read_text()
    assert "new" in text and "+more" in text and "before" not in text
    tree = applied(repo, base, patch(bench, job), tmp_path / "applied")
    assert (tree / "new").read_text() == "y\n"


def test_a_repository_without_a_commit_has_a_patch_too(bench: Bench, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    job = bench.submit(shell="echo first >file", cwd=str(empty), save_patch=True)
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED
    assert "+first" in patch(bench, job).read_text()


def test_a_patch_that_is_too_large_is_not_saved_and_changes_nothing_else(
    bench: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.executors.command.PATCH_BYTES", 1000)
    job = bench.submit(shell="head -c 20000 /dev/urandom >new", save_patch=True, **at(repo))
    bench.until_ended(job)
    document = bench.client.document(job)
    assert document["state"] == "succeeded"
    assert document["run"]["patch"]["saved"] is False
    assert "larger than 1000 bytes" in document["run"]["patch"]["error"]
    assert not patch(bench, job).exists()


@pytest.mark.req("V52")
def test_who_needs_the_patch_starts_when_it_is_there(
    make_bench: Callable[..., Bench], repo: Path
) -> None:
    bench = make_bench(max_active=4)
    gate = bench.folder / "gate"
    wait = f"while ! test -e {gate}; do sleep 0.01; done"
    maker = bench.submit(shell=f"{wait}; {CHANGES}", save_patch=True, **at(repo))
    needs = (f"command_patch:job-{maker}",)
    user = bench.submit("cat", str(patch(bench, maker)), needs=needs)
    bench.until(lambda: bench.status(maker) is Status.RUNNING)
    for _ in range(3):
        bench.step()
    assert bench.status(user) is Status.WAITING_ON_DEPS
    gate.touch()
    bench.until_ended(maker, user)
    assert bench.status(user) is Status.SUCCEEDED and "+more" in output(bench, user)


# -- taking it back ----------------------------------------------------------------------------


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


def test_what_was_not_committed_is_saved_first(bench: Bench, repo: Path) -> None:  # fault I3
    job = bench.submit(shell=CHANGES, **at(repo))
    bench.until_ended(job)
    result = cleaned(bench, job)[job]
    saved = Path(bench.home.job(job), "worktree.patch")
    assert (result.status, result.saved) == ("done", str(saved))
    assert "+more" in saved.read_text() and not path_of(bench, job).exists()
    assert bench.events(job)[-1].data == {"saved": str(saved)}


def test_a_worktree_that_a_person_deleted_is_no_trouble(bench: Bench, repo: Path) -> None:
    job = bench.submit("true", **at(repo))
    bench.until_ended(job)
    shutil.rmtree(path_of(bench, job))
    assert cleaned(bench, job)[job].status in ("done", "skipped")
    assert len(entries(repo)) == 1
    assert bench.client.document(job)["worktree"] is None


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
    rewind(bench.client, job)
    document = bench.client.document(job)
    assert document["execution_root"] == str(path_of(bench, job))
    assert document["worktree"]["state"] == "degraded"
    assert document["worktree"]["retry_cleanup_status"] == "degraded"
    assert document["worktree"]["retry_cleanup_error"] == document["worktree"]["error"] != ""
    assert (path_of(bench, job) / "precious").exists(), "nothing was lost"
    assert bench.kinds(job)[-1] == "worktree_degraded"
    (last,) = bench.until_ended(job)
    shutil.rmtree(in_the_way)
    rewind(bench.client, last.id)
    document = bench.client.document(job)
    assert (document["worktree"], document["execution_root"]) == (None, ".")
    assert "+not committed" in in_the_way.read_text()
    assert not path_of(bench, job).exists() and not path_of(bench, last.id).exists()


@pytest.mark.req("V40")
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


def test_a_cancelled_job_that_never_started_owns_nothing_any_more(bench: Bench, repo: Path) -> None:
    job = bench.submit("true", delay=3_600_000_000, **at(repo))
    assert bench.client.document(job)["worktree"]["state"] == "owned"
    bench.client.cancel([job])
    assert bench.client.document(job)["worktree"] is None
    assert not path_of(bench, job).exists()


@pytest.mark.req("V38")
def test_a_broken_git_file_does_not_keep_it(bench: Bench, repo: Path) -> None:
    job = bench.submit("true", **at(repo))
    bench.until_ended(job)
    (path_of(bench, job) / ".git").write_text("gitdir: /nowhere\n")
    assert cleaned(bench, job)[job].status == "done"
    assert not path_of(bench, job).exists() and len(entries(repo)) == 1


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
