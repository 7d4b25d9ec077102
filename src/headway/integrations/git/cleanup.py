"""Takes a job's worktree back, as far as that can be done without losing anything.

First it is made sure that it is ours. Then what it holds beyond its commits is saved as a patch;
if that cannot be done, nothing is removed and the cleanup is *degraded*, to be tried again. Commits
stay on their branch. Nothing here raises because of git: the answer says what happened.
"""

import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

from headway.base.errors import HeadwayError
from headway.integrations.git import layout
from headway.integrations.git.lock import WAIT_SECONDS, LockedRepository, holding
from headway.integrations.git.ownership import (
    Record,
    Worktree,
    drop_record,
    read_marker,
    read_record,
    write_record,
)
from headway.integrations.git.patches import PATCH_SECONDS, at, save_patch
from headway.integrations.git.program import GitError, ask, failed, run


class Cleaned(NamedTuple):
    status: str  # "done", "skipped": it is not ours or not there; "degraded": still there
    error: str | None = None
    saved: str | None = None  # the patch of what was not committed
    kept: str | None = None  # the branch, if it has commits of its own


def clean(
    worktree: Worktree,
    owner: str,
    save_to: str,
    *,
    inside: str | None = None,
    wait_seconds: float = WAIT_SECONDS,
) -> Cleaned:
    """Remove the worktree of this owner; `inside` is the folder in which alone that may happen."""
    if inside is not None and not _lies_in(worktree.path, inside):
        return Cleaned("skipped", f"{worktree.path} is not inside {inside}: left as it is")
    try:
        layout.git_dir_of(worktree.repo)
    except GitError as error:
        if os.path.lexists(worktree.path):
            return Cleaned("degraded", f"{error}; {worktree.path} is still there")
        return Cleaned("skipped", str(error))
    try:
        with holding(worktree.repo, wait_seconds) as held:
            return _clean(held, worktree, owner, save_to)
    except (HeadwayError, OSError) as error:
        return Cleaned("degraded", str(error))


def discard(held: LockedRepository, record: Record) -> str | None:
    """Remove what a making left half-made; the branch, if it must be kept."""
    _remove(held, record.path, layout.entry_of(held.common, record.path), forced=True)
    return _drop_branch(held, record)


def guard_commits(path: str, entry: str) -> None:
    """Refuse while the head is detached at commits that only this worktree knows."""
    if _one_line(entry, "symbolic-ref", "--quiet", "HEAD") is not None:
        return
    oid = _one_line(entry, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if oid is None:
        return
    if _one_line(entry, "for-each-ref", "--count=1", f"--contains={oid}") is None:
        raise GitError(
            f"{path} has commits that are on no branch, the last is {oid[:12]}; keep them with"
            f" git branch NAME {oid[:12]}, then clean again"
        )


def _one_line(entry: str, *args: str) -> str | None:
    """git's one line about a worktree; None if git prints nothing."""
    answer = run(entry, *args, environ={"GIT_DIR": entry})
    if answer.code not in (0, 1):
        raise failed(entry, args, answer.code, answer.err)
    return answer.lines[0] if answer.lines else None


def _remove(held: LockedRepository, path: str, entry: str | None, *, forced: bool) -> None:
    """Remove folder and entry: as git does, then as git does by force, then by hand.

    By hand and not by `git worktree prune`, which would also forget worktrees of others that are
    only not mounted now.
    """
    if entry is not None:
        held.run("worktree", "unlock", "--end-of-options", path)
        if forced or not _removed(held, path):
            if not forced:
                _must_be_clean(path, entry)
            _removed(held, path, "--force")
    if os.path.lexists(path):
        _remove_tree(path)
    if entry is not None and os.path.lexists(entry):
        _remove_tree(entry)


def _clean(held: LockedRepository, worktree: Worktree, owner: str, save_to: str) -> Cleaned:
    common, path = held.common, layout.settled(worktree.path)
    if os.path.islink(path):
        return Cleaned("skipped", f"{path} is a symbolic link: left as it is")
    entry = layout.entry_of(common, path)
    marker = None if entry is None else read_marker(entry)
    record = read_record(common, path) or marker
    if record is None:
        if entry is None and not os.path.lexists(path):
            return Cleaned("skipped")
        return Cleaned("skipped", f"{path} was not made by Headway: left as it is")
    for says in (record, marker):
        if says is not None and says.owner != owner:
            return Cleaned("skipped", f"{path} belongs to {says.owner}: left as it is")
    if not record.removing:
        saved = None
        if marker is not None and entry is not None:  # it is whole, so a job may have worked in it
            guard_commits(path, entry)
            saved = _save(path, entry, record, save_to)
        elif entry is None and os.path.isdir(path) and os.listdir(path):
            raise GitError(
                f"{path} is no longer known to {worktree.repo}, so its changes cannot be saved;"
                " move what you need and delete it"
            )
        record = record._replace(removing=True, saved=saved)
        write_record(common, record)
    _take_away(held, record, entry, half_made=marker is None)
    kept = _drop_branch(held, record)
    drop_record(common, path)
    return Cleaned("done", None, record.saved, kept)


def _take_away(
    held: LockedRepository, record: Record, entry: str | None, *, half_made: bool
) -> None:
    gone = not os.path.isdir(record.path)
    try:
        _remove(held, record.path, entry, forced=record.saved is not None or half_made or gone)
    except _ChangedError:
        write_record(held.common, record._replace(removing=False, saved=None))
        raise


class _ChangedError(GitError):
    """Somebody still works in it."""


def _must_be_clean(path: str, entry: str) -> None:
    changes = _changes(path, entry) if os.path.isdir(path) else []
    # What is missing now has fallen to a removal that did not come to its end.
    if any(fields[0] != "1" or fields[1][1] != "D" for fields in changes):
        raise _ChangedError(f"{path} changed while it was being cleaned; see who works in it")


def _save(path: str, entry: str, record: Record, save_to: str) -> str | None:
    """Save what is not committed, if there is any; where to."""
    if not os.path.isdir(path):
        return None
    changes = _changes(path, entry)
    if not changes:
        return None
    for fields in changes:
        # A repository inside has objects of its own, which no patch of this one can hold.
        embedded = fields[0] == "?" and fields[-1].endswith("/")
        if embedded or (fields[0] in "1u" and fields[2] not in ("N...", "S...")):
            raise GitError(
                f"{path} holds a repository of its own with changes, {fields[-1]}, which no patch"
                " can save; keep what you need and remove it"
            )
    head = run(path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", environ=at(entry, path))
    base = head.lines[0] if head.code == 0 else record.base
    save_patch(path, base, save_to, git_dir=entry)
    return save_to


def _changes(path: str, entry: str) -> list[list[str]]:
    """The lines of git's status, split into fields; the last one is the path."""
    answer = ask(
        path,
        *("status", "--porcelain=v2", "-z", "--no-renames"),
        *("--untracked-files=all", "--ignore-submodules=none"),
        environ=at(entry, path),
        timeout=PATCH_SECONDS,
    )
    lines = [line for line in os.fsdecode(answer.out).split("\0") if line]
    fields = {"1": 8, "u": 10, "?": 1}  # blanks before the path, which may hold some itself
    return [line.split(" ", fields.get(line[0], 1)) for line in lines]


def _removed(held: LockedRepository, path: str, *options: str) -> bool:
    args = ("worktree", "remove", *options, "--end-of-options", path)
    return held.run(*args, timeout=PATCH_SECONDS).code == 0


def _drop_branch(held: LockedRepository, record: Record) -> str | None:
    """Delete the branch if it is at or before the base; its name if it is kept. One that was there
    before the worktree is nobody's to delete, and need not be named."""
    if record.keeps_branch:
        return None
    ref = f"refs/heads/{record.branch}"
    found = ask(
        held.repo, "for-each-ref", "--format=%(refname) %(objectname) %(worktreepath)", "--", ref
    )
    for line in found.lines:
        name, oid, used_in = line.split(" ", 2)
        if name != ref:
            continue
        own = run(held.repo, "rev-list", "--count", f"{record.base}..{oid}", "--")
        if used_in or own.code != 0 or own.lines != ["0"]:
            return record.branch
        # Only if it is still there: a commit that came in between is not lost.
        deleted = held.run("update-ref", "-d", ref, oid)
        return None if deleted.code == 0 else record.branch
    return None


def _remove_tree(path: str) -> None:
    """Also with folders inside that nobody may write to, as some package managers leave them."""

    def open_up(function: Callable[..., Any], name: str, _: object) -> None:
        for folder in (os.path.dirname(name), name):
            if folder.startswith(path) and os.path.isdir(folder) and not os.path.islink(folder):
                os.chmod(folder, 0o700)
        if function is os.unlink:
            os.unlink(name)
        elif os.path.isdir(name) and not os.path.islink(name):
            shutil.rmtree(name)

    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
    else:
        shutil.rmtree(path, onerror=open_up)


def _lies_in(path: str, folder: str) -> bool:
    return layout.settled(path).startswith(f"{os.path.realpath(folder)}/")
