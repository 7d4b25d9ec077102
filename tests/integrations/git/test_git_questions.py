"""What is seen of a repository: heads, branches, files, changes, and what is under way."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from repos import Repo

from headway.base.errors import HeadwayError, NotFoundError
from headway.integrations.git.program import GitError
from headway.integrations.git.questions import (
    RepositoryAnswers,
    Wants,
    head_of,
    in_progress,
    probe,
    repository_of,
)

CLEAN = Wants(clean=True)
ALL = Wants(True, frozenset({"main"}), True, frozenset({("main", "readme.txt")}))


def test_repository_is_found_from_inside(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repo.path / "tools")
    assert repository_of(str(repo.path / "tools")) == str(repo)
    assert repository_of(str(tmp_path / "link")) == str(repo)
    assert repository_of(str(repo.path / "readme.txt")) == str(repo)
    assert repository_of(str(tmp_path)) is None
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    assert repository_of(str(tmp_path / "linked" / "tools")) == str(tmp_path / "linked")
    (repo.path / "tools" / ".git").mkdir()  # not a repository, and git says so, too
    assert repository_of(str(repo.path / "tools")) == str(repo)


def test_one_look_answers_everything(repo: Repo) -> None:
    first = repo.head()
    repo.git("branch", "feature/a")
    second = repo.commit("second")
    wants = Wants(
        head=True,
        branches=frozenset({"main", "feature/a", "feature", "gone"}),
        clean=True,
        files=frozenset(
            {
                ("main", "readme.txt"),
                ("main", "tools"),
                ("main", "./tools/run.sh"),
                ("main", "tools/gone.sh"),
                ("main", "../readme.txt"),
                ("main", "/readme.txt"),
                ("main", "readme.txt\nreadme.txt"),
                ("gone", "readme.txt"),
                ("feature/a", "blob.bin"),
            }
        ),
    )
    looks = probe(str(repo), wants)
    assert looks.head_branch == "main" and looks.head_oid == second
    assert looks.branches == {"main": second, "feature/a": first, "feature": None, "gone": None}
    assert {each for each, there in looks.files.items() if there} == {
        ("main", "readme.txt"),
        ("main", "tools"),
        ("main", "./tools/run.sh"),
        ("feature/a", "blob.bin"),
    }
    assert looks.files.keys() == wants.files
    assert looks.dirty == () and looks.in_progress is None


def test_file_is_asked_of_the_branch_and_not_of_the_worktree(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "other")
    repo.write("plan.md", "x")
    repo.commit("plan")
    wanted = frozenset({("main", "plan.md"), ("other", "plan.md")})
    files = probe(str(repo), Wants(files=wanted)).files
    assert files == {("main", "plan.md"): False, ("other", "plan.md"): True}


def test_branch_of_a_strange_name_is_not_taken_for_another(repo: Repo) -> None:
    repo.git("update-ref", "refs/heads/refs/heads/ghost", "HEAD")
    assert probe(str(repo), Wants(branches=frozenset({"ghost"}))).branches == {"ghost": None}


def test_detached_head_has_no_branch(repo: Repo) -> None:
    oid = repo.head()
    repo.git("checkout", "-q", "--detach")
    looks = probe(str(repo), Wants(head=True))
    assert (looks.head_branch, looks.head_oid) == (None, oid)
    assert head_of(str(repo)) == (None, oid)
    assert head_of(str(repo), "main") == ("main", oid)


def test_linked_worktree_has_its_own_head(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    assert head_of(str(tmp_path / "linked"))[0] == "side"
    assert head_of(str(repo))[0] == "main"


def test_unborn_head_is_represented(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    repo = Repo(tmp_path / "new")
    repo.git("init", "-q", "-b", "main")
    looks = probe(str(repo), ALL)
    assert looks == RepositoryAnswers(
        "main", None, {"main": None}, (), {("main", "readme.txt"): False}, None
    )
    with pytest.raises(NotFoundError, match="no commit yet on main"):
        head_of(str(repo))
    repo.write("a", "a")
    assert probe(str(repo), CLEAN).dirty == ("a",)


def test_missing_branch_is_named(repo: Repo) -> None:
    with pytest.raises(NotFoundError, match="branch 'gone' does not exist"):
        head_of(str(repo), "gone")


def damage_nothing_left(repo: Repo) -> None:
    shutil.rmtree(repo.path)


def damage_no_git(repo: Repo) -> None:
    shutil.rmtree(repo.path / ".git")


def damage_head(repo: Repo) -> None:
    repo.write(".git/HEAD", b"\xff\0garbage")


def damage_config(repo: Repo) -> None:
    repo.write(".git/config", b"[[[")


def damage_index(repo: Repo) -> None:
    repo.write(".git/index", b"garbage" * 10)


def damage_objects(repo: Repo) -> None:
    shutil.rmtree(repo.path / ".git/objects")
    (repo.path / ".git/objects").mkdir()


def damage_link(repo: Repo) -> None:
    shutil.rmtree(repo.path / ".git")
    repo.write(".git", "gitdir: /nowhere/at/all\n")


def damage_shallow(repo: Repo) -> None:
    repo.write(".git/shallow", "garbage\n")


@pytest.mark.parametrize(
    "damage",
    [
        damage_nothing_left,
        damage_no_git,
        damage_head,
        damage_config,
        damage_index,
        damage_objects,
        damage_link,
        damage_shallow,
    ],
)
def test_damage_is_an_error_of_git_and_no_other(repo: Repo, damage: Callable[[Repo], None]) -> None:
    damage(repo)
    with pytest.raises(GitError) as caught:
        probe(str(repo), ALL)
    assert str(repo) in str(caught.value)
    for branch in ("main", None):
        try:
            head_of(str(repo), branch)
        except HeadwayError as error:
            assert str(repo) in str(error)


@pytest.mark.req("V61")
@pytest.mark.parametrize(
    "change",
    [
        *("new.txt", "readme.txt", "deep/er/new.txt", ".headwayish/x"),
        *(".headway/config.toml", ".headway/jobs.yaml", ".headway/workflows/a.toml"),
        *(".headway/runners/a.toml", ".headway/plans/p.md"),
    ],
)
def test_change_makes_it_dirty_until_it_is_gone(repo: Repo, change: str) -> None:
    repo.write(".headway/headway.db", "of ours")
    assert probe(str(repo), CLEAN).dirty == ()
    repo.write(change, "changed")
    (dirty,) = probe(str(repo), CLEAN).dirty
    assert dirty == change or (dirty.endswith("/") and change.startswith(dirty))
    repo.git("add", "-A", ":!.headway/headway.db")
    assert probe(str(repo), CLEAN).dirty == (change,)
    repo.git("commit", "-q", "-m", "change")
    assert probe(str(repo), CLEAN).dirty == ()


@pytest.mark.req("V61")
@pytest.mark.parametrize("place", ["", "sub/"])
def test_own_runtime_paths_do_not_count(repo: Repo, place: str) -> None:
    for name in (".gitignore", "headway.db", "jobs/1/stdout.log", "worktrees/job-1/a", "run/x"):
        repo.write(f"{place}.headway/{name}", "ours")
    assert probe(str(repo), CLEAN).dirty == ()
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "even if somebody commits them")
    repo.write(f"{place}.headway/headway.db", "changed")
    assert probe(str(repo), CLEAN).dirty == ()
    repo.write(f"{place}.headway/config.toml", "of a user")
    assert probe(str(repo), CLEAN).dirty == (f"{place}.headway/config.toml",)


@pytest.mark.req("V61")
def test_tracked_and_untracked_and_staged_changes_are_listed_and_bounded(repo: Repo) -> None:
    repo.git("mv", "readme.txt", "moved.txt")
    repo.write("blob.bin", b"other")
    repo.write("new\nline", "x")
    os.close(os.open(os.fsencode(repo.path) + b"/\xff", os.O_CREAT | os.O_WRONLY))
    dirty = probe(str(repo), CLEAN).dirty
    assert set(dirty) == {"moved.txt", "readme.txt", "blob.bin", "new\nline", "\\xff"}
    for number in range(100):
        repo.write(f"many-{number}", "x")
    assert len(probe(str(repo), CLEAN).dirty) == 5


def test_ignored_files_do_not_count(repo: Repo) -> None:
    repo.write(".gitignore", "*.o\n")
    repo.commit("ignore")
    repo.write("a.o", "x")
    assert probe(str(repo), CLEAN).dirty == ()


def conflicting(repo: Repo) -> None:
    repo.git("switch", "-q", "-c", "theirs")
    repo.write("readme.txt", "theirs\n")
    repo.commit("theirs")
    repo.write("readme.txt", "theirs again\n")
    repo.commit("theirs again")
    repo.git("switch", "-q", "main")
    repo.write("readme.txt", "ours\n")
    repo.commit("ours")


STATES = {
    "merge": (["merge", "theirs"], ["merge", "--abort"]),
    "cherry-pick": (["cherry-pick", "theirs"], ["cherry-pick", "--abort"]),
    "revert": (["revert", "main~1"], ["revert", "--abort"]),
    "rebase": (["rebase", "theirs"], ["rebase", "--abort"]),
    "bisect": (["bisect", "start"], ["bisect", "reset"]),
}


@pytest.mark.req("V43")
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("state", STATES)
def test_what_git_is_in_the_middle_of_is_seen(  # fault I1
    repo: Repo, tmp_path: Path, state: str, linked: bool
) -> None:
    conflicting(repo)
    place = repo.path
    if linked:
        place = tmp_path / "linked"
        repo.git("worktree", "add", "-q", "-b", "side", str(place), "main")
    begin, abort = STATES[state]
    if state == "revert":
        repo.git("commit", "-q", "--allow-empty", "-m", "empty", at=place)
        Path(place, "readme.txt").write_text("third\n")
        repo.git("commit", "-q", "-am", "third", at=place)
        begin = ["revert", "HEAD~2"]
    assert in_progress(str(place)) is None
    repo.git(*begin, at=place, ok=False)
    assert in_progress(str(place)) == state
    assert probe(str(place), Wants()).in_progress == state
    if linked:
        assert in_progress(str(repo)) is None
    repo.git(*abort, at=place)
    assert in_progress(str(place)) is None


@pytest.mark.req("V43")
def test_stop_between_two_picks_is_seen(repo: Repo) -> None:  # fault I1
    conflicting(repo)
    repo.git("cherry-pick", "theirs~1", "theirs", ok=False)
    repo.write("readme.txt", "resolved\n")
    repo.git("add", "-A")
    repo.git("commit", "-q", "-m", "resolved by hand")
    assert not (repo.path / ".git/CHERRY_PICK_HEAD").exists()
    assert in_progress(str(repo)) == "cherry-pick"


def test_looking_imports_little() -> None:
    code = (
        "import sys, headway.integrations.git.questions as l;"
        "heavy = {'subprocess', 'json', 'hashlib', 'shutil', 'logging', 'headway.store'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    from headway.integrations.git import command

    argv = command("x", {})[:-2]
    argv[-1] = argv[-1].split("from headway")[0] + code
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == "[]\n"
