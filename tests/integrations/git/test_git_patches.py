"""A saved patch holds everything that is in the checkout, and changes nothing there."""

import os
from pathlib import Path

import pytest
from repos import BINARY, Repo

from headway.integrations.git.patches import save_patch
from headway.integrations.git.program import GitError


def change_everything(repo: Repo, at: Path) -> None:
    """Committed, staged, unstaged and untracked; text, binary, modes, links, strange names."""
    checkout = Repo(at)
    checkout.write("committed.txt", "committed\n")
    checkout.commit("a commit of the job's own")
    checkout.write("staged.txt", "staged\n")
    repo.git("add", "staged.txt", at=at)
    checkout.write("readme.txt", "first\nchanged\nthird\n")
    checkout.write("blob.bin", BINARY[::-1])
    checkout.write("new.bin", bytes(1000) + os.urandom(1000))
    checkout.write("empty", "")
    checkout.write("with blank/and\nline", "x")
    checkout.write("no newline", "at the end")
    checkout.write("crlf", "a\r\nb\r\n")
    os.close(os.open(os.fsencode(at) + b"/\xff", os.O_CREAT | os.O_WRONLY))
    (at / "link").symlink_to("/etc/passwd")
    (at / "tools/run.sh").chmod(0o644)


def applied(repo: Repo, patch: Path, base: str, tmp_path: Path) -> str:
    """The tree that the patch gives on its base."""
    fresh = tmp_path / "fresh"
    repo.git("worktree", "add", "-q", "--detach", str(fresh), base)
    if patch.stat().st_size:
        repo.git("apply", "--index", str(patch), at=fresh)
    return repo.git("write-tree", at=fresh)


def test_patch_gives_the_same_tree(repo: Repo, tmp_path: Path) -> None:
    base = repo.head()
    change_everything(repo, repo.path)
    patch = tmp_path / "command.patch"
    size = save_patch(str(repo.path / "tools"), base, str(patch))
    assert size == patch.stat().st_size > 0
    assert patch.stat().st_mode & 0o777 == 0o600
    assert applied(repo, patch, base, tmp_path) == repo.tree_of(repo.path)


def test_configuration_does_not_change_a_patch(repo: Repo, tmp_path: Path) -> None:
    for key, value in {
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.external": f"touch {tmp_path}/hacked",
        "color.ui": "always",
        "core.safecrlf": "true",
        "core.autocrlf": "input",
        "diff.renames": "copies",
        "core.splitIndex": "true",
    }.items():
        repo.git("config", key, value)
    repo.write(".gitattributes", "*.txt diff=shown\n*.bin -diff\n")
    repo.git("config", "diff.shown.textconv", f"touch {tmp_path}/hacked; cat")
    base = repo.commit("attributes")
    change_everything(repo, repo.path)
    save_patch(str(repo), base, str(tmp_path / "p"))
    assert applied(repo, tmp_path / "p", base, tmp_path) == repo.tree_of(repo.path)
    assert not (tmp_path / "hacked").exists()


def test_saving_touches_neither_index_nor_objects_nor_a_lock(  # fault I1
    repo: Repo, tmp_path: Path
) -> None:
    base = repo.head()
    change_everything(repo, repo.path)
    repo.write(".git/index.lock", "of somebody else")
    before = {file: file.read_bytes() for file in (repo.path / ".git").rglob("*") if file.is_file()}
    save_patch(str(repo), base, str(tmp_path / "p"))
    after = {file: file.read_bytes() for file in (repo.path / ".git").rglob("*") if file.is_file()}
    assert before == after
    assert os.listdir(tmp_path).count("p") == 1 and not (tmp_path / "p.making").exists()


def test_conflict_in_the_middle_of_a_merge_is_saved(repo: Repo, tmp_path: Path) -> None:
    base = repo.head()
    repo.git("switch", "-q", "-c", "theirs")
    repo.write("readme.txt", "theirs\n")
    repo.commit("theirs")
    repo.git("switch", "-q", "main")
    repo.write("readme.txt", "ours\n")
    repo.commit("ours")
    repo.git("merge", "theirs", ok=False)
    save_patch(str(repo), base, str(tmp_path / "p"))
    assert repo.git("ls-files", "--unmerged")
    assert b"+<<<<<<<" in (tmp_path / "p").read_bytes()


def test_nothing_changed_gives_an_empty_patch(repo: Repo, tmp_path: Path) -> None:
    assert save_patch(str(repo), repo.head(), str(tmp_path / "p")) == 0
    assert (tmp_path / "p").read_bytes() == b""


def test_lost_index_is_made_from_the_base(repo: Repo, tmp_path: Path) -> None:
    base = repo.head()
    repo.write("readme.txt", "changed")
    (repo.path / ".git/index").unlink()
    save_patch(str(repo), base, str(tmp_path / "p"))
    assert applied(repo, tmp_path / "p", base, tmp_path) == repo.tree_of(repo.path)


def test_change_in_the_very_moment_of_the_index_is_seen(repo: Repo, tmp_path: Path) -> None:
    """git tells by the index's own time that it must look into the file; the copy must keep it."""
    repo.git("config", "core.trustctime", "false")
    moment = (10**18, 10**18)
    file = repo.path / "readme.txt"
    os.utime(file, ns=moment)
    repo.git("update-index", "--refresh")
    os.utime(repo.path / ".git/index", ns=moment)
    file.write_text("f1rst\nsecond\nthird\n")
    os.utime(file, ns=moment)
    save_patch(str(repo), repo.head(), str(tmp_path / "p"))
    assert b"+f1rst" in (tmp_path / "p").read_bytes()


def test_folder_with_a_colon_is_no_list_of_folders(tmp_path: Path) -> None:
    repo = Repo.make(tmp_path / 'a:b"c')
    repo.write("readme.txt", "changed")
    base = repo.head()
    save_patch(str(repo), base, str(tmp_path / "p"))
    assert applied(repo, tmp_path / "p", base, tmp_path) == repo.tree_of(repo.path)


@pytest.mark.parametrize("size", [50_000, 5_000_000])
def test_too_large_patch_leaves_no_file(repo: Repo, tmp_path: Path, size: int) -> None:
    repo.write("large", os.urandom(size))
    with pytest.raises(GitError, match="larger than 20000 bytes"):
        save_patch(str(repo), repo.head(), str(tmp_path / "p"), 20_000)
    assert not [name for name in os.listdir(tmp_path) if name.startswith("p.") or name == "p"]


def test_earlier_patch_stays_when_the_new_one_cannot_be_saved(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "p").write_text("earlier")
    repo.write("large", os.urandom(50_000))
    with pytest.raises(GitError):
        save_patch(str(repo), repo.head(), str(tmp_path / "p"), 20_000)
    assert (tmp_path / "p").read_text() == "earlier"


def test_link_at_the_target_is_replaced_and_not_followed(repo: Repo, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "p").symlink_to(tmp_path / "precious")
    (tmp_path / "p.making").symlink_to(tmp_path)
    repo.write("readme.txt", "changed")
    save_patch(str(repo), repo.head(), str(tmp_path / "p"))
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "p").is_symlink()


@pytest.mark.parametrize("base", ["0" * 40, "HEAD", "-x", ""])
def test_unknown_base_is_an_error(repo: Repo, tmp_path: Path, base: str) -> None:
    with pytest.raises(GitError):
        save_patch(str(repo), base, str(tmp_path / "p"))
    assert not (tmp_path / "p").exists()


def test_missing_target_folder_is_an_error(repo: Repo, tmp_path: Path) -> None:
    with pytest.raises(GitError, match="cannot be saved at"):
        save_patch(str(repo), repo.head(), str(tmp_path / "gone" / "p"))
    with pytest.raises(GitError, match="not in a git repository"):
        save_patch(str(tmp_path), repo.head(), str(tmp_path / "p"))
