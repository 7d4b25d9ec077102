"""`git.stage_commit`: what has changed becomes a commit, once."""

import os

from headway.integrations.git.branches import branch_of
from headway.integrations.git.commits import (
    changes_of,
    commit_index,
    head_commit,
    stage,
)
from headway.workflows.labels import NO_MESSAGE
from headway.workflows.operations.model import Done, FailedError, NodeTask
from headway.workflows.operations.repository import (
    blocked_by_people,
    checkout,
    gone_branch,
    refuse_unfinished,
    signature,
    text_of,
)


def stage_commit(task: NodeTask) -> Done:
    """Commit on the branch that is checked out; without changes it succeeds as well."""
    top, signed = checkout(task), signature(task)
    refuse_unfinished(task, top)
    message = _message(task)
    head = head_commit(top)
    if head is None and task.root is not None:
        raise gone_branch(task)
    made = signed.find(top, head) if head is not None else None
    if made is not None:
        return Done(_said(top, made), {"commit": made, "changed": changes_of(top, made)})
    with blocked_by_people(task):
        stage(top, _pathspecs(task, top))
        commit, changed = commit_index(top, signed.sign(message))
    if commit is None:
        return Done("git.stage_commit: no staged changes", {"commit": head, "changed": 0})
    return Done(_said(top, commit), {"commit": commit, "changed": changed})


def _said(top: str, commit: str) -> str:
    return f"committed {commit[:12]} on {branch_of(top) or 'a detached head'}"


def _message(task: NodeTask) -> str:
    given = text_of(task, "message") or next(
        (data["text"] for data in task.artifacts.values() if data.get("text")), None
    )
    if not isinstance(given, str) or not given.strip():
        raise FailedError(NO_MESSAGE)
    return given


def _pathspecs(task: NodeTask, top: str) -> list[str]:
    """The paths that are asked for, from the top of the checkout."""
    given = task.args.get("paths")
    if given is None:
        return []
    paths = [given] if isinstance(given, str) else given
    if not isinstance(paths, list) or not paths or not all(isinstance(p, str) for p in paths):
        raise FailedError("git.stage_commit: paths is not a list of paths")
    found = []
    for path in paths:
        inside = os.path.relpath(os.path.join(os.path.realpath(task.directory), path), top)
        if inside == ".." or inside.startswith("../"):
            raise FailedError(f"git.stage_commit: {path} is outside of the repository")
        found.append(f":(top,literal){'' if inside == '.' else inside}")
    return found
