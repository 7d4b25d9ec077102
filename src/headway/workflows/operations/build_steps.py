"""`build.materialize_step`: the description of one step of a build, and the branches it needs."""

import os
import re

from headway.core.artifacts import plan_branch
from headway.integrations.git.branches import add_branch, tip_of
from headway.integrations.git.ownership import write_document
from headway.integrations.git.questions import commit_of
from headway.workflows.operations.model import Done, FailedError, NodeTask
from headway.workflows.operations.repository import branch_name, repository, slug_of, text_of

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\[\]=,@-]{0,127}")


def materialize_step(task: NodeTask) -> Done:
    """Write the file; make the target and the step's branch at it, if they are not there."""
    build = _name(task, "build_id", task.run)
    step = _name(task, "step_key", task.node)
    slug, branch, target = slug_of(task), text_of(task, "branch"), text_of(task, "target")
    branch = branch or (plan_branch(slug) if slug else None)
    made = [each for each in (target, branch) if each is not None and _make(task, each, target)]
    path = os.path.join(task.home, "builds", build, f"{step}.json")
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    document = {
        "version": 1,
        "build_id": build,
        "step_key": step,
        "slug": slug,
        "branch": branch,
        "target": target,
        "run": task.run,
        "node": task.node,
    }
    write_document(path, document)
    words = f"{step} of {build}" + (f"; made {', '.join(made)}" if made else "")
    return Done(words, {"path": path})


def _make(task: NodeTask, branch: str, target: str | None) -> bool:
    """Whether the branch was not there before."""
    repo = repository(task)
    branch_name(task, branch)
    if tip_of(repo, branch) is not None:
        return False
    from_ = target if target is not None and target != branch else "HEAD"
    return add_branch(repo, branch, commit_of(repo, from_))


def _name(task: NodeTask, argument: str, default: str) -> str:
    name = text_of(task, argument) or default
    if not _NAME.fullmatch(name):
        raise FailedError(f"{task.operation}: {argument} is {name!r}; give letters and digits")
    return name
