"""Whose worktree it is, and whether it is whole.

A *record* in the repository's shared folder is written before git is asked for the worktree, so
that whatever a crash leaves (a folder, an entry, a branch) is known to be ours. A *marker* inside
the worktree's own git folder is written last: without it the worktree is half-made. Neither is part
of a working tree.

Before the removal begins the record says `removing`: from then on a missing file is our own doing
and not a change that someone made, and the saved diff is not written again.
"""

import json
import os
from contextlib import suppress
from typing import Any, NamedTuple

from headway.integrations.git import layout
from headway.integrations.git.lock import folder_in
from headway.integrations.git.program import GitError

MARKER = "headway"


class Worktree(NamedTuple):
    repo: str
    path: str
    branch: str
    base: str  # the commit that it starts from


class Record(NamedTuple):
    owner: str
    path: str
    branch: str
    base: str
    removing: bool = False
    saved: str | None = None
    keeps_branch: bool = False  # it was there before, so it stays when the worktree goes


def read_record(common: str, path: str) -> Record | None:
    found = read_document(_record_path(common, path))
    return None if found is None else _record(found, _record_path(common, path))


def write_record(common: str, record: Record) -> None:
    write_document(_record_path(common, record.path), record._asdict())


def drop_record(common: str, path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(_record_path(common, path))


def read_marker(entry: str) -> Record | None:
    """The owner as the worktree itself names it; None while it is half-made."""
    file = os.path.join(entry, MARKER)
    found = read_document(file)
    return None if found is None else _record(found, file)


def write_marker(entry: str, record: Record) -> None:
    write_document(os.path.join(entry, MARKER), record._asdict())


def _record_path(common: str, path: str) -> str:
    import hashlib

    digest = hashlib.sha256(os.fsencode(layout.settled(path))).hexdigest()
    return os.path.join(folder_in(common), f"{digest[:32]}.json")


def _record(found: Any, file: str) -> Record:
    try:
        return Record(**found)
    except TypeError:
        raise GitError(f"{file} is damaged; see git worktree list, then delete it") from None


def read_document(file: str) -> Any:
    """What a small file of ours says; None if it is not there."""
    try:
        with open(file, encoding="utf-8") as text:
            return json.load(text)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        raise GitError(f"{file} is damaged; see git worktree list, then delete it") from None


def write_document(file: str, document: Any) -> None:
    """Whole or not at all, also across a loss of power."""
    new = f"{file}.new"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(fd, "w", encoding="utf-8") as text:
        json.dump(document, text)
        text.flush()
        os.fsync(fd)
    os.rename(new, file)
    folder = os.open(os.path.dirname(file), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
