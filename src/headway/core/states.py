"""The status of a job: one table of transitions, one projection to the words of the API.

Terminal is final: no move leads out of a terminal status. Every pair of status and move is decided
here, with `None` for "refused"; no other module assigns a status that this table did not give.
"""

from collections.abc import Mapping
from enum import StrEnum

from headway.base.errors import InvalidTransitionError


class Status(StrEnum):
    QUEUED = "queued"
    WAITING_ON_DEPS = "waiting_on_deps"
    WAITING_ON_APPROVAL = "waiting_on_approval"
    WAITING_ON_LOCKS = "waiting_on_locks"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    BLOCKED_BY_DEPENDENCY = "blocked_by_dependency"
    BLOCKED_BY_APPROVAL = "blocked_by_approval"


class Move(StrEnum):
    WAIT = "wait"  # held back by something that shows as plain queued
    WAIT_ON_DEPS = "wait_on_deps"
    WAIT_ON_APPROVAL = "wait_on_approval"
    WAIT_ON_LOCKS = "wait_on_locks"
    CLAIM = "claim"
    UNCLAIM = "unclaim"  # only while it is proven that nothing was started
    RESET = "reset"  # a rewind puts an active member back to the start
    SUCCEED = "succeed"
    FAIL = "fail"
    SKIP = "skip"
    CANCEL = "cancel"
    BLOCK_BY_DEPENDENCY = "block_by_dependency"
    BLOCK_BY_APPROVAL = "block_by_approval"


_WAITING: dict[Move, Status | None] = {
    Move.WAIT: Status.QUEUED,
    Move.WAIT_ON_DEPS: Status.WAITING_ON_DEPS,
    Move.WAIT_ON_APPROVAL: Status.WAITING_ON_APPROVAL,
    Move.WAIT_ON_LOCKS: Status.WAITING_ON_LOCKS,
    Move.CLAIM: Status.RUNNING,
    Move.UNCLAIM: None,
    Move.RESET: Status.QUEUED,
    Move.SUCCEED: None,
    Move.FAIL: None,
    Move.SKIP: Status.SKIPPED,
    Move.CANCEL: Status.CANCELLED,
    Move.BLOCK_BY_DEPENDENCY: Status.BLOCKED_BY_DEPENDENCY,
    Move.BLOCK_BY_APPROVAL: Status.BLOCKED_BY_APPROVAL,
}

_RUNNING: dict[Move, Status | None] = {
    Move.WAIT: None,
    Move.WAIT_ON_DEPS: None,
    Move.WAIT_ON_APPROVAL: None,
    Move.WAIT_ON_LOCKS: None,
    Move.CLAIM: None,
    Move.UNCLAIM: Status.QUEUED,
    Move.RESET: None,
    Move.SUCCEED: Status.SUCCEEDED,
    Move.FAIL: Status.FAILED,
    Move.SKIP: Status.SKIPPED,
    Move.CANCEL: Status.CANCELLED,
    Move.BLOCK_BY_DEPENDENCY: None,
    Move.BLOCK_BY_APPROVAL: None,
}

_TERMINAL: dict[Move, Status | None] = dict.fromkeys(Move)

TRANSITIONS: Mapping[Status, Mapping[Move, Status | None]] = {
    Status.QUEUED: _WAITING,
    Status.WAITING_ON_DEPS: _WAITING,
    Status.WAITING_ON_APPROVAL: _WAITING,
    Status.WAITING_ON_LOCKS: _WAITING,
    Status.RUNNING: _RUNNING,
    Status.SUCCEEDED: _TERMINAL,
    Status.FAILED: _TERMINAL,
    Status.SKIPPED: _TERMINAL,
    Status.CANCELLED: _TERMINAL,
    Status.BLOCKED_BY_DEPENDENCY: _TERMINAL,
    Status.BLOCKED_BY_APPROVAL: _TERMINAL,
}

ACTIVE = frozenset(
    {
        Status.QUEUED,
        Status.WAITING_ON_DEPS,
        Status.WAITING_ON_APPROVAL,
        Status.WAITING_ON_LOCKS,
        Status.RUNNING,
    }
)
WAITING = ACTIVE - {Status.RUNNING}
TERMINAL = frozenset(Status) - ACTIVE


def after(status: Status, move: Move) -> Status:
    """The status that `move` leads to; raises if the table refuses it."""
    target = TRANSITIONS[status][move]
    if target is None:
        raise InvalidTransitionError(f"a {status} job cannot {move.replace('_', ' ')}")
    return target


API_STATUS: Mapping[Status, str] = {
    Status.QUEUED: "QUEUED",
    Status.WAITING_ON_DEPS: "QUEUED",
    Status.WAITING_ON_APPROVAL: "QUEUED",
    Status.WAITING_ON_LOCKS: "QUEUED",
    Status.RUNNING: "RUNNING",
    Status.SUCCEEDED: "COMPLETED",
    Status.FAILED: "FAILED",
    Status.SKIPPED: "SKIPPED",
    Status.CANCELLED: "CANCELLED",
    Status.BLOCKED_BY_DEPENDENCY: "CANCELLED",
    Status.BLOCKED_BY_APPROVAL: "CANCELLED",
}

# Only an executed job has a run, so only statuses that `running` leads to appear here.
RUN_STATUS: Mapping[Status, str] = {
    Status.SUCCEEDED: "COMPLETED",
    Status.FAILED: "FAILED",
    Status.SKIPPED: "SKIPPED",
    Status.CANCELLED: "FAILED",
}
