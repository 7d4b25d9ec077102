"""Making and cleaning, killed before and after every single call of git, and done again.

A program in git's place counts the calls and kills its parent at one of them. So the state on disk
is what a real crash leaves.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from repos import Repo

from headway.integrations.git.questions import head_of
from headway.integrations.git.worktrees import Cleaned, Worktree, clean, make

KILLER = """\
#!/bin/sh
echo >>"{count}"
if {when}; then
  {before}
  kill -9 $PPID
  exit 1
fi
exec {git} "$@"
"""
ACT = """
import sys
from headway.integrations.git.worktrees import Worktree, clean, make
verb, patch, *words = sys.argv[1:]
worktree = Worktree(*words)
print(make(worktree, "job-1") if verb == "make" else clean(worktree, "job-1", patch))
"""


class Killer:
    """Lets git die with its caller at the n-th call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = folder / "count"
        folder.mkdir()

    def act(self, verb: str, worktree: Worktree, patch: Path, *, at: int, before: str) -> bool:
        """Whether the process was killed; it is not, when there are fewer calls."""
        return self.act_when(f'[ "$(wc -l <{self.count})" = {at} ]', verb, worktree, patch, before)

    def act_when(self, when: str, verb: str, worktree: Worktree, patch: Path, before: str) -> bool:
        program = self.folder / "git"
        self.count.write_text("")
        git = shutil.which("git")
        program.write_text(KILLER.format(count=self.count, when=when, before=before, git=git))
        program.chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", ACT, verb, str(patch), *worktree],
            env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"},
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.returncode != 0


@pytest.fixture
def killer(tmp_path: Path) -> Killer:
    return Killer(tmp_path / "killer")


MOST_CALLS = 40
REMOVING = 'case "$*" in *"worktree remove"*) true;; *) false;; esac'
WHEN = pytest.mark.parametrize("before", [":", '{git} "$@"'], ids=["before", "after"])


def now(before: str) -> str:
    return before.replace("{git}", str(shutil.which("git")))


@WHEN
def test_making_again_after_any_crash_makes_it_whole(  # fault I6
    repo: Repo, tmp_path: Path, killer: Killer, before: str
) -> None:
    patch = tmp_path / "p"
    for at in range(1, MOST_CALLS):
        worktree = repo.worktree(f"job-{at}")
        killed = killer.act("make", worktree, patch, at=at, before=now(before))
        make(worktree, "job-1")
        assert head_of(worktree.path) == (worktree.branch, worktree.base)
        assert repo.git("status", "--porcelain", at=Path(worktree.path)) == ""
        if not killed:
            assert at > 3
            return
    pytest.fail("it never ended")


@WHEN
def test_cleaning_after_any_crash_of_making_leaves_nothing(  # fault I6
    repo: Repo, tmp_path: Path, killer: Killer, before: str
) -> None:
    patch = tmp_path / "p"
    for at in range(1, MOST_CALLS):
        worktree = repo.worktree(f"job-{at}")
        killed = killer.act("make", worktree, patch, at=at, before=now(before))
        assert clean(worktree, "job-1", str(patch)) in (Cleaned("done"), Cleaned("skipped"))
        assert not os.path.lexists(worktree.path)
        assert repo.entries() == [] and repo.notes() == [] and repo.branches() == ["main"]
        if not killed:
            return
    pytest.fail("it never ended")


@WHEN
@pytest.mark.req("V38", "V40")
def test_cleaning_again_after_any_crash_finishes_and_keeps_the_patch(  # fault I3
    repo: Repo, tmp_path: Path, killer: Killer, before: str
) -> None:
    for at in range(1, MOST_CALLS):
        worktree = repo.worktree(f"job-{at}")
        patch = tmp_path / f"{at}.patch"
        make(worktree, "job-1")
        Path(worktree.path, "precious").write_text("precious\n")
        Path(worktree.path, "readme.txt").write_text("changed\n")
        killed = killer.act("clean", worktree, patch, at=at, before=now(before))
        cleaned = clean(worktree, "job-1", str(patch))
        assert cleaned == (Cleaned("done", None, str(patch)) if killed else Cleaned("skipped"))
        assert b"+precious" in patch.read_bytes() and b"+changed" in patch.read_bytes()
        assert not os.path.lexists(worktree.path) and not os.path.lexists(f"{patch}.making")
        assert repo.entries() == [] and repo.notes() == [] and repo.branches() == ["main"]
        if not killed:
            assert at > 5
            return
    pytest.fail("it never ended")


@pytest.mark.parametrize("dirty", [True, False])
def test_removal_that_was_cut_short_does_not_spoil_the_patch(  # fault I3
    repo: Repo, tmp_path: Path, killer: Killer, dirty: bool
) -> None:
    worktree, patch = repo.worktree("job-1"), tmp_path / "p"
    make(worktree, "job-1")
    if dirty:
        Path(worktree.path, "precious").write_text("precious\n")
    some = f"rm -f {worktree.path}/precious {worktree.path}/readme.txt"
    assert killer.act_when(REMOVING, "clean", worktree, patch, some)
    assert not Path(worktree.path, "readme.txt").exists()
    saved = patch.read_bytes() if dirty else None
    cleaned = clean(worktree, "job-1", str(patch))
    assert cleaned == Cleaned("done", None, str(patch) if dirty else None)
    assert (patch.read_bytes() if patch.exists() else None) == saved
    assert saved is None or (b"+precious" in saved and b"readme" not in saved)


def test_making_after_a_removal_that_was_cut_short_makes_it_whole(  # fault I6
    repo: Repo, tmp_path: Path, killer: Killer
) -> None:
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    some = f"rm -f {worktree.path}/readme.txt"
    assert killer.act_when(REMOVING, "clean", worktree, tmp_path / "p", some)
    make(worktree, "job-1")
    assert repo.git("status", "--porcelain", at=Path(worktree.path)) == ""


@pytest.mark.parametrize("name", ["precious", "readme.txt"])
def test_change_after_a_removal_was_cut_short_is_saved_after_all(  # fault I3
    repo: Repo, tmp_path: Path, killer: Killer, name: str
) -> None:
    worktree, patch = repo.worktree("job-1"), tmp_path / "p"
    make(worktree, "job-1")
    assert killer.act_when(REMOVING, "clean", worktree, patch, ":")
    Path(worktree.path, name).write_text("precious\n")
    cleaned = clean(worktree, "job-1", str(patch))
    assert cleaned.status == "degraded" and "changed while" in (cleaned.error or "")
    assert clean(worktree, "job-1", str(patch)) == Cleaned("done", None, str(patch))
    assert b"+precious" in patch.read_bytes()
