"""What was done in a checkout between two looks at it: commits, files, lines."""

import os
from typing import Any, NamedTuple

from headway.base.errors import HeadwayError
from headway.integrations.git.layout import repository_of
from headway.integrations.git.program import ask, run

MOST_FILES = 100


class Checkout(NamedTuple):
    """A checkout as it stood. Without a commit there is none yet; without a branch its head is
    detached."""

    repo: str
    branch: str | None
    head: str | None


def look_at(folder: str) -> Checkout | None:
    """The checkout that a folder lies in; None: there is none, or it cannot be read."""
    try:
        repo = repository_of(folder)
        return None if repo is None else Checkout(repo, _branch(repo), _head(repo))
    except (HeadwayError, OSError):
        return None


def work_since(before: Checkout) -> dict[str, Any] | None:
    """What was done since; None if that cannot be said."""
    try:
        return _work(before)
    except (HeadwayError, OSError, ValueError):
        return None


def _work(before: Checkout) -> dict[str, Any]:
    repo, head = before.repo, _head(before.repo)
    commits = 0
    if head is not None and head != before.head:
        since = [] if before.head is None else [f"^{before.head}"]
        commits = int(ask(repo, "rev-list", "--count", head, *since).lines[0])
    changed: list[str] = []
    added = removed = 0
    if before.head is not None:
        rows = ask(repo, "diff", "--numstat", "--no-renames", "-z", before.head, "--").out
        for row in filter(None, os.fsdecode(rows).split("\0")):
            plus, minus, path = row.split("\t", 2)
            changed.append(path)
            added, removed = added + _lines(plus), removed + _lines(minus)
    untracked = ask(repo, "ls-files", "--others", "--exclude-standard", "-z").out
    changed += [each for each in os.fsdecode(untracked).split("\0") if each]
    shown = [os.fsencode(each).decode(errors="replace") for each in sorted(set(changed))]
    return {
        "branch": _branch(repo),
        "base": before.head,
        "head": head,
        "commits": commits,
        "files_changed": len(shown),
        "files": shown[:MOST_FILES],
        "insertions": added,
        "deletions": removed,
    }


def _lines(number: str) -> int:
    return 0 if number == "-" else int(number)  # of a file that is no text


def _branch(repo: str) -> str | None:
    answer = run(repo, "symbolic-ref", "--quiet", "--short", "HEAD")
    return answer.lines[0] if answer.code == 0 and answer.lines else None


def _head(repo: str) -> str | None:
    answer = run(repo, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
    return answer.lines[0] if answer.code == 0 and answer.lines else None
