"""`plan.persist`: a plan with its specification, as a document on the plan's branch."""

from headway.base.crashpoints import reach
from headway.core.artifacts import plan_branch, plan_document
from headway.integrations.git.branches import (
    add_branch,
    complete_move,
    move_branch,
    tip_of,
)
from headway.integrations.git.commits import commit_tree, tree_of, with_file
from headway.integrations.git.lock import holding
from headway.integrations.git.questions import commit_of
from headway.workflows.operations.model import BlockedError, Done, FailedError, NodeTask
from headway.workflows.operations.repository import (
    blocked_by_people,
    file_of,
    repository,
    signature,
    slug_of,
    text_of,
)

LARGEST_TEXT = 4 << 20
_PLAN_TEXT = "custom:plan_text:"


def persist_plan(task: NodeTask) -> Done:
    """Commit `.headway/plans/SLUG.md` on `draft/SLUG`, which is made if need be."""
    specification = _specification(task)
    slug = slug_of(task)
    if slug is None:
        raise FailedError("plan.persist requires slug")
    repo, branch, path = repository(task), plan_branch(slug), plan_document(slug)
    content = _document(task, slug, specification).encode()
    signed = signature(task)
    with blocked_by_people(task), holding(repo) as held:
        complete_move(held, task.key)
        tip = tip_of(repo, branch)
        base = tip or commit_of(repo, text_of(task, "target") or "HEAD")
        commit = signed.find(repo, tip) if tip is not None else None
        if commit is None:
            tree = with_file(repo, base, path, content, folder=task.folder)
            if tip is not None and tree == tree_of(repo, tip):
                commit = tip
            else:
                message = signed.sign(f"docs: plan {slug}")
                commit = commit_tree(repo, tree, [base], message)
                reach("plan.before_ref")
                if tip is None:
                    moved = add_branch(repo, branch, commit)
                else:
                    moved = move_branch(held, branch, tip, commit, key=task.key)
                if not moved:
                    raise BlockedError(f"plan.persist: {branch} moved meanwhile; retry")
                reach("plan.after_ref")
    outputs = {"slug": slug, "branch": branch, "path": path, "commit": commit}
    return Done(f"{path} on {branch} at {commit[:12]}", outputs)


def _specification(task: NodeTask) -> str:
    text = text_of(task, "spec_text")
    if text is not None:
        return text
    name = text_of(task, "spec_file")
    if name is None:
        raise FailedError("plan.persist requires spec_text or spec_file")
    try:
        with open(file_of(task, name), encoding="utf-8") as file:
            text = file.read(LARGEST_TEXT + 1)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise FailedError(f"plan.persist cannot read {name}: {why}") from None
    if len(text) > LARGEST_TEXT:
        raise FailedError(f"plan.persist: {name} is larger than 4 MiB")
    return text


def _document(task: NodeTask, slug: str, specification: str) -> str:
    """The document: what is wanted, and how it is to be done."""
    plans = [
        data["text"]
        for name, data in task.artifacts.items()
        if name.startswith(_PLAN_TEXT) and isinstance(data.get("text"), str)
    ]
    target = text_of(task, "target")
    parts = [f"# {slug}", *([f"For the branch {target}."] if target else [])]
    parts += ["## Specification", specification.strip()]
    if plans:
        parts += ["## Plan", *(each.strip() for each in plans)]
    return "\n\n".join(parts) + "\n"
