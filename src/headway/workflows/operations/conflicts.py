"""`gate.conflict_resolution`: the target is merged into the source, and what is in conflict is
resolved by a command or an agent, or left to a person.

It works in the source's own worktree, so the target stays as it is. The merge is committed with the
operation's key; then the note of the conflict goes. That note says whether an agent was called, and
how it ended: a try that was killed is done again, and calls none a second time.
"""

import os
from collections.abc import Mapping
from typing import Any

from headway.base.crashpoints import reach
from headway.core.artifacts import plan_branch
from headway.integrations.git import layout
from headway.integrations.git.branches import (
    WRITE_SECONDS,
    branch_of,
    is_ancestor,
    refuse_index_lock,
    tip_of,
)
from headway.integrations.git.cleanup import clean
from headway.integrations.git.commits import commit_index, head_commit, identity
from headway.integrations.git.ownership import Worktree
from headway.integrations.git.program import ask, run
from headway.workflows.node_command import run_command
from headway.workflows.operations.conflict_agent import resolve_by_agent
from headway.workflows.operations.model import (
    BlockedError,
    Done,
    FailedError,
    NodeTask,
    ParkedError,
)
from headway.workflows.operations.repository import (
    blocked_by_people,
    repository,
    require_branch,
    signature,
    slug_of,
    text_of,
)
from headway.workflows.operations.sentinels import (
    forget_conflict,
    note_agent,
    noted_agent,
    noted_conflict,
)
from headway.workflows.operations.worktrees import SAVED, nothing_made, own_path, own_tree

_MARK = b"<<<<<<< "


def resolve_conflict(task: NodeTask) -> Done:
    slug = slug_of(task)
    if slug is None:
        raise FailedError("gate.conflict_resolution requires slug")
    noted = noted_conflict(task, slug)
    if noted is None:
        return Done(f"no merge conflict of {slug}", {"cleaned": nothing_made(task)})
    source, target = _branches(task, slug, noted)
    with blocked_by_people(task):
        top, outputs = _checkout(task, source)
        _merge(task, slug, top, target)
    forget_conflict(task, slug)
    if top == own_path(task):
        outputs = _without_own_tree(task, source, outputs)
    return Done(f"merge conflict of {slug} resolved on {source}", outputs)


def _branches(task: NodeTask, slug: str, noted: Mapping[str, Any]) -> tuple[str, str]:
    """Names of the source and the target; the commit of the target is looked up later."""
    source = text_of(task, "source") or noted.get("source") or plan_branch(slug)
    target = text_of(task, "target") or noted.get("target")
    if not isinstance(source, str) or not isinstance(target, str):
        raise FailedError(f"gate.conflict_resolution: the target of {slug} is not known; give it")
    for each in (source, target):
        require_branch(task, each)
    return source, target


def _checkout(task: NodeTask, source: str) -> tuple[str, dict[str, Any]]:
    """The worktree of its root if that has the source, else one of its own; and what became of
    others that were in the way."""
    if task.root is not None and branch_of(task.root["path"]) == source:
        return str(task.root["path"]), {"cleaned": nothing_made(task)}
    made, outputs = own_tree(task, source, require_branch(task, source))
    return made.path, outputs


def _merge(task: NodeTask, slug: str, top: str, target: str) -> None:
    """After this the head of the checkout has all of the target."""
    commit, signed = tip_of(top, target) or "", signature(task)
    head = head_commit(top) or ""
    if signed.find(top, head) is not None or is_ancestor(top, commit, head):
        _end_merge(top)
        return
    refuse_index_lock(top)
    if not os.path.exists(os.path.join(layout.git_dir_of(top), "MERGE_HEAD")):
        _refuse_changes(task, top)
        _begin_merge(task, top, commit)
        reach("conflict.merging")
    if _unmerged(top):
        _resolve(task, slug, top)
    if is_ancestor(top, commit, head_commit(top) or ""):
        return  # the command has committed itself
    if _unmerged(top):
        if noted_agent(task, slug) is not None:
            note_agent(task, slug, None)
        raise BlockedError(
            f"merge conflict resolution incomplete for slug {slug}: unmerged index entries remain",
            {"path": top},
        )
    ask(top, "add", "--update", writes=True, timeout=WRITE_SECONDS)
    message = signed.sign(f"merge: {target} into {branch_of(top) or 'HEAD'}")
    commit_index(top, message, merged=[commit])
    _end_merge(top)


def _refuse_changes(task: NodeTask, top: str) -> None:
    changed = ask(top, "status", "--porcelain", "--untracked-files=no", timeout=WRITE_SECONDS)
    if changed.lines:
        raise BlockedError(
            f"gate.conflict_resolution: {top} has changes that are not committed; commit them, "
            "then retry"
        )


def _begin_merge(task: NodeTask, top: str, commit: str) -> None:
    args = ("merge", "--no-commit", "--no-ff", "--no-rerere-autoupdate", commit)
    answer = run(top, *args, environ=identity(top), writes=True, timeout=WRITE_SECONDS)
    if answer.code != 0 and not _unmerged(top):
        words = (answer.err or os.fsdecode(answer.out)).splitlines()
        raise BlockedError(
            f"gate.conflict_resolution: git merge in {top}: {words[0] if words else 'refused'}"
        )


def _resolve(task: NodeTask, slug: str, top: str) -> None:
    """Let the command, or the agent, resolve it. A file without marks counts as resolved, even if
    it was not added to the index."""
    if task.command is not None:
        code = run_command(task.command, cwd=top)
    elif task.args.get("auto_resolve") is True:
        code = _by_agent(task, slug, top)
    else:
        return
    if code != 0:
        return
    resolved = [path for path in _unmerged(top) if not _has_marks(os.path.join(top, path))]
    if resolved:
        specs = [f":(top,literal){path}" for path in resolved]
        ask(top, "add", "--all", "--", *specs, writes=True)


def _by_agent(task: NodeTask, slug: str, top: str) -> int:
    """The exit code of the agent. A try that is done again because the one before was killed calls
    none that has done its work; what one did that was ended at its work nobody knows."""
    match noted_agent(task, slug):
        case "done":
            return 0
        case "called":
            raise BlockedError(
                f"gate.conflict_resolution: nobody knows what the agent did in {top}, because it "
                "was ended at its work; finish the merge there and commit it, then retry",
                {"path": top},
            )
    note_agent(task, slug, "called")
    reach("conflict.agent_called")
    try:
        code = resolve_by_agent(task, top, _unmerged(top))
    except (BlockedError, ParkedError):
        note_agent(task, slug, None)
        raise
    note_agent(task, slug, None if code else "done")
    reach("conflict.agent_ended")
    return code


def _unmerged(top: str) -> list[str]:
    out = ask(top, "ls-files", "--unmerged", "-z", timeout=WRITE_SECONDS).out
    paths = (os.fsdecode(line.partition(b"\t")[2]) for line in out.split(b"\0") if line)
    return list(dict.fromkeys(paths))


def _has_marks(file: str) -> bool:
    try:
        with open(file, "rb") as content:
            return any(line.startswith(_MARK) for line in content)
    except FileNotFoundError:
        return False  # deleted is resolved, too
    except OSError:
        return True


def _end_merge(top: str) -> None:
    """The merge is committed: git is in the middle of nothing any more."""
    if os.path.exists(os.path.join(layout.git_dir_of(top), "MERGE_HEAD")):
        ask(top, "merge", "--quit", writes=True)


def _without_own_tree(task: NodeTask, source: str, outputs: dict[str, Any]) -> dict[str, Any]:
    """A worktree of its own has done what it was for."""
    worktree = Worktree(repository(task), own_path(task), source, "")
    result = clean(worktree, task.job, os.path.join(task.folder, SAVED), inside=task.worktrees)
    if result.status == "degraded":
        return {**outputs, "degraded": {**outputs["degraded"], task.job: result.error or ""}}
    return {**outputs, "cleaned": [*outputs["cleaned"], task.job]}
