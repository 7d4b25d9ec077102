"""`git.integrate_plan_branch`: a plan's branch is merged into its target.

The merge is made as objects, so nobody's checkout is borrowed. Before it, the plan's document
leaves the source, and becomes the message of the merge. The target moves only if it still is at the
commit that was merged; if it moved meanwhile, the merge is made anew. Each step first looks whether
it is done.
"""

from collections.abc import Sequence
from typing import NamedTuple

from headway.base.crashpoints import reach
from headway.base.text import plain, shortened
from headway.core.artifacts import plan_branch, plan_document
from headway.integrations.git.branches import (
    checkouts_of,
    complete_move,
    is_ancestor,
    move_branch,
    tip_of,
)
from headway.integrations.git.commits import (
    OperationSignature,
    commit_tree,
    file_in,
    last_commit_with,
    merge_trees,
    tree_of,
    without_file,
)
from headway.integrations.git.lock import LockedRepository, holding
from headway.integrations.git.questions import head_of
from headway.workflows.operations.model import BlockedError, Done, FailedError, NodeTask
from headway.workflows.operations.repository import (
    blocked_by_people,
    branch_name,
    flag_of,
    repository,
    require_branch,
    signature,
    slug_of,
    text_of,
)
from headway.workflows.operations.sentinels import forget_conflict, note_conflict

TRIES = 5
MOST_CONFLICTS = 1000  # that are kept
MOST_NAMED, MOST_CELLS = 3, 60  # in what is said of them
_PREFIX = plan_branch("")


class Integration(NamedTuple):
    """What is merged into what."""

    repo: str
    slug: str
    source: str
    target: str
    squash: bool
    deletes: bool
    subject: str
    signed: OperationSignature


def integrate_plan_branch(task: NodeTask) -> Done:
    asked = _asked(task)
    with blocked_by_people(task):
        commit = _merged(task, asked)
    forget_conflict(task, asked.slug)
    deleted = asked.deletes and _delete_source(asked, commit)
    gone = f"; {asked.source} is deleted" if deleted else ""
    words = f"{asked.source} is merged into {asked.target} at {commit[:12]}{gone}"
    return Done(words, {"commit": commit, "conflicts": []})


def _asked(task: NodeTask) -> Integration:
    repo, slug, source = repository(task), slug_of(task), text_of(task, "source")
    if source is None and slug is None:
        raise FailedError("git.integrate_plan_branch needs slug or source")
    source = branch_name(task, source or plan_branch(slug or ""))
    slug = slug or source.removeprefix(_PREFIX).replace("/", "-")
    target = text_of(task, "target") or head_of(repo)[0]
    if target is None:
        raise FailedError("git.integrate_plan_branch: the head is detached; give target")
    for each in (source, branch_name(task, target)):
        require_branch(task, each)
    if source == target:
        raise FailedError(f"git.integrate_plan_branch: {source} is source and target")
    return Integration(
        repo,
        slug,
        source,
        target,
        flag_of(task, "squash", default=True),
        flag_of(task, "delete_branch"),
        text_of(task, "message") or f"feat: merge plan {slug}",
        signature(task),
    )


def _merged(task: NodeTask, asked: Integration) -> str:
    """The commit on the target that has all of the source."""
    repo, signed = asked.repo, asked.signed
    for _ in range(TRIES):
        with holding(repo) as held:
            complete_move(held, f"{task.key}-doc")
            complete_move(held, task.key)
            target = require_branch(task, asked.target)
            done = signed.find(repo, target)
            if done is not None:
                return done
            document = _document(task, asked)
            source = _without_document(task, held, asked)
        if is_ancestor(repo, source, target):
            return target
        tree, conflicts = merge_trees(repo, target, source)
        if conflicts:
            conflicts = conflicts[:MOST_CONFLICTS]
            note_conflict(task, asked.slug, asked.source, asked.target, conflicts)
            raise BlockedError(_conflict_words(asked, conflicts), {"conflicts": conflicts})
        if asked.squash and tree == tree_of(repo, target):
            return target
        parents = [target] if asked.squash else [target, source]
        message = signed.sign("\n\n".join(filter(None, (asked.subject, document))))
        commit = commit_tree(repo, tree, parents, message)
        reach("integrate.commit")
        with holding(repo) as held:
            if move_branch(held, asked.target, target, commit, key=task.key, turned=_turned):
                reach("integrate.ref")
                return commit
    raise BlockedError(
        f"git.integrate_plan_branch: {asked.target} moved {TRIES} times during the merge; retry "
        "when it is quiet"
    )


def _conflict_words(asked: Integration, conflicts: Sequence[str]) -> str:
    """In a line: the branches, the first files, and where to resolve them."""
    files = [shortened(plain(each), MOST_CELLS) for each in conflicts]
    more = [f"and {len(files) - MOST_NAMED} more"] if len(files) > MOST_NAMED else []
    source, target = (shortened(each, MOST_CELLS) for each in (asked.source, asked.target))
    return (
        f"git.integrate_plan_branch detected merge conflicts of {source} with {target} in "
        f"{', '.join([*files[:MOST_NAMED], *more])}; merge {target} into {source} to resolve them"
    )


def _turned() -> None:
    reach("integrate.tree")


def _document(task: NodeTask, asked: Integration) -> str:
    """The plan's document: at the tip of the source, else the newest in its history."""
    path, tip = plan_document(asked.slug), require_branch(task, asked.source)
    content = file_in(asked.repo, tip, path)
    if content is None:
        last = last_commit_with(asked.repo, tip, path)
        content = None if last is None else file_in(asked.repo, last, path)
    return (content or b"").decode(errors="replace").strip()


def _without_document(task: NodeTask, held: LockedRepository, asked: Integration) -> str:
    """The source's commit without the document in it; it is removed by a commit of its own."""
    path, tip = plan_document(asked.slug), require_branch(task, asked.source)
    if file_in(asked.repo, tip, path) is None:
        return tip
    tree = without_file(asked.repo, tip, path, folder=task.folder)
    message = asked.signed.part("doc").sign(f"docs: take out the plan {asked.slug}")
    commit = commit_tree(asked.repo, tree, [tip], message)
    if not move_branch(held, asked.source, tip, commit, key=f"{task.key}-doc"):
        raise BlockedError(f"git.integrate_plan_branch: {asked.source} moved meanwhile; retry")
    reach("integrate.doc")
    return commit


def _delete_source(asked: Integration, commit: str) -> bool:
    """Only what is checked out nowhere, and only if the target has all of it: someone may have
    committed to it since."""
    with holding(asked.repo) as held:
        tip = tip_of(asked.repo, asked.source)
        if tip is None or checkouts_of(asked.repo, asked.source):
            return False
        tree, conflicts = merge_trees(asked.repo, commit, tip)
        if conflicts or tree != tree_of(asked.repo, commit):
            return False
        return held.run("update-ref", "-d", f"refs/heads/{asked.source}", tip).code == 0
