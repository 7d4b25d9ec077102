"""Where a repository keeps its things, read from the file system without starting git.

Only what git documents as its layout: the `.git` folder or file, `commondir`, `worktrees/*/gitdir`,
branches, and the files that say what git is in the middle of.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

from headway.integrations.git.program import GitError

_SMALL = 65536
# A rebase may leave CHERRY_PICK_HEAD as well, so it is checked first.
_STATES = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
)


def repository_of(path: str) -> str | None:
    """The top of the checkout that this path lies in, or None."""
    folder = os.path.realpath(path)
    while True:
        if _git_dir(folder) is not None:
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def git_dir_of(repo: str) -> str:
    """The git folder of this very checkout; a linked worktree has its own."""
    found = _git_dir(repo)
    if found is None:
        raise GitError(f"{repo} is not a git repository; see whether it was moved or deleted")
    return found


def common_dir_of(repo: str) -> str:
    """The folder that all worktrees of the repository share: its objects and branches."""
    git_dir = git_dir_of(repo)
    shared = read_small(os.path.join(git_dir, "commondir"))
    return os.path.realpath(os.path.join(git_dir, shared.strip())) if shared else git_dir


def main_of(repo: str) -> str:
    """The checkout that the repository lives in, also if this one is a worktree of it, which may be
    gone tomorrow. Of a bare repository there is none: then the one that was asked about."""
    folder, name = os.path.split(common_dir_of(repo))
    return folder if name == ".git" and _git_dir(folder) is not None else repo


def has_branch(repo: str, branch: str) -> bool:
    """Whether there is such a branch. A branch has a file of its own, or a line in `packed-refs`;
    where git keeps branches in another form only git can tell, and this says yes."""
    ref = f"refs/heads/{branch}"
    try:
        common = common_dir_of(repo)
    except GitError:
        return False
    if os.path.isdir(os.path.join(common, "reftable")) or os.path.isfile(f"{common}/{ref}"):
        return True
    try:
        with open(os.path.join(common, "packed-refs"), "rb") as file:
            return any(line.rstrip(b"\n").endswith(b" " + os.fsencode(ref)) for line in file)
    except FileNotFoundError:
        return False


def settled(path: str) -> str:
    """One spelling for one place; a link at the place itself is not followed."""
    folder, name = os.path.split(os.path.normpath(path))
    return os.path.join(os.path.realpath(folder), name)


def in_progress(git_dir: str) -> str | None:
    """The operation that git is in the middle of here, by its own word for it, or None."""
    for name, state in _STATES:
        if os.path.exists(os.path.join(git_dir, name)):
            return state
    todo = read_small(os.path.join(git_dir, "sequencer", "todo"))
    if todo is not None:  # several at once, stopped between two of them
        return "revert" if todo.lstrip().startswith("revert") else "cherry-pick"
    return "bisect" if os.path.exists(os.path.join(git_dir, "BISECT_LOG")) else None


def entries(common: str) -> Iterator[tuple[str, str]]:
    """The linked worktrees: the folder that the repository keeps for each, and where it is."""
    folder = os.path.join(common, "worktrees")
    names: list[str] = []
    with suppress(OSError):
        names = sorted(os.listdir(folder))
    for name in names:
        entry = os.path.join(folder, name)
        points_to = read_small(os.path.join(entry, "gitdir"))
        if points_to:
            yield entry, os.path.dirname(os.path.normpath(os.path.join(entry, points_to.strip())))


def entry_of(common: str, path: str) -> str | None:
    """The repository's folder for the worktree at this path, even when the path itself is gone."""
    wanted = settled(path)
    return next((entry for entry, at in entries(common) if settled(at) == wanted), None)


def read_small(path: str) -> str | None:
    """The text of a small file; None if there is none or it is no readable file."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(_SMALL))
    except OSError:
        return None


def _git_dir(folder: str) -> str | None:
    path = os.path.join(folder, ".git")
    if os.path.isdir(path):
        # As git does: a folder without these is not a repository, and the search goes on above it.
        whole = all(
            os.path.exists(os.path.join(path, each)) for each in ("HEAD", "objects", "refs")
        )
        return os.path.realpath(path) if whole else None
    text = read_small(path)
    if text is None or not text.startswith("gitdir:"):
        return None
    return os.path.realpath(os.path.join(folder, text.removeprefix("gitdir:").strip()))
