"""Cleaning takes back what is ours, saves what is not committed, and leaves the rest alone."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from repos import Repo
from test_git_patches import applied, change_everything

from headway.integrations.git.worktrees import Cleaned, Worktree, clean, make


@pytest.fixture
def worktree(repo: Repo) -> Worktree:
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    return worktree


@pytest.fixture
def patch(tmp_path: Path) -> Path:
    return tmp_path / "worktree.patch"


def nothing_is_left(repo: Repo, worktree: Worktree) -> bool:
    return not (os.path.lexists(worktree.path) or repo.entries() or repo.notes())


def checkout(worktree: Worktree) -> Repo:
    return Repo(Path(worktree.path))


@pytest.mark.req("V38", "V39")
def test_untouched_worktree_vanishes_with_its_branch(
    repo: Repo, worktree: Worktree, patch: Path
) -> None:
    assert clean(worktree, "job-1", str(patch)) == Cleaned("done", None, None, None)
    assert nothing_is_left(repo, worktree)
    assert repo.branches() == ["main"] and not patch.exists()
    assert clean(worktree, "job-1", str(patch)) == Cleaned("skipped")
    make(worktree, "job-1")


def test_ignored_files_do_not_hold_it(repo: Repo, patch: Path) -> None:
    repo.write(".gitignore", "build/\n")
    repo.commit("ignore")
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    checkout(worktree).write("build/out", "x")
    assert clean(worktree, "job-1", str(patch)) == Cleaned("done")
    assert nothing_is_left(repo, worktree)


@pytest.mark.req("V38")
def test_dirty_worktree_is_saved_before_it_vanishes(  # fault I3
    repo: Repo, worktree: Worktree, patch: Path, tmp_path: Path
) -> None:
    change_everything(repo, Path(worktree.path))
    head = repo.head(worktree.branch)
    repo.git("worktree", "add", "-q", "--detach", str(tmp_path / "expected"), head)
    shutil.rmtree(tmp_path / "expected" / "tools")
    for name in os.listdir(worktree.path):
        if name != ".git":
            source, target = Path(worktree.path, name), tmp_path / "expected" / name
            if source.is_dir():
                shutil.copytree(source, target, symlinks=True)
            else:
                shutil.copy2(source, target, follow_symlinks=False)
    tree = repo.tree_of(tmp_path / "expected")
    cleaned = clean(worktree, "job-1", str(patch))
    assert cleaned == Cleaned("done", None, str(patch), worktree.branch)
    assert nothing_is_left_but_the_branch(repo, worktree, head)
    assert applied(repo, patch, head, tmp_path) == tree


def nothing_is_left_but_the_branch(repo: Repo, worktree: Worktree, head: str) -> bool:
    own = repo.git("worktree", "list", "--porcelain").count(worktree.path)
    return (
        not os.path.lexists(worktree.path)
        and not own
        and not repo.notes()
        and repo.head(worktree.branch) == head
    )


@pytest.mark.req("V38")
@pytest.mark.parametrize("change", ["tracked", "untracked", "staged", "deleted"])
def test_each_kind_of_change_applies_on_the_base(  # fault I3
    repo: Repo, worktree: Worktree, patch: Path, tmp_path: Path, change: str
) -> None:
    own = checkout(worktree)
    if change == "untracked":
        own.write("deep/new.bin", bytes(100))
    elif change == "deleted":
        (own.path / "blob.bin").unlink()
    else:
        own.write("readme.txt", "changed\n")
    if change == "staged":
        repo.git("add", "-A", at=own.path)
    reference = tmp_path / "reference"
    shutil.copytree(own.path, reference, ignore=shutil.ignore_patterns(".git"))
    repo.git("init", "-q", at=reference)
    tree = repo.tree_of(reference)
    assert clean(worktree, "job-1", str(patch)) == Cleaned("done", None, str(patch), None)
    assert nothing_is_left(repo, worktree) and repo.branches() == ["main"]
    assert applied(repo, patch, worktree.base, tmp_path) == tree


@pytest.mark.req("V40")
def test_what_cannot_be_saved_is_kept_and_cleaned_later(  # fault I3
    repo: Repo, worktree: Worktree, tmp_path: Path
) -> None:
    checkout(worktree).write("precious", "precious")
    cleaned = clean(worktree, "job-1", str(tmp_path / "gone" / "p"))
    assert cleaned.status == "degraded" and cleaned.saved is None
    assert "cannot be saved at" in (cleaned.error or "")
    assert Path(worktree.path, "precious").read_text() == "precious"
    assert len(repo.entries()) == len(repo.notes()) == 1  # still ours
    (tmp_path / "gone").mkdir()
    assert clean(worktree, "job-1", str(tmp_path / "gone" / "p")).status == "done"
    assert b"+precious" in (tmp_path / "gone" / "p").read_bytes()
    assert nothing_is_left(repo, worktree)


@pytest.mark.req("V40")
@pytest.mark.parametrize("dirty", [False, True])
def test_repository_in_which_git_fails_keeps_everything(  # fault I3
    repo: Repo, worktree: Worktree, patch: Path, dirty: bool
) -> None:
    if dirty:
        checkout(worktree).write("precious", "precious")
    repo.write(".git/shallow", "garbage\n")
    cleaned = clean(worktree, "job-1", str(patch))
    assert cleaned.status == "degraded" and "shallow" in (cleaned.error or "")
    assert Path(worktree.path, "readme.txt").exists() and not patch.exists()
    (repo.path / ".git/shallow").unlink()
    assert clean(worktree, "job-1", str(patch)).status == "done"
    assert patch.exists() == dirty and nothing_is_left(repo, worktree)


@pytest.mark.req("V38")
@pytest.mark.parametrize("content", [None, "garbage", "gitdir: /nowhere\n"])
def test_broken_link_to_the_repository_loses_nothing(
    repo: Repo, worktree: Worktree, patch: Path, content: str | None
) -> None:
    checkout(worktree).write("precious", "precious")
    Path(worktree.path, ".git").unlink()
    if content is not None:
        Path(worktree.path, ".git").write_text(content)
    assert clean(worktree, "job-1", str(patch)) == Cleaned("done", None, str(patch), None)
    assert b"+precious" in patch.read_bytes()
    assert nothing_is_left(repo, worktree)


@pytest.mark.req("V38")
def test_git_that_cannot_remove_is_helped_by_hand(
    repo: Repo, worktree: Worktree, patch: Path
) -> None:
    """A populated submodule: git removes such a worktree only by force, or not at all."""
    library = Repo.make(repo.path.parent / "library")
    own = checkout(worktree)
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    repo.git(*add, at=own.path)
    tip = own.commit("submodule")
    assert clean(worktree, "job-1", str(patch)) == Cleaned("done", None, None, worktree.branch)
    assert nothing_is_left(repo, worktree) and repo.head(worktree.branch) == tip


@pytest.mark.req("V40")
@pytest.mark.parametrize("inner", ["submodule", "moved submodule", "clone", "deep/clone"])
def test_repository_inside_cannot_be_saved_by_a_patch(  # fault I3
    repo: Repo, worktree: Worktree, patch: Path, inner: str
) -> None:
    own = checkout(worktree)
    if "submodule" in inner:
        library = Repo.make(repo.path.parent / "library")
        add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library))
        repo.git(*add, "lib", at=own.path)
        own.commit("submodule")
        Repo(own.path / "lib").write("readme.txt", "changed in the submodule")
        if inner == "moved submodule":
            Repo(own.path / "lib").commit("only here")
    else:
        Repo.make(own.path / inner)
    cleaned = clean(worktree, "job-1", str(patch))
    assert cleaned.status == "degraded" and "repository of its own" in (cleaned.error or "")
    assert Path(worktree.path, "readme.txt").exists() and not patch.exists()


AS_USER = """
import os, sys
# Before the rights are gone: their files may be closed to others.
import hashlib, resource, signal, subprocess
from headway.integrations.git import worktrees
from repos import Repo
from pathlib import Path
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
folder = Path(sys.argv[1])
repo = Repo.make(folder / "project")
worktree = repo.worktree("job-1")
worktrees.make(worktree, "job-1")
os.makedirs(worktree.path + "/cache/deep")
Path(worktree.path, "cache/deep/module").write_text("cached")
os.chmod(worktree.path + "/cache/deep", 0o555)
os.chmod(worktree.path + "/cache", 0o555)
cleaned = worktrees.clean(worktree, "job-1", str(folder / "p"))
assert cleaned == ("done", None, str(folder / "p"), None), cleaned
assert "+cached" in (folder / "p").read_text()
assert not os.path.exists(worktree.path) and not repo.entries() and not repo.notes()
"""


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of an ordinary user; pytest's own are closed to others."""
    folder = Path("/tmp") / f"headway-{os.getpid()}-{tmp_path.name}"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.user
def test_folders_that_nobody_may_write_to_are_removed(open_folder: Path) -> None:
    path = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run(
        [sys.executable, "-c", AS_USER, str(open_folder)],
        env={**os.environ, "PYTHONPATH": path, "HOME": str(open_folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.req("V38", "V39")
@pytest.mark.parametrize("entry_too", [False, True])
def test_worktree_deleted_by_hand_prunes_its_own_entry_only(  # fault I3
    repo: Repo, worktree: Worktree, patch: Path, tmp_path: Path, entry_too: bool
) -> None:
    repo.git("worktree", "add", "-q", str(tmp_path / "unmounted"))
    os.rename(tmp_path / "unmounted", tmp_path / "elsewhere")  # not there now, and not ours
    shutil.rmtree(worktree.path)
    if entry_too:
        shutil.rmtree(repo.path / ".git/worktrees/job-1")
    assert clean(worktree, "job-1", str(patch)) == Cleaned("done")
    assert repo.entries() == ["unmounted"] and repo.notes() == []
    assert repo.branches() == ["main", "unmounted"]


@pytest.mark.req("V40")
def test_entry_deleted_by_hand_keeps_the_folder(
    repo: Repo, worktree: Worktree, patch: Path
) -> None:  # fault I3
    shutil.rmtree(repo.path / ".git/worktrees/job-1")
    cleaned = clean(worktree, "job-1", str(patch))
    assert cleaned.status == "degraded" and "no longer known" in (cleaned.error or "")
    assert Path(worktree.path, "readme.txt").exists()
    shutil.rmtree(worktree.path)
    assert clean(worktree, "job-1", str(patch)).status == "done"


@pytest.mark.req("V40")
def test_commits_on_no_branch_are_not_forgotten(
    repo: Repo, worktree: Worktree, patch: Path
) -> None:  # fault I3
    own = checkout(worktree)
    repo.git("checkout", "-q", "--detach", at=own.path)
    oid = own.commit("on no branch")
    for _ in range(2):
        cleaned = clean(worktree, "job-1", str(patch))
        assert cleaned.status == "degraded" and oid[:12] in (cleaned.error or "")
        shutil.rmtree(worktree.path, ignore_errors=True)  # by hand: they are still only there
    repo.git("branch", "rescued", oid)
    assert clean(worktree, "job-1", str(patch)) == Cleaned("done")
    assert repo.branches() == ["main", "rescued"]


def test_commits_stay_on_their_branch(repo: Repo, worktree: Worktree, patch: Path) -> None:
    tip = checkout(worktree).commit("own")
    assert clean(worktree, "job-1", str(patch)) == Cleaned("done", None, None, worktree.branch)
    assert nothing_is_left_but_the_branch(repo, worktree, tip)


def test_branch_that_somebody_else_uses_stays(repo: Repo, worktree: Worktree, patch: Path) -> None:
    repo.git("switch", "-q", "--ignore-other-worktrees", worktree.branch)
    assert clean(worktree, "job-1", str(patch)).kept == worktree.branch
    assert repo.head() == worktree.base


@pytest.mark.req("V38", "V39")
def test_what_is_not_ours_is_skipped(
    repo: Repo, worktree: Worktree, patch: Path, tmp_path: Path
) -> None:
    inside = str(tmp_path / "home" / "worktrees")
    theirs = Worktree(str(repo), str(tmp_path / "theirs"), "theirs", repo.head())
    repo.git("worktree", "add", "-q", theirs.path)
    plain = tmp_path / "plain"
    plain.mkdir()
    linked = tmp_path / "home" / "worktrees" / "linked"
    linked.symlink_to(worktree.path)
    for each, owner, words in [
        (worktree, "job-2", "belongs to job-1"),
        (worktree, "", "belongs to job-1"),
        (theirs, "job-1", "not made by Headway"),
        (worktree._replace(path=str(plain)), "job-1", "not made by Headway"),
        (worktree._replace(path=str(repo)), "job-1", "not made by Headway"),
        (worktree._replace(path=str(linked)), "job-1", "symbolic link"),
    ]:
        cleaned = clean(each, owner, str(patch))
        assert cleaned.status == "skipped" and words in (cleaned.error or ""), each
        assert os.path.exists(each.path)
    outside = clean(worktree, "job-1", str(patch), inside=str(tmp_path / "other"))
    assert outside.status == "skipped" and "not inside" in (outside.error or "")
    escaping = worktree._replace(path=f"{inside}/../../theirs")
    assert clean(escaping, "job-1", str(patch), inside=inside).status == "skipped"
    assert Path(worktree.path, "readme.txt").exists() and Path(theirs.path, "readme.txt").exists()
    assert clean(worktree, "job-1", str(patch), inside=inside).status == "done"


def test_repository_that_is_gone(repo: Repo, worktree: Worktree, patch: Path) -> None:
    shutil.rmtree(repo.path)
    cleaned = clean(worktree, "job-1", str(patch))
    assert cleaned.status == "degraded" and Path(worktree.path, "readme.txt").exists()
    shutil.rmtree(worktree.path)
    assert clean(worktree, "job-1", str(patch)).status == "skipped"


def test_damaged_record_is_degraded_and_names_the_file(
    repo: Repo, worktree: Worktree, patch: Path
) -> None:
    (name,) = repo.notes()
    repo.write(f".git/headway/{name}", "{")
    cleaned = clean(worktree, "job-1", str(patch))
    assert cleaned.status == "degraded" and name in (cleaned.error or "")
    (repo.path / ".git/headway" / name).unlink()
    assert clean(worktree, "job-1", str(patch)).status == "done"  # the marker knows its owner
