"""What operations on a repository have in common: where they work, and how they sign."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headway.core.artifacts import plan_branch, wrong_slug
from headway.integrations.git import layout
from headway.integrations.git.branches import DirtyCheckoutError, LockedIndexError, tip_of
from headway.integrations.git.commits import MovedHeadError, OperationSignature
from headway.integrations.git.program import safe_branch
from headway.workflows.operations.model import BlockedError, FailedError, NodeTask, gone_root


def repository(task: NodeTask) -> str:
    """The repository whose branches it is about."""
    if task.repository is None:
        raise FailedError(
            f"{task.operation} works in a git repository, and {task.directory} is in none"
        )
    return task.repository


def checkout(task: NodeTask) -> str:
    """The top folder of the checkout that it works in."""
    found = layout.repository_of(task.directory)
    if found is None:
        raise FailedError(
            f"{task.operation} works in a git repository, and {task.directory} is in none"
        )
    return found


def require_branch(task: NodeTask, branch: str) -> str:
    """The commit that a branch is at. That of the worktree may have been deleted meanwhile."""
    found = tip_of(repository(task), branch)
    if found is not None:
        return found
    if task.root is not None and task.root["branch"] == branch:
        raise gone_branch(task)
    raise FailedError(f"{task.operation}: there is no branch {branch} in {task.repository}")


def gone_branch(task: NodeTask) -> FailedError:
    tree = task.root or {}
    return FailedError(gone_root(f"branch {tree['branch']}", tree["node"], tree["job"], task.run))


def signature(task: NodeTask) -> OperationSignature:
    return OperationSignature(f"{task.run}/{task.node}/{task.node_pass}", task.key, task.began)


def text_of(task: NodeTask, name: str) -> str | None:
    """An argument that is a text, or can be read as one; None: it is not given."""
    value: Any = task.args.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise FailedError(f"{task.operation}: {name} is {value!r}; give a text")
    return str(value)


def flag_of(task: NodeTask, name: str, *, default: bool = False) -> bool:
    """An argument that is true or false; a text such as "no" is neither."""
    value: Any = task.args.get(name, default)
    if not isinstance(value, bool):
        raise FailedError(f"{task.operation}: {name} is {value!r}; give true or false")
    return value


def slug_of(task: NodeTask, *names: str) -> str | None:
    """The first of these arguments that is given, if it can be a slug."""
    found = next((text for name in names or ("slug",) if (text := text_of(task, name))), None)
    if found is None:
        return None
    if (wrong := wrong_slug(found)) is not None:
        raise FailedError(f"{task.operation}: {wrong}")
    return branch_name(task, plan_branch(found)).removeprefix(plan_branch(""))


def branch_name(task: NodeTask, name: str) -> str:
    if not safe_branch(name):
        raise FailedError(f"{task.operation}: {name!r} cannot be the name of a branch")
    return name


def file_of(task: NodeTask, path: str) -> str:
    """A file that an argument names, as it is found from where the node works. Links are resolved,
    and what leads out of the repository and of the home is refused."""
    found = os.path.realpath(os.path.join(task.directory, path))
    inside = [task.directory, task.repository, task.home]
    if not any(each and lies_in(found, each) for each in inside):
        raise FailedError(f"{task.operation}: {path} is outside of the repository")
    return found


def lies_in(path: str, folder: str) -> bool:
    """Whether the path is in the folder, or is the folder; links are resolved."""
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def refuse_unfinished(task: NodeTask, top: str) -> None:
    """A merge, or the like, that a person is in the middle of."""
    busy = layout.in_progress(layout.git_dir_of(top))
    if busy is not None:
        raise BlockedError(
            f"{task.operation}: {top} is in the middle of a {busy}; finish it (git {busy} "
            f"--continue) or give it up (git {busy} --abort), then retry"
        )


@contextmanager
def blocked_by_people(task: NodeTask) -> Iterator[None]:
    """If people work in the checkout meanwhile, the node is blocked, and overwrites nothing."""
    try:
        yield
    except (DirtyCheckoutError, MovedHeadError) as error:
        raise BlockedError(f"{task.operation}: {error}") from None
    except LockedIndexError as error:
        raise BlockedError(str(error)) from None
