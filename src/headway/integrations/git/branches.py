"""Branches: where they are, who has them checked out, and how one moves.

A branch moves only from the commit that the mover has seen (`update-ref REF NEW OLD`). One that is
checked out moves together with its checkout: first index and files, then the branch. Before that
an *intent* says what is to become of which checkout, so that what a crash leaves in between is
known to be ours, and is completed. What someone has changed in the checkout is never overwritten.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

from headway.base.errors import ConflictError
from headway.integrations.git import layout
from headway.integrations.git.lock import LockedRepository, folder_in
from headway.integrations.git.ownership import read_document, write_document
from headway.integrations.git.program import GitError, ask, failed, is_oid, run, safe_branch

WRITE_SECONDS = 600.0
_REGULAR, _EXECUTABLE, _LINK = "100644", "100755", "120000"


class DirtyCheckoutError(ConflictError):
    """Someone has changed what would have to be overwritten."""


class LockedIndexError(ConflictError):
    """Another git is at work in a checkout, or was killed there."""


class Intent(NamedTuple):
    """A checkout that is being turned from one commit, or tree, to another; `branch` follows."""

    checkout: str
    branch: str | None
    old: str
    new: str


def tip_of(repo: str, branch: str) -> str | None:
    """The commit that a branch is at; None: there is no such branch."""
    if not safe_branch(branch):
        return None
    answer = run(
        repo,
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        f"refs/heads/{branch}^{{commit}}",
    )
    found = answer.lines[-1] if answer.code == 0 and answer.lines else ""
    return found if is_oid(found) else None


def branch_of(checkout: str) -> str | None:
    """The branch that is checked out there; None: the head is detached."""
    answer = run(checkout, "symbolic-ref", "--quiet", "HEAD")
    return answer.lines[0].removeprefix("refs/heads/") if answer.code == 0 else None


def checkouts_of(repo: str, branch: str) -> list[str]:
    """The folders in which this branch is checked out."""
    out = ask(repo, "worktree", "list", "--porcelain", "-z").out
    found = []
    for block in os.fsdecode(out).split("\0\0"):
        lines = dict(line.partition(" ")[::2] for line in block.split("\0") if line)
        if lines.get("branch") == f"refs/heads/{branch}" and "bare" not in lines:
            found.append(lines["worktree"])
    return found


def is_ancestor(repo: str, older: str, newer: str) -> bool:
    args = ("merge-base", "--is-ancestor", older, newer)
    answer = run(repo, *args, timeout=WRITE_SECONDS)
    if answer.code not in (0, 1):
        raise failed(repo, args, answer.code, answer.err)
    return answer.code == 0


def add_branch(repo: str, branch: str, at: str) -> bool:
    """Make a branch; False if it is there already, wherever it is."""
    if not safe_branch(branch):
        raise GitError(f"{branch!r} cannot be the name of a branch; choose another")
    args = ("update-ref", f"refs/heads/{branch}", at, "0" * len(at))
    answer = run(repo, *args, writes=True)
    if answer.code == 0:
        return True
    if tip_of(repo, branch) is not None:
        return False
    raise failed(repo, args, answer.code, answer.err)


def move_branch(
    held: LockedRepository,
    branch: str,
    old: str,
    new: str,
    *,
    key: str,
    turned: Callable[[], None] = lambda: None,
) -> bool:
    """Move the branch, and its checkouts with it; False if it is not at `old` any more, and then
    nothing has changed. `turned` is called between the two. Raises DirtyCheckoutError."""
    if tip_of(held.repo, branch) != old:
        return False
    checkouts = [each for each in checkouts_of(held.repo, branch) if os.path.isdir(each)]
    for number, each in enumerate(checkouts):
        _write_intent(held, f"{key}.{number}", Intent(each, branch, old, new))
        try:
            turn(held, each, old, new)
        except ConflictError:
            for turned_before in checkouts[:number]:
                turn(held, turned_before, new, old)
            _drop_intents(held, key)
            raise
    turned()
    args = ("update-ref", f"refs/heads/{branch}", new, old)
    answer = held.run(*args)
    if answer.code != 0:
        now = tip_of(held.repo, branch) or old
        for each in checkouts:
            turn(held, each, new, now)
        _drop_intents(held, key)
        if now != old:
            return False
        raise failed(held.repo, args, answer.code, answer.err)
    _drop_intents(held, key)
    return True


def complete_move(held: LockedRepository, key: str) -> str | None:
    """Complete the move that an earlier try with this key began; the commit, or None: none was
    begun, or the branch is elsewhere by now, and its checkout with it."""
    moved = None
    for intent in _intents(held, key):
        branch = intent.branch
        if branch is None or not _is_there(held, intent):
            continue
        repair(held, intent)
        now = tip_of(held.repo, branch)
        turn(held, intent.checkout, intent.old, intent.new)
        if now == intent.old:
            held.ask("update-ref", f"refs/heads/{branch}", intent.new, intent.old)
            now = intent.new
        if now == intent.new:
            moved = intent.new
        elif now is not None:
            turn(held, intent.checkout, intent.new, now)
    _drop_intents(held, key)
    return moved


def turn_tree(held: LockedRepository, checkout: str, old: str, new: str, *, key: str) -> None:
    """Turn a checkout to another tree, and leave its branch where it is; done again after a crash
    it ends the same."""
    for intent in _intents(held, key):
        if _is_there(held, intent):
            repair(held, intent)
    _write_intent(held, f"{key}.0", Intent(checkout, None, old, new))
    try:
        turn(held, checkout, old, new)
    finally:
        _drop_intents(held, key)


def turn(held: LockedRepository, checkout: str, old: str, new: str) -> None:
    """Turn index and files from one tree to another. Files and entries that are as in `new` already
    are left alone, and so is all that does not differ between the two."""
    refuse_index_lock(checkout)
    # A file that was only touched is no change; git knows that after a refresh alone.
    held.run("update-index", "-q", "--refresh", at=checkout, timeout=WRITE_SECONDS)
    args = ("read-tree", "-m", "-u", old, new)
    answer = held.run(*args, at=checkout, timeout=WRITE_SECONDS)
    if answer.code == 0:
        return
    refuse_index_lock(checkout)
    error = failed(checkout, args, answer.code, answer.err)
    if error.of_host:
        raise error
    lines = [line.strip() for line in answer.err.splitlines() if line.strip()]
    why = (lines[0] if lines else "git refused").removeprefix("error: ")
    raise DirtyCheckoutError(f"a dirty checkout, {checkout}: {why}")


def refuse_index_lock(checkout: str) -> None:
    if os.path.lexists(os.path.join(layout.git_dir_of(checkout), "index.lock")):
        raise LockedIndexError(
            f"{checkout}: index.lock is there; if no git is at work, remove it and retry"
        )


def repair(held: LockedRepository, intent: Intent) -> None:
    """A git that was killed while it turned the checkout has written files and no index. Each file
    that is as the new tree has it is entered into the index, so that it is no change any more."""
    refuse_index_lock(intent.checkout)
    wanted = {
        path: (mode, oid)
        for path, mode, oid in _differences(held.repo, intent.old, intent.new)
        if _mode_of(os.path.join(intent.checkout, path)) == mode
    }
    lines = [
        f"{mode} {oid}\t{path}"
        for path, oid in _contents(intent.checkout, {p: m for p, (m, _) in wanted.items()})
        for mode, there in [wanted[path]]
        if there == oid
    ]
    if lines:
        given = b"".join(os.fsencode(line) + b"\0" for line in lines)
        args = ("update-index", "--add", "--replace", "-z", "--index-info")
        held.ask(*args, at=intent.checkout, timeout=WRITE_SECONDS, input=given)


def _differences(repo: str, old: str, new: str) -> Iterator[tuple[str, str, str]]:
    """Path, mode and content of what the new tree has, and the old one not so."""
    args = ("diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", old, new)
    fields = ask(repo, *args, timeout=WRITE_SECONDS).out.split(b"\0")
    for about, path in zip(fields[::2], fields[1::2], strict=False):
        _, mode, _, oid, status = about.decode().split(" ")
        if status != "D" and mode in (_REGULAR, _EXECUTABLE, _LINK):
            yield os.fsdecode(path), mode, oid


def _mode_of(file: str) -> str | None:
    try:
        found = os.lstat(file).st_mode
    except OSError:
        return None
    if stat.S_ISLNK(found):
        return _LINK
    if not stat.S_ISREG(found):
        return None
    return _EXECUTABLE if found & stat.S_IXUSR else _REGULAR


def _contents(checkout: str, modes: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The names of the contents of these files, as git would store them."""
    plain = [path for path, mode in modes.items() if mode != _LINK and "\n" not in path]
    if plain:
        given = b"".join(os.fsencode(path) + b"\n" for path in plain)
        args = ("hash-object", "--stdin-paths")
        lines = ask(checkout, *args, input=given, timeout=WRITE_SECONDS).lines
        yield from zip(plain, lines, strict=True)
    for path, mode in modes.items():
        if mode == _LINK:
            target = os.fsencode(os.readlink(os.path.join(checkout, path)))
            yield path, ask(checkout, "hash-object", "--stdin", input=target).lines[0]


# -- intents -----------------------------------------------------------------------------------


def _is_there(held: LockedRepository, intent: Intent) -> bool:
    """Whether the checkout is still that of the branch."""
    if not os.path.isdir(intent.checkout):
        return False
    return intent.branch is None or intent.checkout in checkouts_of(held.repo, intent.branch)


def _write_intent(held: LockedRepository, name: str, intent: Intent) -> None:
    write_document(_intent_path(held, name), intent._asdict())


def _intents(held: LockedRepository, key: str) -> list[Intent]:
    found = []
    for path in _intent_files(held, key):
        document = read_document(path)
        try:
            found.append(Intent(**document))
        except TypeError:
            raise GitError(f"{path} is damaged; see git status, then delete it") from None
    return found


def _drop_intents(held: LockedRepository, key: str) -> None:
    for path in _intent_files(held, key):
        with suppress(FileNotFoundError):
            os.unlink(path)


def _intent_files(held: LockedRepository, key: str) -> list[str]:
    folder, start = folder_in(held.common), f"intent-{key}."
    names = sorted(name for name in os.listdir(folder) if name.startswith(start))
    return [os.path.join(folder, name) for name in names if name.endswith(".json")]


def _intent_path(held: LockedRepository, name: str) -> str:
    return os.path.join(folder_in(held.common), f"intent-{name}.json")
