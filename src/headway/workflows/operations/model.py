"""What an operation is given, and what it returns or raises."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from headway.base.errors import HeadwayError
from headway.core.model import NOTHING


class NodeTask(NamedTuple):
    """What the claim says of a node. `args` have their values; `artifacts` are the data of what it
    needs, by the artifact's text without its run."""

    run: str  # wf-7
    node: str
    node_pass: int
    attempt: int
    job: str  # job-31, the owner of what it makes
    label: str
    operation: str
    key: str  # the same for all tries of a pass, see `operation_key`
    args: Mapping[str, Any]
    command: list[str] | None
    outputs: list[str]
    produces: list[str]
    artifacts: Mapping[str, Any]
    repository: str | None  # the top folder of the repository that the run works in
    directory: str  # where it works: its worktree, or the repository
    root: Mapping[str, Any] | None  # what its `worktree.prepare` node has set, with `job`
    home: str  # of Headway
    folder: str  # of its job
    state: str  # of the run besides `finally`: running, succeeded, failed, blocked, cancelled
    began: int  # when the run did, in seconds
    worktrees: str = ""  # the folder in which jobs have theirs
    old_trees: Sequence[Mapping[str, Any]] = ()  # worktrees that are in its way, see `values`


class Done(NamedTuple):
    """It succeeded. `summary` is a line for people."""

    summary: str = ""
    outputs: Mapping[str, Any] = NOTHING


class FailedError(HeadwayError):
    """It failed; `outputs` are set all the same."""

    def __init__(self, message: str, outputs: Mapping[str, Any] = NOTHING) -> None:
        super().__init__(message)
        self.outputs = outputs


class BlockedError(FailedError):
    """It cannot go on by itself: a person, or another node, has to act first."""


class ParkedError(FailedError):
    """Its agent met what holds for all jobs of the runner: it goes on when these may. `parks` is
    what the verdict says of that."""

    def __init__(self, message: str, parks: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.parks = parks


Operation = Callable[[NodeTask], Done]


def operation_key(host: str, run: str, node: str, node_pass: int) -> str:
    """Names one operation of one pass: all of its tries share it, and the next pass has another."""
    import hashlib

    text = "\0".join((host, run, node, str(node_pass)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def gone_root(what: str, node: str, job: str, run: str) -> str:
    """What is said where the worktree that a node works in, or its branch, was taken away."""
    from shlex import quote

    return f"the {what} of {node} ({job}){_GONE}headway workflows retry {run} --from {quote(node)}"


_GONE = " is gone; "


def retry_of_root(reason: str | None) -> str | None:
    """The command that those words name, which makes the worktree anew; None: it is not gone."""
    _, gone, command = (reason or "").partition(_GONE)
    return command.partition("; ")[0] if gone and command.startswith("headway ") else None
