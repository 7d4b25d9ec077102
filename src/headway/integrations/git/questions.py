"""Questions about a repository that become facts for gates. Nothing here changes anything.

One call of `look` answers all questions about one repository, with at most one git process each for
the
branches, the files and the worktree. A name that git would refuse is answered as missing: it is
wrong for one job, and never stops the probe for the others.
"""

import os
import posixpath
from collections.abc import Mapping
from typing import NamedTuple

from headway.base.errors import NotFoundError
from headway.integrations.git import layout
from headway.integrations.git.layout import repository_of
from headway.integrations.git.program import GitError, ask, failed, is_oid, run, safe_branch

__all__ = [
    "RepositoryAnswers",
    "Wants",
    "commit_of",
    "head_of",
    "in_progress",
    "probe",
    "repository_of",
]

_MOST_DIRTY = 5
_HOME = ".headway"
# What people write themselves in `.headway`; everything else there is Headway's own doing.
_OF_PEOPLE = frozenset({"config.toml", "jobs.yaml", "workflows", "runners", "plans"})
_STATUS = ("status", "--porcelain=v1", "-z", "--no-renames")
_NO_FILES: frozenset[tuple[str, str]] = frozenset()


class Wants(NamedTuple):
    head: bool = False
    branches: frozenset[str] = frozenset()
    clean: bool = False
    files: frozenset[tuple[str, str]] = _NO_FILES  # branch and path


class RepositoryAnswers(NamedTuple):
    head_branch: str | None  # None: detached, or not asked
    head_oid: str | None  # None: no commit yet, or not asked
    branches: Mapping[str, str | None]
    dirty: tuple[str, ...]  # the first few; empty: clean, or not asked
    files: Mapping[tuple[str, str], bool]
    in_progress: str | None


def probe(repo: str, wants: Wants) -> RepositoryAnswers:
    """Answer all of it, or raise GitError: the repository is gone or cannot be read."""
    git_dir = layout.git_dir_of(repo)
    head_branch, head_oid = _head_file(repo, git_dir) if wants.head else (None, None)
    names = wants.branches | {branch for branch, _ in wants.files}
    tips = _tips(repo, names | ({head_branch} if head_branch else frozenset()))
    return RepositoryAnswers(
        head_branch,
        tips.get(head_branch) if head_branch else head_oid,
        {name: tips.get(name) for name in wants.branches},
        _dirty(repo) if wants.clean else (),
        _files(repo, wants.files, tips),
        layout.in_progress(git_dir),
    )


def head_of(repo: str, branch: str | None = None) -> tuple[str | None, str]:
    """The commit that a branch is at, or the present head (detached: the branch is None)."""
    if branch is None:
        answers = probe(repo, Wants(head=True))
        if answers.head_oid is None:
            raise NotFoundError(f"{repo} has no commit yet on {answers.head_branch}; commit first")
        return answers.head_branch, answers.head_oid
    oid = probe(repo, Wants(branches=frozenset({branch}))).branches[branch]
    if oid is None:
        raise NotFoundError(f"branch {branch!r} does not exist in {repo}; see git branch --list")
    return branch, oid


def commit_of(repo: str, name: str) -> str:
    """The commit that a user means by a branch, a tag or a commit's name."""
    layout.git_dir_of(repo)
    answer = None
    if name and not name.startswith("-") and name.isprintable():
        args = ("rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}")
        answer = run(repo, *args)
        if answer.code not in (0, 1):
            raise failed(repo, args, answer.code, answer.err)
    if answer is None or answer.code == 1 or not is_oid(answer.lines[-1] if answer.lines else ""):
        if not _has_commits(repo):
            raise NotFoundError(f"{repo} has no commit yet, so no {name!r}; commit first")
        raise NotFoundError(f"{name!r} names no commit in {repo}; see git log --all")
    return answer.lines[-1]


def _has_commits(repo: str) -> bool:
    args = ("rev-list", "--all", "--max-count=1")
    answer = run(repo, *args)
    if answer.code != 0:
        raise failed(repo, args, answer.code, answer.err)
    return bool(answer.lines)


def in_progress(repo: str) -> str | None:
    """The operation in progress: a merge, cherry-pick, revert, rebase or bisect; or None."""
    return layout.in_progress(layout.git_dir_of(repo))


def is_own(path: str) -> bool:
    """Is this path of a checkout something that Headway writes at run time?"""
    parts = path.rstrip("/").split("/")
    if _HOME not in parts:
        return False
    inside = parts[parts.index(_HOME) + 1 :]
    return not inside or inside[0] not in _OF_PEOPLE


def _head_file(repo: str, git_dir: str) -> tuple[str | None, str | None]:
    """The branch, or without one the commit. Most repositories have both in the file HEAD."""
    text = (layout.read_small(os.path.join(git_dir, "HEAD")) or "").strip()
    name = text.removeprefix("ref:").strip().removeprefix("refs/heads/")
    # Repositories that keep their refs in tables have this name in the file.
    if text.startswith("ref: refs/heads/") and name != ".invalid":
        return name, None
    if is_oid(text):
        return None, text
    args = ("symbolic-ref", "--quiet", "HEAD")
    answer = run(repo, *args)
    if answer.code == 0:
        return answer.lines[0].removeprefix("refs/heads/"), None
    if answer.code != 1:
        raise failed(repo, args, answer.code, answer.err)
    return None, commit_of(repo, "HEAD")


def _tips(repo: str, names: frozenset[str]) -> dict[str, str]:
    """The commits of those of these branches that exist."""
    refs = sorted(f"refs/heads/{name}" for name in names if safe_branch(name))
    if not refs:
        return {}
    answer = ask(repo, "for-each-ref", "--format=%(objectname) %(refname)", "--", *refs)
    # A pattern also finds the branches below that name; those were not asked for.
    found = (line.split(" ", 1) for line in answer.lines)
    tips = {ref.removeprefix("refs/heads/"): oid for oid, ref in found}
    return {name: tips[name] for name in names if name in tips}


def _files(
    repo: str, wanted: frozenset[tuple[str, str]], tips: Mapping[str, str]
) -> dict[tuple[str, str], bool]:
    """Which paths exist on their branches: one process for all of them."""
    there = dict.fromkeys(wanted, False)
    asked = [
        (each, f"{tips[each[0]]}:{path}")
        for each in sorted(wanted)
        if each[0] in tips and (path := _plain_path(each[1])) is not None
    ]
    if not asked:
        return there
    lines = "".join(f"{name}\n" for _, name in asked)
    answer = ask(repo, "cat-file", "--batch-check", input=os.fsencode(lines))
    found = answer.out.split(b"\n")
    if len(found) <= len(asked):
        raise GitError(f"git cat-file in {repo} answered less than it was asked; run git fsck")
    for (each, _), line in zip(asked, found, strict=False):
        there[each] = not line.endswith(b" missing")
    return there


def _plain_path(path: str) -> str | None:
    """The path as git writes it in a tree, or None if no tree can hold it."""
    if not path or path.startswith("/") or "\n" in path or "\0" in path:
        return None
    plain = posixpath.normpath(path)
    return None if plain.split("/")[0] in (".", "..") else plain


def _dirty(repo: str) -> tuple[str, ...]:
    """The first few tracked or untracked changes that are not Headway's own doing."""
    found = _status(repo, "--untracked-files=normal")
    # An untracked folder is one line, whatever is in it. Search inside for our own files.
    inside = [
        path
        for path in found
        if path.endswith("/")
        and (posixpath.basename(path[:-1]) == _HOME or os.path.lexists(f"{repo}/{path}{_HOME}"))
    ]
    if inside:
        found = [path for path in found if path not in inside]
        pathspecs = [f":(literal,top){path}" for path in inside]
        found += _status(repo, "--untracked-files=all", "--", *pathspecs)
    dirty = sorted({path for path in found if not is_own(path)})
    return tuple(_printable(path) for path in dirty[:_MOST_DIRTY])


def _status(repo: str, *options: str) -> list[str]:
    out = ask(repo, *_STATUS, *options).out
    return [os.fsdecode(line[3:]) for line in out.split(b"\0") if line]


def _printable(path: str) -> str:
    """Fit for a message and for a database: a name need not be text."""
    return os.fsencode(path).decode(errors="backslashreplace")
