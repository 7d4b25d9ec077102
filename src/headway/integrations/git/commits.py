"""Commits that an operation makes: once only, and as objects first.

A commit carries the key of its operation in a trailer. Whoever makes it looks for that key first,
so a repetition after a crash finds what was done. A branch names the new commit last.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from headway.base.crashpoints import reach
from headway.base.errors import ConflictError
from headway.integrations.git import layout
from headway.integrations.git.branches import WRITE_SECONDS, refuse_index_lock
from headway.integrations.git.program import GitError, ask, failed, run

TRAILER = "Headway-Operation"
_USAGE = 129  # the exit code of a git that does not know an option
_SLACK_SECONDS = 3600  # clocks of those who commit, and of the store
_IDENTITY = tuple(
    f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
)


class MovedHeadError(ConflictError):
    """Someone else has committed meanwhile."""


class OperationSignature:
    """Names an operation in the commits that it makes."""

    def __init__(self, name: str, key: str, began: int) -> None:
        """`name` is for people, as `wf-7/commit/2`; `key` is the same for all tries of a pass;
        nothing that it made is older than `began`, in seconds."""
        self.key = key
        self._name = name
        self._began = began

    def part(self, word: str) -> "OperationSignature":
        """Of another commit of the same operation."""
        return OperationSignature(self._name, f"{self.key}/{word}", self._began)

    def sign(self, message: str) -> str:
        return f"{message.strip()}\n\n{TRAILER}: {self._name} {self.key}\n"

    def find(self, repo: str, tip: str) -> str | None:
        """The commit before this one that carries the key; None: it is not made yet."""
        since = max(0, self._began - _SLACK_SECONDS)
        answer = ask(
            repo,
            *("rev-list", "--max-count=1", f"--max-age={since}"),
            f"--grep=^{TRAILER}: .* {self.key}$",
            *("--end-of-options", tip, "--"),
            timeout=WRITE_SECONDS,
        )
        return answer.lines[0] if answer.lines else None


def commit_tree(repo: str, tree: str, parents: Sequence[str], message: str) -> str:
    """Make the object; no branch knows it yet."""
    args = ("commit-tree", tree, *(word for each in parents for word in ("-p", each)))
    answer = ask(
        repo,
        *args,
        *("-F", "-"),
        input=message.encode(errors="surrogateescape"),
        environ=identity(repo),
        writes=True,
    )
    return answer.lines[0]


def identity(repo: str) -> dict[str, str]:
    """Who commits: as the environment or git's configuration says, else Headway."""
    given = {name: os.environ[name] for name in _IDENTITY if os.environ.get(name)}
    known = all(
        run(repo, "var", f"GIT_{who}_IDENT", environ=given).code == 0
        for who in ("AUTHOR", "COMMITTER")
    )
    if known:
        return given
    ours = {name: "Headway" if name.endswith("NAME") else "headway@localhost" for name in _IDENTITY}
    return {**ours, **given}


def head_commit(checkout: str) -> str | None:
    """The commit that is checked out; None: there is none yet."""
    answer = run(checkout, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return answer.lines[0] if answer.code == 0 and answer.lines else None


def tree_of(repo: str, commit: str) -> str:
    return ask(repo, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}").lines[0]


def stage(checkout: str, pathspecs: Sequence[str] = ()) -> None:
    """Enter what has changed into the index; without pathspecs all of it."""
    refuse_index_lock(checkout)
    args = ("add", "--all", "--", *pathspecs) if pathspecs else ("add", "--all")
    _write_index(checkout, "-c", "core.safecrlf=false", *args)


def commit_index(
    checkout: str, message: str, *, merged: Sequence[str] = ()
) -> tuple[str | None, int]:
    """Commit what is in the index, on what is checked out. The commit, which is None if nothing
    differs, and how many files it changes. `merged` are further parents."""
    head = head_commit(checkout)
    tree = _write_index(checkout, "write-tree")
    if head is not None and not merged and tree == tree_of(checkout, head):
        return None, 0
    changed = _count_changes(checkout, head, tree)
    parents = [*([head] if head else []), *merged]
    commit = commit_tree(checkout, tree, parents, message)
    reach("commit.before_ref")
    args = ("update-ref", "HEAD", commit, head or "0" * len(commit))
    answer = run(checkout, *args, writes=True)
    if answer.code != 0:
        if head_commit(checkout) != head:
            raise MovedHeadError(f"{checkout}: its head moved during the commit; retry")
        raise failed(checkout, args, answer.code, answer.err)
    reach("commit.after_ref")
    return commit, changed


def _write_index(checkout: str, *args: str) -> str:
    answer = run(checkout, *args, writes=True, timeout=WRITE_SECONDS)
    if answer.code != 0:
        refuse_index_lock(checkout)
        raise failed(checkout, args, answer.code, answer.err)
    return answer.lines[0] if answer.lines else ""


def _count_changes(repo: str, old: str | None, new: str) -> int:
    if old is None:
        return len(ask(repo, "ls-tree", "-r", "-z", "--name-only", new).out.split(b"\0")) - 1
    return count_changes(repo, old, new)


def count_changes(repo: str, old: str, new: str) -> int:
    """How many files differ between two commits or trees."""
    args = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", "--no-commit-id", old, new)
    return ask(repo, *args, timeout=WRITE_SECONDS).out.count(b"\0")


def changes_of(repo: str, commit: str) -> int:
    """How many files a commit changes against its first parent."""
    parent = run(repo, "rev-parse", "--verify", "--quiet", f"{commit}^1")
    return _count_changes(repo, parent.lines[0] if parent.code == 0 else None, commit)


# -- trees that no checkout has ------------------------------------------------------------------


@contextmanager
def index_aside(repo: str, commit: str, folder: str) -> Iterator[Mapping[str, str]]:
    """An index of its own with the files of a commit, as variables for git; nobody's checkout is
    touched."""
    work = tempfile.mkdtemp(prefix="index-", dir=folder)
    environ = {"GIT_DIR": layout.git_dir_of(repo), "GIT_INDEX_FILE": os.path.join(work, "index")}
    try:
        ask(repo, "read-tree", commit, environ=environ, writes=True, timeout=WRITE_SECONDS)
        yield environ
    finally:
        shutil.rmtree(work, ignore_errors=True)


def with_file(repo: str, commit: str, path: str, content: bytes, *, folder: str) -> str:
    """The tree of a commit with this file in it."""
    blob = ask(repo, "hash-object", "-w", "--stdin", input=content, writes=True).lines[0]
    with index_aside(repo, commit, folder) as environ:
        entry = f"100644,{blob},{path}"
        args = ("update-index", "--add", "--replace", "--cacheinfo", entry)
        ask(repo, *args, environ=environ, writes=True)
        return ask(repo, "write-tree", environ=environ, writes=True).lines[0]


def without_file(repo: str, commit: str, path: str, *, folder: str) -> str:
    """The tree of a commit without this file."""
    with index_aside(repo, commit, folder) as environ:
        args = ("update-index", "--force-remove", "--", path)
        ask(repo, *args, environ={**environ, "GIT_WORK_TREE": repo}, writes=True)
        return ask(repo, "write-tree", environ=environ, writes=True).lines[0]


def file_in(repo: str, commit: str, path: str) -> bytes | None:
    """The content of a file of a commit; None: it has no such file."""
    answer = run(repo, "cat-file", "blob", f"{commit}:{path}")
    return answer.out if answer.code == 0 else None


def last_commit_with(repo: str, tip: str, path: str) -> str | None:
    """The newest commit up to this one that wrote the file."""
    args = ("rev-list", "--max-count=1", "--full-history")
    answer = run(repo, *args, tip, "--", path, timeout=WRITE_SECONDS)
    found = answer.lines[0] if answer.code == 0 and answer.lines else None
    if found is None or file_in(repo, found, path) is not None:
        return found
    parent = run(repo, "rev-parse", "--verify", "--quiet", f"{found}^1")
    return last_commit_with(repo, parent.lines[0], path) if parent.code == 0 else None


def merge_trees(repo: str, target: str, source: str) -> tuple[str, list[str]]:
    """The tree of the merge of two commits, and the files in conflict. Nothing is checked out."""
    args = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
    answer = run(repo, *args, target, source, writes=True, timeout=WRITE_SECONDS)
    if answer.code == _USAGE:
        raise GitError("git merge-tree --write-tree is not known here; install git 2.38 or newer")
    if answer.code not in (0, 1):
        raise failed(repo, args, answer.code, answer.err)
    # A name need not be text; it is to be fit for a message and for a database.
    tree, *paths = [
        each.decode(errors="backslashreplace") for each in answer.out.split(b"\0") if each
    ]
    if answer.code == 1 and not paths:
        raise GitError(f"git merge-tree in {repo} reports a conflict and no file")
    return tree, paths if answer.code == 1 else []
