"""A job's own checkout on its own branch: made whole or not at all, and only ever once.

Under the repository's lock: first the record of who owns it, then `git worktree add` without a
checkout, the lock that keeps others from pruning it, the checkout, and last the marker. The
checkout is a step of its own, since git clears up after itself when it fails inside `add`,
and then a full disk is no longer full when the reason is examined.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from headway.base.crashpoints import reach
from headway.base.errors import ConflictError, HeadwayError, InvalidInputError
from headway.integrations.git import layout
from headway.integrations.git.branches import checkouts_of, tip_of
from headway.integrations.git.cleanup import Cleaned, clean, discard, guard_commits
from headway.integrations.git.lock import WAIT_SECONDS, LockedRepository, holding
from headway.integrations.git.ownership import (
    Record,
    Worktree,
    drop_record,
    read_marker,
    read_record,
    write_marker,
    write_record,
)
from headway.integrations.git.program import GitError, is_oid, run, safe_branch

__all__ = ["CheckedOutError", "Cleaned", "Prepared", "Worktree", "clean", "make", "prepare"]

CHECKOUT_SECONDS = 600.0
_PROBE_BYTES = 1024 * 1024


def make(
    worktree: Worktree,
    owner: str,
    *,
    timeout: float = CHECKOUT_SECONDS,
    wait_seconds: float = WAIT_SECONDS,
) -> None:
    """Make it, or find it whole as the same owner left it.

    A GitError with `of_host` set is nothing that the job could be blamed for.
    """
    _check(worktree, owner)
    path = layout.settled(worktree.path)
    wanted = Record(owner, path, worktree.branch, worktree.base)
    with holding(worktree.repo, wait_seconds) as held, _trouble_of_host(path):
        if _make_room(held, wanted):
            _put(held, wanted, timeout)


class CheckedOutError(ConflictError):
    """The branch is checked out elsewhere; `path` is where, `owner` whose that is, if ours."""

    def __init__(self, branch: str, path: str, owner: str | None) -> None:
        of = f", which belongs to {owner}" if owner else ""
        super().__init__(f"branch {branch} is checked out at {path}{of}")
        self.path = path
        self.owner = owner


class Prepared(NamedTuple):
    """A checkout of a branch. `base` is where its own commits begin, `head` its commit now."""

    path: str
    base: str
    head: str


def prepare(
    worktree: Worktree,
    owner: str,
    *,
    timeout: float = CHECKOUT_SECONDS,
    wait_seconds: float = WAIT_SECONDS,
) -> Prepared:
    """A worktree of a branch that is used as it stands, or else made at the base. Found whole, as
    the same owner left it, it is used again. Raises CheckedOutError where others have the branch.
    """
    _check(worktree, owner)
    path = layout.settled(worktree.path)
    with holding(worktree.repo, wait_seconds) as held:
        tip = tip_of(held.repo, worktree.branch)
        base = worktree.base if tip is None else _fork_point(held.repo, worktree.base, tip)
        wanted = Record(owner, path, worktree.branch, base, keeps_branch=tip is not None)
        known = read_record(held.common, path)
        if known is not None and known.owner == owner and known.branch == worktree.branch:
            wanted = wanted._replace(base=known.base, keeps_branch=known.keeps_branch)
        with _trouble_of_host(path):
            if _make_room(held, wanted):
                _refuse_checked_out(held, worktree.branch)
                _put(held, wanted, timeout)
        head = tip_of(held.repo, worktree.branch)
        return Prepared(path, wanted.base, head or wanted.base)


@contextmanager
def _trouble_of_host(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise GitError(
            f"the worktree {path} cannot be made: {error.strerror}", errno=error.errno
        ) from None


def _put(held: LockedRepository, wanted: Record, timeout: float) -> None:
    """Its record comes first, so that whatever a crash leaves is found again."""
    write_record(held.common, wanted)
    os.makedirs(os.path.dirname(wanted.path), mode=0o700, exist_ok=True)
    _add(held, wanted, timeout)


def _fork_point(repo: str, base: str, tip: str) -> str:
    """Where the branch left what it is based on; its own commit, if it has nothing to do with
    that."""
    found = run(repo, "merge-base", base, tip)
    return found.lines[0] if found.code == 0 and found.lines else tip


def _refuse_checked_out(held: LockedRepository, branch: str) -> None:
    for at in checkouts_of(held.repo, branch):
        record = read_record(held.common, at)
        raise CheckedOutError(branch, at, None if record is None else record.owner)


def _check(worktree: Worktree, owner: str) -> None:
    if not safe_branch(worktree.branch):
        raise InvalidInputError(
            f"{worktree.branch!r} cannot be the name of a branch; choose another"
        )
    if not is_oid(worktree.base):
        raise InvalidInputError(f"{worktree.base!r} is not the full name of a commit")
    if not os.path.isabs(worktree.path) or not worktree.path.isprintable():
        raise InvalidInputError(f"{worktree.path!r} cannot hold a worktree; choose another")
    if not owner or not owner.isprintable():
        raise InvalidInputError(f"{owner!r} cannot own a worktree; name the job")


def _make_room(held: LockedRepository, wanted: Record) -> bool:
    """Clear away what an earlier try left half-made. False: it is there, and whole."""
    common, path = held.common, wanted.path
    entry = layout.entry_of(common, path)
    record = read_record(common, path)
    if record is None:
        _must_be_free(held.repo, wanted, entry)
        return True
    if record.owner != wanted.owner:
        raise ConflictError(f"{path} belongs to {record.owner}; clean that one first")
    marker = None if entry is None else read_marker(entry)
    if marker is not None and entry is not None and not record.removing:
        if _points_to(path, entry) and (marker.branch, marker.base) == (wanted.branch, wanted.base):
            return False
        if os.path.lexists(path):
            raise ConflictError(f"{path} is not as {wanted.owner} left it; clean it first")
        guard_commits(path, entry)
    kept = discard(held, record)
    if kept is not None:
        raise ConflictError(
            f"branch {kept} of {wanted.owner} has commits of its own or is in use; rename it first"
        )
    drop_record(common, path)
    _must_be_free(held.repo, wanted, None)
    return True


def _must_be_free(repo: str, wanted: Record, entry: str | None) -> None:
    if os.path.lexists(wanted.path) or entry is not None:
        raise ConflictError(f"{wanted.path} is already there and not ours; move it away first")
    if not wanted.keeps_branch and tip_of(repo, wanted.branch) is not None:
        raise ConflictError(
            f"branch {wanted.branch} already exists in {repo}; choose another name or delete it"
        )


def _points_to(path: str, entry: str) -> bool:
    try:
        return os.path.samefile(layout.git_dir_of(path), entry)
    except (GitError, OSError):
        return False


def _add(held: LockedRepository, wanted: Record, timeout: float) -> None:
    common, path = held.common, wanted.path
    try:
        place = ("--end-of-options", path)
        new_branch = () if wanted.keeps_branch else ("--no-track", "-b", wanted.branch)
        start = wanted.branch if wanted.keeps_branch else wanted.base
        held.ask("worktree", "add", "--no-checkout", *new_branch, *place, start, timeout=timeout)
        entry = layout.entry_of(common, path)
        if entry is None:
            raise GitError(f"git added {path} but does not list it; see git worktree list")
        held.ask("worktree", "lock", "--reason", f"headway {wanted.owner}", *place)
        checkout = ("reset", "--hard", "--quiet", "--no-recurse-submodules")
        held.ask(*checkout, at=path, timeout=timeout)
        write_marker(entry, wanted)
        reach("worktree.added")
    except (GitError, OSError) as error:
        number = error.errno or _host_trouble(path, common)
        # What is half-made is cleared away at once, or a full disk would stay full.
        with suppress(HeadwayError, OSError):
            if discard(held, wanted) is None:
                drop_record(common, path)
        words = os.strerror(number) if number else str(error)
        raise GitError(f"the worktree {path} cannot be made: {words}", errno=number) from None


def _host_trouble(path: str, common: str) -> int | None:
    """git does not say why it could not write a file: try to write one."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    for place in (folder, common):
        file = os.path.join(place, f".headway-probe-{os.getpid()}")
        try:
            fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            return error.errno
        try:
            os.write(fd, bytes(_PROBE_BYTES))
            os.fsync(fd)
        except OSError as error:
            return error.errno
        finally:
            os.close(fd)
            with suppress(OSError):
                os.unlink(file)
    return None
