"""How git is started: nothing hostile gets through, and nothing goes on without end."""

import errno
import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from repos import Repo

from harness import wait_for
from headway.base.errors import HeadwayError, InvalidInputError, NotFoundError
from headway.integrations.git.program import GitError, ask, run, safe_branch
from headway.integrations.git.questions import Wants, commit_of, head_of, probe
from headway.integrations.git.worktrees import make

HOSTILE = [
    "-x",
    "-",
    "--upload-pack=touch hacked",
    "--exec=touch hacked",
    "--output=hacked",
    "ext::sh -c touch% hacked",
    "ext::sh",
    "a..b",
    "a b",
    "a\nb",
    "a\0b",
    "a\x7fb",
    "a~1",
    "a^",
    "a:b",
    "a?",
    "a*",
    "[a",
    "a\\b",
    "@",
    "a@{1}",
    "@{-1}",
    "HEAD",
    ".a",
    "a/.b",
    "a.lock",
    "a.lock/b",
    "a/",
    "/a",
    "a//b",
    "a.",
    "../../etc/passwd",
    ".git/hooks",
    "\udcff",
    "",
]
GOOD = ["main", "feature/x", "a-b_c.d", "x@y", "ünï", "refs/heads/x", "a'b;c$(d)`e`", "a/HEAD"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_name_is_no_branch_anywhere(repo: Repo, name: str) -> None:  # fault I4
    assert not safe_branch(name)
    before = sorted(repo.path.rglob("*"))
    looks = probe(
        str(repo), Wants(branches=frozenset({name}), files=frozenset({(name, "readme.txt")}))
    )
    assert looks.branches == {name: None}
    assert looks.files == {(name, "readme.txt"): False}
    with pytest.raises(NotFoundError):
        head_of(str(repo), name)
    with pytest.raises(InvalidInputError):
        make(repo.worktree("job-1")._replace(branch=name), "job-1")
    with pytest.raises(InvalidInputError):
        make(repo.worktree("job-1")._replace(base=name), "job-1")
    assert sorted(repo.path.rglob("*")) == before
    assert repo.branches() == ["main"]


@pytest.mark.parametrize("name", [name for name in HOSTILE if name not in ("@", "HEAD")])
def test_hostile_name_is_no_commit(repo: Repo, name: str) -> None:  # fault I4
    before = sorted(repo.path.rglob("*"))
    with pytest.raises(HeadwayError):
        commit_of(str(repo), name)
    assert sorted(repo.path.rglob("*")) == before


def test_commit_is_known_by_all_its_names(repo: Repo) -> None:
    oid = repo.head()
    repo.git("tag", "-a", "v1", "-m", "one")
    for name in ("HEAD", "main", "v1", oid, oid[:10], "main~0"):
        assert commit_of(str(repo), name) == oid


@pytest.mark.parametrize("name", GOOD)
def test_good_name_is_a_branch(repo: Repo, name: str) -> None:
    assert safe_branch(name)
    repo.git("update-ref", f"refs/heads/{name}", "HEAD")
    assert head_of(str(repo), name) == (name, repo.head())
    assert not (repo.path / "hacked").exists()


@pytest.mark.processes
@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from(list("ab-./@{}~^: *[\\\n\x7fé")), max_size=8) | st.text(max_size=6))
def test_names_are_judged_as_git_judges_them(name: str) -> None:  # fault I4
    if "\0" in name or name in ("@", "HEAD"):
        assert not safe_branch(name)
        return
    done = subprocess.run(
        ["git", "check-ref-format", "--branch", name], capture_output=True, cwd="/", check=False
    )
    assert safe_branch(name) == (done.returncode == 0)


def test_no_hook_runs(repo: Repo) -> None:  # fault I4
    for name in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        repo.write(f".git/hooks/{name}", f"#!/bin/sh\ntouch {repo}/hacked\n")
        (repo.path / ".git/hooks" / name).chmod(0o755)
    repo.git("config", "core.fsmonitor", f"touch {repo}/hacked; false")
    make(repo.worktree("job-1"), "job-1")
    probe(str(repo), Wants(head=True, clean=True, branches=frozenset({"main"})))
    assert not (repo.path / "hacked").exists()
    repo.git("branch", "proof")  # as a user's own git would
    assert (repo.path / "hacked").exists()


def test_inherited_repository_is_not_asked(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repo.make(tmp_path / "other")
    other.commit("more")
    monkeypatch.setenv("GIT_DIR", f"{other}/.git")
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", f"{other}/.git/index")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {repo}/hacked")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    (answer,) = ask(str(repo), "rev-parse", "--show-toplevel").lines
    assert answer == str(repo)


def test_vanished_repository_is_not_answered_for_by_the_one_around_it(repo: Repo) -> None:
    inner = Repo.make(repo.path / "inner")
    subprocess.run(["rm", "-rf", str(inner.path / ".git")], check=True)
    assert run(str(inner), "rev-parse", "HEAD").code != 0
    with pytest.raises(GitError, match="is not a git repository"):
        probe(str(inner), Wants(head=True))


def test_git_has_answered_when_it_ends_whoever_still_holds_its_output(
    repo: Repo, tmp_path: Path
) -> None:
    told = tmp_path / "pid"
    leave = f"setsid sh -c 'echo $$ >{told}.new; mv {told}.new {told}; exec sleep 600' &"
    repo.git("config", "alias.leave", f"!{leave} until [ -e {told} ]; do :; done; echo here")
    try:
        assert run(str(repo), "leave").lines == ["here"]
    finally:
        os.kill(int(told.read_text()), signal.SIGKILL)


def test_git_that_hangs_is_ended_with_all_it_started(repo: Repo, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    repo.git(
        "config", "alias.hang", f"!sleep 1000 & echo $! >{told}.new; mv {told}.new {told}; wait"
    )
    with pytest.raises(GitError, match="did not answer within") as caught:
        run(str(repo), "hang", timeout=3.0)
    assert caught.value.errno == errno.ETIMEDOUT
    assert not caught.value.of_host
    pid = int(told.read_text())
    wait_for(lambda: not is_alive(pid))


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_missing_git_is_said(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repo.path))
    with pytest.raises(GitError, match="git program was not found; install git"):
        run(str(repo), "status")


def test_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="does not exist"):
        run(str(tmp_path / "nowhere"), "status")


def test_reason_is_gits_own_and_names_the_repository(repo: Repo) -> None:
    with pytest.raises(GitError) as caught:
        ask(str(repo), "cat-file", "-e", "0" * 40)
    assert str(caught.value).startswith(f"git cat-file failed in {repo}: ")
    assert "\n" not in str(caught.value)


def test_a_lock_file_that_is_in_the_way_is_named(repo: Repo) -> None:  # fault I1
    lock = repo.path / ".git/refs/heads/topic.lock"
    lock.touch()
    with pytest.raises(GitError) as caught:
        ask(str(repo), "branch", "topic", writes=True)
    words = f"{lock} is there; if no git is at work, remove it and retry"
    assert str(caught.value) == f"git branch failed in {repo}: {words}"


def test_looking_takes_no_lock(repo: Repo) -> None:  # fault I1
    os.utime(repo.path / "readme.txt", (1, 1))  # git would like to refresh its index
    before = (repo.path / ".git/index").read_bytes()
    assert probe(str(repo), Wants(clean=True)).dirty == ()
    assert (repo.path / ".git/index").read_bytes() == before
    repo.write(".git/index.lock", "of somebody else")
    assert probe(str(repo), Wants(clean=True)).dirty == ()
    assert (repo.path / ".git/index.lock").read_text() == "of somebody else"
