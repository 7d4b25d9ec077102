"""The gates that a request asks for: artifacts, the pinned head, preconditions, a worktree.

What names a repository is resolved here, when it is submitted: the repository of the working
directory, the commit that is checked out now. Nothing is written.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.errors import InvalidInputError
from headway.core.artifacts import IN_REPOSITORY, ArtifactKind, parse_artifact
from headway.core.model import PinnedHead

if TYPE_CHECKING:
    from headway.jobs.request import Request

MOST = 1000
PRECONDITIONS = ("clean_worktree", "branch_exists", "branch_exists:BRANCH", "custom:ID")


class Gates(NamedTuple):
    """The graph's part of a specification."""

    needs: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    pinned_head: PinnedHead | None = None
    preconditions: tuple[str, ...] = ()
    repo: str | None = None
    worktree: dict[str, Any] | None = None


def gates_of(request: "Request", working_directory: str) -> Gates:
    """The checked gates of a request that will run in this directory."""
    needs = _artifacts("--needs", request.needs, working_directory)
    produces = _artifacts("--produces", request.produces, working_directory)
    both = set(needs) & set(produces)
    if both:
        raise InvalidInputError(f"it needs {min(both)}, which it produces itself")
    preconditions = tuple(check_precondition(each) for each in dict.fromkeys(request.require))
    what = _what_needs_a_repository(request, (*needs, *produces), preconditions)
    repo = _repository(working_directory, what) if what else None
    if what and request.any_host:
        raise InvalidInputError(f"{what} looks at a repository of this host; leave out --any-host")
    if repo is None and preconditions:
        repo = working_directory  # where a registered condition is asked
    return Gates(
        needs=needs,
        produces=produces,
        pinned_head=_pin(repo, request.pin_head),
        preconditions=preconditions,
        repo=repo,
        worktree=_worktree(repo, request.worktree, working_directory),
    )


def about_a_repository(request: "Request") -> str | None:
    """The part of the request, if any, that is resolved in a repository when it is submitted."""
    artifacts = [parse_artifact(text).text for text in (*request.needs, *request.produces)]
    return _what_needs_a_repository(request, artifacts, request.require)


def _artifacts(option: str, texts: Iterable[str], folder: str) -> tuple[str, ...]:
    found = dict.fromkeys(resolved_artifact(text, folder) for text in texts)
    if len(found) > MOST:
        raise InvalidInputError(f"{option}: {len(found)} artifacts are more than {MOST}")
    return tuple(found)


def resolved_artifact(text: str, folder: str) -> str:
    """As it is stored: a file by its whole path."""
    artifact = parse_artifact(text)
    if artifact.kind is ArtifactKind.FILE:
        path = os.path.abspath(os.path.join(folder, artifact.name))
        return parse_artifact(f"file:{path}").text
    if artifact.branch is not None:
        _require_branch(artifact.branch)
    return artifact.text


def check_precondition(text: str) -> str:
    kind, _, argument = text.partition(":")
    if kind == "branch_exists" and argument:
        _require_branch(argument)
    known = text in PRECONDITIONS[:2] or kind == "branch_exists"
    if not known and not (kind == "custom" and argument and argument.isprintable()):
        raise InvalidInputError(f"--require {text!r} is not one of {', '.join(PRECONDITIONS)}")
    return text


def _what_needs_a_repository(
    request: "Request", artifacts: Iterable[str], preconditions: Iterable[str]
) -> str | None:
    """The part of the request, if any, that is about a repository."""
    if request.pin_head is not None:
        return "--pin-head"
    if request.worktree is not None:
        return "--worktree"
    if request.save_patch:
        return "--save-patch"
    for text in preconditions:
        if text.removeprefix("custom:").partition(":")[0] in ("clean_worktree", "branch_exists"):
            return f"--require {text}"
    for text in artifacts:
        if parse_artifact(text).kind in IN_REPOSITORY:
            return text
    return None


def _repository(folder: str, what: str) -> str:
    from headway.integrations.git.questions import repository_of

    repo = repository_of(folder)
    if repo is None:
        raise InvalidInputError(f"{what}: {folder} is not in a git repository; git init, or --cwd")
    return repo


def _require_branch(name: str) -> None:
    from headway.integrations.git.program import safe_branch

    if not safe_branch(name):
        raise InvalidInputError(f"{name!r} cannot be the name of a branch")


def _pin(repo: str | None, branch: str | None) -> PinnedHead | None:
    if repo is None or branch is None:
        return None
    return pin_of(repo, branch or None)


def pin_of(repo: str, branch: str | None) -> PinnedHead:
    """Where a branch, or what is checked out, is now."""
    from headway.integrations.git.program import GitError
    from headway.integrations.git.questions import head_of

    if branch:
        _require_branch(branch)
    try:
        name, oid = head_of(repo, branch)
    except GitError as error:
        raise InvalidInputError(f"--pin-head: {error}") from None
    return PinnedHead(name or "HEAD", oid, head=not branch)


def _worktree(repo: str | None, base: str | None, folder: str) -> dict[str, Any] | None:
    if repo is None or base is None:
        return None
    from headway.integrations.git.layout import main_of
    from headway.integrations.git.program import GitError
    from headway.integrations.git.questions import commit_of, head_of

    try:
        oid = commit_of(repo, base) if base else head_of(repo)[1]
        main = main_of(repo)
    except GitError as error:
        raise InvalidInputError(f"--worktree: {error}") from None
    inside = os.path.relpath(os.path.realpath(folder), repo)
    return {"repo": main, "base": oid, "inside": inside}
