"""What a job changed is kept as a patch, however it ended."""

from collections.abc import Callable
from pathlib import Path

import pytest

from both_stores import on_a_file
from checkouts_of_jobs import CHANGES, COMMIT, at, git, make_repository, output, patch
from harness import Bench
from headway.core.states import Status


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path)


def applied(repo: Path, base: str, file: Path, to: Path) -> Path:
    """The tree that the patch makes of its base."""
    git(repo, "worktree", "add", "-q", "--detach", str(to), base)
    git(to, "apply", "--index", str(file))
    return to


@pytest.mark.req("V9")
@pytest.mark.parametrize(
    ("end", "state"), [("exit 0", "succeeded"), ("exit 3", "failed"), ("kill -9 $$", "failed")]
)
@on_a_file
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
@on_a_file
def test_what_it_changed_is_saved_after_a_timeout(bench: Bench, repo: Path) -> None:
    script = f"{CHANGES}; while :; do sleep 0.05; done"
    job = bench.submit(shell=script, save_patch=True, timeout=1_500_000, grace=0, **at(repo))
    bench.until_ended(job)
    assert bench.client.document(job)["run"]["exit_code"] == 124
    assert "+more" in patch(bench, job).read_text()


@on_a_file
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


@on_a_file
def test_a_repository_without_a_commit_has_a_patch_too(bench: Bench, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    job = bench.submit(shell="echo first >file", cwd=str(empty), save_patch=True)
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED
    assert "+first" in patch(bench, job).read_text()


@on_a_file
def test_a_patch_that_is_too_large_is_not_saved_and_changes_nothing_else(
    bench: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.worker.launch.command.PATCH_BYTES", 1000)
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
