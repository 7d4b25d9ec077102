"""A job's worktree is made whole or not at all; what is half-made is discarded and made anew."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from repos import Repo

from harness import wait_for
from headway.base.errors import ConflictError, InvalidInputError
from headway.integrations.git import command
from headway.integrations.git.lock import holding
from headway.integrations.git.program import GitError
from headway.integrations.git.questions import head_of
from headway.integrations.git.worktrees import Worktree, clean, make


def is_whole(repo: Repo, worktree: Worktree) -> bool:
    path = Path(worktree.path)
    return (
        head_of(worktree.path) == (worktree.branch, worktree.base)
        and repo.git("status", "--porcelain", at=path) == ""
        and (path / "readme.txt").exists()
    )


def request(worktree: Worktree, owner: str) -> dict[str, str]:
    return {**worktree._asdict(), "owner": owner}


def test_worktree_is_whole_locked_and_tracks_nothing(repo: Repo) -> None:
    base = repo.head()
    repo.commit("later")
    worktree = repo.worktree("job-1", base)
    make(worktree, "job-1")
    assert is_whole(repo, worktree)
    (locked,) = (repo.path / ".git/worktrees").glob("*/locked")
    assert locked.read_text().strip() == "headway job-1"
    assert repo.git("config", "--get-regexp", "^branch", ok=False) == ""
    assert repo.git("status", "--porcelain") == ""


def test_worktree_is_made_from_inside_another(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    worktree = repo.worktree("job-1")._replace(repo=str(tmp_path / "linked"))
    make(worktree, "job-1")
    assert is_whole(repo, worktree)
    assert clean(worktree, "job-1", str(tmp_path / "p")).status == "done"


def test_whole_worktree_is_found_again(repo: Repo) -> None:
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    (Path(worktree.path) / "note").write_text("kept")
    make(worktree, "job-1")
    assert (Path(worktree.path) / "note").read_text() == "kept"


def test_worktree_of_another_job_is_refused(repo: Repo) -> None:
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    with pytest.raises(ConflictError, match="belongs to job-1"):
        make(worktree, "job-2")
    assert is_whole(repo, worktree)


def test_path_of_others_is_refused(repo: Repo) -> None:
    worktree = repo.worktree("job-1")
    Path(worktree.path).mkdir(parents=True)
    (Path(worktree.path) / "precious").write_text("precious")
    with pytest.raises(ConflictError, match="already there and not ours"):
        make(worktree, "job-1")
    assert (Path(worktree.path) / "precious").read_text() == "precious"
    assert repo.notes() == [] and repo.branches() == ["main"]


def test_branch_of_others_is_refused(repo: Repo) -> None:
    worktree = repo.worktree("job-1")
    repo.git("branch", worktree.branch)
    for _ in range(2):
        with pytest.raises(ConflictError, match="already exists"):
            make(worktree, "job-1")
    assert repo.notes() == [] and not Path(worktree.path).exists()
    assert worktree.branch in repo.branches()


@pytest.mark.parametrize("owner", ["", "a\nb", "\0"])
def test_owner_must_be_a_name(repo: Repo, owner: str) -> None:
    with pytest.raises(InvalidInputError):
        make(repo.worktree("job-1"), owner)


def test_unknown_base_leaves_nothing(repo: Repo) -> None:
    with pytest.raises(GitError) as caught:
        make(repo.worktree("job-1", "1" * 40), "job-1")
    assert not caught.value.of_host
    assert repo.notes() == [] and repo.branches() == ["main"] and repo.entries() == []


def blocking(repo: Repo, tmp_path: Path) -> Path:
    """Makes a checkout stop in the middle, until somebody writes to the file this names."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    repo.write(".gitattributes", "readme.txt filter=gate\n")
    repo.commit("attributes")
    told = tmp_path / "reached"
    repo.git("config", "filter.gate.smudge", f"touch {told}; cat {gate} >/dev/null; cat")
    return told


def nobody_reads(fifo: Path) -> bool:
    try:
        os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno == errno.ENXIO
    return False


@pytest.fixture
def stopped_halfway(repo: Repo, tmp_path: Path) -> Worktree:
    """What a process leaves that was killed in the middle of a checkout."""
    told = blocking(repo, tmp_path)
    worktree = repo.worktree("job-1")
    argv = command("worktree-make", request(worktree, "job-1"))
    process = subprocess.Popen(argv, start_new_session=True)
    wait_for(told.exists)
    process.kill()
    process.wait()
    try:
        with pytest.raises(GitError, match="others kept the lock"):  # its git goes on without it
            make(worktree, "job-1", wait_seconds=0, timeout=5)
    finally:
        repo.git("config", "--unset", "filter.gate.smudge")
        (tmp_path / "gate").write_text("")
    return worktree


def test_half_made_worktree_is_made_anew(repo: Repo, stopped_halfway: Worktree) -> None:  # fault I6
    assert worktree_is_left(repo, stopped_halfway)
    make(stopped_halfway, "job-1")
    assert is_whole(repo, stopped_halfway)


def test_half_made_worktree_is_not_given_to_another(
    repo: Repo, stopped_halfway: Worktree
) -> None:  # fault I6
    with pytest.raises(ConflictError, match="belongs to job-1"):
        make(stopped_halfway, "job-2")


def test_half_made_worktree_is_cleaned(repo: Repo, stopped_halfway: Worktree) -> None:  # fault I6
    cleaned = clean(stopped_halfway, "job-1", f"{repo}/../p")
    assert (cleaned.status, cleaned.saved, cleaned.kept) == ("done", None, None)
    assert repo.entries() == [] and repo.notes() == [] and repo.branches() == ["main"]


def worktree_is_left(repo: Repo, worktree: Worktree) -> bool:
    return bool(repo.notes()) and worktree.branch in repo.branches()


@pytest.mark.parametrize("left", ["record", "branch", "entry", "folder"])
def test_every_half_is_recognised(repo: Repo, left: str) -> None:  # fault I6
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    (entry,) = (repo.path / ".git/worktrees").iterdir()
    (entry / "headway").unlink()
    repo.git("worktree", "unlock", worktree.path)
    if left == "folder":
        (Path(worktree.path) / "readme.txt").unlink()
    else:
        shutil.rmtree(worktree.path)
    if left in ("record", "branch"):
        shutil.rmtree(entry)
    if left == "record":
        repo.git("branch", "-D", worktree.branch)
    make(worktree, "job-1")
    assert is_whole(repo, worktree)


def test_half_made_branch_with_commits_is_not_lost(repo: Repo) -> None:
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    Repo(Path(worktree.path)).commit("own work")
    tip = repo.head(worktree.branch)
    (next((repo.path / ".git/worktrees").iterdir()) / "headway").unlink()
    with pytest.raises(ConflictError, match="has commits of its own"):
        make(worktree, "job-1")
    assert repo.head(worktree.branch) == tip


def test_worktree_deleted_by_hand_is_made_anew(repo: Repo) -> None:  # fault I3
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    shutil.rmtree(worktree.path)
    make(worktree, "job-1")
    assert is_whole(repo, worktree)


def test_index_lock_of_others_is_left_and_does_not_matter(repo: Repo) -> None:  # fault I1
    repo.write(".git/index.lock", "of somebody else")
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    assert is_whole(repo, worktree)
    (entry,) = (repo.path / ".git/worktrees").iterdir()
    (entry / "index.lock").write_text("of a git in the worktree")
    (Path(worktree.path) / "readme.txt").write_text("changed")
    patch = repo.path.parent / "p"
    assert clean(worktree, "job-1", str(patch)).saved == str(patch)
    assert (repo.path / ".git/index.lock").read_text() == "of somebody else"


def test_merge_in_progress_does_not_matter(repo: Repo) -> None:  # fault I1
    repo.git("switch", "-q", "-c", "theirs")
    repo.commit("theirs")
    repo.git("switch", "-q", "main")
    repo.git("merge", "-q", "--no-ff", "--no-commit", "theirs")
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    assert is_whole(repo, worktree)
    assert (repo.path / ".git/MERGE_HEAD").exists()


def test_lock_that_others_keep_is_named(repo: Repo) -> None:
    worktree = repo.worktree("job-1")
    with holding(str(repo)):
        with pytest.raises(GitError, match="others kept the lock") as caught:
            make(worktree, "job-1", wait_seconds=0)
        assert clean(worktree, "job-1", "/p", wait_seconds=0).status == "degraded"
    assert not caught.value.of_host
    make(worktree, "job-1")


# 16 processes, each several worktrees of its own; every second lap they are also cleaned.
MANY = """
import sys
from headway.integrations.git.worktrees import Worktree, clean, make
repo, folder, base, me = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for lap in range(4):
    name = f"job-{me}-{lap}"
    worktree = Worktree(repo, f"{folder}/{name}", f"headway/{name}", base)
    make(worktree, name)
    if lap % 2:
        cleaned = clean(worktree, name, f"{folder}/{name}.patch", inside=folder)
        assert cleaned == ("done", None, None, None), cleaned
"""


def test_sixteen_at_once_all_get_theirs(repo: Repo, tmp_path: Path) -> None:  # fault I2
    folder = tmp_path / "many"
    arguments = [str(repo), str(folder), repo.head()]
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", MANY, *arguments, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number in range(16)
    ]
    for each in crowd:
        assert each.stdout is not None and each.stdout.readline() == b"ready\n"
    for each in crowd:
        assert each.stdin is not None
        each.stdin.write(b"\n")
        each.stdin.flush()
    for each in crowd:
        _, err = each.communicate(timeout=300)
        assert (each.returncode, err) == (0, b"")
    left = {f"job-{number}-{lap}" for number in range(16) for lap in (0, 2)}
    assert set(os.listdir(folder)) == left
    assert set(repo.branches()) == {"main"} | {f"headway/{name}" for name in left}
    assert len(repo.entries()) == len(repo.notes()) == 32
    for name in left:
        assert is_whole(
            repo, Worktree(str(repo), f"{folder}/{name}", f"headway/{name}", repo.head())
        )
    assert repo.git("fsck", "--no-dangling") == ""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.root
def test_full_disk_is_the_hosts_trouble_and_leaves_room(  # fault I6
    repo: Repo, small_disk: Path
) -> None:
    for number in range(30):
        repo.write(f"file-{number}", os.urandom(100_000))
    repo.commit("large")
    worktree = repo.worktree("job-1")._replace(path=str(small_disk / "worktrees" / "job-1"))
    with pytest.raises(GitError, match="No space left on device") as caught:
        make(worktree, "job-1")
    assert caught.value.errno == errno.ENOSPC and caught.value.of_host
    free = os.statvfs(small_disk)
    assert free.f_bavail > free.f_blocks * 0.9
    assert repo.entries() == [] and repo.branches() == ["main"] and repo.notes() == []
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    make(worktree, "job-1")
    assert is_whole(repo, worktree)


@pytest.mark.root
def test_full_disk_while_saving_keeps_the_worktree(repo: Repo, small_disk: Path) -> None:
    worktree = repo.worktree("job-1")
    make(worktree, "job-1")
    (Path(worktree.path) / "large").write_bytes(os.urandom(4_000_000))
    cleaned = clean(worktree, "job-1", str(small_disk / "p"))
    assert cleaned.status == "degraded" and "No space left" in (cleaned.error or "")
    assert (Path(worktree.path) / "large").exists() and os.listdir(small_disk) == []


@pytest.mark.root
def test_small_process_tells_host_from_job(repo: Repo, small_disk: Path) -> None:
    repo.write("large", os.urandom(4_000_000))
    repo.commit("large")
    worktree = repo.worktree("job-1")._replace(path=str(small_disk / "job-1"))
    done = run_small("worktree-make", request(worktree, "job-1"))
    assert done.returncode == 75
    assert done.stderr.count("\n") == 1 and "No space left on device" in done.stderr


def run_small(verb: str, document: object) -> "subprocess.CompletedProcess[str]":
    argv = [*command(verb, {})[:-1], json.dumps(document)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/")


def test_small_process_makes_and_saves(repo: Repo, tmp_path: Path) -> None:
    worktree = repo.worktree("job-1")
    done = run_small("worktree-make", request(worktree, "job-1"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert is_whole(repo, worktree)
    (Path(worktree.path) / "new").write_text("new\n")
    target = tmp_path / "command.patch"
    document = {"root": worktree.path, "base": worktree.base, "to": str(target)}
    assert run_small("save-patch", document).returncode == 0
    assert b"+new" in target.read_bytes()
    refused = run_small("save-patch", {**document, "limit_bytes": 3})
    assert refused.returncode == 1 and "larger than 3 bytes" in refused.stderr


def test_small_process_notes_a_base_for_later(repo: Repo, tmp_path: Path) -> None:
    noted, target = tmp_path / "command.base", tmp_path / "command.patch"
    assert run_small("note-base", {"root": str(repo), "to": str(noted)}).returncode == 0
    assert noted.read_text() == f"{repo.head()}\n" and noted.stat().st_mode & 0o777 == 0o600
    repo.write("new", "new\n")
    repo.commit("later")
    document = {"root": str(repo), "base_from": str(noted), "to": str(target)}
    assert run_small("save-patch", document).returncode == 0
    assert b"+new" in target.read_bytes()
    noted.write_text("main\n")
    refused = run_small("save-patch", document)
    assert refused.returncode == 1 and "not the full name of a commit" in refused.stderr


def test_small_process_waits_for_its_turn_as_long_as_it_is_told(repo: Repo) -> None:
    document = request(repo.worktree("job-1"), "job-1")
    with holding(str(repo)):
        done = run_small("worktree-make", {**document, "wait_seconds": 0.05})
    assert done.returncode == 1 and "for 0.05 s" in done.stderr


@pytest.mark.parametrize(
    ("verb", "document"),
    [
        ("note-base", {"root": "/", "to": "/nowhere/b"}),
        ("worktree-make", {}),
        ("worktree-make", []),
        (
            "worktree-make",
            {"repo": "/nowhere", "path": "/x", "branch": "-b", "base": "x", "owner": "o"},
        ),
        ("save-patch", {"root": "/", "base": "0" * 40, "to": "/nowhere/p"}),
        ("save-patch", {"root": 1, "base": 2, "to": 3}),
        ("fetch", {}),
    ],
)
def test_small_process_refuses_in_one_line(verb: str, document: object) -> None:
    done = run_small(verb, document)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


def test_small_process_that_is_ended_ends_its_git(repo: Repo, tmp_path: Path) -> None:
    told = blocking(repo, tmp_path)
    argv = command("worktree-make", request(repo.worktree("job-1"), "job-1"))
    process = subprocess.Popen(argv, stderr=subprocess.PIPE)
    wait_for(told.exists)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    wait_for(lambda: nobody_reads(tmp_path / "gate"), what="its git, and what that started, to end")
